"""The whole signature table, in the order in which rows of one class are tried."""

from ncdiag.read.signatures import (
    completions,
    cuda,
    exceptions,
    framework,
    gpu,
    kernel,
    launcher,
    library,
    ofi,
    results,
    sockets,
    usage,
    verbs,
)
from ncdiag.read.signatures.row import Signature

# The most telling rows first: a result code says least.
TABLE: tuple[Signature, ...] = (
    *completions.ROWS,
    *verbs.ROWS,
    *sockets.ROWS,
    *ofi.ROWS,
    *gpu.ROWS,
    *cuda.ROWS,
    *library.ROWS,
    *usage.ROWS,
    *kernel.ROWS,
    *framework.ROWS,
    *launcher.ROWS,
    *exceptions.ROWS,
    *results.ROWS,
)
