"""What MPI's launchers say of the first process that ended, over several lines."""

import re
from collections.abc import Sequence
from dataclasses import dataclass

from ncdiag.model.finding import FindingClass, Role, Severity
from ncdiag.model.log import Event, LogEvidence, Speaker
from ncdiag.read.events import EventLog
from ncdiag.read.line import Line

_NOTICED = re.compile(
    r"noticed that process rank (?P<rank>\d{1,7})(?: with PID (?P<pid>\d{1,10}))?"
    r"(?: on node (?P<host>[^\s<>]{1,256}))?(?: exited(?: on)?)?\s*$"
)
_ON_SIGNAL = re.compile(r"^\s*(?:exited )?(?:on )?signal (?P<signal>\d{1,3}) \(")
_HYDRA = re.compile(r"BAD TERMINATION OF ONE OF YOUR APPLICATION")
_HYDRA_WHO = re.compile(
    r"^=\s+(?:RANK (?P<rank>\d{1,7}) )?PID (?P<pid>\d{1,10}) RUNNING AT (?P<host>\S{1,256})"
)
_HYDRA_HOW = re.compile(
    r"^=\s+(?:KILLED BY SIGNAL: (?P<signal>\d{1,3})\b|EXIT CODE: (?P<code>-?\d{1,5})\b)"
)
_PRIMARY = re.compile(r"exited with non-zero status|Primary job {1,2}terminated normally, but")
_PRIMARY_NAME = re.compile(
    r"^\s*Process name:\s+\[(?:\[\d{1,10},\d{1,10}\]|\S{1,200}),(?P<rank>\d{1,7})\]"
)
_PRIMARY_CODE = re.compile(r"^\s*Exit code:\s+(?P<code>\d{1,5})")
_FAULTS = frozenset({4, 7, 8, 11})
# The forms of what Hydra tells in a block: of a process that was killed, and of any other.
HYDRA_KILLED, HYDRA_ENDED = "hydra_end_killed", "hydra_end"
_PATIENCE = 24
_MOST = 1024


@dataclass(slots=True)
class _Notice:
    """What is known of the process so far."""

    lines: int = 0
    hydra: bool = False
    rank: int | None = None
    pid: str | None = None
    host: str | None = None


class MpiEndReader:
    """Reads the closing blocks of mpirun, prterun and mpiexec."""

    needles = frozenset(
        {
            b"noticed that process rank",
            b"BAD TERMINATION OF ONE OF YOUR APPLICATION",
            b"exited with non-zero status",
            b"Primary job  terminated normally",
        }
    )
    facts: frozenset[bytes] = frozenset()

    def __init__(self) -> None:
        self.kinds: set[str] = set()
        self._notices: dict[Speaker, _Notice] = {}
        self._events = EventLog()

    @property
    def open(self) -> bool:
        """Whether a block has not come to its end."""
        return bool(self._notices)

    def read(self, line: Line, hits: Sequence[bytes]) -> None:
        """Take a line of a block, or one that begins it."""
        del hits
        if line.level is not None:
            self._age()
            return
        if noticed := _NOTICED.search(line.text):
            begun = self._begin(line)
            begun.rank = int(noticed["rank"])
            begun.pid, begun.host = noticed["pid"], noticed["host"]
        elif _HYDRA.search(line.text):
            self._begin(line).hydra = True
        elif _PRIMARY.search(line.text):
            self._begin(line)
        else:
            if notice := self._notices.get(line.speaker):
                self._within(line, notice)
            self._age()

    def _begin(self, line: Line) -> _Notice:
        if len(self._notices) >= _MOST:
            self._notices.clear()
        self.kinds.add("mpi")
        notice = self._notices[line.speaker] = _Notice()
        return notice

    def _age(self) -> None:
        for speaker, notice in list(self._notices.items()):
            notice.lines += 1
            if notice.lines > _PATIENCE:
                del self._notices[speaker]

    def _within(self, line: Line, notice: _Notice) -> None:
        if who := (_HYDRA_WHO.match(line.text) or _PRIMARY_NAME.match(line.text)):
            told = who.groupdict()
            notice.rank = int(told["rank"]) if told["rank"] else None
            notice.pid, notice.host = told.get("pid"), told.get("host")
        elif how := (_ON_SIGNAL.match(line.text) or _HYDRA_HOW.match(line.text)):
            told = how.groupdict()
            code = -int(told["signal"]) if told["signal"] else int(told["code"])
            self._ended(line, notice, code)
        elif found := _PRIMARY_CODE.match(line.text):
            self._ended(line, notice, int(found["code"]))

    def _ended(self, line: Line, notice: _Notice, code: int) -> None:
        del self._notices[line.speaker]
        signal = -code if code < 0 else code - 128 if 128 < code < 160 else None
        if signal is None and notice.hydra and code in {9, 11, 15}:
            signal = code  # Hydra prints a signal's number as the exit code
        class_, attributes, role = _kind(code, signal)
        if class_ == FindingClass.PROCESS_DIED and notice.pid:
            attributes = {"pid": notice.pid, **attributes}
        details = {"host": notice.host, "pid": notice.pid}
        self._events.add(
            Event(
                class_name=class_,
                form=_form(signal) if notice.hydra else "mpi_end",
                place=line.place,
                text=line.shown or line.text,
                speaker=line.speaker,
                attributes=attributes,
                details={name: value for name, value in details.items() if value},
                ranks=() if notice.rank is None else (notice.rank,),
                role=role,
                severity=Severity.INFO if role else None,
            )
        )

    def finish(self, evidence: LogEvidence) -> None:
        """Hand over the events."""
        evidence.events.extend(self._events.all())


def _form(signal: int | None) -> str:
    return HYDRA_KILLED if signal == 9 else HYDRA_ENDED


def _kind(code: int, signal: int | None) -> tuple[FindingClass, dict[str, str], Role | None]:
    """The class of such an end, what it publishes, and its role where that differs."""
    if signal in _FAULTS:
        return FindingClass.PROCESS_CRASH, {"signal": str(signal)}, None
    if signal in {15, 1}:
        return FindingClass.TERMINATED_BY_LAUNCHER, {"signal": str(signal)}, None
    if signal == 6:
        return FindingClass.COMM_ABORTED, {}, None
    if signal == 2:
        return FindingClass.JOB_CANCELLED, {"reason": "Interrupt"}, None
    exitcode = {"exitcode": str(code)} if code >= 0 else {}
    if signal is not None:
        return FindingClass.PROCESS_DIED, exitcode, None
    return FindingClass.PROCESS_DIED, exitcode, Role.CONSEQUENCE
