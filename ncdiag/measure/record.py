"""The state of a sweep, rebuilt from its journal: what diagnosis and reports are made from."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace

from ncdiag.diagnose.diagnosis import diagnose
from ncdiag.diagnose.suspects import suspected_hosts
from ncdiag.diagnose.thresholds import Thresholds
from ncdiag.expect.dumped_nics import as_dumped
from ncdiag.expect.link import expect_link
from ncdiag.measure.journal import IMPORTED, HostState, Line, Plan, RunEnd
from ncdiag.measure.plan import (
    QUICK,
    TOGETHER,
    measured_pairs,
    plan_size,
    planned_rounds,
    rail_counts,
)
from ncdiag.measure.rails import nics_by_rail
from ncdiag.measure.schedule import Round, second_opinions
from ncdiag.measure.second_hand import as_imported
from ncdiag.model.errors import UsageError
from ncdiag.model.evidence import SweepEvidence
from ncdiag.model.host import Host, HostDump, HostFacts, Nic
from ncdiag.model.measurement import Expectation, LinkKey, Measurement, PairKey, Purpose
from ncdiag.model.nodes import fold
from ncdiag.model.verdict import SweepPlan, SweepReport

# Facts whose difference between hosts can spoil a comparison.
_COMPARED_VERSIONS = ("ncdiag", "torch", "nccl", "mpi")


@dataclass(slots=True)
class SweepRecord:
    """Everything a journal says, kept up to date with :meth:`apply` while the sweep runs."""

    plan: Plan
    facts: dict[str, HostFacts] = field(default_factory=dict)
    unreachable: dict[str, str] = field(default_factory=dict)
    measurements: list[Measurement] = field(default_factory=list)
    seconds: float = 0.0
    interrupted: bool = True
    _nics: dict[str, dict[int, Nic]] = field(default_factory=dict)
    _hosts: dict[str, Host] = field(default_factory=dict)
    _dumps: dict[str, HostDump] = field(default_factory=dict)
    _dumped_nics: dict[str, dict[int, Nic]] = field(default_factory=dict)

    @classmethod
    def of(cls, lines: Iterable[Line]) -> "SweepRecord":
        """The record of a journal's lines, of which the first is the plan."""
        plan, *rest = lines
        if not isinstance(plan, Plan):
            raise UsageError("a journal begins with the plan of its sweep")
        record = cls(
            plan,
            _hosts={host.name: host for host in plan.hosts},
            _dumps={dump.host: dump for dump in plan.dumps},
        )
        for line in rest:
            record.apply(line)
        return record

    def apply(self, line: Line) -> None:
        """Take one more line into account."""
        self.interrupted = True  # until the run's end is known: a killed driver writes none
        match line:
            case Measurement():
                self.measurements.append(line)
            case HostState(name=name, unreachable=str(reason)):
                self.unreachable[name] = reason
            case HostState(name=name, facts=HostFacts() as facts) if name in self._hosts:
                self.facts[name] = facts
                nics = self._nics[name] = nics_by_rail(self._hosts[name], facts)
                dump = self._dumps.get(name) or self._dumps.get("")
                self._dumped_nics[name] = {rail: as_dumped(nic, dump) for rail, nic in nics.items()}
                self.unreachable.pop(name, None)
            case RunEnd():
                self.seconds += line.seconds
                self.interrupted = line.interrupted

    @property
    def nics(self) -> Mapping[str, Mapping[int, Nic]]:
        """The measurable NICs of each host that ever came up, by rail."""
        return self._nics

    @property
    def rails(self) -> tuple[int, ...]:
        """The rails that at least two hosts can be measured on; rail 0 before anything is known."""
        counts: dict[int, int] = {}
        for nics in self._nics.values():
            for rail in nics:
                counts[rail] = counts.get(rail, 0) + 1
        return tuple(sorted(rail for rail, count in counts.items() if count > 1)) or (0,)

    def expectation(self, link: LinkKey) -> Expectation | None:
        """What ``link`` should reach, or ``None`` where nobody can tell."""
        source = self._dumped_nics.get(link.source, {}).get(link.rail)
        target = self._dumped_nics.get(link.target, {}).get(link.rail)
        if source is None or target is None:
            return None
        return expect_link(self._hosts[link.source], source, self._hosts[link.target], target)

    @property
    def thresholds(self) -> Thresholds:
        """The lines that links are judged by."""
        return Thresholds(faulty_below=self.plan.faulty_below)

    def evidence(self) -> SweepEvidence:
        """Everything known so far, as ``ncdiag.diagnose`` wants it."""
        return SweepEvidence(
            hosts=self.plan.hosts,
            unreachable=self.unreachable,
            nics={name: _names_by_rail(nics) for name, nics in self._nics.items()},
            measurements=self.measurements,
            expectation=self.expectation,
            planned=self._planned_pairs,
            unmeasured_nics=self._unmeasured_nics(),
        )

    def second_opinions(self) -> list[Round]:
        """The rounds of ``quick`` after its first matching: suspects meet proven partners.

        Made from the first matching alone, so that a resumed sweep finds the same rounds. A host
        without any result, as an odd one or the partner of a dead one, is a suspect too.
        """
        if self.plan.mode != QUICK:
            return []
        rounds, _ = plan_size(self.plan, self.rails)
        first = [
            one for one in self.measurements if one.purpose is Purpose.ROUND and one.round < rounds
        ]
        evidence = replace(self.evidence(), measurements=first)
        suspected = suspected_hosts(evidence, self.thresholds)
        proven = {one.source for one in first} - suspected - self.unreachable.keys()
        opinions = second_opinions(
            [name for name in self._nics if name not in proven | self.unreachable.keys()],
            [name for name in self._nics if name in proven],
            leaf_of={host.name: host.leaf for host in self.plan.hosts},
            already={frozenset((one.source, one.target)) for one in first},
            rails=rail_counts(self.plan, self.rails),
            first_number=rounds,
            seed=self.plan.seed,
            together=self.plan.rails == TOGETHER,
        )
        return list(opinions)

    def _planned_pairs(self) -> Iterator[PairKey]:
        if self.plan.mode == IMPORTED:
            yield from measured_pairs(self.measurements)
            return
        for planned in planned_rounds(self.plan, self.rails):
            yield from planned.pairs

    def _unmeasured_nics(self) -> dict[str, str]:
        found = {
            f"{name}:{nic}": reason
            for name, facts in self.facts.items()
            for nic, reason in facts.missing_nics.items()
        }
        for name, nics in self._nics.items():
            alone = {nics[rail].name for rail in nics if rail not in self.rails}
            found |= {f"{name}:{nic}": "no other host has a NIC on this rail" for nic in alone}
        return found

    def report(self) -> SweepReport:
        """The report of what is known so far."""
        diagnosis = diagnose(self.evidence(), self.thresholds)
        if self.plan.mode == IMPORTED:
            rounds, pairs = 1, len(measured_pairs(self.measurements))
            diagnosis = as_imported(diagnosis, self.plan)
        else:
            rounds, pairs = plan_size(self.plan, self.rails)
        notes = (*diagnosis.notes, *version_notes(self.plan.versions, self.facts))
        return SweepReport(
            started=self.plan.started,
            seconds=self.seconds,
            plan=SweepPlan(
                mode=self.plan.mode,
                hosts=len(self.plan.hosts),
                rounds=rounds,
                pairs=pairs,
                engine=self.plan.engine,
                launcher=self.plan.launcher,
                endpoint="host" if self.plan.inside is None else "GPU",
            ),
            diagnosis=replace(diagnosis, notes=notes),
            settings=self.plan.settings,
            versions=self.plan.versions,
            interrupted=self.interrupted,
        )


def version_notes(here: Mapping[str, str], facts: Mapping[str, HostFacts]) -> Iterator[str]:
    """A line for each program of which hosts have another version than most hosts do.

    Most hosts: for ncdiag itself, what the driver (``here``) runs.
    """
    for program in _COMPARED_VERSIONS:
        versions = {host: fact.versions.get(program, "no version") for host, fact in facts.items()}
        counts = Counter(versions.values())
        if program == "ncdiag" and program in here:
            usual = here[program]
        elif counts:
            usual = counts.most_common(1)[0][0]
        odd = sorted(
            f"{fold(host for host in versions if versions[host] == version)} {version}"
            for version in counts
            if version != usual
        )
        if odd:
            yield f"{program} {usual}, but on {', on '.join(odd)}: results may not compare"


def _names_by_rail(nics: Mapping[int, Nic]) -> tuple[str, ...]:
    """The names of a host's NICs at the places of their rails, empty where one is missing."""
    return tuple(
        nics[rail].name if rail in nics else "" for rail in range(max(nics, default=-1) + 1)
    )
