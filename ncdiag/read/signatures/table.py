"""The whole signature table, in the order in which rows of one class are tried."""

from ncdiag.read.signatures import (
    completions,
    cuda,
    exceptions,
    framework,
    gpu,
    host,
    kernel,
    launcher,
    library,
    ofi,
    rendezvous,
    results,
    sockets,
    topology,
    ucx,
    usage,
    verbs,
    xla,
)
from ncdiag.read.signatures.row import Signature

# The most telling rows first: a result code says least.
TABLE: tuple[Signature, ...] = (
    *completions.ROWS,
    *ucx.ROWS,
    *verbs.ROWS,
    *sockets.ROWS,
    *rendezvous.ROWS,
    *ofi.ROWS,
    *gpu.ROWS,
    *host.ROWS,
    *cuda.ROWS,
    *xla.ROWS,
    *library.ROWS,
    *topology.ROWS,
    *usage.ROWS,
    *kernel.ROWS,
    *framework.ROWS,
    *launcher.ROWS,
    *exceptions.ROWS,
    *results.ROWS,
)
