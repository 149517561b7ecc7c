"""Takes the wrappers before a record off, as long as what follows proves them."""

import re
from dataclasses import dataclass, field, replace

from ncdiag.model.log import NOBODY, Speaker
from ncdiag.read.peel import library, stamps, wrappers
from ncdiag.read.peel.wrappers import Proof, Wrapper

_MOST = 16
# Beginnings that no wrapper is mistaken for: of NCCL, its tests, torch, kernels and launchers.
_OPENER = re.compile(
    r'"(?:nccl_version|event)"\s{0,4}:|'
    r"[NR]CCL version\b|[\w.-]{1,255}:\d{1,10}:\d{1,10} \[-?\d{1,4}\] "
    r"|# |#$|NVRM: |nvidia-nvswitch\d|mlx[45]_core |mlx5: |Traceback \(most recent"
    r"|EDAC [A-Z]|(?:\{\d{1,9}\}|mce: )\[Hardware Error\]: |pcieport [0-9a-f]{4}:"
    r"|[^\s:\[\]<>(){}|]{1,255}: Test (?:NCCL|CUDA) failure| \.\. \S{1,255} pid \d|libfabric:\d"
    r"|\[(?:PG|Rank) [^\]]{1,200}\] |torch\.distributed\.|Channel \d\d|terminate called after"
    r"|srun: |slurm(?:d|stepd)\S{0,255}: |mpi(?:run|exec)\S{0,64}: "
    r"|\[[\w.-]{1,255}:\d{1,10}\] |\*\*\* |ncclSystemError|ncclRemoteError|RuntimeError: "
    r"|torch\.\w+\.?\w*Error: |Last error:|[0-9a-f]{8} [0-9a-f]{8} [0-9a-f]{8} [0-9a-f]{8}$",
    re.ASCII,
)
# Forms that, once proved, are believed in the rest of the input too.
_LASTING = frozenset({"[n]", "n:", "file:"})
_NAMED: dict[str, str | int] = {
    "host:": "host",
    "service": "label",
    "logging": 0,
    "stern": 0,
    "[host]": 0,
}
# Numbers of lines that grow with the lines, so often that it is no chance.
_COUNTING = frozenset({"n tab", "n|", "n", "n:text"})
_COUNTED = 4
_COUNTED_FORMS = _COUNTING | {"n:"}
_TIGHT = "n:text"
# Launchers number processes so, and editors lines.
_NUMBERS = frozenset({"[n]", "n:"})
# Columns of numbers are no numbers of lines.
_ONCE = frozenset({"n"})
_MOST_STREAMS = 10_000
_MOST_NAMES = 4096
_ADDRESS = re.compile(r"\d{1,3}(?:\.\d{1,3}){3}", re.ASCII)
_PID_MAX = 1 << 22
_ORIGINS = (
    (
        re.compile(r"(?:srun|slurm(?:d|stepd)|sbatch|salloc)(?:-[\w.-]{1,255})?: ", re.ASCII),
        "slurm",
    ),
    (re.compile(r"(?:mpirun|mpiexec[\w.]{0,16}|prterun|orterun|orted|prted): ", re.ASCII), "mpi"),
    (re.compile(r"(?:[A-Z]{4,8}:)?torch\.distributed\.(?:elastic|run|launcher)\b"), "elastic"),
)
# Messages of MPI name their process; it stays part of the text.
_SELF_NAMED = re.compile(
    r"\[(?:(?P<host>[A-Za-z][\w.-]{0,252}):(?P<pid>\d{1,10})(?P<thread>:\d{1,10}){0,2}"
    r"|(?:proxy:\d+(?::\d+)?|mpiexec)@(?P<proxy>[A-Za-z][\w.-]{0,252}))\] ",
    re.ASCII,
)
# What UCX says after its process.
_UCX = re.compile(r" {0,16}(?:Caught signal \d|[\w.-]{1,64}:\d{1,6} +UCX )", re.ASCII)


@dataclass(slots=True)
class Chain:
    """What the wrappers of one record prove; the record's text begins at ``end``."""

    end: int = 0
    shown: int = 0
    speaker: Speaker = NOBODY
    stamp: stamps.Stamp | None = None
    origin: str | None = None
    location: str | None = None
    prefix: library.Prefix | None = None
    part: re.Match[str] | None = None


@dataclass(slots=True)
class Memory:
    """What earlier lines of the input proved."""

    calendar: stamps.Calendar
    forms: set[str] = field(default_factory=set)
    names: set[str] = field(default_factory=set)
    doubted: set[str] = field(default_factory=set)
    hosts: library.Hosts = field(default_factory=library.Hosts)
    numbers: set[tuple[str, int]] = field(default_factory=set)
    last_labels: dict[str, tuple[int, int, str | None]] = field(default_factory=dict)
    streams: set[str] = field(default_factory=set)
    line: int = 0
    counts: dict[int, tuple[int, int]] = field(default_factory=dict)
    tight: bool = False

    def believes(self, row: Wrapper, found: re.Match[str], depth: int) -> bool:
        """Whether this form was proved before."""
        if row.name in self.forms:
            return True
        if row.name in _COUNTING:
            offset, counted = self.counts.get(depth, (0, 0))
            return counted >= _COUNTED and int(found["number"]) - self.line == offset
        group = _NAMED.get(row.name)
        return group is not None and found[group] in self.names

    def count(self, rows: list[tuple[Wrapper, re.Match[str]]]) -> None:
        """Note the numbers before a line: whether they count the lines shows soon."""
        for depth, (row, found) in enumerate(rows):
            number = found.groupdict().get("number") or found.groupdict().get("label")
            if not number or row.name not in _COUNTED_FORMS:
                continue
            offset = int(number) - self.line
            known, counted = self.counts.get(depth, (0, 0))
            counted = counted + 1 if offset == known else 1
            self.counts[depth] = offset, counted
            self.tight = self.tight or (counted > 1 and row.name == _TIGHT)

    def learn(self, row: Wrapper, found: re.Match[str]) -> None:
        """Believe this form from now on."""
        group = _NAMED.get(row.name)
        if row.name in _LASTING:
            self.forms.add(row.name)
        elif group is not None and len(self.names) < _MOST_NAMES:
            self.names.add(found[group])

    def doubt(self, row: Wrapper, found: re.Match[str], proof: Proof) -> None:
        """Believe a form that one line does not prove once the same words come again."""
        if row.needs is not Proof.AGAIN:
            return
        if found[0] in self.doubted:
            self.learn(row, found)
        elif proof is Proof.SURE and len(self.doubted) < _MOST_NAMES:
            self.doubted.add(found[0])

    def label(self, form: str, text: str) -> str | None:
        """``text`` if numbers name streams in this input, ``None`` where they may count lines."""
        number = int(text)
        line, last, label = self.last_labels.get(form, (-1, -2, None))
        if (line, last) != (self.line, number):
            label = text if self._names_stream(form, number, last) else None
            self.last_labels[form] = self.line, number, label
        return label

    def _names_stream(self, form: str, number: int, last: int) -> bool:
        seen = (form, number) in self.numbers
        if len(self.numbers) < _MOST_NAMES:
            self.numbers.add((form, number))
        if number == last or (seen and number != last + 1):
            self.streams.add(form)
        counts = number in {last + 1, self.line} or number >= _MOST_STREAMS
        return form in self.streams or not counts


def read(text: str, start: int, memory: Memory, base: Chain | None = None) -> Chain:
    """The wrappers at ``start`` and the library's prefix after them, if it follows."""
    rows, prefix, known = _rows(text, start, memory)
    if not start:
        memory.count(rows)
    believed = _believed(rows, memory, Proof.SURE if known else Proof.NOTHING)
    chain = replace(base, end=start, shown=start, part=None) if base else Chain(start, start)
    if believed == len(rows):
        chain.prefix = prefix
    for depth, (row, found) in enumerate(rows[:believed]):
        _apply(chain, row, found, memory, depth)
    return _finished(chain, text)


def _rows(
    text: str, at: int, memory: Memory
) -> tuple[list[tuple[Wrapper, re.Match[str]]], library.Prefix | None, bool]:
    """The rows that match one after the other from ``at``, and what follows them."""
    rows: list[tuple[Wrapper, re.Match[str]]] = []
    library_line = "CCL" in text or "] INFO " in text or " WARN " in text
    while True:
        prefix = None
        if library_line:
            prefix = library.at(text, at) or library.lost_at(text, at)
        if prefix or _OPENER.match(text, at):
            return rows, prefix, True
        step = wrappers.match(text, at) if len(rows) < _MOST else None
        if step and memory.tight and step[0].name == "n:":
            step = wrappers.tight(text, at) or step
        if step is None or (step[0].name in _ONCE and any(row is step[0] for row, _ in rows)):
            return rows, None, False
        rows.append(step)
        at = step[1].end()


def begins(text: str, memory: Memory) -> bool:
    """Whether ``text`` begins as a record of its own does."""
    rows = _rows(text, 0, memory)
    return rows[2] or _believed(rows[0], memory, Proof.NOTHING) > 0


def _believed(rows: list[tuple[Wrapper, re.Match[str]]], memory: Memory, proof: Proof) -> int:
    """How many of ``rows``, from the first, are proved by what follows them."""
    believed = len(rows)
    for index in range(len(rows) - 1, -1, -1):
        row, found = rows[index]
        if row.needs <= proof or memory.believes(row, found, index):
            if proof >= Proof.SURE:
                memory.learn(row, found)
            proof = max(proof, row.proves)
        else:
            memory.doubt(row, found, proof)
            believed, proof = index, Proof.NOTHING
    return believed


def _apply(chain: Chain, row: Wrapper, found: re.Match[str], memory: Memory, depth: int) -> None:
    values = found.groupdict()
    chain.end = found.end()
    if not row.quoted:
        chain.shown = found.end()
    chain.origin = _origin(row, values) or chain.origin
    chain.location = values.get("location") or chain.location
    if values.get("part"):
        chain.part = found
    stamp = _stamp(values, memory)
    if stamp and (chain.stamp is None or stamp.weight > chain.stamp.weight):
        chain.stamp = stamp
    label = values.get("label")
    if label and row.name in _NUMBERS:
        label = memory.label(f"{depth} {row.name}", label)
    said = chain.speaker
    rank, host = values.get("rank"), values.get("host")
    if host and _ADDRESS.fullmatch(host):
        values["address"], host = host, None
    chain.speaker = said._replace(
        host=host or said.host,
        pid=values.get("pid") or _thread(values) or said.pid,
        rank=int(rank) if rank else said.rank,
        label=label or said.label,
        address=values.get("address") or said.address,
    )


def _thread(values: dict[str, str | None]) -> str | None:
    """The number of glog's lines: a process or, too large for one, a thread's handle."""
    thread = values.get("thread")
    return thread if thread and int(thread) <= _PID_MAX else None


def _origin(row: Wrapper, values: dict[str, str | None]) -> str | None:
    for group, origin in (("kernel", "kernel"), ("slurm", "slurm"), ("fabric", "fabric-manager")):
        if values.get(group):
            return origin
    location = values.get("location") or ""
    if row.name == "glog" and "torch/distributed/" in location:
        return "elastic"
    return row.origin


def _stamp(values: dict[str, str | None], memory: Memory) -> stamps.Stamp | None:
    time = values.get("time")
    if time:
        return stamps.read(time, memory.calendar)
    seconds, micros = values.get("uptime"), values.get("uptime_us")
    if seconds:
        return stamps.uptime(seconds, float(seconds))
    return stamps.uptime(micros, int(micros) / 1e6) if micros else None


def _finished(chain: Chain, text: str) -> Chain:
    prefix = chain.prefix
    if prefix:
        chain.end = prefix.end
        return chain
    for pattern, origin in _ORIGINS:
        if pattern.match(text, chain.end):
            chain.origin = origin
            return chain
    named = _SELF_NAMED.match(text, chain.end)
    if named and chain.origin in {None, "mpi", "pdsh"}:
        if named["thread"]:
            chain.origin = "ucx" if _UCX.match(text, named.end()) else None
        else:
            chain.origin = "mpi"
        chain.speaker = chain.speaker._replace(
            host=named["host"] or named["proxy"], pid=named["pid"] or chain.speaker.pid
        )
    return chain
