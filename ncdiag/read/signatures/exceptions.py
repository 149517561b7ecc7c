"""How programs end by an error of their own."""

from ncdiag.read.signatures.row import Signature

ROWS: tuple[Signature, ...] = ()
