"""What a host says of its health, and what was concluded from it.

Every fact may be missing: ``None`` (or an empty tuple) is "not known", never "good". Whether a
source was there at all stands in ``HealthFacts.sources``. Field names are those of
``ncdiag/health/1``: add, never rename. Temperatures are in °C, powers in W, clocks in MHz.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from ncdiag.model.errors import ExitCode
from ncdiag.model.gpu_parts import (
    EccCounts,
    GpuProcess,
    LinkCapability,
    NvlinkFacts,
    RetiredMemory,
)

# Why a source was not read that was never asked: by our own process, and no fault of the host.
COLLECTOR_KILLED = "the collector was killed before it answered"


class Source(StrEnum):
    """Where facts come from."""

    NVML = "nvml"
    NVIDIA_SMI = "nvidia-smi"
    ROCM_SMI = "rocm-smi"
    DCGM = "dcgm"
    KERNEL_LOG = "kernel-log"
    INFINIBAND = "infiniband"
    ETHERNET = "ethernet"
    PCIE = "pcie"
    PROC = "proc"
    LIMITS = "limits"
    MOUNTS = "mounts"
    CLOCK = "clock"
    SERVICES = "services"
    MODULES = "modules"


class SourceState(StrEnum):
    """How asking a source went; ``absent`` is no fault: the host has no such thing."""

    READ = "read"
    ABSENT = "absent"
    DENIED = "denied"
    FAILED = "failed"
    TIMED_OUT = "timed out"


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceReading:
    """How one source was read; ``reason`` is one line where it was not."""

    source: Source
    state: SourceState
    reason: str | None = None
    seconds: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class GpuHealth:
    """One GPU. ``lost`` says that the driver lists it and cannot reach it, ``reason`` how.

    ``throttle_reasons`` are words of NVML without prefix: ``hw_slowdown``,
    ``hw_thermal_slowdown``, ``hw_power_brake_slowdown``, ``sw_thermal_slowdown``,
    ``sw_power_cap``, ``gpu_idle``. ``temperature_limit_c`` is where the GPU slows itself down.
    ``recovery_action`` is the number of Xid 154: 0 none, 1 reset, 2 reboot, 3 drain P2P,
    4 drain and reset, and of newer drivers 5 to 7: recover the IMEX domain, reset the bus, reboot
    the system. ``fabric_state`` is ``completed``, ``in progress``, ``not started`` or
    ``failed``, ``None`` where GPUs are not on NVSwitches. ``compute_mode`` is as nvidia-smi has
    it: ``Default``, ``Exclusive_Process``, ``Prohibited``. ``utilization`` is from 0 to 1.
    ``incidents`` are what DCGM's own watches complain of, ``Memory system: Failure: ...``;
    ``last_xid`` is the last Xid that DCGM saw, 0 for none.
    """

    index: int
    uuid: str | None = None
    name: str | None = None
    pci_address: str | None = None
    serial: str | None = None
    vbios: str | None = None
    lost: bool = False
    reason: str | None = None
    memory_total_bytes: int | None = None
    memory_free_bytes: int | None = None
    temperature_c: float | None = None
    temperature_limit_c: float | None = None
    memory_temperature_c: float | None = None
    memory_temperature_limit_c: float | None = None
    power_w: float | None = None
    power_limit_w: float | None = None
    default_power_limit_w: float | None = None
    sm_clock_mhz: int | None = None
    max_sm_clock_mhz: int | None = None
    utilization: float | None = None
    throttle_reasons: tuple[str, ...] | None = None
    persistence_mode: bool | None = None
    mig_mode: bool | None = None
    ecc_mode: bool | None = None
    compute_mode: str | None = None
    ecc: EccCounts | None = None
    retired: RetiredMemory | None = None
    nvlinks: tuple[NvlinkFacts, ...] | None = None
    pcie: LinkCapability | None = None
    pcie_replays: int | None = None
    processes: tuple[GpuProcess, ...] | None = None
    recovery_action: int | None = None
    fabric_state: str | None = None
    incidents: tuple[str, ...] | None = None
    last_xid: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class KernelEvent:
    """One thing that the kernel log tells since the host booted.

    ``class_`` is the value of a ``FindingClass`` of post-mortems, ``code`` the number of an Xid or
    SXid, ``device`` a PCI address or name. ``since_boot_s`` counts from boot; ``text`` is the line.
    ``count`` adds up like ones, the first of which this is; ``last_since_boot_s`` is the last.
    ``severity`` is that of post-mortems (``fatal``, ``degraded``, ``info``) where this message
    differs from others of its class, such as an error that was corrected.
    """

    class_: str
    text: str
    code: int | None = None
    device: str | None = None
    since_boot_s: float | None = None
    last_since_boot_s: float | None = None
    count: int = 1
    severity: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class IbPort:
    """One RDMA port. ``state`` is as in sysfs without its number: ``ACTIVE``, ``DOWN``, ``INIT``.

    ``counters`` and ``hw_counters`` are those of sysfs by their file names.
    """

    hca: str
    port: int
    link_layer: str | None = None
    state: str | None = None
    physical_state: str | None = None
    rate_gbit_per_s: float | None = None
    width: int | None = None
    interface: str | None = None
    firmware: str | None = None
    board: str | None = None
    pci_address: str | None = None
    counters: Mapping[str, int] = field(default_factory=dict)
    hw_counters: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class EthernetPort:
    """One network interface with a device behind it; ``carrier_changes`` counts flaps."""

    name: str
    state: str | None = None
    speed_gbit_per_s: float | None = None
    mtu: int | None = None
    driver: str | None = None
    pci_address: str | None = None
    carrier_changes: int | None = None
    counters: Mapping[str, int] = field(default_factory=dict)


class PciKind(StrEnum):
    """What a PCIe device is to us."""

    GPU = "gpu"
    NIC = "nic"
    NVSWITCH = "nvswitch"
    NVME = "nvme"
    BRIDGE = "bridge"


@dataclass(frozen=True, slots=True, kw_only=True)
class PciDevice:
    """A GPU, adapter, switch or drive on the PCIe bus.

    ``name`` is the driver's (``mlx5_0``, ``nvme0``), ``driver`` what the kernel bound to it.
    ``aer`` counts errors of Advanced Error Reporting: ``correctable``, ``nonfatal``, ``fatal``.
    ``acs_redirects`` is true for a bridge that sends peer-to-peer traffic up to the root.
    """

    address: str
    kind: PciKind
    vendor: str | None = None
    name: str | None = None
    driver: str | None = None
    link: LinkCapability | None = None
    aer: Mapping[str, int] = field(default_factory=dict)
    acs_redirects: bool | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Mount:
    """A mounted file system; ``state`` is ``ok``, ``hung`` (no answer in time) or ``failed``."""

    path: str
    kind: str
    device: str | None = None
    state: str = "ok"
    reason: str | None = None
    total_bytes: int | None = None
    free_bytes: int | None = None
    free_inodes: int | None = None
    total_inodes: int | None = None
    read_only: bool | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Clock:
    """How the clock is kept; ``offset_s`` is towards its source, positive when this one is fast."""

    synchronized: bool | None = None
    offset_s: float | None = None
    kept_by: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class HealthFacts:
    """Everything one host says of itself at one time.

    ``taken_s`` is UTC seconds since the epoch by the host's own clock, ``uptime_s`` since boot;
    ``asked_s`` and ``answered_s`` are the driver's clock before and after, where a driver asked.
    ``interfaces`` are the names of all network interfaces, also of those in software.
    ``limits`` are soft limits of the process in their own units, -1 without bound: ``memlock``
    (bytes), ``nofile``, ``nproc``, ``stack``, ``core``. ``services`` maps units to what systemd
    calls their state, such as ``active``. ``modules`` are the kernel's. ``versions`` maps
    ``driver``, ``cuda``, ``nccl``, ``kernel``, ``ofed``, ``vbios`` and so on. ``settings`` are
    single values of the kernel: ``iommu``, ``numa_balancing``, ``cpu_governor``.
    """

    hostname: str
    taken_s: float
    uptime_s: float | None = None
    boot_id: str | None = None
    asked_s: float | None = None
    answered_s: float | None = None
    sources: tuple[SourceReading, ...] = ()
    gpus: tuple[GpuHealth, ...] = ()
    kernel_events: tuple[KernelEvent, ...] = ()
    ib_ports: tuple[IbPort, ...] = ()
    ethernet_ports: tuple[EthernetPort, ...] = ()
    interfaces: tuple[str, ...] | None = None
    pci_devices: tuple[PciDevice, ...] = ()
    mounts: tuple[Mount, ...] = ()
    clock: Clock | None = None
    cpus: int | None = None
    load: float | None = None
    memory_total_bytes: int | None = None
    memory_available_bytes: int | None = None
    shm_total_bytes: int | None = None
    shm_free_bytes: int | None = None
    blocked_processes: tuple[str, ...] | None = None
    limits: Mapping[str, int] = field(default_factory=dict)
    services: Mapping[str, str] = field(default_factory=dict)
    modules: tuple[str, ...] | None = None
    versions: Mapping[str, str] = field(default_factory=dict)
    settings: Mapping[str, str] = field(default_factory=dict)

    def reading(self, source: Source) -> SourceReading | None:
        """How ``source`` was read; ``None`` where nobody asked."""
        return next((one for one in self.sources if one.source is source), None)


class Severity(StrEnum):
    """How much a finding weighs, the least first.

    ``note`` is worth knowing. ``warning`` wants a look, and changes no verdict. ``fault`` is wrong
    and makes the host faulty: out of a launch until it is put right; nobody is drained for it.
    ``fatal`` breaks whatever runs there: drain the host.
    """

    NOTE = "note"
    WARNING = "warning"
    FAULT = "fault"
    FATAL = "fatal"


class HostFitness(StrEnum):
    """What is said of a host in one word: the worst of its findings."""

    HEALTHY = "healthy"
    WARNING = "warning"
    FAULTY = "faulty"
    FATAL = "fatal"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True, kw_only=True)
class HealthFinding:
    """A check that tripped; ``check`` is its id, ``device`` is ``gpu3`` or ``mlx5_0``.

    ``class_`` is the value of the ``FindingClass`` that a post-mortem would call it, where there is
    one. ``measured`` and ``limit`` are text with units. ``next`` is what to do. ``configuration``
    says that settings are wrong, and no hardware.
    """

    check: str
    severity: Severity
    text: str
    next: str
    device: str | None = None
    class_: str | None = None
    measured: str | None = None
    limit: str | None = None
    configuration: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class NotKnown:
    """A check that could not be made, with the reason in one line."""

    check: str
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class HostHealth:
    """One host, judged; findings have the worst first. ``error`` says why it gave no facts."""

    host: str
    fitness: HostFitness
    findings: tuple[HealthFinding, ...] = ()
    not_known: tuple[NotKnown, ...] = ()
    passed: tuple[str, ...] = ()
    facts: HealthFacts | None = None
    error: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Difference:
    """A property in which a few hosts differ from most; ``hosts`` are folded by the reader."""

    what: str
    most: str
    most_hosts: int
    other: str
    hosts: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class HealthReport:
    """The health of one host or of a fleet. ``started`` is UTC in ISO 8601.

    ``hosts`` are in the order of the hosts file. ``interval_s`` is the time between the two
    readings that rising counters were told from, ``None`` for a single reading.
    """

    started: str
    seconds: float
    hosts: tuple[HostHealth, ...]
    differences: tuple[Difference, ...] = ()
    interval_s: float | None = None
    notes: tuple[str, ...] = ()

    @property
    def exit_code(self) -> ExitCode:
        """1 with a fault on any host, else 3 where a host could not be judged, else 0."""
        states = {host.fitness for host in self.hosts}
        if states & {HostFitness.FAULTY, HostFitness.FATAL}:
            return ExitCode.WRONG
        return ExitCode.UNDECIDED if HostFitness.UNKNOWN in states else ExitCode.DONE
