"""Which readers there are, each for a dialect of logs or for a kind of document."""

from collections.abc import Iterable

from ncdiag.read.course import CourseReader
from ncdiag.read.document import Document
from ncdiag.read.elastic import ElasticReader
from ncdiag.read.fabric_blocks import FabricBlockReader
from ncdiag.read.flight_text import FlightTextReader
from ncdiag.read.horovod_stalls import HorovodStallReader
from ncdiag.read.inspector import InspectorReader
from ncdiag.read.kernel_blocks import KernelBlockReader
from ncdiag.read.line import LineReader
from ncdiag.read.log_kinds import KindReader
from ncdiag.read.mlx5_dump import Mlx5DumpReader
from ncdiag.read.mpi_ends import MpiEndReader
from ncdiag.read.nccl.reader import NcclReader
from ncdiag.read.nccl_tests.table import TableReader
from ncdiag.read.ras.json_lines import RasJsonReader
from ncdiag.read.ras.text import RasTextReader
from ncdiag.read.ray_deaths import RayDeathReader
from ncdiag.read.repeated_lines import RepeatedLines
from ncdiag.read.signatures.reader import SignatureReader
from ncdiag.read.signatures.table import TABLE
from ncdiag.read.torch_progress import TorchProgressReader
from ncdiag.read.tracebacks import TracebackReader

# How pickles and JSON begin.
_BEGINNINGS = frozenset({b"\x80", b"(", b"}", b"{", b"["})


def line_readers() -> list[LineReader]:
    """A reader of each dialect, fresh."""
    return [
        SignatureReader(TABLE),
        TableReader(),
        # Behind what its processes are compared with.
        NcclReader(),
        TorchProgressReader(),
        FlightTextReader(),
        ElasticReader(),
        TracebackReader(),
        MpiEndReader(),
        RayDeathReader(),
        HorovodStallReader(),
        Mlx5DumpReader(),
        KernelBlockReader(),
        FabricBlockReader(),
        CourseReader(),
        KindReader(),
        RasTextReader(),
        RasJsonReader(),
        InspectorReader(),
    ]


def repeated_lines(readers: Iterable[LineReader]) -> RepeatedLines:
    """What knows the events that the signature table gave."""
    return RepeatedLines(next(one for one in readers if isinstance(one, SignatureReader)))


def document(head: bytes, path: str) -> Document | None:
    """A reader for a file that begins so, if it is one document and not lines.

    The readers of documents are loaded only for inputs that may be some.
    """
    if head[:1] not in _BEGINNINGS and head.lstrip()[:1] not in _BEGINNINGS:
        return None
    from ncdiag.read.flight.document import FlightDocument
    from ncdiag.read.nccl_tests.json_report import JsonReport
    from ncdiag.read.ras.json_report import RasDocument

    if FlightDocument.recognises(head):
        return FlightDocument(path)
    if RasDocument.recognises(head):
        return RasDocument(path)
    return JsonReport(path) if JsonReport.recognises(head) else None
