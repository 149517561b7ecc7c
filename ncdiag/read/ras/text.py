"""The text report of NCCL's RAS subsystem, alone or inside another log."""

import re
from collections.abc import Callable, Sequence
from typing import ClassVar

from ncdiag.model.log import LogEvidence, RasIssue, RasMember, RasReport
from ncdiag.model.place import Place
from ncdiag.read.line import Line
from ncdiag.read.ras.parts import (
    EVENTS,
    MAX_ISSUES,
    MAX_MEMBERS,
    MAX_REPORTS,
    NOTHING_LAUNCHED,
    OTHER_EVENTS,
    Peer,
    member,
    peer_in,
)
from ncdiag.read.ras.stream import EventStream

# A report ends where so many lines in a row are none of it.
_STRANGERS = 12
_RANGE = r"\d{1,9}(?:-\d{1,9})?"
_GPUS = r"\d[\d,]{0,200}(?: \(NVML [\d,]{1,200}\))?"
_WHO = (
    rf"(?:GPU (?P<gpus>{_GPUS}) managed by process (?P<pid>\d{{1,10}}) on node (?P<host>\S{{1,80}})"
    r"|\[process information not found\])"
)
_EVENT = re.compile(r"\b(PEER_[A-Z_]{1,30}): (.{0,400})")
_NUMBER = r"\d{1,20}"


def _row(pattern: str) -> re.Pattern[str]:
    return re.compile(rf"\s*{pattern}\s*$")


class RasTextReader:
    """Reads reports, and events of a monitor, out of the lines of one input."""

    needles: frozenset[bytes] = frozenset(
        {
            b"Job summary",
            b" compiled with CUDA",
            b"CUDA runtime version ",
            b"Communicators...",
            b"Gathering data about the ",
            b"Communicator ranks have different ",
            b"Missing communicator data from ",
            b"considered dead (unreachable",
            b") MISMATCH",
            b") INCOMPLETE",
            b" communication timeout",
            *(f"{event}: ".encode() for event in (*EVENTS, *OTHER_EVENTS)),
        }
    )
    facts: frozenset[bytes] = frozenset()

    def __init__(self) -> None:
        self.kinds: set[str] = set()
        self._reports: list[RasReport] = []
        self._events = EventStream()
        self._report: RasReport | None = None
        self._strangers = 0
        self._version: str | None = None
        self._heading = ""
        self._sizes: dict[str, int] = {}
        self._begin_section("", None)

    @property
    def open(self) -> bool:
        """Whether this is inside a report."""
        return self._report is not None

    def read(self, line: Line, hits: Sequence[bytes]) -> None:
        """Take a line; those of the library itself are none of a report."""
        del hits
        text = line.text.strip()
        if line.level or not text:
            return
        if (event := _EVENT.search(text)) and (event[1] in EVENTS or event[1] in OTHER_EVENTS):
            self._events.add(event[1], peer_in(event[2]), line.place, line.shown or text)
            return
        for pattern, take in self._FORMS:
            if found := pattern.match(text):
                take(self, found, line)
                self._strangers = 0
                return
        self._heading = text
        self._strangers += 1
        if self._strangers > _STRANGERS:
            self._close()

    def finish(self, evidence: LogEvidence) -> None:
        """Hand over the reports."""
        self._close()
        if report := self._events.report():
            self._reports.append(report)
        if self._reports:
            self.kinds.add("ras")
        evidence.ras.extend(self._reports)

    def _close(self) -> None:
        self._end_section()
        if self._report and len(self._reports) < MAX_REPORTS:
            self._reports.append(self._report)
        self._report = None
        self._version = None
        self._sizes = {}
        self._begin_section("", None)

    def _within(self, place: Place) -> RasReport:
        """The report at hand; one that begins in its middle is a report, too."""
        if self._report is None:
            self._report = RasReport(place=place, version=self._version)
        return self._report

    # What stands in front of the sections.

    def _on_version(self, found: re.Match[str], line: Line) -> None:
        # Other programs print this line as well: by itself it begins nothing.
        del line
        if self._report:
            self._close()
        self._version = found[1]

    def _on_start(self, found: re.Match[str], line: Line) -> None:
        """A heading that stands in a report once."""
        del found
        begun = self._report is not None and (
            self._report.nodes is not None or self._report.communicators is not None
        )
        if begun:
            version = self._version
            self._close()
            self._version = version
        self._within(line.place)

    def _on_totals(self, found: re.Match[str], line: Line) -> None:
        if self._report is None or "(total)" not in self._heading:
            return
        del line
        numbers = [int(number) for number in found[0].split() if number.isdigit()]
        if len(numbers) >= 3:
            self._report.nodes = numbers[0]
            self._report.processes, self._report.gpus = numbers[-2:]

    def _on_few(self, found: re.Match[str], line: Line) -> None:
        if self._heading.count("(total)") == 3:
            self._on_totals(found, line)

    def _on_communicators(self, found: re.Match[str], line: Line) -> None:
        del found
        report = self._within(line.place)
        if report.communicators is not None:
            self._close()
            report = self._within(line.place)
        report.communicators = 0

    def _on_group(self, found: re.Match[str], line: Line) -> None:
        report = self._within(line.place)
        number, count, nodes, _, size, _, _, _ = found.groups()
        self._sizes[number] = int(size)
        report.communicators = (report.communicators or 0) + int(count)
        if int(size) > (report.largest or 0):
            report.largest = int(size)
        if report.nodes is None:
            report.nodes = int(nodes)

    def _on_ignored(self, found: re.Match[str], line: Line) -> None:
        del found
        self._heading = line.text.strip()

    def _on_part(self, found: re.Match[str], line: Line) -> None:
        """The headings of the two parts; the second is the last there is."""
        if self._report is None:
            return
        del line
        self._end_section()
        self._begin_section("", None)
        self._report.complete = self._report.complete or found[1] == "Warnings"

    # The sections, and the parts of a section.

    def _begin_section(self, kind: str, place: Place | None, group: str | None = None) -> None:
        self._kind = kind
        self._group = group
        self._size = self._sizes.get(group[1:].partition("-")[0]) if group else None
        self._header: tuple[Place, str] | None = None if place is None else (place, kind)
        self._issue: RasIssue | None = None
        self._operation: int | None = None
        self._status: str | None = None

    def _end_section(self) -> None:
        """A section that is cut off behind its heading tells that there is one."""
        if self._header and self._issue is None:
            self._new_issue(self._header[0], self._header[1])

    def _new_issue(self, place: Place, text: str, op: str | None = None) -> RasIssue:
        report = self._within(place)
        self._operation = self._status = None
        self._issue = RasIssue(
            kind=self._kind, place=place, group=self._group, ranks=self._size, op=op, text=text
        )
        if len(report.issues) < MAX_ISSUES:
            report.issues.append(self._issue)
        return self._issue

    def _on_section(self, found: re.Match[str], line: Line) -> None:
        group, kind = found[1], found[2]
        if group is None and self._report is None:
            return
        self._end_section()
        self._within(line.place)
        self._begin_section(kind, line.place, group)

    def _on_difference(self, found: re.Match[str], line: Line) -> None:
        self._kind = "MISMATCH"
        self._new_issue(line.place, found[0], op=found["op"])

    def _on_incomplete(self, found: re.Match[str], line: Line) -> None:
        self._kind = "INCOMPLETE"
        self._new_issue(line.place, found[0])

    def _on_dead(self, found: re.Match[str], line: Line) -> None:
        self._kind = "DEAD"
        self._new_issue(line.place, found[0])

    def _on_timeout(self, found: re.Match[str], line: Line) -> None:
        self._kind = "TIMEOUT"
        self._new_issue(line.place, found[0])

    def _on_errors(self, found: re.Match[str], line: Line) -> None:
        self._kind = "ERROR"
        self._new_issue(line.place, found[0])

    def _on_many(self, found: re.Match[str], line: Line) -> None:
        """So many ranks have a status, a count or an error; the next lines may list them."""
        del line
        if self._issue is None:
            return
        self._note(found, int(found["n"]))

    def _on_rank(self, found: re.Match[str], line: Line) -> None:
        del line
        rank = int(found["rank"])
        if self._issue is None or (self._size is not None and rank >= self._size):
            return
        alone = any(found[name] for name in ("status", "operation", "none", "error"))
        if alone:
            self._note(found, 1)
        if len(self._issue.members) < MAX_MEMBERS:
            self._issue.members.append(
                RasMember(
                    rank,
                    found["host"],
                    found["pid"],
                    found["gpus"],
                    self._operation,
                    self._status,
                )
            )

    def _note(self, found: re.Match[str], count: int) -> None:
        if self._issue is None:
            return
        status = found["status"] or found["error"]
        if status:
            self._status, self._operation = status.strip(), None
            self._issue.statuses[self._status] = self._issue.statuses.get(self._status, 0) + count
        else:
            launched = found["operation"]
            self._operation = int(launched) if launched else NOTHING_LAUNCHED
            self._status = None
            counts = self._issue.counts
            counts[self._operation] = counts.get(self._operation, 0) + count

    def _on_process(self, found: re.Match[str], line: Line) -> None:
        del line
        if self._issue is not None and len(self._issue.members) < MAX_MEMBERS:
            self._issue.members.append(member(Peer(found["host"], found["pid"], found["gpus"])))

    _WHAT: ClassVar[str] = (
        rf"(?:ha(?:s|ve) status (?P<status>[A-Z]{{1,20}})"
        rf"|ha(?:s|ve) launched up to operation (?P<operation>{_NUMBER})"
        r"|(?P<none>ha(?:s|ve) not launched any operations?)"
        r"|reported (?P<error>[^-]{1,60}))"
    )
    _FORMS: ClassVar[
        Sequence[tuple[re.Pattern[str], Callable[["RasTextReader", re.Match[str], Line], None]]]
    ] = (
        (re.compile(rf"Rank (?P<rank>\d{{1,12}}) (?:{_WHAT} ?)?-- {_WHO}"), _on_rank),
        (re.compile(rf"(?P<n>\d{{1,9}}) ranks? {_WHAT}"), _on_many),
        (
            re.compile(
                rf"Process (?P<pid>\d{{1,10}}) on node (?P<host>\S{{1,80}}) managing "
                rf"GPUs? (?P<gpus>{_GPUS})"
            ),
            _on_process,
        ),
        (
            re.compile(
                r"Communicator ranks have different "
                r"(?:status|(?P<op>\S{1,40}) operation counts)"
            ),
            _on_difference,
        ),
        (
            re.compile(
                r"(?:Warning: )?[Mm]issing (?:communicator )?data from \d{1,9} "
                r"(?:job )?(?:process(?:es)?|ranks?)"
            ),
            _on_incomplete,
        ),
        (re.compile(r"\d{1,9} job process(?:es)?.{0,20} considered dead"), _on_dead),
        (
            re.compile(r"(?:Warning: )?[Ee]ncountered \d{1,9} communication timeouts?"),
            _on_timeout,
        ),
        (re.compile(r"(?:Initialization|Asynchronous) errors? on \d{1,9} ranks?"), _on_errors),
        (
            re.compile(
                r"(?:(#\d{1,9}-\d{1,9}) \([0-9a-f]{1,16}\) )?"
                r"(INCOMPLETE|ERROR|MISMATCH|DEAD|TIMEOUT)$"
            ),
            _on_section,
        ),
        (re.compile(r"(Errors|Warnings)$"), _on_part),
        (_row(rf"({_RANGE}\s+){{4}}{_RANGE}"), _on_totals),
        (_row(rf"({_RANGE}\s+){{2}}{_RANGE}"), _on_few),
        (
            _row(
                r"(\d{1,9})\s+(\d{1,9})\s+(\d{1,9})\s+" + rf"({_RANGE})"
                r"\s+(\d{1,9})\s+(\d{1,9})\s+([A-Z,]{2,40})\s+([A-Z,]{2,40})"
            ),
            _on_group,
        ),
        (re.compile(r"Communicators\.\.\."), _on_communicators),
        (re.compile(r"Job summary$|Gathering data about the RAS network"), _on_start),
        (re.compile(r"CUDA runtime version \d{1,9}, driver version"), _on_start),
        (
            re.compile(
                r"Nodes\s+Processes|Processes\s+GPUs|\(total\)|per node|per process"
                r"|Group\s+Comms|#\s+in group|={4,}$|No communicator data collected"
                r"|The (?:outlier|missing|affected)|Node \S{1,80} running process"
                r"|\[could not find information|Collected data about|Travel times|Minimum "
                r"|From node |Gathering data about the NCCL|obtained a result"
            ),
            _on_ignored,
        ),
        (re.compile(r"NCCL version (\d[\w.+-]{0,60}) compiled with CUDA"), _on_version),
    )
