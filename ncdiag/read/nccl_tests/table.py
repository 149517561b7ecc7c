"""Reads what nccl-tests and rccl-tests print: announcement, rank table, results, footer."""

import re
from collections.abc import Callable, Sequence

from ncdiag.model.benchmark import TableRank
from ncdiag.model.log import NOBODY, TABLE_FORM, Event, LogEvidence
from ncdiag.model.place import Place
from ncdiag.read.line import Line
from ncdiag.read.nccl_tests.layout import (
    TYPES,
    OpenRow,
    layout_of,
    number,
    piece,
    row_head,
)
from ncdiag.read.nccl_tests.runs import Run, Runs, sweep_of

Stream = tuple[str | None, ...]
_NOBODYS: Stream = (None, None, None)

# Pages that show a log may take the mark of a comment for one of their own.
_ANNOUNCED = re.compile(r"(?:^|#)\s{0,4}nThreads?:? {1,4}\d{1,6} {1,4}nGpus")
_STARTING = re.compile(r"(?:# ?|^\s{0,4})Collective test (starting|concluded): (\S{1,80})")
_VERSION = re.compile(r"# ?nccl-tests version .{0,80}nccl-library=(\d{4,7})")
_RANK = re.compile(
    r"(?:^|#)\s{0,8}Rank\s{1,8}(\d{1,9}) (?:\s{0,8}Group\s{1,8}\d{1,9} )?"
    r"(?:\s{0,8}Pid\s{1,12}(\d{1,10}) )?on\s{1,12}(\S{1,255}) device\s{1,8}(\d{1,5}) "
    r"\[([^\]]{0,40})\]\s{0,4}([^#]{0,120})"
)
_BOUNDS = re.compile(r"(?:# ?|^\s{0,4})Out of bounds values ?: ?(-?\d{1,18})(?: (OK|FAILED))?")
_AVERAGE = re.compile(r"(?:# ?|^\s{0,4})Avg bus bandwidth\s{0,8}: ?(\S{0,40})")
_LAST_FIGURE = re.compile(r"(?<=\s)[-+.\deE*]{1,40}\Z")
_FAILURE = re.compile(r"(?<!\S)(\S{1,255}): Test (?:NCCL failure|CUDA failure|timeout) ?\S")
_TRACE = re.compile(r"\.\. (\S{1,255}) pid (\d{1,10}): Test failure ")
_PROGRAM = re.compile(
    r"(?:^|[\s/'\"])((?:all_reduce|all_gather|broadcast|reduce_scatter|reduce|alltoallv?|scatter"
    r"|gather|sendrecv|hypercube)_perf\w{0,40})(?=[\s'\";|&)<>]|\Z)"
)
_OPTION = re.compile(r"_perf\w{0,40}['\"]? {1,4}-[a-zA-Z]")
_LAUNCH = re.compile(
    r"^\s{0,4}(?:[+$#>]{1,4} |\[[^\]]{0,40}\]\s?[$#+] )|\b(?:mpirun|mpiexec|srun) "
)

# A table that others' lines fill this far is over, even if its footer never came.
_FOREIGN_LINES = 4_000
_LIBRARY_LINES = 200_000
_COMMAND_REACH = 64
_OLD_VERSION_BELOW = 10_000
_MAX_NAMES = 1_000
_MAX_RANKS = 100_000


class TableReader:
    """Keeps one record a run."""

    def __init__(self) -> None:
        self.needles = frozenset(needle.encode() for needle in _NEEDLES)
        self.facts: frozenset[bytes] = frozenset()
        self.kinds: set[str] = set()
        self._runs = Runs()
        self._names: dict[Stream, list[str]] = {}
        self._version: str | None = None
        self._command: tuple[str, int] | None = None
        self._hosts: dict[str, Place] = {}
        self._foreign = 0
        self._of_library = 0
        self._previous = ("", 0, NOBODY)
        self._repeated = False
        self._doubled = False

    @property
    def open(self) -> bool:
        """Whether a table is being printed."""
        within = self._foreign < _FOREIGN_LINES and self._of_library < _LIBRARY_LINES
        return within and self._runs.printing

    def read(self, line: Line, hits: Sequence[bytes]) -> None:
        """Take a line of a run, or one that was printed into it."""
        del hits
        if line.unended:
            line = line._replace(text=_LAST_FIGURE.sub("", line.text))
        before, self._previous = self._previous, (line.text, line.place.line, line.speaker)
        self._repeated = self._previous == (before[0], before[1] + 1, before[2])
        if self._repeated and (self._doubled or _proves_doubling(line.text)):
            self._doubled = True
            return
        speaker = line.speaker
        stream = (speaker.label, speaker.address, None if line.level else speaker.host)
        if (line.level is None and self._read_mark(line, stream)) or self._read_row(line, stream):
            self._foreign = self._of_library = 0
        elif line.level is None:
            self._foreign += 1
        else:
            self._of_library += 1

    def finish(self, evidence: LogEvidence) -> None:
        """Hand over the runs, and an event for each that found wrong values."""
        for run in self._runs.all:
            run.end_row()
            if self._doubled and run.echo and run.empty:
                continue
            evidence.benchmarks.append(run.benchmark)
            if run.bad:
                evidence.events.append(corruption(run))
        for host, place in self._hosts.items():
            evidence.hosts.setdefault(host, place)

    def _read_mark(self, line: Line, stream: Stream) -> bool:
        """Read a line of the frame around the results."""
        for word, pattern, note in _MARKS:
            if word in line.text and (found := pattern.search(line.text)):
                note(self, found, line, stream)
                return True
        return False

    def _read_row(self, line: Line, stream: Stream) -> bool:
        """Read a row, or a piece of one."""
        head = row_head(line.text)
        if head:
            run = self._runs.for_row(stream, head.size) or self._unannounced(line, stream)
            run.begin_row(OpenRow(head, line.place, line.shown or line.text, head.rest))
            self.kinds.add("nccl-tests")
            return True
        run_in_row = self._runs.for_piece(stream)
        more = piece(line.text, of_library=line.level is not None) if run_in_row else None
        if run_in_row is None or more is None:
            return False
        run_in_row.continue_row(more, line.place)
        return True

    def _unannounced(self, line: Line, stream: Stream) -> Run:
        """A table without an announcement, or whose heading is lost."""
        run = self._runs.for_heading(stream) or self._headless(line, stream)
        run.benchmark.heading = line.place
        return run

    def _headless(self, line: Line, stream: Stream) -> Run:
        run = self._begin(line, stream)
        run.benchmark.headless = True
        return run

    def _begin(self, line: Line, stream: Stream) -> Run:
        run = self._runs.begin(stream, line.place)
        names = self._names.get(stream) or self._names.get(_NOBODYS)
        run.benchmark.test = names.pop(0) if names else self._commanded(line)
        run.benchmark.library_version = self._version
        self.kinds.add("nccl-tests")
        return run

    def _commanded(self, line: Line) -> str | None:
        """The program of a command shown shortly before, once."""
        command, self._command = self._command, None
        if command and 0 <= line.place.line - command[1] <= _COMMAND_REACH:
            return command[0]
        return None

    def _note_announcement(self, found: re.Match[str], line: Line, stream: Stream) -> None:
        del found
        run = self._begin(line, stream)
        run.sweep = sweep_of(line.text)
        run.echo = self._repeated

    def _note_name(self, found: re.Match[str], line: Line, stream: Stream) -> None:
        del line
        if found[1] == "starting":
            names = self._names.setdefault(stream, [])
            if len(names) < _MAX_NAMES:
                names.append(found[2])

    def _note_version(self, found: re.Match[str], line: Line, stream: Stream) -> None:
        del line
        self._version = version_of(int(found[1]))
        self._names.pop(stream, None)

    def _note_ranks(self, found: re.Match[str], line: Line, stream: Stream) -> None:
        """One rank a line; lost line ends put several on one."""
        for each in _RANK.finditer(line.text, found.start()):
            self._note_rank(each, line, stream)

    def _note_rank(self, found: re.Match[str], line: Line, stream: Stream) -> None:
        rank = int(found[1])
        run = self._runs.for_rank(stream, rank) or self._begin(line, stream)
        if len(run.known_ranks) < _MAX_RANKS:
            run.known_ranks.add(rank)
            _, pid, host, device, bus_id, name = found.groups()
            run.benchmark.ranks.append(
                TableRank(rank, host, pid or "", device, bus_id, name.strip())
            )

    def _note_heading(self, found: re.Match[str], line: Line, stream: Stream) -> None:
        del found
        if layout := layout_of(line.text):
            run = self._runs.for_heading(stream)
            if run is None:
                run = self._begin(line, stream)
                run.echo = self._repeated
            run.benchmark.heading = line.place
            run.benchmark.cpu_times = layout.cpu_times
            run.layout = layout

    def _note_bounds(self, found: re.Match[str], line: Line, stream: Stream) -> None:
        run = self._runs.for_bounds(stream) or self._headless(line, stream)
        run.end_row()
        run.benchmark.out_of_bounds = int(found[1])
        run.benchmark.end = line.place
        failed = found[2] == "FAILED" or (found[2] is None and int(found[1]) > 0)
        if failed and run.bad is None:
            run.bad = (run.far_off, found[1], line.place, line.shown or line.text)

    def _note_average(self, found: re.Match[str], line: Line, stream: Stream) -> None:
        average = number(found[1])
        run = self._runs.for_average(stream, average) or self._headless(line, stream)
        run.end_row()
        run.benchmark.avg_busbw = average
        run.benchmark.complete = True
        run.benchmark.end = line.place

    def _note_failure(self, found: re.Match[str], line: Line, stream: Stream) -> None:
        """Nothing more comes of a run that says so; each of its processes says it."""
        del stream
        self.kinds.add("nccl-tests")
        self._hosts.setdefault(found[1], line.place)
        pid = found[2] if found.re is _TRACE else None
        if run := self._runs.for_failure(found[1], pid):
            run.end_row()
            run.benchmark.failed = run.benchmark.end = line.place

    def _note_command(self, found: re.Match[str], line: Line, stream: Stream) -> None:
        """A command names the test that follows, if it is one and names one."""
        del stream
        names = {name[1] for name in _PROGRAM.finditer(line.text)}
        if len(names) == 1 and (_OPTION.search(line.text) or _LAUNCH.search(line.text)):
            self._command = (found[1], line.place.line)


def _proves_doubling(text: str) -> bool:
    """Whether no two processes print such a line: it has an id or a time in it."""
    if _RANK.search(text) or _TRACE.search(text):
        return True
    head = row_head(text)
    return head is not None and "." in head.rest and head.size > 0


def version_of(number_: int) -> str:
    """NCCL's version as a number, in words: two digits a part since 2.9, one before."""
    base = 1_000 if number_ < _OLD_VERSION_BELOW else 10_000
    return f"{number_ // base}.{number_ % base // 100}.{number_ % 100}"


def corruption(run: Run) -> Event:
    """The event of a run that found wrong values."""
    size, wrong, place, text = run.bad or (None, "", run.benchmark.place, "")
    attributes = {"wrong": wrong} if size is None else {"size": str(size), "wrong": wrong}
    return Event(
        class_name="data_corruption",
        form=TABLE_FORM,
        place=place,
        text=text,
        attributes=attributes,
        details={"hosts": ",".join(dict.fromkeys(rank.host for rank in run.benchmark.ranks))},
    )


_Note = Callable[[TableReader, re.Match[str], Line, Stream], None]
# A word that such a line contains, its pattern, and what is noted of it; the first match wins.
_MARKS: tuple[tuple[str, re.Pattern[str], _Note], ...] = (
    ("nThread", _ANNOUNCED, TableReader._note_announcement),  # noqa: SLF001
    ("Collective test ", _STARTING, TableReader._note_name),  # noqa: SLF001
    ("nccl-library=", _VERSION, TableReader._note_version),  # noqa: SLF001
    ("Rank", _RANK, TableReader._note_ranks),  # noqa: SLF001
    ("algbw", re.compile("algbw"), TableReader._note_heading),  # noqa: SLF001
    ("Out of bounds", _BOUNDS, TableReader._note_bounds),  # noqa: SLF001
    ("Avg bus bandwidth", _AVERAGE, TableReader._note_average),  # noqa: SLF001
    (": Test ", _TRACE, TableReader._note_failure),  # noqa: SLF001
    (": Test ", _FAILURE, TableReader._note_failure),  # noqa: SLF001
    ("_perf", _PROGRAM, TableReader._note_command),  # noqa: SLF001
)
_NEEDLES = (
    "nThread",
    "Collective test ",
    "nccl-library=",
    " Pid ",
    " device  ",
    "algbw",
    "Out of bounds values",
    "Avg bus bandwidth",
    ": Test failure ",
    ": Test NCCL failure",
    ": Test CUDA failure",
    ": Test timeout",
    "_perf",
    *(f" {name} " for name in TYPES if name not in {"int", "char"}),
)
