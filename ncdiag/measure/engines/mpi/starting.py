"""Starts the MPI jobs on hosts that can take part, and proves that each rank is in its place."""

import queue
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from ncdiag.cluster.launchers import Launch, Launcher, RemoteJob
from ncdiag.cluster.mpi import MpiProgram, MpiStarter
from ncdiag.measure.engines.base import EngineOptions
from ncdiag.measure.engines.mpi.job import Heard, Job, JobEnded, hear
from ncdiag.measure.engines.mpi.messages import Here, Ready
from ncdiag.measure.engines.mpi.place import Place, describe, place_on
from ncdiag.measure.engines.mpi.rank import START_S
from ncdiag.measure.engines.mpi.roll_call import RollCall
from ncdiag.measure.engines.probe import Probed
from ncdiag.measure.rails import nics_by_rail
from ncdiag.model.errors import UndecidedError
from ncdiag.model.host import Host, HostFacts
from ncdiag.model.text import visible

_MODULE = "ncdiag.measure.engines.mpi.rank"
_UNKNOWN_NIC = "NIC"
# Each start can find that some hosts cannot take part, and they are left out of the next.
_STARTS = 3
_ANSWER_S = 5.0


@dataclass(slots=True)
class Crews:
    """Who takes part: the job of each rail, and its hosts in the order of their ranks.

    ``gpu`` where the payload lies in GPU memory on all of them.
    """

    facts: dict[str, HostFacts] = field(default_factory=dict)
    hosts: dict[int, tuple[str, ...]] = field(default_factory=dict)
    jobs: dict[int, Job] = field(default_factory=dict)
    heard: Heard = field(default_factory=queue.SimpleQueue)
    gpu: bool = False

    def close(self, *, kill: bool = False) -> None:
        """End all jobs; may be called twice."""
        for job in self.jobs.values():
            job.finish()
        for job in self.jobs.values():
            job.close(kill=kill)
        self.jobs.clear()


class MpiStart:
    """Starts the jobs; ``crews`` has those that run, ``unusable`` who was left out, and why."""

    def __init__(
        self,
        hosts: Mapping[str, Host],
        launcher: Launcher,
        starter: MpiStarter,
        options: EngineOptions,
        on_change: Callable[[str, str], None],
        *,
        unreachable_now: Callable[[Sequence[Host]], Mapping[str, str]],
    ) -> None:
        """``unreachable_now`` asks hosts again, and says which do not answer any more, and why."""
        self._hosts, self._launcher, self._starter = hosts, launcher, starter
        self._options, self._on_change = options, on_change
        self._unreachable_now = unreachable_now
        self.unusable: dict[str, str] = {}
        self.crews = Crews()

    def run(self, probed: Probed) -> None:
        """Start them on the hosts that answered; raises UndecidedError where MPI does not start."""
        self.unusable.update(probed.unreachable)
        facts = {name: report.facts for name, report in probed.reports.items()}
        for name in [name for name, found in facts.items() if not found.nics]:
            why = "; ".join(f"{nic}: {text}" for nic, text in facts[name].missing_nics.items())
            self._leave_out({name: f"no NIC to measure: {why}"}, facts)
        for _ in range(_STARTS):
            calls = self._start(facts, probed)
            refusals = self._take(calls)
            if not refusals:
                self.crews.gpu = all(call.gpu for call in calls.values())
                self.crews.facts = self._with_versions(facts, calls)
                return
            self.crews.close(kill=True)
            self._leave_out(refusals, facts)
        raise UndecidedError(
            f"MPI did not start in {_STARTS} tries, each of which lost another host"
        )

    def _leave_out(self, why: Mapping[str, str], facts: dict[str, HostFacts]) -> None:
        for name, text in why.items():
            del facts[name]
            self.unusable[name] = visible(text)
            self._on_change(name, self.unusable[name])

    def _start(self, facts: Mapping[str, HostFacts], probed: Probed) -> dict[int, RollCall]:
        """Start a job for each rail that two hosts have."""
        self.crews = Crews()
        nics = {name: nics_by_rail(self._hosts[name], found) for name, found in facts.items()}
        calls = {}
        for rail in sorted({rail for found in nics.values() for rail in found}):
            hosts = tuple(name for name in facts if rail in nics[name])
            if len(hosts) < 2:
                continue
            gpus = [probed.reports[name].nearest_gpu for name in hosts]
            places = [
                place_on(nics[name][rail], gpu.get(nics[name][rail].name))
                for name, gpu in zip(hosts, gpus, strict=True)
            ]
            self.crews.jobs[rail] = self._job(hosts, rail, places)
            self.crews.hosts[rail] = hosts
            calls[rail] = RollCall(hosts, probed, rdma=any(place.is_rdma for place in places))
        return calls

    def _job(self, hosts: Sequence[str], rail: int, places: Sequence[Place]) -> Job:
        launch = _launch(
            [self._hosts[name] for name in hosts],
            self._launcher,
            self._starter,
            describe(places),
            self._options.variables,
        )
        try:
            return Job(launch, rail, self.crews.heard)
        except OSError as error:
            raise UndecidedError(f"cannot start {launch.argv[0]}: {error.strerror}") from None

    def _take(self, calls: Mapping[int, RollCall]) -> dict[str, str]:
        """Listen until all are ready; return who cannot take part, and why."""
        end_s = time.monotonic() + START_S
        while not all(call.is_over for call in calls.values()):
            said = hear(self.crews.heard, end_s - time.monotonic())
            if said is None:
                break
            rail, what = said
            match what:
                case Here():
                    calls[rail].note_here(what)
                    if what.error:
                        # The others wait for it in vain: there may be more of its kind.
                        end_s = min(end_s, time.monotonic() + _ANSWER_S)
                case Ready():
                    calls[rail].note_ready(what)
                case JobEnded():
                    calls[rail].note_end(what)
        refusals: dict[str, str] = {}
        for call in calls.values():
            refusals.update(call.refusals)
        return refusals or self._missing(calls)

    def _missing(self, calls: Mapping[int, RollCall]) -> dict[str, str]:
        """Who kept MPI from starting; raises UndecidedError where that cannot be told."""
        missing: dict[str, str] = {}
        try:
            for call in calls.values():
                missing.update(call.missing(START_S))
        except UndecidedError:
            names = {name for hosts in self.crews.hosts.values() for name in hosts}
            lost = self._unreachable_now([self._hosts[name] for name in sorted(names)])
            if not lost:
                raise
            return dict(lost)
        return missing

    def _with_versions(
        self, facts: Mapping[str, HostFacts], calls: Mapping[int, RollCall]
    ) -> dict[str, HostFacts]:
        """Facts that tell which MPI measured, and out of which memory."""
        memory = "GPU memory" if self.crews.gpu else "host memory"
        libraries = {name: mpi for call in calls.values() for name, mpi in call.libraries.items()}
        return {
            name: replace(found, versions={**found.versions, "mpi": f"{mpi}, {memory}"})
            if (mpi := libraries.get(name))
            else found
            for name, found in facts.items()
        }


def first_launch(hosts: Sequence[Host], launcher: Launcher, starter: MpiStarter) -> Launch:
    """The command of the first rail, as far as it is known before hosts are asked for their NICs.

    Raises UsageError for hosts that it cannot be told.
    """
    places = [Place(host.nics[0] if host.nics else _UNKNOWN_NIC) for host in hosts]
    return _launch(hosts, launcher, starter, describe(places), {})


def _launch(
    hosts: Sequence[Host],
    launcher: Launcher,
    starter: MpiStarter,
    places: Sequence[str],
    variables: Mapping[str, str],
) -> Launch:
    arguments = (starter.rank_variable, *places)
    argv = RemoteJob(module=_MODULE).command(launcher.options, *arguments)
    return starter.launch(list(hosts), MpiProgram(argv=argv, variables=variables))
