"""Hydra's blocks: whoever it kills after the crash of another rank was only swept away."""

from collections.abc import Iterable, Sequence
from dataclasses import replace
from itertools import pairwise

from ncdiag.model.finding import FindingClass as C
from ncdiag.model.log import Event
from ncdiag.read.mpi_ends import HYDRA_ENDED, HYDRA_KILLED

# One run's blocks follow one another; each has half a dozen lines.
_REACH_LINES = 24


def swept(events: Sequence[Event]) -> list[Event]:
    """The events; those of ranks that Hydra killed after a crash say that it stopped them."""
    blocks = sorted((e for e in events if e.form in {HYDRA_ENDED, HYDRA_KILLED}), key=_where)
    stopped = set(_after_crashes(blocks))
    return [_stopped(event) if id(event) in stopped else event for event in events]


def _after_crashes(blocks: Sequence[Event]) -> Iterable[int]:
    """What was killed in blocks right below that of a crash."""
    crashed = False
    for one, other in pairwise(blocks):
        near = one.place.path == other.place.path and one.speaker == other.speaker
        near = near and other.place.line - one.place.line <= _REACH_LINES
        crashed = near and (crashed or one.class_name == C.PROCESS_CRASH)
        if crashed and other.form == HYDRA_KILLED:
            yield id(other)


def _stopped(event: Event) -> Event:
    return replace(
        event, class_name=C.TERMINATED_BY_LAUNCHER, attributes={"signal": "9"}, role=None
    )


def _where(event: Event) -> tuple[str, str, int]:
    return (event.place.path, str(event.speaker), event.place.line)
