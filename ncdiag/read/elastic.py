"""torchrun's closing report and the lines of its agent: which worker failed, and how."""

import re
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime

from ncdiag.model.finding import FindingClass, Role, Severity
from ncdiag.model.log import Event, LogEvidence, Speaker, WorkerFailure
from ncdiag.model.place import Clock, Moment, Place
from ncdiag.read.line import Line

# The form of what agents tell of their workers.
AGENT_FORM = "elastic_report"

_FIELD = re.compile(r"^\s*(time|host|rank|exitcode|error_file|traceback)\s{0,10}: ?(.*)$")
_INDEX = re.compile(r"^\s*\[(\d{1,7})\]:\s*$")
_HEADS = (
    (re.compile(r"^\s*Root Cause(?: \(first observed failure\))?:"), True),
    (re.compile(r"^\s*(?:Other )?Failures:\s*$"), False),
)
_BORDER = re.compile(r"^\s*[=*]{5,}\s*$")
_RANK = re.compile(r"^(\d{1,7})(?: \(local_rank: (\w{1,16})\))?")
_EXIT = re.compile(r"^(-?\d{1,5})(?: \(pid: (-?\d{1,10}|N/A)\))?")
_ONE_LINE = re.compile(
    r"failed \(exitcode: (?P<exitcode>-?\d{1,5})\) local_rank: (?P<local>\w{1,16}) "
    r"\(pid: (?P<pid>\d{1,10})\)"
)
_STAMP = "%Y-%m-%d_%H:%M:%S"
# A report has six lines a failure; a traceback in it may be long.
_PATIENCE = 400
_MOST = 20_000

_CRASHES = frozenset({"-4", "-7", "-8", "-11", "132", "135", "136", "139"})
_KILLS = frozenset({"-9", "137"})
_STOPS = frozenset({"-15", "143", "-2", "130", "-1"})


class ElasticReader:
    """Collects the failures of torchrun's reports, in every layout, one report a stream."""

    needles = frozenset(
        {
            b"ChildFailedError",
            b"Root Cause (first observed failure)",
            b"Root Cause:",
            b"Failures:",
            b" local_rank: ",
            b"(local_rank: ",
        }
    )
    facts: frozenset[bytes] = frozenset()

    def __init__(self) -> None:
        self.kinds: set[str] = set()
        self._failures: list[tuple[WorkerFailure, Line]] = []
        self._brief: list[tuple[WorkerFailure, Line]] = []
        self._reports: dict[Speaker, _Report] = {}
        self._lines = 0

    @property
    def open(self) -> bool:
        """Whether a report has not come to its end."""
        return bool(self._reports)

    def read(self, line: Line, hits: Sequence[bytes]) -> None:
        """Take a line of a report, or one that begins it."""
        self._lines += 1
        if line.level is not None:
            return
        if found := _ONE_LINE.search(line.text):
            self._note(self._brief, _brief(found, line), line)
            return
        report = self._reports.get(line.speaker)
        if report is None:
            if not self._begins(line, hits):
                return
            report = self._reports[line.speaker] = _Report()
        report.heard = self._lines
        for failure, where in report.read(line):
            self._note(self._failures, failure, where)
        if report.done:
            self._close(line.speaker)
        self._forget()

    def _begins(self, line: Line, hits: Sequence[bytes]) -> bool:
        return any(hit in self.needles for hit in hits) and bool(
            "ChildFailedError" in line.text
            or any(head.match(line.text) for head, _ in _HEADS)
            or (_FIELD.match(line.text) and "(local_rank: " in line.text)
        )

    def _note(
        self, into: list[tuple[WorkerFailure, Line]], failure: WorkerFailure, line: Line
    ) -> None:
        self.kinds.add("elastic")
        if len(into) < _MOST:
            into.append((failure, line))

    def _close(self, speaker: Speaker) -> None:
        report = self._reports.pop(speaker)
        for failure, where in report.rest():
            self._note(self._failures, failure, where)

    def _forget(self) -> None:
        """Close reports of which nothing came for long."""
        for speaker, report in list(self._reports.items()):
            if self._lines - report.heard > _PATIENCE:
                self._close(speaker)

    def finish(self, evidence: LogEvidence) -> None:
        """Hand over the failures, and an event for each that was not just told to stop."""
        for speaker in list(self._reports):
            self._close(speaker)
        known = {failure.pid for failure, _ in self._failures}
        found = [*self._failures, *(each for each in self._brief if each[0].pid not in known)]
        evidence.failures.extend(failure for failure, _ in found)
        evidence.events.extend(_events(found))


class _Report:
    """One report while it is read."""

    def __init__(self) -> None:
        self.heard = 0
        self.done = False
        self._first = False
        self._rooted = False
        self._failure: WorkerFailure | None = None
        self._line: Line | None = None
        self._in_traceback = False
        self._strange = 0

    def read(self, line: Line) -> list[tuple[WorkerFailure, Line]]:
        """Failures that are complete with this line."""
        text = line.text
        for head, first in _HEADS:
            if head.match(text):
                complete = self.rest()
                self._first, self._rooted = first, self._rooted or first
                return complete
        if _INDEX.match(text):
            complete = self.rest()
            self._failure = WorkerFailure(place=line.place, first=self._first)
            self._line = line
            return complete
        if _BORDER.match(text):
            complete = self.rest()
            self.done = self._rooted
            return complete
        self._take(line)
        return []

    def rest(self) -> list[tuple[WorkerFailure, Line]]:
        """The failure in hand, if it says anything."""
        failure, line = self._failure, self._line
        self._failure = self._line = None
        self._in_traceback = False
        if failure is None or line is None:
            return []
        told = failure.local_rank is not None or failure.pid is not None
        return [(failure, line)] if told else []

    def _take(self, line: Line) -> None:
        field = _FIELD.match(line.text)
        if not field:
            self._between(line.text)
            return
        if self._failure is None:
            # The index above the fields was lost.
            self._failure = WorkerFailure(place=line.place, first=self._first)
            self._line = line
        _set(self._failure, field[1], field[2].strip())
        self._strange = 0
        self._in_traceback = field[1] == "traceback"

    def _between(self, text: str) -> None:
        if self._in_traceback and self._failure:
            if text.strip() and not text.strip().startswith(("File ", "---")):
                error = text.strip()[:300]
                if re.match(r"[A-Za-z_][\w.]{0,200}(?:Error|Exception|Exit|Interrupt)\b", error):
                    self._failure.error = error
            return
        self._strange += bool(text.strip())
        if self._rooted and self._failure is None and self._strange > 3:
            self.done = True


def _set(failure: WorkerFailure, name: str, value: str) -> None:
    """Put a field of the report into its place."""
    if name == "host":
        failure.host = value or None
    elif name == "time":
        failure.time = _moment(value)
        if failure.time:
            failure.place = failure.place._replace(time=failure.time)
    elif name == "rank" and (rank := _RANK.match(value)):
        failure.rank, failure.local_rank = int(rank[1]), rank[2]
    elif name == "exitcode" and (code := _EXIT.match(value)):
        failure.exitcode = code[1]
        failure.pid = code[2] if code[2] and code[2].isdigit() else None
    elif name == "traceback" and value and not value.startswith(("Traceback", "Signal", "To ")):
        failure.error = value[:300]


def _moment(text: str) -> Moment | None:
    try:
        then = datetime.strptime(text[:32], _STAMP).replace(tzinfo=UTC)
    except ValueError:
        return None
    return Moment(text, then.timestamp(), Clock.WALL)


def _brief(found: re.Match[str], line: Line) -> WorkerFailure:
    return WorkerFailure(
        place=line.place,
        host=line.speaker.host,
        local_rank=found["local"],
        exitcode=found["exitcode"],
        pid=found["pid"],
    )


def _events(found: Sequence[tuple[WorkerFailure, Line]]) -> Iterable[Event]:
    """One event of the agent's for the first failure; the others are what came of it."""
    own = [each for each in found if each[0].exitcode not in _STOPS]
    candidates = sorted(own or found, key=_order)
    for number, (failure, line) in enumerate(candidates):
        follows = number > 0 or not own or failure.exitcode in _CRASHES | _KILLS
        yield _reported(failure, line, follows=follows, named=number == 0)
        if failure.exitcode in _CRASHES:
            signal = {"signal": str(abs(int(failure.exitcode)) % 128)}
            yield _ended(FindingClass.PROCESS_CRASH, failure, line, signal)
        elif failure.exitcode in _KILLS:
            died = {"exitcode": failure.exitcode} | ({"pid": failure.pid} if failure.pid else {})
            yield _ended(FindingClass.PROCESS_DIED, failure, line, died)


def _order(each: tuple[WorkerFailure, Line]) -> tuple[object, ...]:
    """By time; at one time what a report calls the first goes first."""
    failure, _ = each
    if failure.time:
        return (0, failure.time.seconds, not failure.first, failure.place.line)
    return (1, 0.0, not failure.first, failure.place.line)


def _reported(failure: WorkerFailure, line: Line, *, follows: bool, named: bool) -> Event:
    told = {
        "exitcode": failure.exitcode,
        "local_rank": failure.local_rank,
        "host": failure.host,
    }
    return Event(
        class_name=FindingClass.ELASTIC_WORKER_FAILED,
        form=AGENT_FORM,
        place=_place(failure),
        text=line.shown or line.text,
        speaker=line.speaker,
        attributes={k: v for k, v in told.items() if v} if named else {},
        details=_details(failure),
        ranks=(failure.rank,) if named and failure.rank is not None else (),
        role=Role.CONSEQUENCE if follows else None,
        severity=Severity.INFO if follows else None,
    )


def _ended(
    class_: FindingClass, failure: WorkerFailure, line: Line, attributes: dict[str, str]
) -> Event:
    return Event(
        class_name=class_,
        form=AGENT_FORM,
        place=_place(failure),
        text=line.shown or line.text,
        speaker=line.speaker,
        attributes=attributes,
        details=_details(failure),
        ranks=() if failure.rank is None else (failure.rank,),
    )


def _details(failure: WorkerFailure) -> dict[str, str]:
    told = {
        "host": failure.host,
        "rank": None if failure.rank is None else str(failure.rank),
        "pid": failure.pid,
        "error": failure.error,
    }
    return {name: value for name, value in told.items() if value}


def _place(failure: WorkerFailure) -> Place:
    return failure.place
