"""PyTorch's messages: watchdog, store, rendezvous."""

from ncdiag.read.signatures.row import Signature

ROWS: tuple[Signature, ...] = ()
