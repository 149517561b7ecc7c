"""Tensors that wait for ranks, as Horovod reports them: the ranks stand on lines of their own.

... One or more tensors were submitted to be reduced, gathered or broadcasted by subset of ...
Missing ranks:
5: [grad_7, grad_8 ...]
"""

import re
from collections.abc import Sequence

from ncdiag.model.finding import FindingClass, Role, Severity
from ncdiag.model.log import Event, LogEvidence, Speaker
from ncdiag.model.place import Place
from ncdiag.read.events import EventLog
from ncdiag.read.line import Line

FORM = "horovod_stall"

_HEAD = re.compile(r"submitted to be reduced, gathered or broadcasted by subset of ranks\b")
_TITLE = re.compile(r"(?:Missing ranks|Stalled ops): ?")
_RANK = re.compile(r"\s{0,8}(\d{1,7}): \[[^\]\n]{0,4000}\]?,?")
# "Stalled ops:grad_7 [missing ranks: 5, 6]", before 0.19.
_OLD = re.compile(r" \[missing ranks: ?(\d[\d, ]{0,8000})\]")
_NUMBER = re.compile(r"\d{1,7}")
# Ranks of a report, a line each, and reports that are read at a time.
_MOST_LINES = 4096
_MOST = 256


class _Stall:
    """A report while its ranks are read."""

    def __init__(self, head: Line) -> None:
        self.head = head
        self.last: Place = head.place
        self.ranks: list[int] = []
        self.lines = 0

    def take(self, text: str, place: Place) -> bool:
        """Take the ranks of a line, or of the end of one; whether it belonged to the report."""
        title = _TITLE.match(text)
        at = title.end() if title else 0
        told = [int(number) for old in _OLD.findall(text) for number in _NUMBER.findall(old)]
        while rank := _RANK.match(text, at):
            told.append(int(rank[1]))
            at = rank.end()
        self.lines += 1
        if not (title or told) or self.lines > _MOST_LINES:
            return False
        self.ranks += told
        self.last = place
        return True


class HorovodStallReader:
    """Joins a report of waiting tensors with the ranks that it names.

    A report is no fault by itself: the ranks may come yet.
    """

    needles = frozenset({b"submitted to be reduced, gathered or broadcasted"})
    facts: frozenset[bytes] = frozenset()

    def __init__(self) -> None:
        self._stalls: dict[Speaker, _Stall] = {}
        self._events = EventLog()

    @property
    def open(self) -> bool:
        """Whether ranks are awaited."""
        return bool(self._stalls)

    def read(self, line: Line, hits: Sequence[bytes]) -> None:
        """Take the head of a report, or its ranks."""
        del hits
        stall = self._stalls.get(line.speaker)
        if _HEAD.search(line.text):
            self._close(line.speaker)
            if len(self._stalls) < _MOST:
                self._begin(line)
        elif stall and line.text.strip() and not stall.take(line.text, line.place):
            self._close(line.speaker)

    def _begin(self, line: Line) -> None:
        stall = self._stalls[line.speaker] = _Stall(line)
        if title := _TITLE.search(line.text):
            stall.take(line.text[title.start() :], line.place)

    def _close(self, speaker: Speaker) -> None:
        stall = self._stalls.pop(speaker, None)
        if stall is None or not stall.ranks:
            return
        self._events.add(
            Event(
                class_name=FindingClass.HANG_MID_RUN,
                form=FORM,
                place=stall.head.place,
                text=stall.head.shown or stall.head.text,
                speaker=speaker,
                ranks=tuple(sorted(set(stall.ranks))),
                role=Role.WARNING,
                severity=Severity.DEGRADED,
                last=stall.last,
            )
        )

    def finish(self, evidence: LogEvidence) -> None:
        """Hand over the events."""
        for speaker in list(self._stalls):
            self._close(speaker)
        evidence.events.extend(self._events.all())
