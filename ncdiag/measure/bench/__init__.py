"""Running one collective over a set of hosts: by nccl-tests, or by torch.distributed."""

from collections.abc import Callable, Mapping, Sequence

from ncdiag.cluster.launchers import Launcher
from ncdiag.measure.bench.base import BenchEngine, BenchPlan
from ncdiag.model.errors import UsageError
from ncdiag.model.host import Host
from ncdiag.model.text import did_you_mean


def _nccl_tests(hosts: Sequence[Host], launcher: Launcher, plan: BenchPlan) -> BenchEngine:
    from ncdiag.measure.bench.nccl_tests import NcclTestsBench

    return NcclTestsBench(hosts, launcher, plan)


def _torch(hosts: Sequence[Host], launcher: Launcher, plan: BenchPlan) -> BenchEngine:
    from ncdiag.measure.bench.torch_engine import TorchBench

    return TorchBench(hosts, launcher, plan)


ENGINES: Mapping[str, Callable[[Sequence[Host], Launcher, BenchPlan], BenchEngine]] = {
    "nccl-tests": _nccl_tests,
    "torch": _torch,
}


def check_engine(name: str) -> None:
    """Raise :class:`UsageError`, with the engine that may be meant, for an unknown ``name``."""
    if name not in ENGINES:
        there_are = f"there are: {', '.join(sorted(ENGINES))}"
        raise UsageError(f"bench has no engine {name!r} ({there_are}){did_you_mean(name, ENGINES)}")
