"""What a post-mortem concludes: the words and records of schema ``ncdiag/postmortem/1``.

Field names are those of the JSON, but for ``class_``, which Python does not allow: add, never
rename.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum

from ncdiag.model.errors import ExitCode
from ncdiag.model.log import InputSummary


class FindingClass(StrEnum):
    """What went wrong, in one word; what each means stands in ``ncdiag.diagnose.postmortem``."""

    # The network as verbs see it.
    IB_COMPLETION_ERROR = "ib_completion_error"
    IB_FLUSH_ERROR = "ib_flush_error"
    IB_PORT_ERROR = "ib_port_error"
    IB_DEVICE_FATAL = "ib_device_fatal"
    IB_QP_FATAL_EVENT = "ib_qp_fatal_event"
    IB_MODIFY_QP_FAILED = "ib_modify_qp_failed"
    IB_MEMORY_REGISTRATION_FAILED = "ib_memory_registration_failed"
    IB_VERBS_CALL_FAILED = "ib_verbs_call_failed"
    # Sockets and start-up.
    BOOTSTRAP_CONNECT_FAILED = "bootstrap_connect_failed"
    BOOTSTRAP_NO_INTERFACE = "bootstrap_no_interface"
    BOOTSTRAP_BIND_FAILED = "bootstrap_bind_failed"
    BOOTSTRAP_MISMATCH = "bootstrap_mismatch"
    SOCKET_CONNECT_FAILED = "socket_connect_failed"
    SOCKET_CLOSED_BY_PEER = "socket_closed_by_peer"
    SOCKET_ERROR = "socket_error"
    SOCKET_HANDSHAKE_FAILED = "socket_handshake_failed"
    OFI_COMPLETION_ERROR = "ofi_completion_error"
    OFI_MEMORY_REGISTRATION = "ofi_memory_registration"
    OFI_ENDPOINT_FAILED = "ofi_endpoint_failed"
    SHARP_FAILED = "sharp_failed"
    # The library itself.
    REMOTE_ERROR = "remote_error"
    UNHANDLED_SYSTEM_ERROR = "unhandled_system_error"
    INTERNAL_ERROR = "internal_error"
    INVALID_USAGE = "invalid_usage"
    PROXY_FAILURE = "proxy_failure"
    COMM_ABORTED = "comm_aborted"
    NO_TRANSPORT_FOUND = "no_transport_found"
    TOPOLOGY_ERROR = "topology_error"
    COLLECTIVE_MISMATCH = "collective_mismatch"
    OPTIONAL_LIBRARY_MISSING = "optional_library_missing"
    NETWORK_FALLBACK = "network_fallback"
    RESOURCE_LIMIT = "resource_limit"
    # GPU and memory, as the library sees them.
    CUDA_ERROR = "cuda_error"
    CUDA_OUT_OF_MEMORY = "cuda_out_of_memory"
    CUDA_INVALID_DEVICE = "cuda_invalid_device"
    PEER_MAPPING_EXHAUSTED = "peer_mapping_exhausted"
    DUPLICATE_GPU = "duplicate_gpu"
    P2P_DISABLED = "p2p_disabled"
    SHM_NO_SPACE = "shm_no_space"
    NVLS_MULTICAST_FAILED = "nvls_multicast_failed"
    MNNVL_FAILED = "mnnvl_failed"
    # The kernel log.
    XID_APPLICATION_FAULT = "xid_application_fault"
    GPU_MEMORY_ERROR = "gpu_memory_error"
    GPU_FELL_OFF_BUS = "gpu_fell_off_bus"
    GSP_TIMEOUT = "gsp_timeout"
    NVLINK_ERROR = "nvlink_error"
    GPU_INTERNAL_FAULT = "gpu_internal_fault"
    XID_FOLLOWUP = "xid_followup"
    NVSWITCH_FATAL = "nvswitch_fatal"
    NVSWITCH_NONFATAL = "nvswitch_nonfatal"
    NIC_FIRMWARE_FAULT = "nic_firmware_fault"
    NIC_LINK_DOWN = "nic_link_down"
    PCIE_ERROR = "pcie_error"
    HOST_MEMORY_ERROR = "host_memory_error"
    OOM_KILL = "oom_kill"
    KERNEL_STALL = "kernel_stall"
    STORAGE_ERROR = "storage_error"
    THERMAL_POWER = "thermal_power"
    # Training framework and launcher.
    TORCH_WATCHDOG_TIMEOUT = "torch_watchdog_timeout"
    TORCH_DESYNC = "torch_desync"
    TORCH_WATCHDOG_STUCK = "torch_watchdog_stuck"
    STORE_FAILURE = "store_failure"
    ELASTIC_WORKER_FAILED = "elastic_worker_failed"
    PROCESS_CRASH = "process_crash"
    PROCESS_DIED = "process_died"
    APPLICATION_EXCEPTION = "application_exception"
    TERMINATED_BY_LAUNCHER = "terminated_by_launcher"
    JOB_TIME_LIMIT = "job_time_limit"
    JOB_CANCELLED = "job_cancelled"
    # RAS reports.
    RAS_MISMATCH = "ras_mismatch"
    RAS_INCOMPLETE = "ras_incomplete"
    # Results and performance.
    DATA_CORRUPTION = "data_corruption"
    SINGLE_RANK_RUN = "single_rank_run"
    LOW_BANDWIDTH_GDR_ONE_SIDED = "low_bandwidth_gdr_one_sided"
    GDR_DISABLED = "gdr_disabled"
    SLOW_NODE = "slow_node"
    BANDWIDTH_CLIFF = "bandwidth_cliff"
    HANG_INIT = "hang_init"
    HANG_FIRST_COLLECTIVE = "hang_first_collective"
    HANG_MID_RUN = "hang_mid_run"
    HOST_CONFIG_WARNING = "host_config_warning"


class Role(StrEnum):
    """Whether a finding is the cause, an echo of it, or neither."""

    ROOT = "root"
    CONSEQUENCE = "consequence"
    WARNING = "warning"


class Severity(StrEnum):
    """What it did to the job."""

    FATAL = "fatal"
    DEGRADED = "degraded"
    INFO = "info"


class SuspectKind(StrEnum):
    """What can be suspected."""

    HOST = "host"
    RANK = "rank"
    GPU = "gpu"
    NIC = "nic"
    LINK = "link"
    SWITCH = "switch"
    CONFIG = "config"
    APPLICATION = "application"


class PostmortemVerdict(StrEnum):
    """The one word a post-mortem ends with."""

    OK = "ok"
    FINDINGS = "findings"
    INCONCLUSIVE = "inconclusive"

    @property
    def exit_code(self) -> ExitCode:
        """The exit code that carries this verdict."""
        return {
            PostmortemVerdict.OK: ExitCode.DONE,
            PostmortemVerdict.FINDINGS: ExitCode.WRONG,
            PostmortemVerdict.INCONCLUSIVE: ExitCode.UNDECIDED,
        }[self]


@dataclass(frozen=True, slots=True, kw_only=True)
class Suspect:
    """Something a finding points at; ``name`` as the log writes it (``3`` for a rank)."""

    kind: SuspectKind
    name: str


@dataclass(frozen=True, slots=True, kw_only=True)
class FirstSeen:
    """Where a finding begins; ``time`` as printed, ``None`` where the line has none."""

    path: str
    line: int
    time: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class EvidenceLine:
    """A line of an input that supports a finding."""

    path: str
    line: int
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """One fault: all the lines that say the same are one finding with a ``count``."""

    class_: FindingClass
    role: Role
    severity: Severity
    confidence: float
    suspects: Sequence[Suspect] = ()
    victims: Sequence[str] = ()
    ranks: Sequence[int] = ()
    attributes: Mapping[str, str] = field(default_factory=dict)
    count: int = 1
    first_seen: FirstSeen | None = None
    evidence: Sequence[EvidenceLine] = ()
    explanation: str = ""
    actions: Sequence[str] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Isolation:
    """A host to leave out, and why: the surest reason, and those besides that alone would do."""

    host: str
    confidence: float
    because: str
    also: Sequence[str] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Library:
    """The communication library: ``NCCL`` or ``RCCL``, and its versions as printed."""

    name: str | None = None
    versions: Sequence[str] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class JobShape:
    """How large the job was; ``None`` where the input does not tell."""

    ranks: int | None = None
    nodes: int | None = None
    hosts: Sequence[str] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Network:
    """How the ranks talked to one another."""

    name: str | None = None
    transports: Sequence[str] = ()
    nics: Sequence[str] = ()
    gdr: str = "unknown"
    nvls: str = "unknown"
    sharp: str = "unknown"


@dataclass(frozen=True, slots=True, kw_only=True)
class BenchmarkSummary:
    """One nccl-tests run; bandwidths in GB/s of 1e9 bytes."""

    test: str | None
    ranks: int | None
    avg_busbw_gb_per_s: float | None
    peak_busbw_gb_per_s: float | None
    out_of_bounds: int | None
    complete: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Postmortem:
    """The whole answer; ``story`` is what happened in a few sentences, in order."""

    verdict: PostmortemVerdict
    inputs: Sequence[InputSummary]
    library: Library
    job: JobShape
    network: Network
    benchmarks: Sequence[BenchmarkSummary]
    findings: Sequence[Finding]
    isolate: Sequence[Isolation]
    story: Sequence[str] = ()
