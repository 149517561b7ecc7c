"""What a sweep knows when it has to conclude: the input of ``ncdiag.diagnose``."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from ncdiag.model.host import Host
from ncdiag.model.measurement import Expectation, LinkKey, Measurement, PairKey


@dataclass(frozen=True, slots=True, kw_only=True)
class SweepEvidence:
    """Everything measured, and what it should be compared with.

    ``nics`` maps each reachable host to its NIC names in rail order; ``unmeasured_nics`` maps
    ``host:nic`` to the reason why it was left out. ``measurements`` are in the order in which they
    were made; a direction may stand there several times. ``expectation`` returns ``None`` for
    a link nobody can derive a figure for. ``planned`` yields the pairs that were to be measured,
    anew at each call, since a full plan of a large fleet does not fit in memory.
    """

    hosts: Sequence[Host]
    unreachable: Mapping[str, str]
    nics: Mapping[str, Sequence[str]]
    measurements: Sequence[Measurement]
    expectation: Callable[[LinkKey], Expectation | None]
    planned: Callable[[], Iterator[PairKey]]
    unmeasured_nics: Mapping[str, str] = field(default_factory=dict)
