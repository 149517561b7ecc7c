"""What the driver and the tasks in the hosts' workers say to one another, as JSON."""

import msgspec

from ncdiag.health.self_report import Question, SelfReport
from ncdiag.model.host import Nic


class PrepareTask(msgspec.Struct, frozen=True, kw_only=True):
    """Say what the host is, and look at its program of perftest."""

    host: str
    question: Question
    program: str
    variables: dict[str, str] = {}


class Build(msgspec.Struct, frozen=True, kw_only=True):
    """A program of perftest: where it is, and what its help says that it can do."""

    path: str
    version: str | None = None
    cuda: bool = False
    cuda_dmabuf: bool = False
    ipv6: bool = False


class Prepared(msgspec.Struct, frozen=True, kw_only=True):
    """A host's answer; without a ``build``, ``problem`` says why its program cannot be used.

    ``rdma_ports`` are its active RDMA ports. ``peer_memory`` tells that a kernel module lets NICs
    reach GPU memory, ``open_driver`` that the GPU's driver is the open one, which can by itself.
    """

    report: SelfReport
    rdma_ports: tuple[Nic, ...] = ()
    build: Build | None = None
    problem: str | None = None
    peer_memory: bool = False
    open_driver: bool = False


class ServeTask(msgspec.Struct, frozen=True, kw_only=True):
    """Start the side that waits, on a free TCP port; ``run_id`` names it from then on.

    Whatever happens to the driver, it is killed after ``lifetime_s``.
    """

    run_id: str
    nic: Nic
    argv: tuple[str, ...]
    variables: dict[str, str]
    start_s: float
    lifetime_s: float


class Served(msgspec.Struct, frozen=True, kw_only=True):
    """The port it waits on, or why there is none."""

    port: int = 0
    problem: str | None = None


class ConnectTask(msgspec.Struct, frozen=True, kw_only=True):
    """Run the side that connects; it is killed after ``deadline_s``."""

    nic: Nic
    argv: tuple[str, ...]
    variables: dict[str, str]
    deadline_s: float


class FinishTask(msgspec.Struct, frozen=True, kw_only=True):
    """End the side that waited, which has ``grace_s`` to end by itself.

    ``payload_bytes`` is what its port's counters should account for, in one direction or the other.
    """

    run_id: str
    grace_s: float
    payload_bytes: int = 0


class Figures(msgspec.Struct, frozen=True, kw_only=True):
    """What the report of a run says: Gbit/s, and the payload that was counted for it."""

    gbit_per_s: float
    min_gbit_per_s: float | None = None
    payload_bytes: int = 0


class Side(msgspec.Struct, frozen=True, kw_only=True):
    """How one side of a direction went.

    ``problem`` is why it failed, in one line without the host's name; ``by_itself`` says that the
    program ended with it, and was not killed. ``tx_bytes`` and ``rx_bytes`` is how far the port's
    own counters moved meanwhile, ``None`` where they cannot be read; ``idle`` the CPU's idle share.
    """

    problem: str | None = None
    by_itself: bool = True
    figures: Figures | None = None
    tx_bytes: int | None = None
    rx_bytes: int | None = None
    idle: float | None = None
