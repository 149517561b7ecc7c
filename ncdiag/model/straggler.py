"""Slow ranks: times per rank and iteration in, slow ranks out. Times are in seconds.

Field names are those of ``ncdiag/stragglers/1``: add, never rename.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

import numpy as np
import numpy.typing as npt

from ncdiag.model.errors import ExitCode


class TimeKind(StrEnum):
    """What was timed, which decides what a slow rank looks like.

    ``compute`` excludes waiting for others: a slow rank takes longest. ``iteration`` includes it:
    where ranks wait for each other every iteration, all take the same and nothing can be told.
    ``collective`` is the time inside one collective: whoever comes late waits least, so the slow
    rank shows the *shortest*.
    """

    COMPUTE = "compute"
    ITERATION = "iteration"
    COLLECTIVE = "collective"


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class IterationTable:
    """Times of many ranks: ``seconds[i, r]`` is iteration ``i`` of ``ranks[r]``, NaN where missing.

    ``places`` maps a rank to its host and GPU (``h3``, ``h3 gpu2``), ``groups`` to the group of
    like ranks that it is compared with (a pipeline stage).
    """

    ranks: tuple[int, ...]
    seconds: npt.NDArray[np.float64]
    iterations: tuple[int, ...] = ()
    places: Mapping[int, str] = field(default_factory=dict)
    hosts: Mapping[int, str] = field(default_factory=dict)
    groups: Mapping[int, str] = field(default_factory=dict)
    source: str = ""
    notes: tuple[str, ...] = ()


class StragglerVerdict(StrEnum):
    """The one word it ends with."""

    NONE = "none"
    FOUND = "found"
    UNDECIDED = "undecided"

    @property
    def exit_code(self) -> ExitCode:
        """The exit code that carries this verdict."""
        return {
            StragglerVerdict.NONE: ExitCode.DONE,
            StragglerVerdict.FOUND: ExitCode.WRONG,
            StragglerVerdict.UNDECIDED: ExitCode.UNDECIDED,
        }[self]


@dataclass(frozen=True, slots=True, kw_only=True)
class SlowRank:
    """A rank that is slow, in ``windows`` of ``windows_total``.

    ``ratio`` is its time over its group's median; for collectives the other way round, above 1 too.
    ``rules`` are those that named it: ``median`` (1.5 times the median) and ``robust``.
    """

    rank: int
    ratio: float
    score: float
    windows: int
    windows_total: int
    rules: tuple[str, ...]
    host: str | None = None
    place: str | None = None
    group: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class StragglerReport:
    """What was found, and how often that happens by chance.

    ``expected_false_alarms`` is how many healthy ranks the robust rule names on average in a table
    of this size; ``reason`` says why nothing could be told.
    """

    kind: TimeKind
    verdict: StragglerVerdict
    ranks: int
    iterations: int
    groups: int
    median_s: float | None
    slow: tuple[SlowRank, ...] = ()
    slow_hosts: tuple[str, ...] = ()
    expected_false_alarms: float = 0.0
    reason: str | None = None
    notes: tuple[str, ...] = ()
