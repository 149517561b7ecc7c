"""JSON of the RAS subsystem that stands among the lines of a log."""

import re
from collections.abc import Sequence

from ncdiag.model.log import LogEvidence, RasReport
from ncdiag.model.place import Place
from ncdiag.read.line import Line
from ncdiag.read.ras.json_report import MAX_BYTES, RasDocument
from ncdiag.read.ras.parts import MAX_REPORTS

# Lines in a row that are no JSON, after which the rest of an object does not come any more.
_STRANGERS = 3
_START = re.compile(r'"nccl_version"\s*:|"event"\s*:\s*"PEER_')
_PIECE = re.compile(r'[\[\]{}",\d-]|true|false|null')
# A text that does not end reaches to the line's end: so no line is looked at twice.
_TEXT = re.compile(r'"(?:[^"\\]|\\.)*"?')


class RasJsonReader:
    """Collects each object from the line that names it to its closing brace."""

    needles: frozenset[bytes] = frozenset({b'"nccl_version"', b'"PEER_'})
    facts: frozenset[bytes] = frozenset()

    def __init__(self) -> None:
        self.kinds: set[str] = set()
        self._reports: list[RasReport] = []
        self._parts: list[str] = []
        self._size = 0
        self._depth = 0
        self._strangers = 0
        self._place: Place | None = None

    @property
    def open(self) -> bool:
        """Whether an object has begun and not ended."""
        return self._place is not None

    def read(self, line: Line, hits: Sequence[bytes]) -> None:
        """Take a line; those of the library itself are none of an object."""
        del hits
        text = line.text.strip()
        if line.level or not text:
            return
        found = _START.search(text)
        if found:
            self._begin(text, found.start(), line.place)
        elif self._place is None:
            return
        elif _PIECE.match(text):
            self._add(text)
        else:
            self._strangers += 1
            if self._strangers > _STRANGERS:
                self._forget()

    def finish(self, evidence: LogEvidence) -> None:
        """Hand over the reports."""
        if self._reports:
            self.kinds.add("ras")
        evidence.ras.extend(self._reports)

    def _begin(self, text: str, at: int, place: Place) -> None:
        """The brace stands before, in this line or on one that was not seen."""
        self._forget()
        self._place = place
        brace = text.rfind("{", 0, at)
        if brace < 0:
            self._parts, self._depth = ["{"], 1
            brace = at
        self._add(text[brace:])

    def _add(self, text: str) -> None:
        self._strangers = 0
        self._parts.append(text)
        self._size += len(text)
        bare = _TEXT.sub("", text)
        self._depth += bare.count("{") - bare.count("}")
        if self._depth <= 0:
            self._end()
        elif self._size > MAX_BYTES:
            self._forget()

    def _end(self) -> None:
        place, evidence = self._place, LogEvidence()
        if place is not None:
            document = RasDocument(place.path)
            document.feed("\n".join(self._parts).encode(errors="replace"))
            document.finish(evidence)
        for report in evidence.ras:
            if place is None or len(self._reports) >= MAX_REPORTS:
                break
            report.place = place
            for issue in report.issues:
                issue.place = place
            self._reports.append(report)
        self._forget()

    def _forget(self) -> None:
        self._parts, self._size, self._depth, self._strangers = [], 0, 0, 0
        self._place = None
