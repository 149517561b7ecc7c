"""Starts the MPI job on the hosts that can take part, and proves that each rank is in its place."""

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace

from ncdiag.cluster.launchers import Launcher, RemoteJob
from ncdiag.cluster.mpi import MpiProgram, MpiStarter
from ncdiag.health.addresses import is_loopback
from ncdiag.measure.engines.base import Endpoint, EngineOptions
from ncdiag.measure.engines.mpi.job import Job, JobEnded
from ncdiag.measure.engines.mpi.job_end import why_ended
from ncdiag.measure.engines.mpi.messages import Here, Ready
from ncdiag.measure.engines.mpi.place import describe, place_on
from ncdiag.measure.engines.mpi.rank import START_S
from ncdiag.measure.engines.probe import Probed
from ncdiag.model.errors import UndecidedError
from ncdiag.model.host import Host, HostFacts
from ncdiag.model.nodes import fold
from ncdiag.model.text import visible

_MODULE = "ncdiag.measure.engines.mpi.rank"
# Each start can find that some hosts cannot take part, and they are left out of the next.
_STARTS = 3
_ANSWER_S = 5.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Crew:
    """Who takes part: hosts in the order of ranks, with ``rails`` ranks each.

    ``gpu`` where the payload lies in GPU memory on all of them.
    """

    hosts: tuple[str, ...] = ()
    facts: Mapping[str, HostFacts] = field(default_factory=dict)
    rails: int = 1
    gpu: bool = False

    def rank_of(self, end: Endpoint) -> int:
        """The rank that measures on this NIC."""
        names = [nic.name for nic in self.facts[end.host].nics]
        return self.hosts.index(end.host) * self.rails + names.index(end.nic.name)


class MpiStart:
    """Starts the job; ``job`` is what runs afterwards, ``unusable`` who was left out, and why."""

    def __init__(
        self,
        hosts: Mapping[str, Host],
        launcher: Launcher,
        starter: MpiStarter,
        options: EngineOptions,
        on_change: Callable[[str, str], None],
    ) -> None:
        self._hosts, self._launcher, self._starter = hosts, launcher, starter
        self._options, self._on_change = options, on_change
        self.unusable: dict[str, str] = {}
        self.job: Job | None = None

    def run(self, probed: Probed) -> Crew:
        """Start it on the hosts that answered; raises UndecidedError where MPI does not start."""
        self.unusable.update(probed.unreachable)
        facts = {name: report.facts for name, report in probed.reports.items()}
        for name in [name for name, found in facts.items() if not found.nics]:
            why = "; ".join(f"{nic}: {text}" for nic, text in facts[name].missing_nics.items())
            self._leave_out({name: f"no NIC to measure: {why}"}, facts)
        for _ in range(_STARTS):
            if len(facts) < 2:
                return Crew(hosts=tuple(facts), facts=facts)
            crew = Crew(
                hosts=tuple(facts),
                facts=facts,
                rails=max(len(found.nics) for found in facts.values()),
            )
            started = self._start(crew, probed)
            if isinstance(started, Crew):
                return started
            self._leave_out(started, facts)
        raise UndecidedError(
            f"MPI did not start in {_STARTS} tries, each of which lost another host"
        )

    def _leave_out(self, why: Mapping[str, str], facts: dict[str, HostFacts]) -> None:
        for name, text in why.items():
            del facts[name]
            self.unusable[name] = visible(text)
            self._on_change(name, self.unusable[name])

    def _start(self, crew: Crew, probed: Probed) -> Crew | dict[str, str]:
        """One try: who takes part, or the hosts that cannot, with the reason."""
        program = MpiProgram(
            argv=self._argv(crew, probed),
            ranks_per_host=crew.rails,
            variables=self._options.variables,
        )
        launch = self._starter.launch([self._hosts[name] for name in crew.hosts], program)
        try:
            self.job = Job(launch)
        except OSError as error:
            raise UndecidedError(f"cannot start {launch.argv[0]}: {error.strerror}") from None
        call = _RollCall(crew, probed)
        call.take(self.job)
        if call.is_complete and not call.refusals:
            return call.crew()
        self.job.close(kill=True)
        self.job = None
        return call.missing()

    def _argv(self, crew: Crew, probed: Probed) -> tuple[str, ...]:
        places = [
            [
                place_on(nic, report.nearest_gpu.get(nic.name) if report.facts.gpus else None)
                for nic in report.facts.nics
            ]
            for report in (probed.reports[name] for name in crew.hosts)
        ]
        arguments = (self._starter.rank_variable, *describe(places, crew.rails))
        return RemoteJob(module=_MODULE).command(self._launcher.options, *arguments)


class _RollCall:
    """Who of the crew has come, and whether each is where it should be."""

    def __init__(self, crew: Crew, probed: Probed) -> None:
        self._crew, self._probed = crew, probed
        self._here: dict[int, Here] = {}
        self._ready: dict[int, Ready] = {}
        self._ended: JobEnded | None = None
        self.refusals: dict[str, str] = {}

    @property
    def _ranks(self) -> int:
        return len(self._crew.hosts) * self._crew.rails

    @property
    def is_complete(self) -> bool:
        """Whether MPI has started on all."""
        return len(self._ready) == self._ranks

    def take(self, job: Job) -> None:
        """Listen until all are ready, or it is known that this will not be."""
        end_s = time.monotonic() + START_S
        while not self.is_complete and not (self.refusals and len(self._here) == self._ranks):
            if self.refusals:
                # The others wait for these in vain: it is only heard whether there are more.
                end_s = min(end_s, time.monotonic() + _ANSWER_S)
            match job.hear(end_s - time.monotonic()):
                case Here() as here:
                    self._note_here(here)
                case Ready() as ready:
                    self._ready[ready.rank] = ready
                case JobEnded() as ended:
                    self._ended = ended
                    return
                case None:
                    return

    def _note_here(self, here: Here) -> None:
        if not 0 <= here.rank < self._ranks:
            raise UndecidedError(f"MPI started a rank {here.rank}, where {self._ranks} were asked")
        self._here[here.rank] = here
        name = self._crew.hosts[here.rank // self._crew.rails]
        report = self._probed.reports[name]
        own = {report.own_address, *(nic.address for nic in report.facts.nics)}
        known = {address for address in own if address and not is_loopback(address)}
        elsewhere = here.hostname != report.facts.hostname
        if elsewhere or (known and here.addresses and not known & set(here.addresses)):
            shown = visible(f"{here.hostname} ({', '.join(here.addresses[:4])})")
            raise UndecidedError(
                f"MPI started rank {here.rank} on {shown}, where {name} was asked for: "
                "pairs would be measured under wrong names, so nothing is measured"
            )
        if here.error:
            self.refusals[name] = here.error

    def missing(self) -> dict[str, str]:
        """Hosts that kept MPI from starting; raises UndecidedError where it cannot be told."""
        if self.refusals:
            return self.refusals
        rails = self._crew.rails
        absent = [
            name
            for number, name in enumerate(self._crew.hosts)
            if any(rank not in self._here for rank in range(number * rails, (number + 1) * rails))
        ]
        if self._ended is None and 0 < len(absent) < len(self._crew.hosts):
            return dict.fromkeys(absent, f"MPI started nothing there within {START_S:g} s")
        on = fold(self._crew.hosts)
        if self._ended:
            raise UndecidedError(visible(f"MPI did not start on {on}: {why_ended(self._ended)}"))
        raise UndecidedError(f"MPI did not start on {on} within {START_S:g} s")

    def crew(self) -> Crew:
        """The crew with what MPI said of itself; raises UndecidedError for a job that is none."""
        wrong = {ready.ranks for ready in self._ready.values()} - {self._ranks}
        if wrong:
            raise UndecidedError(
                f"MPI started {self._ranks} jobs of {wrong.pop()} instead of one of {self._ranks}: "
                "mpiexec and the MPI that mpi4py loads on the hosts are not of one kind"
            )
        gpu = all(ready.gpu for ready in self._ready.values())
        where = "GPU memory" if gpu else "host memory"
        facts = {
            name: replace(
                self._crew.facts[name],
                versions={
                    **self._crew.facts[name].versions,
                    "mpi": f"{visible(self._ready[number * self._crew.rails].library)}, {where}",
                },
            )
            for number, name in enumerate(self._crew.hosts)
        }
        return replace(self._crew, facts=facts, gpu=gpu)
