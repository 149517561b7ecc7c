"""The whole signature table, in the order in which rows of one class are tried."""

from ncdiag.read.signatures import completions, cuda, ofi, sockets, verbs
from ncdiag.read.signatures.row import Signature

TABLE: tuple[Signature, ...] = (
    *completions.ROWS,
    *verbs.ROWS,
    *sockets.ROWS,
    *ofi.ROWS,
    *cuda.ROWS,
)
