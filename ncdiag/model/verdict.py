"""What was concluded: links, hosts, culprits and the verdict of a sweep.

The field names are those of ``report.json`` (schema ``ncdiag/sweep/1``): add, never rename.
"""

from dataclasses import dataclass, field
from enum import StrEnum

from ncdiag.model.errors import ExitCode


class LinkStatus(StrEnum):
    """State of one direction of a pair."""

    HEALTHY = "healthy"
    FAULTY = "faulty"
    DEGRADED = "degraded"
    INCONCLUSIVE = "inconclusive"
    ERROR = "error"
    UNTESTED = "untested"


class HostStatus(StrEnum):
    """State of a host."""

    HEALTHY = "healthy"
    FAULTY = "faulty"
    DEGRADED = "degraded"
    INCONCLUSIVE = "inconclusive"
    UNREACHABLE = "unreachable"


class CulpritKind(StrEnum):
    """The kinds of component that can be blamed."""

    HOST = "host"
    NIC = "nic"
    LINK = "link"
    SWITCH = "switch"
    RAIL = "rail"
    FLEET = "fleet"


class Direction(StrEnum):
    """The direction in which a component is slow, seen from the component."""

    SEND = "send"
    RECEIVE = "receive"
    BOTH = "both"


class Verdict(StrEnum):
    """The one word a sweep ends with."""

    HEALTHY = "healthy"
    FAULTY = "faulty"
    INCONCLUSIVE = "inconclusive"

    @property
    def exit_code(self) -> ExitCode:
        """The exit code that carries this verdict."""
        return {
            Verdict.HEALTHY: ExitCode.DONE,
            Verdict.FAULTY: ExitCode.WRONG,
            Verdict.INCONCLUSIVE: ExitCode.UNDECIDED,
        }[self]


@dataclass(frozen=True, slots=True, kw_only=True)
class LinkVerdict:
    """One direction of a pair on one rail, judged.

    ``efficiency`` is measured over expected, ``fleet_ratio`` measured over the fleet's median.
    ``round`` and ``engine`` tell where the figure came from; ``tests`` counts measurements.
    """

    source: str
    target: str
    rail: int
    status: LinkStatus
    measured_gbit_per_s: float | None = None
    expected_gbit_per_s: float | None = None
    expected_from: str | None = None
    efficiency: float | None = None
    fleet_gbit_per_s: float | None = None
    fleet_ratio: float | None = None
    bytes: int = 0
    tests: int = 0
    min_gbit_per_s: float | None = None
    idle: float | None = None
    error: str | None = None
    round: int | None = None
    engine: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class HostVerdict:
    """One host, judged.

    ``efficiency`` is the median over the links it sends on, or over those it receives on, whichever
    is less: a host that only sends slowly is not half good.
    """

    name: str
    status: HostStatus
    efficiency: float | None = None
    reason: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Culprit:
    """A component that is blamed.

    ``name`` is a host, ``host:nic``, ``a->b``, a leaf (``leaf1|leaf2`` when the data cannot tell
    which end), a rail's number or ``fleet``. ``explains`` counts the slow links it accounts for,
    ``contradicts`` the fast links that speak against it; ``confidence`` is between 0 and 1.
    ``next`` is the command to run or the action to take. ``damaged`` says that data arrived wrong:
    ``efficiency`` is 0 then, as of a link that carries nothing of use.
    """

    kind: CulpritKind
    name: str
    direction: Direction
    status: LinkStatus
    confidence: float
    efficiency: float
    explains: int
    contradicts: int
    reason: str
    next: str
    damaged: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Contention:
    """What is slow only while others send: medians of the same links alone and together."""

    name: str
    alone_gbit_per_s: float
    together_gbit_per_s: float
    pairs: int


@dataclass(frozen=True, slots=True, kw_only=True)
class SweepPlan:
    """What a sweep set out to do.

    ``endpoint`` is what ``hosts`` counts: ``host``, or ``GPU`` where links inside hosts were
    imported.
    """

    mode: str
    hosts: int
    rounds: int
    pairs: int
    engine: str
    launcher: str
    endpoint: str = "host"


@dataclass(frozen=True, slots=True, kw_only=True)
class Diagnosis:
    """Everything concluded from a sweep's measurements.

    ``good`` and ``isolate`` hold host names in the order of the hosts file. ``untested`` lists
    planned pairs without a result, at most ``diagnose.thresholds.MAX_LISTED_UNTESTED`` of
    ``untested_pairs``. ``notes`` are lines an operator should read.
    """

    verdict: Verdict
    links: tuple[LinkVerdict, ...]
    hosts: tuple[HostVerdict, ...]
    culprits: tuple[Culprit, ...] = ()
    contention: tuple[Contention, ...] = ()
    untested: tuple[tuple[str, str], ...] = ()
    untested_pairs: int = 0
    isolate: tuple[str, ...] = ()
    good: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class SweepReport:
    """A finished (or interrupted) sweep, ready to be rendered in any format.

    ``started`` is UTC in ISO 8601 ending in ``Z``; ``settings`` and ``versions`` are shown as
    they are; ``interrupted`` says that the operator stopped it.
    """

    started: str
    seconds: float
    plan: SweepPlan
    diagnosis: Diagnosis
    settings: dict[str, str] = field(default_factory=dict)
    versions: dict[str, str] = field(default_factory=dict)
    interrupted: bool = False
