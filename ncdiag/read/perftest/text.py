"""Reads what ib_write_bw, ib_read_lat and their like print on a terminal.

The title opens a run, a heading tells the columns and the unit, a row has a number for each column,
and a line of dashes closes the report. Whatever stands between is a warning, or another program's.
"""

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from ipaddress import IPv6Address

from ncdiag.read.perftest.rates import gbit_per_s, peak
from ncdiag.read.perftest.records import BandwidthRow, LatencyRow, Run, Side

TITLE = re.compile(
    r"(?P<test>\b(?:Send|RDMA_Write|RDMA_Read|Atomic|Raw\w{0,40}|\w{1,40}_imm)(?: [\w-]+){0,5}? "
    r"(?:BW|Latency)(?: [\w-]+){0,2} Test)"
)
HEADING = re.compile(r"#bytes\s+(?:#sl\s+)?#iterations\s")
_COLUMNS = re.compile(
    r"#bytes|#sl|#iterations|(?P<bw>BW (?:peak|average|Port1|Port2))\[(?P<unit>[^\]]+)\]"
    r"|(?P<name>MsgRate(?: Port[12])?|t_\w+|99% percentile|99\.9% percentile|CPU_Util)\[[^\]]*\]"
    r"|tps average"
)
_RULE = re.compile(r"\s*-{20,}\s*")
_SIDE = re.compile(r"\s*(?P<side>Local|Remote) results:\s*")
_WAITING = "Waiting for client to connect"
_FIELD = re.compile(r"(?P<key>Device|Number of qps|Link type)\s*: (?P<value>\S+)")
_ADDRESS = re.compile(r"\s*(?P<side>local|remote) address: +LID (?P<lid>(?:0x)?[0-9a-f]{1,8})\b")
_GID = re.compile(r"\s*GID: (?P<bytes>\d{1,3}(?::\d{1,3}){15})\s*")
_NUMBER = re.compile(r"[+-]?(?:\d{1,20}(?:\.\d{1,20})?(?:e[+-]?\d{1,3})?|nan|inf)", re.ASCII)
# Written to stderr by the program itself, and so anywhere inside its own output.
_WARNING = re.compile(
    r"Conflicting CPU frequency values detected: [\d.]+? != \d+(?:\.\d+)?"
    r"(?:\. CPU Frequency is not max\.)?(?: *Test integrity may be harmed *!)?\n?"
)
_COMPLAINT = re.compile(
    r"\b(?:fail(?:ed|ure)?|couldn't|can't|cannot|unable|error|invalid|unrecognized|did not|"
    r"not found|no such|refused|mismatch|state is|syndrom)\b",
    re.IGNORECASE,
)
_MAX_COMPLAINTS = 20
_COLOUR = re.compile(r"\x1b\[[0-9;]{0,20}m")
_MAX_LINE = 4_000


def read_text(text: str) -> list[Run]:
    """The runs in ``text``, in the order in which they stand there."""
    reader = _Reader()
    for line, ended in _lines(text):
        reader.line(line, ended=ended)
    return [run for run in reader.runs if run.test or run.has_rows or run.complaints]


def _lines(text: str) -> Iterator[tuple[str, bool]]:
    """Lines without their end, and whether they have one."""
    plain = _COLOUR.sub("", text.replace("\r\n", "\n"))
    *whole, last = _WARNING.sub("", plain).split("\n")
    for line in whole:
        yield line[:_MAX_LINE], True
    if last:
        yield last[:_MAX_LINE], False


class _Reader:
    """What is known at the line that comes next."""

    def __init__(self) -> None:
        self.runs: list[Run] = []
        self._columns: tuple[str, ...] = ()
        self._unit: str | None = None
        self._side = Side.WHOLE
        self._addressed: str | None = None
        self._rows = 0

    def line(self, line: str, *, ended: bool) -> None:
        """Take one line."""
        if _RULE.fullmatch(line):
            if self._rows and ended:
                self.runs[-1].complete, self._rows = True, 0
        elif self._is_row(line, ended=ended):
            return
        elif HEADING.search(line):
            self._heading(line, ended=ended)
        elif title := TITLE.search(line):
            self._begin(title["test"])
        elif _WAITING in line:
            self._begin(None)
            self.runs[-1].listening = True
        elif side := _SIDE.fullmatch(line):
            self._side, self._run().complete = Side(side["side"].lower()), False
        else:
            self._describe(line)

    def _run(self) -> Run:
        if not self.runs:
            self.runs.append(Run())
        return self.runs[-1]

    def _begin(self, test: str | None) -> None:
        current = self.runs[-1] if self.runs else None
        # What was said before a title, as that one waits for the other side, is of the same run.
        if current is None or current.test or current.has_rows:
            self.runs.append(Run())
        self.runs[-1].test = test
        self._columns, self._side, self._addressed, self._rows = (), Side.WHOLE, None, 0

    def _heading(self, line: str, *, ended: bool) -> None:
        found = list(_COLUMNS.finditer(line))
        units = {match["unit"] for match in found if match["bw"]}
        self._columns = tuple(match["bw"] or match["name"] or match[0] for match in found)
        self._unit = units.pop() if len(units) == 1 else None
        if not ended:
            self._columns = ()
        elif self._run().complete and self._side is Side.WHOLE:
            self.runs.append(Run())  # another run, whose title was lost

    def _is_row(self, line: str, *, ended: bool) -> bool:
        """Take a row; a line of as many numbers as there are columns is one."""
        words = line.split()
        if not self._columns or not words or not words[0].isdecimal():
            return False
        if not all(_NUMBER.fullmatch(word) for word in words):
            return False
        run = self._run()
        if len(words) != len(self._columns):
            run.damaged += ended
            return True
        values = dict(zip(self._columns, map(float, words), strict=True))
        if not ended:  # its last number may be cut off
            del values[self._columns[-1]]
        self._rows += _take_row(run, values, self._unit, self._side)
        run.complete = False
        return True

    def _describe(self, line: str) -> None:
        for found in _FIELD.finditer(line):
            _take_field(self._run(), found["key"], found["value"])
        if address := _ADDRESS.match(line):
            self._addressed = address["side"]
            if lid := int(address["lid"], 16):  # RoCE has none
                setattr(self._run(), self._addressed, f"lid{lid}")
        elif (gid := _GID.fullmatch(line)) and self._addressed:
            if known := _address_of(gid["bytes"]):
                setattr(self._run(), self._addressed, known)
        elif _COMPLAINT.search(line) and len(self._run().complaints) < _MAX_COMPLAINTS:
            self._run().complaints.append(line.strip()[:300])


def _take_row(run: Run, values: Mapping[str, float], unit: str | None, side: Side) -> bool:
    """Add what a row says to ``run``; whether it makes sense."""
    size, iterations = _whole(values.get("#bytes")), _whole(values.get("#iterations"))
    if "t_avg" in values and math.isfinite(values["t_avg"]):
        names = ("t_typical", "t_min", "t_max", "99% percentile", "99.9% percentile")
        typical, least, most, p99, p999 = (_finite(values.get(name)) for name in names)
        run.latency.append(
            LatencyRow(
                size_bytes=size,
                iterations=iterations,
                average_us=values["t_avg"],
                typical_us=typical,
                min_us=least,
                max_us=most,
                p99_us=p99,
                p999_us=p999,
            )
        )
        return True
    average = values.get("BW average")
    if average is None or (figure := gbit_per_s(average, unit)) is None:
        run.damaged += 1
        return False
    messages, cpu = _finite(values.get("MsgRate")), _finite(values.get("CPU_Util"))
    run.bandwidth.append(
        BandwidthRow(
            side=side,
            size_bytes=size,
            iterations=iterations,
            gbit_per_s=figure,
            peak_gbit_per_s=peak(gbit_per_s(values.get("BW peak", math.nan), unit)),
            messages_per_s=None if messages is None else messages * 1e6,
            cpu_share=None if cpu is None else cpu / 100,
        )
    )
    return True


def _take_field(run: Run, key: str, value: str) -> None:
    if key == "Device":
        run.device = value
    elif key == "Link type":
        run.link_type = value
    elif value.isdecimal() and len(value) < 10:
        run.queue_pairs = int(value)


def _address_of(gid: str) -> str | None:
    """The IP address in a GID, which is printed as 16 decimal numbers."""
    numbers: Sequence[int] = [int(number) for number in gid.split(":")]
    if max(numbers) > 255 or not any(numbers):
        return None
    address = IPv6Address(bytes(numbers))
    return str(address.ipv4_mapped or address)


def _finite(value: float | None) -> float | None:
    return value if value is not None and math.isfinite(value) else None


def _whole(value: float | None) -> int | None:
    return int(value) if value is not None and math.isfinite(value) and value < 2**63 else None
