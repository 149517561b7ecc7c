"""What a check is, and what its rule is given and gives."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import TypeVar

from ncdiag.health.checks.limits import Limits
from ncdiag.model.finding import FindingClass
from ncdiag.model.health import GpuHealth, HealthFacts, Severity, Source
from ncdiag.model.text import visible

Thing = TypeVar("Thing")

GPU_SOURCES = (Source.NVML, Source.NVIDIA_SMI, Source.ROCM_SMI, Source.DCGM)
NVIDIA_SOURCES = (Source.NVML, Source.NVIDIA_SMI, Source.DCGM)

# Names and reasons from outside are cut to this many characters within a sentence.
_MOST_QUOTED = 160


class Scope(StrEnum):
    """What a check looks at: the facts of one host, of all of them, or a sweep's result."""

    HOST = "host"
    FLEET = "fleet"
    SWEEP = "sweep"


@dataclass(frozen=True, slots=True, kw_only=True)
class ExpectedHost:
    """What a host should have; ``None`` and nothing where nobody says.

    ``gpus_from`` and ``nics_from`` name who says so, within a sentence.
    """

    gpus: int | None = None
    nics: tuple[str, ...] = ()
    gpus_from: str = "the hosts file"
    nics_from: str = "the hosts file"


@dataclass(frozen=True, slots=True, kw_only=True)
class UsualPort:
    """What nearly all hosts tell of the RDMA port of one name; ``None`` where they disagree."""

    state: str | None = None
    rate: str | None = None
    width: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """What a rule is given.

    ``before`` is an earlier reading of the same boot, by a clock that went forward: ``None`` where
    rising counters cannot be told. ``interval_s`` is the time between the two. ``usual_ports`` are
    RDMA ports by name as nearly all hosts of the fleet have them.
    """

    facts: HealthFacts
    before: HealthFacts | None = None
    interval_s: float | None = None
    clock_went_back_s: float | None = None
    expected: ExpectedHost = field(default_factory=ExpectedHost)
    limits: Limits = field(default_factory=Limits)
    usual_ports: Mapping[str, UsualPort] = field(default_factory=dict)

    @property
    def is_booting(self) -> bool:
        """Whether the host was up for so short a time that links may still be training."""
        uptime_s = self.facts.uptime_s
        return uptime_s is not None and uptime_s < self.limits.boot_grace_s

    def read(self, *sources: Source) -> bool:
        """Whether any of ``sources`` answered."""
        return any(one.source in sources and one.state == "read" for one in self.facts.sources)

    def per_hour(self, count: float) -> float:
        """What ``count`` between the two readings is in an hour."""
        return count * 3600.0 / self.interval_s if self.interval_s else 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Trip:
    """That a rule tripped; what is ``None`` is as the check says."""

    text: str
    device: str | None = None
    severity: Severity | None = None
    measured: str | None = None
    limit: str | None = None
    next: str | None = None
    class_: FindingClass | None = None


@dataclass(frozen=True, slots=True)
class Silent:
    """That the facts do not tell, and why."""

    reason: str


Outcome = Trip | Silent
Rule = Callable[[Case], Iterable[Outcome]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Check:
    """One row of the table.

    ``severity`` is the most that it weighs. ``meaning`` says what a trip means, ``fix`` what to do.
    Of ``sources`` at least one must have been read (none named: the rule looks for itself);
    ``also`` are others that it looks at where they are there, as for the time since boot.
    ``configuration`` says that settings are wrong, and no hardware. Checks of a fleet or a sweep
    have no ``rule``: they are made where all hosts are known.
    """

    id: str
    title: str
    severity: Severity
    meaning: str
    fix: str
    sources: tuple[Source, ...] = ()
    also: tuple[Source, ...] = ()
    rule: Rule | None = None
    configuration: bool = False
    class_: FindingClass | None = None
    scope: Scope = Scope.HOST


def for_each(
    things: Callable[[Case], Sequence[Thing]],
    name: Callable[[Thing], str],
    judge: Callable[[Thing, Case], Iterable[Trip] | None],
    silent: str,
) -> Rule:
    """A rule that judges each of some things; ``None`` from ``judge``: this one does not tell."""

    def rule(case: Case) -> Iterator[Outcome]:
        told = False
        for thing in things(case):
            trips = judge(thing, case)
            if trips is None:
                continue
            told = True
            yield from (replace(trip, device=trip.device or name(thing)) for trip in trips)
        if not told:
            yield Silent(silent)

    return rule


def for_each_gpu(judge: Callable[[GpuHealth, Case], Iterable[Trip] | None], silent: str) -> Rule:
    """A rule over the GPUs that answer."""
    return for_each(answering_gpus, gpu_name, judge, silent)


def answering_gpus(case: Case) -> Sequence[GpuHealth]:
    """The GPUs that the driver reaches."""
    return [gpu for gpu in case.facts.gpus if not gpu.lost]


def gpu_name(gpu: GpuHealth) -> str:
    """What findings call a GPU: ``gpu3``."""
    return f"gpu{gpu.index}"


def gpu_before(gpu: GpuHealth, case: Case) -> GpuHealth | None:
    """The same GPU in the earlier reading."""
    if case.before is None:
        return None
    for other in case.before.gpus:
        same = other.uuid == gpu.uuid if gpu.uuid and other.uuid else other.index == gpu.index
        if same:
            return other
    return None


def risen(now: int | None, before: int | None) -> int:
    """By how much a counter rose; one that went back was reset, and tells nothing."""
    return max(0, now - before) if now is not None and before is not None else 0


def rises(now: Mapping[str, int], before: Mapping[str, int]) -> dict[str, int]:
    """The counters that rose, and by how much."""
    return {key: by for key, value in now.items() if (by := risen(value, before.get(key)))}


def counted(counts: Mapping[str, int]) -> str:
    """``crc_flit 3, replay 1``, the largest first."""
    most = sorted(counts.items(), key=lambda pair: (-pair[1], pair[0]))
    shown = ", ".join(f"{quoted(name)} {number:,}" for name, number in most[:6])
    return shown + (f" and {len(most) - 6} more" if len(most) > 6 else "")


def quoted(text: str) -> str:
    """Text from outside, fit to stand in a sentence."""
    safe = visible(text[: _MOST_QUOTED + 1])
    return safe if len(safe) <= _MOST_QUOTED else safe[:_MOST_QUOTED] + "..."


def pci_key(address: str | None) -> str | None:
    """A PCI address as all tools agree on it: no function, and a domain of four digits or more.

    ``00000000:3B:00.0``, ``0000:3b:00`` and ``3b:00.0`` are the same GPU.
    """
    if not address:
        return None
    parts = address.lower().split(".")[0].split(":")
    domain = parts[0].lstrip("0").rjust(4, "0") if len(parts) > 2 else "0000"
    return ":".join((domain, *parts[-2:]))


def usual(values: Iterable[str], limits: Limits) -> str | None:
    """The value that nearly all share; ``None`` where no majority is clear enough to accuse."""
    counts: dict[str, int] = {}
    for value in values:
        counts[value] = counts.get(value, 0) + 1
    total = sum(counts.values())
    if total < limits.least_alike:
        return None
    value, number = max(counts.items(), key=lambda pair: pair[1])
    return value if (total - number) * limits.one_odd_of <= total else None
