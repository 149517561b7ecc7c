"""The whole signature table, in the order in which rows of one class are tried."""

from ncdiag.read.signatures import completions, sockets, verbs
from ncdiag.read.signatures.row import Signature

TABLE: tuple[Signature, ...] = (
    *completions.ROWS,
    *verbs.ROWS,
    *sockets.ROWS,
)
