"""The driver's side of the mpi engine: who takes part, a job a rail, and pairs by their ranks."""

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace

from ncdiag.cluster.launchers import Launcher
from ncdiag.cluster.mpi import MpiStarter
from ncdiag.measure.engines.base import EngineOptions, PairOrder
from ncdiag.measure.engines.halves import Blame, Failure, Half
from ncdiag.measure.engines.merge import merge
from ncdiag.measure.engines.mpi.job import JobEnded, hear
from ncdiag.measure.engines.mpi.job_end import who_died, why_ended
from ncdiag.measure.engines.mpi.messages import Done, Orders, Part, Passed
from ncdiag.measure.engines.mpi.round import OpenRound
from ncdiag.measure.engines.mpi.starting import Crews, MpiStart
from ncdiag.measure.engines.probe import Probed, probe
from ncdiag.model.host import Host, HostFacts
from ncdiag.model.measurement import Measurement

# What a pair may need besides the planned time: a slow link's longer windows, counters that lag.
_SLACK_S = 5.0
# What an answer may need besides: a rank keeps the deadline, this only bounds waiting.
_ANSWER_S = 2.0
_GO_ON = "--resume goes on with the hosts that can be reached then"


class MpiEngine:
    """Measures all pairs of a rail in one MPI job of a rank a host."""

    name = "mpi"

    def __init__(
        self, hosts: Sequence[Host], launcher: Launcher, starter: MpiStarter, options: EngineOptions
    ) -> None:
        self._hosts = {host.name: host for host in hosts}
        self._launcher, self._starter, self._options = launcher, starter, options
        self._timing = options.timing
        self._unusable: dict[str, str] = {}
        self._late_once: set[str] = set()
        self._crews = Crews()
        self._number = 0

    @property
    def unreachable(self) -> Mapping[str, str]:
        """Hosts that cannot be measured, with the reason."""
        return self._unusable

    def start(self, on_change: Callable[[str, str], None]) -> Mapping[str, HostFacts]:
        """Ask all hosts what they are, and start the jobs on those that answered."""
        probed = self._probe(list(self._hosts.values()), on_change)
        start = MpiStart(
            self._hosts,
            self._launcher,
            self._starter,
            self._options,
            on_change,
            unreachable_now=lambda hosts: self._probe(hosts, lambda *_: None).unreachable,
        )
        try:
            start.run(probed)
        finally:
            self._crews = start.crews
        self._unusable.update(start.unusable)
        return self._crews.facts

    def _probe(self, hosts: Sequence[Host], on_change: Callable[[str, str], None]) -> Probed:
        address = self._options.fleet.driver_address
        return probe(hosts, self._launcher, on_change, driver_address=address)

    def measure(self, orders: Sequence[PairOrder]) -> Iterator[Measurement]:
        """Measure disjoint pairs at the same time; see :class:`Engine`."""
        if not {order.rail for order in orders} <= self._crews.jobs.keys():
            yield from self._unmeasured(orders, "the MPI job is not running")
            return
        self._number += 1
        deadline_s = self._timing.pair_s + _SLACK_S
        current = OpenRound(self._number, orders, self._crews.hosts)
        for rail in current.rails:
            parts = {
                rank: Part(
                    number=self._number,
                    peer=peer,
                    first=first,
                    nic=end.nic,
                    timing=self._timing,
                    deadline_s=deadline_s,
                    gpu=self._crews.gpu,
                )
                for rank, peer, first, end in current.places_on(rail)
            }
            self._crews.jobs[rail].tell(Orders(number=self._number, parts=parts))
        yield from self._collect(current, deadline_s + _ANSWER_S)

    def close(self) -> None:
        """End the jobs; may be called twice."""
        self._crews.close()

    def _collect(self, current: OpenRound, limit_s: float) -> Iterator[Measurement]:
        """Results as pairs end, and what became of those that have none in time."""
        end_s = time.monotonic() + limit_s
        while current.is_open:
            said = hear(self._crews.heard, end_s - time.monotonic())
            if said is None:
                yield from self._late(current, limit_s)
                return
            rail, what = said
            match what:
                case Passed(number=current.number):
                    current.passed_on.add(rail)
                case Done(number=current.number):
                    self._late_once -= current.hosts_of(rail, what)
                    if (ended := current.take(rail, what)) is not None:
                        yield from self._merged(ended, current)
                case JobEnded():
                    yield from self._unmeasured(current.unfinished, self._note_end(rail, what))
                    return

    def _merged(self, order: PairOrder, current: OpenRound) -> tuple[Measurement, ...]:
        return merge(order, *current.halves(order), self.name)

    def _unmeasured(self, orders: Sequence[PairOrder], why: str) -> Iterator[Measurement]:
        """Pairs that could not be measured for a reason that is no host's of theirs."""
        for order in orders:
            for one in merge(order, Half(), Half(), self.name):
                yield replace(one, error=why)

    def _note_end(self, rail: int, ended: JobEnded) -> str:
        """A job ended by itself: no host can be measured any more."""
        if dead := who_died(ended.said, self._crews.hosts[rail]):
            how = "crashed, perhaps as another's had died" if dead.crashed else "died"
            why = f"the MPI job ended: the process of {dead.host} {how}"
            self._unusable[dead.host] = f"its process {how}, and the MPI job with it; {_GO_ON}"
        else:
            why = f"the MPI job ended: {why_ended(ended)}"
        self._give_up(why)
        return why

    def _give_up(self, why: str) -> None:
        for host in self._crews.facts:
            self._unusable.setdefault(host, f"{why}; {_GO_ON}")
        self._crews.close(kill=True)

    def _late(self, current: OpenRound, limit_s: float) -> Iterator[Measurement]:
        """What becomes of ranks that did not answer in time, and of their pairs.

        One that is late once may have had no processor; after the second time in a row nobody
        waits for it again.
        """
        silent = f"its process did not answer within {limit_s:g} s"
        firsts = {rail: self._crews.hosts[rail][0] for rail in current.rails}
        late: set[str] = set()
        for order in current.unfinished:
            if order.rail not in current.passed_on:
                # Nobody of this rail was told anything.
                late.add(firsts[order.rail])
                yield from self._unmeasured([order], f"{firsts[order.rail]}: {silent}")
                continue
            for end in current.missing(order):
                current.fill(order, end, Half(failure=Failure(Blame.PROCESS, silent)))
                late.add(end.host)
            yield from self._merged(order, current)
        lost = late & self._late_once
        self._unusable |= dict.fromkeys(lost, f"{silent}, twice in a row")
        self._late_once ^= late
        for first in lost & set(firsts.values()):
            # Without its first rank, which passes orders on, a job is of no use.
            self._give_up(f"the MPI job was ended: the process of {first} did not answer")
