"""Rows for failed work requests as UCX tells them, in words of the adapter's syndrome."""

from ncdiag.model.finding import FindingClass as C
from ncdiag.read.line import Line
from ncdiag.read.mlx5_dump import FLUSHED, STATUS_OF_SYNDROME
from ncdiag.read.signatures.fragments import echo, signature
from ncdiag.read.signatures.row import OUTSIDE

_NEEDLE = "ib_mlx5_log.c:"
_PATTERN = (
    r"\bib_mlx5_log\.c:\d{1,6} [^(\n]{1,120} on (?P<hca>[^\s:,/]{1,64})[^\s(]{0,40} "
    r"\(synd 0x(?P<d_syndrome>[0-9a-f]{1,2}) vend 0x(?P<vendor_err>[0-9a-f]{1,4})\b"
)
_SOURCE = "UCX uct/ib/mlx5/ib_mlx5_log.c"
_FAILED = (
    "ib_mlx5_log.c:171  UCX  ERROR Transport retry count exceeded on mlx5_1:1/RoCE "
    "(synd 0x15 vend 0x81 hw_synd 0/0)"
)
_FLUSHED = (
    "ib_mlx5_log.c:171  UCX  ERROR WR flushed because QP in error state on mlx5_1:1/IB "
    "(synd 0x5 vend 0xf9 hw_synd 0/0)"
)


def _completed(values: dict[str, str], *, flushed: bool) -> dict[str, str] | None:
    status = STATUS_OF_SYNDROME.get(int(values["d_syndrome"], 16))
    if status is None or (status == FLUSHED) != flushed:
        return None
    return {**values, "status": str(status), "vendor_err": str(int(values["vendor_err"], 16))}


def _failed(values: dict[str, str], _line: Line) -> dict[str, str] | None:
    return _completed(values, flushed=False)


def _flushed(values: dict[str, str], _line: Line) -> dict[str, str] | None:
    return _completed(values, flushed=True)


ROWS = (
    signature(
        "ucx-completion",
        C.IB_COMPLETION_ERROR,
        _NEEDLE,
        _PATTERN,
        sample=_FAILED,
        near_miss=_FLUSHED,
        source=_SOURCE,
        levels=OUTSIDE,
        refine=_failed,
    ),
    echo(
        "ucx-flush",
        C.IB_FLUSH_ERROR,
        _NEEDLE,
        _PATTERN,
        sample=_FLUSHED,
        near_miss=_FAILED,
        source=_SOURCE,
        levels=OUTSIDE,
        refine=_flushed,
    ),
)
