"""What a way to run a collective promises, whatever runs underneath."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from ncdiag.cluster.launch import Launch
from ncdiag.expect.traffic import Collective
from ncdiag.measure.bench.sizes import Sizes
from ncdiag.model.bench import BenchRun
from ncdiag.model.host import HostFacts


@dataclass(frozen=True, slots=True, kw_only=True)
class BenchPlan:
    """What is to be run: ``iterations`` of each size are timed, after some that are not.

    ``sizes`` and ``gpus_per_node`` are ``None`` where the engine shall choose. A run is killed
    after ``timeout_s``. ``variables`` of a profile are in the environment of every rank.
    """

    collective: Collective
    sizes: Sizes | None = None
    iterations: int = 20
    gpus_per_node: int | None = None
    timeout_s: float = 1800.0
    nccl_tests_dir: str | None = None
    driver_address: str | None = None
    variables: Mapping[str, str] = field(default_factory=dict)


class BenchEngine(Protocol):
    """A way to run a collective.

    ``start`` once, ``run`` any number of times, ``close`` once. ``sizes`` and ``ranks_per_host``
    are known after ``start``; ``partial`` is what was known of a run when it was interrupted.
    ``first_module`` is what ``start`` runs on every host.
    """

    name: str
    sizes: Sizes
    ranks_per_host: int
    partial: BenchRun | None
    first_module: str

    @property
    def compares(self) -> bool:
        """Whether its figures compare with what GPUs should reach; known after ``start``."""
        ...

    def start(self, on_change: Callable[[str, str], None]) -> Mapping[str, HostFacts]:
        """Reach the hosts; return the facts of each that can take part.

        ``on_change(host, text)`` is told about progress. Raises UndecidedError where no run can be
        started on any host.
        """
        ...

    @property
    def unreachable(self) -> Mapping[str, str]:
        """Hosts that cannot take part, with the reason."""
        ...

    @property
    def versions(self) -> Mapping[str, str]:
        """Versions of what measures, as far as they became known."""
        ...

    def run(self, hosts: Sequence[str]) -> BenchRun:
        """Run the collective once over ``hosts``; what goes wrong is told in the run's ``error``.

        Nothing of it is left on any host afterwards, also where it was interrupted.
        """
        ...

    def job(self, hosts: Sequence[str], ranks_per_host: int) -> Launch | None:
        """The command that ``run`` starts; ``None`` where what ``start`` began does it."""
        ...

    def close(self) -> None:
        """Leave no process behind on any host. May be called twice."""
        ...
