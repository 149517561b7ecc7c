"""The driver's side of the mpi engine: who takes part, one job, and pairs by their ranks."""

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace

from ncdiag.cluster.launchers import Launcher
from ncdiag.cluster.mpi import MpiStarter
from ncdiag.measure.engines.base import EngineOptions, PairOrder
from ncdiag.measure.engines.halves import Blame, Failure, Half
from ncdiag.measure.engines.merge import merge
from ncdiag.measure.engines.mpi.job import Job, JobEnded
from ncdiag.measure.engines.mpi.job_end import dead_host, why_ended
from ncdiag.measure.engines.mpi.messages import Done, Orders, Part, Passed
from ncdiag.measure.engines.mpi.starting import Crew, MpiStart
from ncdiag.measure.engines.probe import probe
from ncdiag.model.host import Host, HostFacts
from ncdiag.model.measurement import Measurement

# What a pair may need besides the planned time: a slow link's longer windows, counters that lag.
_SLACK_S = 5.0
# What an answer may need besides: a rank keeps the deadline, this only bounds waiting.
_ANSWER_S = 2.0
_GO_ON = "--resume goes on with the hosts that can be reached then"


class MpiEngine:
    """Measures all pairs in one MPI job of a rank for each rail of each host."""

    name = "mpi"

    def __init__(
        self, hosts: Sequence[Host], launcher: Launcher, starter: MpiStarter, options: EngineOptions
    ) -> None:
        self._hosts = {host.name: host for host in hosts}
        self._launcher, self._starter, self._options = launcher, starter, options
        self._timing = options.timing
        self._unusable: dict[str, str] = {}
        self._crew: Crew | None = None
        self._job: Job | None = None
        self._number = 0

    @property
    def unreachable(self) -> Mapping[str, str]:
        """Hosts that cannot be measured, with the reason."""
        return self._unusable

    def start(self, on_change: Callable[[str, str], None]) -> Mapping[str, HostFacts]:
        """Ask all hosts what they are, and start the job on those that answered."""
        probed = probe(
            list(self._hosts.values()),
            self._launcher,
            on_change,
            driver_address=self._options.fleet.driver_address,
        )
        start = MpiStart(self._hosts, self._launcher, self._starter, self._options, on_change)
        try:
            self._crew = start.run(probed)
        finally:
            self._job = start.job
        self._unusable.update(start.unusable)
        return self._crew.facts

    def measure(self, orders: Sequence[PairOrder]) -> Iterator[Measurement]:
        """Measure disjoint pairs at the same time; see :class:`Engine`."""
        if self._job is None or self._crew is None:
            yield from self._unmeasured(orders, "the MPI job is not running")
            return
        self._number += 1
        deadline_s = self._timing.pair_s + _SLACK_S
        parts = self._parts(orders, self._crew, deadline_s)
        self._job.tell(Orders(number=self._number, parts=parts))
        yield from self._collect(self._job, self._crew, orders, deadline_s + _ANSWER_S)

    def close(self) -> None:
        """End the job; may be called twice."""
        if self._job is not None:
            self._job.close()
            self._job = None

    def _parts(self, orders: Sequence[PairOrder], crew: Crew, deadline_s: float) -> dict[int, Part]:
        parts = {}
        for order in orders:
            first, second = (crew.rank_of(end) for end in (order.first, order.second))
            for rank, peer, end in ((first, second, order.first), (second, first, order.second)):
                parts[rank] = Part(
                    number=self._number,
                    peer=peer,
                    first=end is order.first,
                    nic=end.nic,
                    timing=self._timing,
                    deadline_s=deadline_s,
                    gpu=crew.gpu,
                )
        return parts

    def _collect(
        self, job: Job, crew: Crew, orders: Sequence[PairOrder], limit_s: float
    ) -> Iterator[Measurement]:
        """Results as pairs end, and what became of those that have none in time."""
        places = {
            crew.rank_of(end): (number, side)
            for number, order in enumerate(orders)
            for side, end in enumerate((order.first, order.second))
        }
        halves: list[dict[int, Half]] = [{} for _ in orders]
        passed_on, end_s = False, time.monotonic() + limit_s
        while any(len(pair) < 2 for pair in halves):
            said = job.hear(end_s - time.monotonic())
            match said:
                case Passed(number=self._number):
                    passed_on = True
                case Done(number=self._number) if said.rank in places:
                    number, side = places[said.rank]
                    halves[number][side] = said.half
                    if len(halves[number]) == 2:
                        yield from self._merged(orders[number], halves[number])
                case JobEnded():
                    why = self._note_end(crew, said)
                    yield from self._broken(orders, halves, why)
                    return
                case None:
                    yield from self._late(crew, orders, halves, limit_s, passed_on=passed_on)
                    return

    def _merged(self, order: PairOrder, halves: Mapping[int, Half]) -> tuple[Measurement, ...]:
        return merge(order, halves[0], halves[1], self.name)

    def _broken(
        self, orders: Sequence[PairOrder], halves: Sequence[Mapping[int, Half]], why: str
    ) -> Iterator[Measurement]:
        """Pairs that the end of the job cut off: the reason is no host's of theirs."""
        cut_off = [order for order, pair in zip(orders, halves, strict=True) if len(pair) < 2]
        yield from self._unmeasured(cut_off, why)

    def _unmeasured(self, orders: Sequence[PairOrder], why: str) -> Iterator[Measurement]:
        for order in orders:
            for one in merge(order, Half(), Half(), self.name):
                yield replace(one, error=why)

    def _note_end(self, crew: Crew, ended: JobEnded) -> str:
        """The job ended by itself: no host can be measured any more."""
        self.close()
        died = dead_host(ended.said, crew.facts)
        if died:
            why = f"the MPI job ended: the process of {died} died"
            self._unusable[died] = f"its process died, and the MPI job with it; {_GO_ON}"
        else:
            why = f"the MPI job ended: {why_ended(ended)}"
        self._lose_all(crew, why)
        return why

    def _lose_all(self, crew: Crew, why: str) -> None:
        for host in crew.facts:
            self._unusable.setdefault(host, f"{why}; {_GO_ON}")

    def _late(
        self,
        crew: Crew,
        orders: Sequence[PairOrder],
        halves: Sequence[dict[int, Half]],
        limit_s: float,
        *,
        passed_on: bool,
    ) -> Iterator[Measurement]:
        """Ranks that did not answer in time are not waited for again."""
        silent = f"its process did not answer within {limit_s:g} s"
        first = crew.hosts[0]
        if not passed_on:
            # Nobody was told anything.
            self._give_up(crew, first, silent)
            yield from self._broken(orders, halves, f"{first}: {silent}")
            return
        for order, pair in zip(orders, halves, strict=True):
            if len(pair) == 2:
                continue
            for side, end in enumerate((order.first, order.second)):
                if side not in pair:
                    pair[side] = Half(failure=Failure(Blame.PROCESS, silent))
                    self._unusable[end.host] = silent
            yield from self._merged(order, pair)
        if first in self._unusable:
            self._give_up(crew, first, silent)

    def _give_up(self, crew: Crew, first: str, silent: str) -> None:
        """Without its first rank, which passes orders on, the job is of no use."""
        self._unusable[first] = silent
        self._lose_all(crew, f"the MPI job was ended: the process of {first} did not answer")
        if self._job is not None:
            self._job.close(kill=True)
            self._job = None
