"""A fleet for burn-ins that exists only in numbers."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from ncdiag.measure.burn_in.loopback import LoopbackAnswer
from ncdiag.measure.burn_in.messages import LocalFigure, LocalFigures, StepTimes, TrainSteps
from ncdiag.measure.burn_in.plan import BurnInPlan, Level
from ncdiag.measure.burn_in.testbed import Deadline, Rank
from ncdiag.model.bench import BenchRun
from ncdiag.model.benchmark import Benchmark, TableRow
from ncdiag.model.host import Host, HostFacts
from ncdiag.model.place import Place

NAMES = [f"h{number}" for number in range(1, 9)]


def plan(level: Level = Level.QUICK, budget_s: float = 180.0, **more: Any) -> BurnInPlan:
    hosts = tuple(Host(name=name, address=name) for name in NAMES)
    common = {"need": 6, "spares": 1, "started": "2026-01-02T03:04:05Z", "budget_s": budget_s}
    return BurnInPlan(hosts=hosts, level=level, **{**common, **more})


@dataclass
class Clock:
    """Time that passes only when something is done."""

    now_s: float = 100.0

    def __call__(self) -> float:
        return self.now_s

    def deadline(self, seconds: float = 60.0) -> Deadline:
        return Deadline.after(seconds, self)


class _Names:
    def __init__(self, names: Iterable[str]) -> None:
        self.up = tuple(names)
        self.versions: Mapping[str, str] = dict.fromkeys(names, "1")


class _Ranks:
    renewed = 0
    versions: Mapping[str, str] = {"torch": "2"}
    meeting: str | None = None

    @staticmethod
    def ranks(hosts: Sequence[str]) -> list[Rank]:
        return [(host, 0) for host in hosts]

    def meet(self, _ranks: Sequence[Rank], _limit_s: float) -> str | None:
        return self.meeting

    def renew(self) -> None:
        self.renewed += 1


@dataclass
class FakeBed:
    """Stands for a ``Testbed``; what hosts do is told by functions of their names.

    ``gemm`` gives a figure, or the text of an error; ``works`` whether hosts reduce together
    (where they do not, it breaks off, or it ``damages`` data);
    ``compute_s`` how long a step takes a host beside so many others.
    """

    clock: Clock = field(default_factory=Clock)
    plan: BurnInPlan = field(default_factory=plan)
    gemm: Callable[[str, int], float | str] = lambda _host, _together: 100.0
    wrong: Callable[[str, int], int] = lambda _host, _together: 0
    works: Callable[[Sequence[str]], bool] = lambda _hosts: True
    damages: bool = False
    compute_s: Callable[[str, int], float | str] = lambda _host, _together: 0.01
    ports: Mapping[str, LoopbackAnswer] = field(default_factory=dict)
    on_gpus: bool = True
    rejected: set[str] = field(default_factory=set)
    doubtful: set[str] = field(default_factory=set)
    end: Deadline | None = None
    told: list[str] = field(default_factory=list)
    trials: list[tuple[str, ...]] = field(default_factory=list)
    cost_s: float = 1.0
    device: Callable[[str], str] = lambda _host: "H100"
    models: dict[Rank, str] = field(default_factory=dict)
    gpus: Mapping[str, int] = field(default_factory=lambda: dict.fromkeys(NAMES, 8))

    def __post_init__(self) -> None:
        self.facts = {name: HostFacts(hostname=name) for name in NAMES}
        self.fleet, self.bench = _Names(NAMES), _Ranks()
        self.unreachable: dict[str, str] = {}
        self.closed = 0

    def close(self) -> None:
        self.closed += 1

    @property
    def fit(self) -> list[str]:
        return [name for name in self.fleet.up if name not in self.rejected | self.doubtful]

    def count_ranks(self) -> None:
        return

    def tell(self, stage: str, _done: int, _total: int, _left_s: float) -> None:
        self.told.append(stage)

    def test(
        self, ranks: Sequence[Rank], seconds: float, limit_s: float
    ) -> tuple[dict[Rank, LocalFigures], dict[Rank, str]]:
        assert 0 < seconds <= limit_s
        self.clock.now_s += self.cost_s
        found: dict[Rank, LocalFigures] = {}
        failed: dict[Rank, str] = {}
        for rank in ranks:
            value = self.gemm(rank[0], len(ranks))
            if isinstance(value, str):
                failed[rank] = value
            else:
                figures = (LocalFigure("gemm_tflop_per_s", value, "gpu0"),)
                found[rank] = LocalFigures(
                    figures=figures,
                    wrong=self.wrong(rank[0], len(ranks)),
                    device=self.device(rank[0]),
                )
        return found, failed

    def loopback(self, hosts: Sequence[str], _limit_s: float) -> dict[str, LoopbackAnswer]:
        none = LoopbackAnswer(skipped="no active RDMA port")
        return {host: self.ports.get(host, none) for host in hosts}

    def all_reduce(self, hosts: Sequence[str], limit_s: float) -> BenchRun:
        assert limit_s > 0
        self.trials.append(tuple(hosts))
        self.clock.now_s += self.cost_s
        works = self.works(hosts)
        if not works and not self.damages:
            return BenchRun(hosts=tuple(hosts), ranks_per_host=1, error="h1: Connection reset")
        row = TableRow(
            size=4 << 20,
            type="float",
            redop="",
            out_of_place_busbw=1.5,
            in_place_busbw=None,
            out_of_place_wrong=0 if works else 7,
            in_place_wrong=None,
        )
        benchmark = Benchmark(place=Place("x", 0), rows=[row])
        return BenchRun(hosts=tuple(hosts), ranks_per_host=1, benchmark=benchmark)

    def train(
        self, ranks: Sequence[Rank], steps: TrainSteps, limit_s: float
    ) -> tuple[dict[Rank, StepTimes], dict[Rank, str]]:
        assert limit_s > 0
        found: dict[Rank, StepTimes] = {}
        failed: dict[Rank, str] = {}
        longest_s = 0.0
        for rank in ranks:
            value = self.compute_s(rank[0], len(ranks))
            if isinstance(value, str):
                failed[rank] = value
                continue
            longest_s = max(longest_s, value)
            times = tuple(value * (1 + 0.001 * (step % 7)) for step in range(steps.steps))
            found[rank] = StepTimes(compute_s=times, reduce_s=(0.001,) * steps.steps)
        self.clock.now_s += longest_s * (steps.steps + steps.warmup)
        return found, failed


class Silent:
    """Watches and says nothing."""

    def host(self, _name: str, _text: str) -> None:
        return

    def progress(self, _progress: Any) -> None:
        return
