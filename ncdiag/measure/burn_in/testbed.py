"""What the stages of a burn-in stand on: one fleet, the hosts still in it, and how to ask them."""

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

import msgspec

from ncdiag.cluster.fleet import CallError, Fleet, FleetOptions
from ncdiag.cluster.launchers import Launcher
from ncdiag.expect.traffic import Collective
from ncdiag.measure.bench.base import BenchPlan
from ncdiag.measure.bench.sizes import Sizes
from ncdiag.measure.bench.torch_engine import TorchBench
from ncdiag.measure.burn_in.loopback import LoopbackAnswer, LoopbackTask
from ncdiag.measure.burn_in.loopback import measure as measure_loopback
from ncdiag.measure.burn_in.messages import LocalFigures, LocalTest, StepTimes, TrainSteps
from ncdiag.measure.burn_in.plan import BurnInPlan, allot, measuring_s
from ncdiag.measure.engines.torch.engine import TorchEngine
from ncdiag.measure.engines.torch.processes import shared_process
from ncdiag.measure.sweep import Progress, Watcher
from ncdiag.model.bench import BenchRun
from ncdiag.model.burn_in import Stage
from ncdiag.model.host import HostFacts
from ncdiag.model.text import visible

# What is reduced: latency, a usual bucket of gradients, and enough to fill every link.
_ON_CPUS = Sizes(64 << 10, 4 << 20, 8)
_ON_GPUS = Sizes(1 << 20, 1 << 30, 32)
_ITERATIONS = 5
# What a host may need to end a program that is late, and to answer.
_ENDING_S = 3.0

Rank = tuple[str, int]
"""A host, and the number of a GPU there; 0 on CPUs."""


@dataclass(frozen=True, slots=True)
class Deadline:
    """When a stage has to be over."""

    end_s: float
    clock: Callable[[], float] = time.monotonic

    @classmethod
    def after(cls, seconds: float, clock: Callable[[], float] = time.monotonic) -> "Deadline":
        """So many seconds from now."""
        return cls(clock() + seconds, clock)

    @property
    def left_s(self) -> float:
        """Seconds until then, never below 0."""
        return max(0.0, self.end_s - self.clock())


@dataclass(slots=True)
class Testbed:
    """The fleet of a burn-in, started once, and what is known of its hosts so far.

    ``rejected`` and ``doubtful`` hosts are left out of what comes: a collective with one of them
    would only fail again. Hosts that gave no answer to a test are among the ``doubtful``.
    """

    # pytest takes every class of this name's beginning for one of its own.
    __test__ = False

    plan: BurnInPlan
    launcher: Launcher
    watcher: Watcher
    is_stopped: Callable[[], bool] = lambda: False
    driver_address: str | None = None
    facts: dict[str, HostFacts] = field(default_factory=dict)
    rejected: set[str] = field(default_factory=set)
    doubtful: set[str] = field(default_factory=set)
    models: dict[Rank, str] = field(default_factory=dict)
    """What GPU or CPU a rank is, where the rank has told it: unlike ones do not compare."""
    end: Deadline | None = None
    """When the pass has to be over; ``None`` while there is none."""
    fleet: Fleet = field(init=False)
    engine: TorchEngine = field(init=False)
    bench: TorchBench = field(init=False)

    def __post_init__(self) -> None:
        """Put the fleet together; nothing is started yet."""
        plan = self.plan
        reach_s = allot(plan.level, Stage.REACH, list(Stage)[1:], measuring_s(plan.budget_s))
        ready_s = reach_s or plan.budget_s
        self.fleet = Fleet(
            plan.hosts,
            self.launcher,
            companions=(shared_process(plan.variables),),
            options=FleetOptions(
                driver_address=self.driver_address,
                ready_s=min(max(ready_s, FleetOptions().ready_s), plan.budget_s),
            ),
        )
        self.engine = TorchEngine(
            plan.hosts,
            self.fleet,
            plan.timing,
            variables=plan.variables,
            ready_s=ready_s,
        )
        bench = BenchPlan(
            collective=Collective.ALL_REDUCE, iterations=_ITERATIONS, variables=plan.variables
        )
        self.bench = TorchBench(plan.hosts, self.launcher, bench, self.fleet)

    def start(self) -> None:
        """Reach the hosts, and start what measures on each."""
        facts = dict(self.engine.start(self.watcher.host))
        joined = self.bench.join(
            {name: self.engine.collected[name] for name in facts}, self.watcher.host
        )
        self.facts = {name: facts[name] for name in joined}
        self.bench.sizes = _ON_GPUS if self.on_gpus else _ON_CPUS

    @property
    def unreachable(self) -> Mapping[str, str]:
        """Hosts that cannot be measured, now, with the reason."""
        return {**self.bench.unreachable, **self.engine.unreachable}

    @property
    def fit(self) -> list[str]:
        """The hosts that can be measured and that nothing is known against, in their order."""
        up = set(self.fleet.up) - self.rejected - self.doubtful
        return [name for name in self.facts if name in up]

    def count_ranks(self) -> None:
        """Use as many GPUs of each host as all hosts have that are still in.

        One that lost a GPU would have the others measured with as few, and is rejected meanwhile.
        """
        gpus = [self.gpus[name] for name in self.fit]
        if self.on_gpus and gpus:
            self.bench.ranks_per_host = min(gpus)

    @property
    def gpus(self) -> Mapping[str, int]:
        """How many GPUs torch sees on each host."""
        return {name: self.engine.collected[name].ready.gpus for name in self.facts}

    @property
    def on_gpus(self) -> bool:
        """Whether GPUs are measured, and not CPUs."""
        return self.bench.compares

    def tell(self, stage: str, done: int, total: int, left_s: float) -> None:
        """Say how far a stage has come; raises KeyboardInterrupt where one was asked for."""
        if self.is_stopped():
            raise KeyboardInterrupt
        self.watcher.progress(Progress(stage, done, total, 0, len(self.rejected), left_s))

    def test(
        self, ranks: Sequence[Rank], seconds: float, limit_s: float
    ) -> tuple[dict[Rank, LocalFigures], dict[Rank, str]]:
        """Have ranks test their own GPU or CPU at the same time: figures, and errors instead."""
        requests = [
            (rank, LocalTest(seconds=seconds, gpu=rank[1] if self.on_gpus else None))
            for rank in ranks
        ]
        found, failed = {}, {}
        for number, answer, error in self.bench.ask_each(requests, LocalFigures, limit_s):
            if answer is None:
                failed[ranks[number]] = error or "it gave no answer"
            else:
                found[ranks[number]] = answer
        return found, failed

    def loopback(self, hosts: Sequence[str], limit_s: float) -> dict[str, LoopbackAnswer]:
        """Have hosts measure their RDMA ports against themselves."""
        wanted = {host.name: host.nics for host in self.plan.hosts}
        calls = []
        for host in hosts:
            task = LoopbackTask(dict(self.plan.variables), wanted[host], limit_s)
            payload, answer_s = msgspec.json.encode(task), limit_s + _ENDING_S
            calls.append(self.fleet.call(host, measure_loopback, payload, timeout_s=answer_s))
        found = {}
        for call in self.fleet.as_completed(calls):
            try:
                found[call.host] = msgspec.json.decode(call.result(), type=LoopbackAnswer)
            except (CallError, msgspec.MsgspecError) as error:
                found[call.host] = LoopbackAnswer(skipped=visible(str(error)))
        return found

    def train(
        self, ranks: Sequence[Rank], steps: TrainSteps, limit_s: float
    ) -> tuple[dict[Rank, StepTimes], dict[Rank, str]]:
        """Have ranks take the same steps at the same time; without ``alone`` they must have met."""
        requests = [(rank, steps) for rank in ranks]
        found, failed = {}, {}
        for number, answer, error in self.bench.ask_each(requests, StepTimes, limit_s):
            if answer is None:
                failed[ranks[number]] = error or "it gave no answer"
            else:
                found[ranks[number]] = answer
            if failed and not steps.alone:
                break  # the others wait for one that will not come
        return found, failed

    def all_reduce(self, hosts: Sequence[str], limit_s: float) -> BenchRun:
        """Reduce over ``hosts``, a few sizes, data checked."""
        return self.bench.run(hosts, within_s=limit_s)

    def close(self) -> None:
        """Leave no process behind on any host."""
        self.fleet.close()
