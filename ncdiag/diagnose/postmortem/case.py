"""What every rule looks things up in."""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property

from ncdiag.diagnose.postmortem.devices import gpus_of
from ncdiag.diagnose.postmortem.hosts import HostBook
from ncdiag.diagnose.postmortem.kernel_log import first_lines, of_kernel
from ncdiag.diagnose.postmortem.ranks import world_rank
from ncdiag.diagnose.postmortem.timeline import Timeline, seconds_between
from ncdiag.model.log import CommunicatorState, Event, LogEvidence, NcclProcess, Speaker
from ncdiag.model.place import Place


@dataclass
class Case:
    """The evidence, and who and when in it."""

    evidence: LogEvidence
    hosts: HostBook
    timeline: Timeline

    @cached_property
    def processes(self) -> dict[tuple[str, str], NcclProcess]:
        """Processes by host and pid, as they speak."""
        return {(p.host, p.pid): p for p in self.evidence.processes}

    @cached_property
    def processes_on(self) -> dict[str, list[NcclProcess]]:
        """Processes by the name of their host."""
        hosts: dict[str, list[NcclProcess]] = {}
        for process in self.evidence.processes:
            hosts.setdefault(self.hosts.resolve(process.host), []).append(process)
        return hosts

    @cached_property
    def gpus(self) -> set[str]:
        """The addresses of all GPUs that are known."""
        return gpus_of(self.evidence)

    @cached_property
    def _kernels_begin(self) -> dict[tuple[str, str | None], int]:
        return first_lines(self.evidence.events, self.hosts)

    def pasted_below(self, fault: Event, effect: Event) -> bool:
        """Whether ``fault`` is of a kernel log below ``effect`` that may tell of what was before.

        They have no clock in common, and that kernel had said nothing above ``effect``: where it
        had, their lines are interleaved as they came.
        """
        told, place = fault.place, effect.place
        if not of_kernel(fault) or told.path != place.path:
            return False
        if seconds_between(told, place) is not None:
            return False
        begins = self._kernels_begin.get((told.path, self.hosts.of_event(fault)), told.line)
        return place.line < begins

    @cached_property
    def finished(self) -> bool:
        """Whether the run is known to have come to a regular end."""
        tests = self.evidence.benchmarks
        if tests:
            return all(test.complete for test in tests)
        states = [c for process in self.evidence.processes for c in process.communicators]
        return bool(states) and all(c.ended and not c.aborted for c in states)

    @property
    def ran(self) -> bool:
        """Whether a start-up is known to have completed."""
        return any(step for process in self.evidence.processes for step in _steps(process))

    def process_of(self, speaker: Speaker) -> NcclProcess | None:
        """The process that speaks."""
        if speaker.host is None or speaker.pid is None:
            return None
        return self.processes.get((speaker.host, speaker.pid))

    def rank_of(self, speaker: Speaker) -> int | None:
        """The global rank of who speaks, where a line proves it.

        A process that is in one communicator only, not split from another, has its rank there.
        """
        if speaker.rank is not None:
            return speaker.rank
        process = self.process_of(speaker)
        return world_rank(process) if process else None

    @cached_property
    def hosts_of_pids(self) -> dict[str, str]:
        """The host of each pid that one process only has, where all ranks of the job are known."""
        processes = self.evidence.processes
        sizes = [c.ranks for process in processes for c in process.communicators if c.ranks]
        known = {world_rank(process) for process in processes}
        if not sizes or not known.issuperset(range(max(sizes))):
            return {}
        counts = Counter(process.pid for process in processes)
        return {p.pid: p.host for p in processes if p.pid and counts[p.pid] == 1}

    def process_at(self, host: str, pid: str) -> NcclProcess | None:
        """The process that has a pid on a host."""
        return next((p for p in self.processes_on.get(host, ()) if p.pid == pid), None)

    def ranks_of(self, events: Iterable[Event]) -> set[int]:
        """The ranks that events name, and those that speak."""
        told = {rank for event in events for rank in (self.rank_of(event.speaker), *event.ranks)}
        return {rank for rank in told if rank is not None}

    def later_progress(self, place: Place, process: NcclProcess | None = None) -> bool:
        """Whether start-up went on after ``place``: in ``process``, or anywhere to results."""
        chosen = self.evidence.processes if process is None else [process]
        steps = [step for one in chosen for step in _steps(one)]
        if process is None:
            rows = (row.place for b in self.evidence.benchmarks for row in b.rows)
            steps += [row for row in rows if row]
        return any(self.timeline.before(place, step) for step in steps)

    def met_after(self, place: Place) -> bool:
        """Whether all ranks are known to have met after ``place``."""
        return self._after(place, self.evidence.met.values())

    def ended_well_after(self, place: Place) -> bool:
        """Whether the run is said to have come to a regular end after ``place``."""
        return self._after(place, self.evidence.ended_well.values())

    def ended_well_before(self, place: Place) -> bool:
        """Whether the run is said to have come to a regular end before ``place``."""
        return any(self._after(mark, (place,)) for mark in self.evidence.ended_well.values())

    def _after(self, place: Place, marks: Iterable[Place]) -> bool:
        line = self.timeline
        return any(line.ordered(place, mark) and line.before(place, mark) for mark in marks)


def _steps(process: NcclProcess) -> list[Place]:
    """Places that show the start-up of a communicator went on."""
    places = [process.connected, *(_completed(c) for c in process.communicators)]
    return [place for place in places if place]


def _completed(communicator: CommunicatorState) -> Place | None:
    return communicator.completed or communicator.progressed
