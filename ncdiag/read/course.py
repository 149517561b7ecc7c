"""How a run went: ranks met, work came to a regular end, as programs say; hosts that booted."""

import re
from collections.abc import Sequence

from ncdiag.model.log import LogEvidence
from ncdiag.model.place import Place
from ncdiag.read.line import Line

# Rank 0 prints it when the first communicator is made, for which all ranks have to meet.
_MET = re.compile(r"^[NR]CCL version :? ?\d")
_ENDED = re.compile(
    r"worker group successfully finished"
    r"|\bJob '[^'\n]{1,200}' succeeded\b"
    r"|^`Trainer\.fit` stopped: `max_\w{1,20}=\S{1,40}` reached"
    r"|\b[Tt]raining (?:is )?(?:finished|completed?|done)\b"
    r"(?! with (?:an )?error| (?:for |in |of |on )?(?:batch|epoch|iter|phase|stage|step))"
)
_MOST_HOSTS = 20_000
# The first words of a kernel.
_BOOTED = re.compile(r"^Linux version \d")


class CourseReader:
    """Keeps the last line of each input that says so."""

    needles = frozenset(
        {
            b"CCL version ",
            b"Linux version ",
            b"successfully finished",
            b"' succeeded",
            b"` stopped: `max_",
            b"raining finished",
            b"raining complete",
            b"raining done",
            b"raining is ",
        }
    )
    facts: frozenset[bytes] = frozenset()

    def __init__(self) -> None:
        self._met: Place | None = None
        self._ended: Place | None = None
        self._boots: dict[str | None, Place] = {}

    @property
    def open(self) -> bool:
        """Every line tells for itself."""
        return False

    def read(self, line: Line, hits: Sequence[bytes]) -> None:
        """Note what one line says of the run."""
        if not any(hit in self.needles for hit in hits):
            return
        if _MET.search(line.text):
            self._met = line.place
        elif _BOOTED.search(line.text):
            if len(self._boots) < _MOST_HOSTS:
                self._boots[line.speaker.host] = line.place
        elif line.level is None and _ENDED.search(line.text):
            self._ended = line.place

    def finish(self, evidence: LogEvidence) -> None:
        """Hand over the places."""
        for kept, place in ((evidence.met, self._met), (evidence.ended_well, self._ended)):
            if place:
                kept[place.path] = place
        for host, place in self._boots.items():
            evidence.boots[place.path, host] = place
