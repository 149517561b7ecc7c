"""Hosts with one thing wrong: for every health check facts that trip it, and some that do not.

``AILMENTS`` maps each check of a single host to what trips it and what comes near without tripping
it.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from gpu_hosts import (
    FIVE,
    GIB,
    bridge,
    cloud_vm,
    device,
    gpu,
    gpu_host,
    ib_port,
    mount,
    with_device,
    with_ethernet,
    with_event,
    with_gpu,
    with_port,
    with_source,
)

from ncdiag.health.checks import CHECKS, ExpectedHost
from ncdiag.model.gpu_parts import EccCounts, GpuProcess, NvlinkFacts, RetiredMemory
from ncdiag.model.health import Clock, HealthFacts, PciKind, Source, SourceState

_FIELDS: Mapping[Source, Mapping[str, Any]] = {
    Source.NVML: {"gpus": ()},
    Source.KERNEL_LOG: {"kernel_events": ()},
    Source.INFINIBAND: {"ib_ports": ()},
    Source.ETHERNET: {"ethernet_ports": ()},
    Source.PCIE: {"pci_devices": ()},
    Source.PROC: {"uptime_s": None, "boot_id": None, "blocked_processes": None, "settings": {}},
    Source.LIMITS: {"limits": {}},
    Source.MOUNTS: {"mounts": (), "shm_total_bytes": None, "shm_free_bytes": None},
    Source.CLOCK: {"clock": None},
    Source.SERVICES: {"services": {}},
    Source.MODULES: {"modules": None, "versions": {}},
}


def without(facts: HealthFacts, sources: Sequence[Source]) -> HealthFacts:
    """``facts`` of a host on which ``sources`` are absent."""
    gone = {name: value for one in sources for name, value in _FIELDS.get(one, {}).items()}
    states = tuple(
        replace(one, state=SourceState.ABSENT) if one.source in sources else one
        for one in facts.sources
    )
    return replace(facts, sources=states, **gone)


@dataclass(frozen=True, kw_only=True)
class Ailment:
    """What trips a check, and what comes near; ``before`` is ten minutes earlier."""

    trips: HealthFacts
    fine: HealthFacts = field(default_factory=gpu_host)
    before: HealthFacts = field(default_factory=gpu_host)
    expected: ExpectedHost = field(default_factory=ExpectedHost)
    device: str | None = None


def _gpu(trips: dict[str, Any], fine: dict[str, Any] | None = None, **more: Any) -> Ailment:
    return Ailment(trips=with_gpu(**trips), fine=with_gpu(**(fine or {})), device="gpu3", **more)


def _links(change: Callable[[NvlinkFacts], NvlinkFacts]) -> tuple[NvlinkFacts, ...]:
    return tuple(change(link) for link in gpu().nvlinks or ())


def _kernel(class_: str, trips: str, **changes: Any) -> Ailment:
    """An event of this class, and none at all."""
    return Ailment(trips=with_event(class_, trips, **changes))


_PROCESS = GpuProcess(pid=4711, name="python", memory_bytes=70 * GIB)
_CONTEXT = GpuProcess(pid=12, name="/usr/bin/nvidia-persistenced", memory_bytes=GIB)
_NARROW = replace(FIVE, current_lanes=8)
_ASLEEP = replace(FIVE, current_gigatransfers_per_s=2.5)
_ECC = gpu().ecc or EccCounts()
_KEPT = RetiredMemory(correctable=0, uncorrectable=0, pending=False, failure=False)

AILMENTS: Mapping[str, Ailment] = {
    "gpu_missing": _gpu({"lost": True, "reason": "GPU is lost"}),
    "recovery_action": _gpu({"recovery_action": 2}, {"recovery_action": None}),
    "gpu_memory_used": _gpu({"memory_free_bytes": 9 * GIB}, {"memory_free_bytes": 11 * GIB}),
    "stale_process": _gpu(
        {"processes": (_PROCESS,)},
        {"processes": (_CONTEXT,)},
        before=with_gpu(processes=(_PROCESS, _CONTEXT)),
    ),
    "ecc_volatile_uncorrected": _gpu({"ecc": replace(_ECC, volatile_uncorrected=1)}),
    "ecc_aggregate": _gpu({"ecc": replace(_ECC, aggregate_uncorrected=1)}),
    "ecc_corrected_rate": _gpu(
        {"ecc": replace(_ECC, volatile_corrected=900)},
        {"ecc": replace(_ECC, volatile_corrected=100)},
    ),
    "remapped_rows_pending": _gpu({"retired": replace(_KEPT, pending=True)}),
    "remapped_rows_failure": _gpu({"retired": replace(_KEPT, failure=True)}),
    "retired_memory": _gpu({"retired": replace(_KEPT, uncorrectable=2)}),
    "gpu_temperature": _gpu({"temperature_c": 86.0}, {"temperature_c": 82.0}),
    "gpu_memory_temperature": _gpu({"memory_temperature_c": 96.0}, {"memory_temperature_c": 90.0}),
    "gpu_throttled": _gpu(
        {"throttle_reasons": ("hw_slowdown", "hw_thermal_slowdown")},
        {"throttle_reasons": ("gpu_idle", "applications_clocks_setting")},
    ),
    "gpu_clock_low": _gpu({"max_sm_clock_mhz": 1410}, {"max_sm_clock_mhz": 1965}),
    "power_limit": _gpu({"power_limit_w": 500.0}, {"power_limit_w": 699.5}),
    "nvlink_errors": _gpu(
        {"nvlinks": _links(lambda link: replace(link, errors={"replay": 4}))},
        {"nvlinks": _links(lambda link: replace(link, errors={"fec_errors_0": 10**9}))},
    ),
    "nvlink_down": _gpu(
        {"nvlinks": _links(lambda link: replace(link, active=link.link != 7))},
        {"nvlinks": None},
    ),
    "fabric_manager": _gpu({"fabric_state": "not started"}, {"fabric_state": None}),
    "persistence_mode": _gpu({"persistence_mode": False}),
    "mig_mode": _gpu({"mig_mode": True}),
    "ecc_mode": _gpu({"ecc_mode": False}, {"ecc_mode": None}),
    "compute_mode": _gpu({"compute_mode": "Prohibited"}),
    "dcgm_incident": _gpu({"incidents": ("Memory system: Failure: row remap",)}),
    "last_xid": Ailment(
        trips=without(with_gpu(last_xid=79), [Source.KERNEL_LOG]),
        fine=without(gpu_host(), [Source.KERNEL_LOG]),
        device="gpu3",
    ),
    "pcie_downtrained": Ailment(
        trips=with_device(device("0000:13:00.0", PciKind.GPU, link=_NARROW)),
        fine=with_device(device("0000:13:00.0", PciKind.GPU, link=_ASLEEP)),
        device="0000:13:00.0",
    ),
    "pcie_aer": Ailment(
        trips=with_device(device("0000:13:00.0", PciKind.GPU, aer={"fatal": 1})),
        fine=with_device(device("0000:13:00.0", PciKind.GPU, aer={"correctable": 12})),
        device="0000:13:00.0",
    ),
    "gpu_pcie_replays": _gpu({"pcie_replays": 1000}, {"pcie_replays": 9}),
    "acs_enabled": Ailment(trips=with_device(bridge(acs_redirects=True))),
    "iommu_on": Ailment(trips=gpu_host(settings={"iommu": "on"})),
    "ib_port_down": Ailment(
        trips=with_port(state="DOWN", physical_state="Polling"),
        fine=gpu_host(ib_ports=(*map(ib_port, range(8)), ib_port(8, port=2, state="DOWN"))),
        device="mlx5_5",
    ),
    "ib_port_slow": Ailment(
        trips=with_port(rate_gbit_per_s=200.0),
        fine=with_port(rate_gbit_per_s=200.0, board="MT_0000000224"),
        device="mlx5_5",
    ),
    "ib_errors_rising": Ailment(
        trips=with_port(counters={"link_downed": 2}),
        fine=with_port(counters={"link_downed": 0, "port_xmit_data": 10**12}),
        device="mlx5_5",
    ),
    "link_flaps": Ailment(
        trips=with_ethernet(carrier_changes=4),
        fine=with_ethernet(carrier_changes=1),
        device="eth0",
    ),
    "ethernet_port_down": Ailment(
        trips=with_ethernet(state="down"),
        fine=with_ethernet(state="unknown"),
        expected=ExpectedHost(nics=("eth0",)),
        device="eth0",
    ),
    "ethernet_errors_rising": Ailment(
        trips=with_ethernet(counters={"rx_crc_errors": 5000}),
        fine=with_ethernet(counters={"rx_dropped": 5000}),
        device="eth0",
    ),
    "kernel_gpu_fell_off_bus": _kernel("gpu_fell_off_bus", "GPU has fallen off the bus", code=79),
    "kernel_gpu_memory_error": _kernel("gpu_memory_error", "Uncontained", code=95),
    "kernel_gsp_timeout": _kernel("gsp_timeout", "Timeout of GSP", code=119),
    "kernel_gpu_internal_fault": _kernel("gpu_internal_fault", "halted", code=62),
    "kernel_nvlink_error": _kernel("nvlink_error", "NVLink: fatal error", code=74),
    "kernel_xid_followup": _kernel(
        "xid_followup", "recovery action changed from 0x0 (None) to 0x1 (GPU Reset)", code=154
    ),
    "kernel_xid_application_fault": _kernel("xid_application_fault", "MMU Fault", code=31),
    "kernel_nvswitch_fatal": _kernel("nvswitch_fatal", "20034, Fatal, Link 28", code=20034),
    "kernel_nvswitch_nonfatal": _kernel("nvswitch_nonfatal", "20001, Non-fatal", code=20001),
    "kernel_nic_firmware_fault": _kernel("nic_firmware_fault", "device's health compromised"),
    "kernel_nic_link_down": _kernel("nic_link_down", "ens8f0: Link down"),
    "kernel_pcie_error": _kernel("pcie_error", "AER: Uncorrected (Fatal) error received"),
    "kernel_host_memory_error": _kernel("host_memory_error", "EDAC MC0: 1 UE memory error"),
    "kernel_oom_kill": _kernel("oom_kill", "Out of memory: Killed process 4711"),
    "kernel_stall": _kernel("kernel_stall", "task python:7 blocked for more than 120 seconds"),
    "kernel_storage_error": _kernel("storage_error", "nvme0n1: I/O error"),
    "kernel_thermal_power": _kernel("thermal_power", "temperature above threshold"),
    "kernel_host_config_warning": _kernel("host_config_warning", "NVRM: API mismatch"),
    "kernel_other": _kernel("process_crash", "python: segfault at 0"),
    "memlock_limit": Ailment(
        trips=gpu_host(limits={"memlock": 65_536}), fine=cloud_vm(limits={"memlock": 65_536})
    ),
    "shm_small": Ailment(trips=gpu_host(shm_total_bytes=64 * 1024**2)),
    "file_limit": Ailment(trips=gpu_host(limits={"nofile": 256})),
    "clock_unsynchronized": Ailment(
        trips=gpu_host(clock=Clock(synchronized=False)),
        fine=gpu_host(clock=Clock(synchronized=True, offset_s=-0.2)),
    ),
    "clock_went_back": Ailment(trips=gpu_host(taken_s=gpu_host().taken_s - 1200.0)),
    "blocked_processes": Ailment(
        trips=gpu_host(blocked_processes=("python (7)",)),
        before=gpu_host(blocked_processes=("python (7)",)),
    ),
    "boot_recent": Ailment(trips=gpu_host(uptime_s=90.0, boot_id="new")),
    "peer_memory": Ailment(
        trips=gpu_host(modules=("nvidia",), versions={"driver": "470.82", "kernel": "5.4.0"})
    ),
    "numa_balancing": Ailment(trips=gpu_host(settings={"numa_balancing": "on"})),
    "cpu_governor": Ailment(trips=gpu_host(settings={"cpu_governor": "powersave"})),
    "hung_mount": Ailment(
        trips=gpu_host(mounts=(mount("/data", kind="nfs4", state="hung"),)), device="/data"
    ),
    "mount_full": Ailment(
        trips=gpu_host(mounts=(mount(free_bytes=GIB),)),
        fine=gpu_host(mounts=(mount(kind="squashfs", free_bytes=0),)),
        device="/",
    ),
    "mount_read_only": Ailment(
        trips=gpu_host(mounts=(mount(read_only=True),)),
        fine=gpu_host(mounts=(mount("/boot", read_only=True),)),
        device="/",
    ),
    "hung_program": Ailment(trips=with_source(Source.NVIDIA_SMI, SourceState.TIMED_OUT)),
    "source_timed_out": Ailment(trips=with_source(Source.SERVICES, SourceState.TIMED_OUT)),
    "source_denied": Ailment(trips=with_source(Source.KERNEL_LOG, SourceState.DENIED, "closed")),
    "source_failed": Ailment(trips=with_source(Source.SERVICES, SourceState.FAILED, "broken")),
}


def missing(check: str) -> HealthFacts:
    """What trips ``check``, on a host without the sources that would tell of it."""
    sources = CHECKS[check].sources
    if sources:
        return without(AILMENTS[check].trips, sources)
    # These look at how asking went: nothing was asked, or the host has no GPUs to ask of.
    return cloud_vm() if check == "hung_program" else replace(gpu_host(), sources=())
