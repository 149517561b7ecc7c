"""Rows for completion errors of InfiniBand and RoCE work requests, one a layout and outcome."""

import re
from typing import NamedTuple

from ncdiag.model.finding import FindingClass as C
from ncdiag.model.finding import Role, Severity
from ncdiag.read.line import Line
from ncdiag.read.signatures.fragments import PEER, signature
from ncdiag.read.signatures.row import Signature

SUCCESS, FLUSHED = "0", "5"

# enum ibv_wc_status of <infiniband/verbs.h>, in its order and without IBV_WC_.
_STATUS_NAMES = (
    "SUCCESS",
    "LOC_LEN_ERR",
    "LOC_QP_OP_ERR",
    "LOC_EEC_OP_ERR",
    "LOC_PROT_ERR",
    "WR_FLUSH_ERR",
    "MW_BIND_ERR",
    "BAD_RESP_ERR",
    "LOC_ACCESS_ERR",
    "REM_INV_REQ_ERR",
    "REM_ACCESS_ERR",
    "REM_OP_ERR",
    "RETRY_EXC_ERR",
    "RNR_RETRY_EXC_ERR",
    "LOC_RDD_VIOL_ERR",
    "REM_INV_RD_REQ_ERR",
    "REM_ABORT_ERR",
    "INV_EECN_ERR",
    "INV_EEC_STATE_ERR",
    "FATAL_ERR",
    "RESP_TIMEOUT_ERR",
    "GENERAL_ERR",
)
STATUS_NUMBERS = {name: str(number) for number, name in enumerate(_STATUS_NAMES)}

# The fields after the status stand in every layout's own order; a cut line lacks the last of them.
_FIELDS = (
    re.compile(r"vendor[ _]err[ =](?P<vendor_err>\d{1,6})"),
    re.compile(r"(?:req_type=|\()(?P<direction>Send|Recv|Flush|[A-Z][a-z]{2,11})\b"),
    re.compile(r"localGid ?(?P<local_gid>[0-9a-fA-F:.]{2,46})"),
    re.compile(r"remoteGids?\s?(?P<remote_gid>[0-9a-fA-F:.]{2,46})"),
    re.compile(r" hca (?P<hca>[^\s:,]{1,64})"),
)


def status_number(values: dict[str, str], _line: Line) -> dict[str, str] | None:
    """The status as digits, where only its name is printed."""
    name = values.pop("name", "")
    if "status" not in values:
        number = STATUS_NUMBERS.get(name.removeprefix("IBV_WC_"))
        if number is None:
            return None
        values["status"] = number
    return values


def _completed(values: dict[str, str], line: Line, *, flushed: bool) -> dict[str, str] | None:
    known = status_number(values, line)
    if known is None or known["status"] == SUCCESS or (known["status"] == FLUSHED) != flushed:
        return None
    for field in _FIELDS:
        if found := field.search(line.text):
            known.update(found.groupdict())
    return known


def _failed(values: dict[str, str], line: Line) -> dict[str, str] | None:
    return _completed(values, line, flushed=False)


def _flushed(values: dict[str, str], line: Line) -> dict[str, str] | None:
    return _completed(values, line, flushed=True)


class _Layout(NamedTuple):
    """``sample`` holds ``{}`` where the status stands; ``named`` says that its name comes first."""

    name: str
    versions: str
    pattern: str
    sample: str
    source: str
    named: bool = False


# Something must follow: of a line cut within the number nothing is known.
_STATUS = r"(?P<status>\d{1,3})(?=[ ,])"
_NAMED_STATUS = r"status=(?P<name>[A-Za-z_]{1,40})\((?P<status>\d{1,3})\)"
_NET = r"NET/[\w/]{1,24} ?: "

# The most telling layout first: the first that matches wins.
_LAYOUTS = (
    _Layout(
        "gin",
        "2.28.7 and later",
        rf"NET/IB/GIN ?: Got completion from peer {PEER} with status={_STATUS}",
        "NET/IB/GIN: Got completion from peer 10.9.0.4<40112> with status={} opcode=1 len=0 "
        "vendor err 129 (Send) localGid fe80::9:1 remoteGidsfe80::9:2 hca mlx5_2",
        "transport/net_ib/gin.cc",
    ),
    _Layout(
        "request-size",
        "2.28.7 to 2.28.9",
        rf"{_NET}Got completion from peer {PEER} with {_NAMED_STATUS} "
        r"opcode=[\w()]{1,50} reqSize=",
        "NET/IB: Got completion from peer 10.9.0.4<40112> with status={} opcode=IBV_WC_SEND(0) "
        "reqSize=4096 vendor_err=129 req_type=Send localGid fe80::9:1 remoteGidsfe80::9:2 "
        "hca mlx5_2",
        "transport/net_ib.cc",
        named=True,
    ),
    _Layout(
        "named-status",
        "2.29.2 and later",
        rf"{_NET}Got completion from peer {PEER} with {_NAMED_STATUS}",
        "NET/IB: Got completion from peer 10.9.0.4<40112> with status={} opcode=IBV_WC_SEND(0) "
        "vendor_err=129  localGid fe80::9:1 remoteGidsfe80::9:2 hca mlx5_2",
        "transport/net_ib/p2p.cc",
        named=True,
    ),
    _Layout(
        "only-name",
        "builds that print no number",
        rf"{_NET}Got completion (?:from peer {PEER} )?with status=(?P<name>IBV_WC_[A-Z_]{{3,40}})"
        r"(?![A-Z_(])",
        "NET/IB: Got completion from peer 10.9.0.4<40112> with status={} vendor_err=129",
        "forks of transport/net_ib.cc",
        named=True,
    ),
    _Layout(
        "hca",
        "2.22.3 to 2.28.3",
        rf"NET/[\w/]{{1,24}}: Got completion from peer {PEER} with status={_STATUS}",
        "NET/IB: Got completion from peer 10.9.0.4<40112> with status={} opcode=0 len=0 "
        "vendor err 129 (Recv) localGid fe80::9:1 remoteGidsfe80::9:2 hca mlx5_2",
        "transport/net_ib.cc",
    ),
    _Layout(
        "status",
        "2.20.3 to 2.21.5",
        rf"{_NET}Got completion from peer {PEER} with status={_STATUS}",
        "NET/IB : Got completion from peer 10.9.0.4<40112> with status={} opcode=0 len=0 "
        "vendor err 129 (Recv) localGid fe80::9:1 remoteGidsfe80::9:2",
        "transport/net_ib.cc",
    ),
    _Layout(
        "direction",
        "2.18.1 to 2.19.4",
        rf"{_NET}Got completion from peer {PEER} with error {_STATUS}.{{0,60}}"
        r"vendor err \d{1,6} \(",
        "NET/IB : Got completion from peer 10.9.0.4<40112> with error {}, opcode 0, len 0, "
        "vendor err 129 (Flush) localGid fe80::9:1 remoteGidfe80::9:2",
        "transport/net_ib.cc",
    ),
    _Layout(
        "peer",
        "2.10.3 to 2.17.1",
        rf"{_NET}Got completion from peer {PEER} with error {_STATUS}",
        "NET/IB : Got completion from peer 10.9.0.4<40112> with error {}, opcode 0, len 0, "
        "vendor err 129",
        "transport/net_ib.cc",
    ),
    _Layout(
        "no-peer",
        "up to 2.9",
        rf"{_NET}Got completion with (?:error |status=){_STATUS}",
        "NET/IB : Got completion with error {}, opcode 0, len 0, vendor err 129",
        "transport/net_ib.cc",
    ),
)


def _number(layout: _Layout, number: str) -> str:
    """The status ``number`` as the layout prints it."""
    if not layout.named:
        return number
    name = next(name for name, known in STATUS_NUMBERS.items() if known == number)
    return f"IBV_WC_{name}" + ("" if layout.name == "only-name" else f"({number})")


def _rows(layout: _Layout) -> tuple[Signature, Signature]:
    failed = layout.sample.format(_number(layout, "12"))
    flushed = layout.sample.format(_number(layout, FLUSHED))
    return (
        signature(
            f"ib-completion-{layout.name}",
            C.IB_COMPLETION_ERROR,
            "Got completion ",
            layout.pattern,
            sample=failed,
            near_miss=layout.sample.format(_number(layout, SUCCESS)),
            source=layout.source,
            versions=layout.versions,
            refine=_failed,
        ),
        signature(
            f"ib-flush-{layout.name}",
            C.IB_FLUSH_ERROR,
            "Got completion ",
            layout.pattern,
            sample=flushed,
            near_miss=failed,
            source=layout.source,
            versions=layout.versions,
            role=Role.CONSEQUENCE,
            severity=Severity.INFO,
            refine=_flushed,
        ),
    )


ROWS = tuple(row for layout in _LAYOUTS for row in _rows(layout))
