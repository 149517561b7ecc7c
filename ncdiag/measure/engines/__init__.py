"""The engines that can measure pairs; one package or module each, imported when it is opened."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from typing import Protocol

from ncdiag.cluster.fleet import Fleet
from ncdiag.cluster.fleet.protocol import WORKER_MODULE
from ncdiag.cluster.launchers import Launch, Launcher
from ncdiag.measure.engines.base import Engine, EngineOptions, EngineSettings
from ncdiag.model.errors import UsageError
from ncdiag.model.host import Host
from ncdiag.model.text import did_you_mean
from ncdiag.model.units import format_count


class OpensEngine(Protocol):
    """How an engine is made; nothing is started yet."""

    def __call__(self, hosts: Sequence[Host], launcher: Launcher, options: EngineOptions) -> Engine:
        """Make it; raises UsageError where it cannot measure that way."""
        ...


@dataclass(frozen=True, slots=True)
class EngineEntry:
    """An engine by name: how it is made, and why it could not measure on this very host.

    Hosts need what an engine is made of, the driver does not. ``own_variables`` are those of the
    environment that the engine sets itself, whatever a profile holds. ``describe`` says in words
    what is special to this engine, for the report. ``first_module`` is what is started on every
    host at first, ``then`` says what is after that, for who asks for the plan, and ``job`` is the
    one command of it that covers all hosts, if there is one. ``packages`` are those of Python whose
    versions tell how it measured.
    """

    open: OpensEngine
    unavailable: Callable[[], str | None]
    own_variables: Callable[[], frozenset[str]]
    describe: Callable[[EngineSettings], Mapping[str, str]] = lambda _: {}
    first_module: str = WORKER_MODULE
    then: Callable[[EngineSettings], str] = lambda _: ""
    job: Callable[[Sequence[Host], Launcher], Launch] | None = None
    packages: tuple[str, ...] = ()


def _open_torch(hosts: Sequence[Host], launcher: Launcher, options: EngineOptions) -> Engine:
    from ncdiag.measure.engines.torch.engine import TorchEngine
    from ncdiag.measure.engines.torch.processes import shared_process

    companions = (shared_process(options.variables),)
    members = Fleet(hosts, launcher, companions=companions, options=options.fleet)
    return TorchEngine(hosts, members, options.timing, variables=options.variables)


def _torch_unavailable() -> str | None:
    if find_spec("torch"):
        return None
    return "torch is not installed: pip install 'ncdiag[torch]'"


def _torch_variables() -> frozenset[str]:
    from ncdiag.measure.engines.torch.processes import OWN_VARIABLES

    return OWN_VARIABLES


def _open_mpi(hosts: Sequence[Host], launcher: Launcher, options: EngineOptions) -> Engine:
    from ncdiag.cluster.mpi import choose_starter
    from ncdiag.measure.engines.mpi.engine import MpiEngine

    return MpiEngine(hosts, launcher, choose_starter(launcher), options)


def _mpi_unavailable() -> str | None:
    if find_spec("mpi4py"):
        return None
    return "mpi4py is not installed: pip install 'ncdiag[mpi]'"


def _mpi_variables() -> frozenset[str]:
    from ncdiag.measure.engines.mpi.place import OWN_VARIABLES

    return OWN_VARIABLES


def _mpi_job(hosts: Sequence[Host], launcher: Launcher) -> Launch:
    from ncdiag.cluster.mpi import choose_starter
    from ncdiag.measure.engines.mpi.starting import first_launch

    return first_launch(hosts, launcher, choose_starter(launcher))


def _describe_mpi(_: EngineSettings) -> Mapping[str, str]:
    return {"mpi": "one job of all hosts for each rail, each rank held to the NIC it measures"}


def _open_perftest(hosts: Sequence[Host], launcher: Launcher, options: EngineOptions) -> Engine:
    from ncdiag.measure.engines.perftest.engine import PerftestEngine

    return PerftestEngine(hosts, Fleet(hosts, launcher, options=options.fleet), options)


def _perftest_unavailable() -> str | None:
    from ncdiag.measure.engines.perftest.programs import missing_here

    return missing_here(EngineSettings().perftest)


def _perftest_variables() -> frozenset[str]:
    from ncdiag.measure.engines.perftest.engine import OWN_VARIABLES

    return OWN_VARIABLES


def _open_nccl_tests(hosts: Sequence[Host], launcher: Launcher, options: EngineOptions) -> Engine:
    from ncdiag.measure.engines.nccl_tests.engine import NcclTestsEngine

    return NcclTestsEngine(hosts, launcher, options)


def _nccl_tests_unavailable() -> str | None:
    from ncdiag.measure.engines.nccl_tests.programs import missing_here

    return missing_here(EngineSettings().pair_test)


def _nccl_tests_variables() -> frozenset[str]:
    from ncdiag.measure.engines.nccl_tests.placement import OWN_VARIABLES

    return OWN_VARIABLES


def _describe_nccl_tests(settings: EngineSettings) -> Mapping[str, str]:
    from ncdiag.measure.engines.nccl_tests.placement import describe

    return describe(settings.pair_test)


def _for_each_pair(program: str, settings: EngineSettings) -> str:
    return (
        f"for each pair {program} over its two hosts, "
        f"at most {format_count(settings.at_a_time, 'pair')} at a time"
    )


ENGINES: Mapping[str, EngineEntry] = {
    "mpi": EngineEntry(
        _open_mpi,
        _mpi_unavailable,
        _mpi_variables,
        _describe_mpi,
        first_module="ncdiag.health.self_report",
        then=lambda _: "one MPI job for each rail, over the hosts that answer:",
        job=_mpi_job,
        packages=("mpi4py",),
    ),
    "nccl-tests": EngineEntry(
        _open_nccl_tests,
        _nccl_tests_unavailable,
        _nccl_tests_variables,
        _describe_nccl_tests,
        first_module="ncdiag.health.self_report",
        then=lambda settings: _for_each_pair(f"{settings.pair_test}_perf", settings),
    ),
    "perftest": EngineEntry(
        _open_perftest,
        _perftest_unavailable,
        _perftest_variables,
        then=lambda settings: _for_each_pair(settings.perftest, settings),
        packages=("distributed",),
    ),
    "torch": EngineEntry(
        _open_torch, _torch_unavailable, _torch_variables, packages=("distributed", "torch")
    ),
}


def check_engine(name: str) -> None:
    """Raise :class:`UsageError`, with the engine that may be meant, for an unknown ``name``."""
    if name not in ENGINES:
        there_are = f"there are: {', '.join(sorted(ENGINES))}"
        raise UsageError(f"unknown engine {name!r} ({there_are}){did_you_mean(name, ENGINES)}")


def open_engine(
    name: str, hosts: Sequence[Host], launcher: Launcher, options: EngineOptions | None = None
) -> Engine:
    """Make the engine called ``name``; nothing is started yet. Raises :class:`UsageError`."""
    check_engine(name)
    return ENGINES[name].open(hosts, launcher, options or EngineOptions())
