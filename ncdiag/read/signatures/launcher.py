"""Launchers and schedulers: how they end a job."""

from ncdiag.read.signatures.row import Signature

ROWS: tuple[Signature, ...] = ()
