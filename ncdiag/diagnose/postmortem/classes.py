"""What is known of each class beforehand: the one table behind roles, order and isolation."""

from enum import Enum, IntEnum, auto
from types import MappingProxyType
from typing import NamedTuple

from ncdiag.model.finding import FindingClass as C
from ncdiag.model.finding import Role, Severity


class Tier(IntEnum):
    """In which order roots stand: what is surer to be a cause comes first."""

    HARDWARE = 1  # hard evidence on a host: kernel log, adapter and queue-pair events
    ENDED = 2  # a process that ended by itself; a limit, setting or disagreement in plain words
    CALL = 3  # a transfer, connection or other call that failed
    TIMEOUT = 4  # time-outs, stuck watchdogs, hangs
    RESULT = 5  # results, and ends set by the scheduler


class Isolate(Enum):
    """Whether a class justifies leaving a host out."""

    NO = auto()
    YES = auto()
    REPEATED = auto()  # only with a second, independent sign


class Fold(Enum):
    """What makes two events of a class two faults."""

    JOB = auto()  # nothing: one finding for the whole job
    HOST = auto()  # another host
    DEVICE = auto()  # another GPU, NIC or disk


class Blame(Enum):
    """Whom the class's events point at."""

    HOST = auto()  # the host that prints it, or that it names as concerned
    PEER = auto()  # the other end
    GPU = auto()
    NIC = auto()
    SWITCH = auto()
    RANK = auto()  # the ranks that it names, or that speak
    CONFIG = auto()  # a setting; the class's ``setting`` names it
    APPLICATION = auto()


class ClassRule(NamedTuple):
    """What holds for a class unless an event or the evidence around it says otherwise.

    ``generic`` classes tell only that something failed: anything more exact explains them.
    ``echo`` classes are what the others hear when somebody fails; they are a root only when nothing
    explains them, and the lowest ``echo`` number is then the one that stands.
    ``base`` is the confidence of a single sign.
    """

    role: Role
    severity: Severity
    tier: Tier
    isolate: Isolate
    blame: tuple[Blame, ...]
    base: float
    fold: Fold = Fold.JOB
    setting: str = ""
    generic: bool = False
    echo: int = 0


_R, _Q, _W = Role.ROOT, Role.CONSEQUENCE, Role.WARNING
_F, _D, _I = Severity.FATAL, Severity.DEGRADED, Severity.INFO
_HW, _END, _CALL, _TIME, _RES = Tier
_NO, _YES, _AGAIN = Isolate
_HOST, _PEER, _GPU, _NIC, _SWITCH, _RANK, _CONF, _APP = Blame


def _hardware(
    isolate: Isolate, *blame: Blame, role: Role = _R, severity: Severity = _F
) -> ClassRule:
    """A fault in a host: told apart by device."""
    return ClassRule(role, severity, _HW, isolate, (*blame, _HOST), 0.9, Fold.DEVICE)


def _setting(name: str, *blame: Blame, base: float = 0.85) -> ClassRule:
    """A limit, setting or disagreement that the text names."""
    return ClassRule(_R, _F, _END, _NO, (_CONF, *blame), base, setting=name)


def _call(isolate: Isolate, *blame: Blame, base: float = 0.7, setting: str = "") -> ClassRule:
    """A call that failed."""
    return ClassRule(_R, _F, _CALL, isolate, blame, base, setting=setting)


def _echo(order: int, *blame: Blame, severity: Severity = _I) -> ClassRule:
    return ClassRule(_Q, severity, _CALL, _NO, blame, 0.3, echo=order)


def _warning(*blame: Blame, severity: Severity = _D, setting: str = "") -> ClassRule:
    return ClassRule(_W, severity, _RES, _NO, blame, 0.8, setting=setting)


def _slow(isolate: Isolate, *blame: Blame, base: float, setting: str = "") -> ClassRule:
    return ClassRule(_R, _D, _RES, isolate, blame, base, setting=setting)


RULES = MappingProxyType(
    {
        # The network as verbs see it.
        C.IB_COMPLETION_ERROR: _call(_AGAIN, _PEER),
        C.IB_FLUSH_ERROR: _echo(4),
        C.IB_PORT_ERROR: _hardware(_YES, _NIC)._replace(fold=Fold.HOST),
        C.IB_DEVICE_FATAL: _hardware(_YES, _NIC),
        C.IB_QP_FATAL_EVENT: _hardware(_AGAIN, _NIC)._replace(fold=Fold.HOST, base=0.75),
        C.IB_MODIFY_QP_FAILED: _call(
            _AGAIN, _CONF, _NIC, _HOST, setting="network between the two adapters"
        ),
        C.IB_MEMORY_REGISTRATION_FAILED: _setting("locked-memory limit", _HOST),
        C.IB_VERBS_CALL_FAILED: _setting("limits or devices of the container", _HOST, base=0.7),
        # Sockets and start-up.
        C.BOOTSTRAP_CONNECT_FAILED: _call(_AGAIN, _PEER, _CONF, setting="NCCL_SOCKET_IFNAME"),
        C.BOOTSTRAP_NO_INTERFACE: _setting("NCCL_SOCKET_IFNAME", _HOST),
        C.BOOTSTRAP_BIND_FAILED: _setting("NCCL_COMM_ID", _HOST),
        C.BOOTSTRAP_MISMATCH: _setting("world size or image", _APP),
        C.SOCKET_CONNECT_FAILED: _call(_NO, _PEER, _CONF, setting="NCCL_SOCKET_IFNAME"),
        C.SOCKET_CLOSED_BY_PEER: _echo(2, _PEER),
        C.SOCKET_ERROR: _call(_AGAIN, _PEER)._replace(echo=3),
        C.SOCKET_HANDSHAKE_FAILED: _setting("what else speaks to the port", _PEER, base=0.7),
        C.OFI_COMPLETION_ERROR: _call(_AGAIN, _PEER, _HOST),
        C.OFI_MEMORY_REGISTRATION: _setting("driver and container versions", _HOST),
        C.OFI_ENDPOINT_FAILED: _setting("libfabric provider", _HOST),
        C.SHARP_FAILED: ClassRule(
            _W, _D, _CALL, _NO, (_CONF,), 0.7, setting="SHARP aggregation manager"
        ),
        # The library itself.
        C.REMOTE_ERROR: _echo(1, severity=_F),
        C.UNHANDLED_SYSTEM_ERROR: _call(_NO, base=0.35)._replace(generic=True),
        C.INTERNAL_ERROR: _call(_NO, base=0.35)._replace(generic=True),
        C.INVALID_USAGE: _setting("use of the library", _APP)._replace(generic=True),
        C.PROXY_FAILURE: _echo(5),
        C.COMM_ABORTED: _echo(7),
        C.NO_TRANSPORT_FOUND: _setting("NCCL_P2P_DISABLE, NCCL_SHM_DISABLE, NCCL_NET", _HOST),
        C.TOPOLOGY_ERROR: _setting("NCCL_TOPO_FILE", _HOST),
        C.COLLECTIVE_MISMATCH: _setting("NCCL_ALGO, NCCL_PROTO", _APP, _RANK),
        C.OPTIONAL_LIBRARY_MISSING: _warning(_CONF, severity=_I, setting="optional library"),
        C.NETWORK_FALLBACK: _warning(_CONF, _HOST, setting="NCCL_IB_HCA"),
        C.RESOURCE_LIMIT: _setting("ulimit", _HOST),
        # GPU and memory, as the library sees them.
        C.CUDA_ERROR: _call(_AGAIN, _GPU, _RANK, _HOST),
        C.CUDA_OUT_OF_MEMORY: _setting("GPU memory", _APP, _RANK, _HOST),
        C.CUDA_INVALID_DEVICE: _setting("CUDA_VISIBLE_DEVICES", _HOST),
        C.PEER_MAPPING_EXHAUSTED: _setting("GPUs per process", _HOST),
        C.DUPLICATE_GPU: _setting("local rank to device mapping", _HOST),
        C.P2P_DISABLED: ClassRule(_W, _D, _CALL, _YES, (_GPU, _HOST), 0.8, Fold.HOST),
        C.SHM_NO_SPACE: _setting("--shm-size", _HOST, base=0.9),
        C.NVLS_MULTICAST_FAILED: _call(_AGAIN, _HOST),
        C.MNNVL_FAILED: _call(_AGAIN, _HOST),
        # The kernel log.
        C.XID_APPLICATION_FAULT: _hardware(_NO, _APP, _GPU)._replace(fold=Fold.HOST),
        C.GPU_MEMORY_ERROR: _hardware(_YES, _GPU),
        C.GPU_FELL_OFF_BUS: _hardware(_YES, _GPU)._replace(fold=Fold.HOST),
        C.GSP_TIMEOUT: _hardware(_YES, _GPU),
        C.NVLINK_ERROR: _hardware(_YES, _GPU)._replace(fold=Fold.HOST),
        C.GPU_INTERNAL_FAULT: _hardware(_YES, _GPU),
        C.XID_FOLLOWUP: ClassRule(_Q, _I, _HW, _NO, (_GPU,), 0.3, Fold.HOST, echo=6),
        C.NVSWITCH_FATAL: _hardware(_YES, _SWITCH)._replace(fold=Fold.HOST),
        C.NVSWITCH_NONFATAL: ClassRule(_W, _D, _HW, _AGAIN, (_SWITCH, _HOST), 0.7, Fold.HOST),
        C.NIC_FIRMWARE_FAULT: _hardware(_YES, _NIC),
        C.NIC_LINK_DOWN: _hardware(_AGAIN, _NIC),
        C.PCIE_ERROR: _hardware(_YES, _NIC),
        C.HOST_MEMORY_ERROR: _hardware(_YES)._replace(fold=Fold.HOST),
        C.OOM_KILL: ClassRule(_R, _F, _HW, _NO, (_APP, _HOST), 0.85, Fold.HOST),
        C.KERNEL_STALL: _hardware(_AGAIN)._replace(fold=Fold.HOST, base=0.6),
        C.STORAGE_ERROR: _hardware(_AGAIN)._replace(base=0.7),
        C.THERMAL_POWER: _hardware(_AGAIN, _GPU, severity=_D)._replace(base=0.7),
        # Training framework and launcher.
        C.TORCH_WATCHDOG_TIMEOUT: ClassRule(_R, _F, _TIME, _NO, (), 0.5),
        C.TORCH_DESYNC: ClassRule(_R, _F, _TIME, _NO, (_RANK, _APP), 0.8),
        C.TORCH_WATCHDOG_STUCK: ClassRule(_R, _F, _TIME, _AGAIN, (_RANK, _HOST), 0.5),
        C.STORE_FAILURE: _call(_NO, _PEER, base=0.6),
        C.ELASTIC_WORKER_FAILED: ClassRule(_R, _F, _END, _NO, (_RANK, _HOST), 0.5),
        C.PROCESS_CRASH: ClassRule(_R, _F, _END, _AGAIN, (_RANK, _HOST), 0.75),
        C.PROCESS_DIED: ClassRule(_R, _F, _END, _NO, (_RANK, _HOST), 0.6),
        C.APPLICATION_EXCEPTION: ClassRule(_R, _F, _END, _NO, (_APP, _RANK), 0.8),
        C.TERMINATED_BY_LAUNCHER: _echo(8),
        C.JOB_TIME_LIMIT: ClassRule(_R, _F, _RES, _NO, (_CONF,), 0.9, setting="time limit"),
        C.JOB_CANCELLED: ClassRule(_R, _I, _RES, _AGAIN, (_HOST, _CONF), 0.8, setting="scheduler"),
        # RAS reports.
        C.RAS_MISMATCH: ClassRule(_R, _D, _TIME, _NO, (_RANK,), 0.6),
        C.RAS_INCOMPLETE: ClassRule(_R, _F, _CALL, _AGAIN, (_RANK, _HOST), 0.7),
        # Results and performance.
        C.DATA_CORRUPTION: ClassRule(_R, _F, _RES, _AGAIN, (), 0.8),
        C.SINGLE_RANK_RUN: _slow(_NO, _CONF, base=0.9, setting="launcher, or a build without MPI"),
        C.LOW_BANDWIDTH_GDR_ONE_SIDED: _slow(_NO, _HOST, base=0.85),
        C.GDR_DISABLED: _warning(_CONF, severity=_I, setting="peer-memory module"),
        C.SLOW_NODE: _slow(_AGAIN, _HOST, base=0.7),
        C.BANDWIDTH_CLIFF: _slow(_NO, _CONF, base=0.6, setting="NCCL_ALGO, NCCL_PROTO"),
        C.HANG_INIT: ClassRule(_R, _F, _TIME, _NO, (_RANK,), 0.5),
        C.HANG_FIRST_COLLECTIVE: ClassRule(_R, _F, _TIME, _NO, (), 0.5),
        C.HANG_MID_RUN: ClassRule(_R, _F, _TIME, _NO, (), 0.4),
        C.HOST_CONFIG_WARNING: _warning(_CONF, _HOST, setting="host setting"),
    }
)
