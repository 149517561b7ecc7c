"""How much a finding weighs: what drains a host, what is only a warning, and who is not accused."""

from dataclasses import replace

import pytest
from gpu_hosts import (
    FIVE,
    GIB,
    bridge,
    cloud_vm,
    device,
    earlier,
    gpu,
    gpu_host,
    ib_port,
    mount,
    other,
    readings,
    with_device,
    with_ethernet,
    with_gpu,
    with_port,
    with_source,
)
from health_weighing import FATAL, FAULT, NOTE, WARNING, severity

from ncdiag.health.checks import ExpectedHost, check_host
from ncdiag.model.gpu_parts import GpuProcess, LinkCapability
from ncdiag.model.health import (
    EthernetPort,
    HostFitness,
    KernelEvent,
    PciKind,
    Severity,
    Source,
    SourceReading,
    SourceState,
)


def test_fewer_gpus_than_expected_are_a_fault_and_not_fatal() -> None:
    seven = gpu_host(gpus=gpu_host().gpus[:7])
    assert severity("gpu_missing", seven) is FAULT
    off_the_bus = replace(seven, pci_devices=())
    assert severity("gpu_missing", off_the_bus) is None
    assert severity("gpu_missing", off_the_bus, expected=ExpectedHost(gpus=8)) is FAULT


def test_a_host_without_tools_of_its_driver_is_not_accused() -> None:
    gone = tuple(
        SourceReading(source=source, state=SourceState.ABSENT)
        if source in {Source.NVML, Source.NVIDIA_SMI, Source.ROCM_SMI, Source.DCGM}
        else SourceReading(source=source, state=SourceState.READ)
        for source in Source
    )
    facts = gpu_host(gpus=(), sources=gone)
    eight = ExpectedHost(gpus=8)
    assert severity("gpu_missing", facts, expected=eight) is None
    assert severity("gpu_missing", replace(facts, modules=("ext4",)), expected=eight) is FAULT
    assert severity("gpu_missing", replace(facts, pci_devices=()), expected=eight) is FAULT
    assert severity("gpu_missing", replace(facts, pci_devices=())) is None


def test_heat_is_a_fault_near_the_gpus_own_limit_and_a_warning_far_from_it() -> None:
    assert severity("gpu_temperature", with_gpu(temperature_c=86.0)) is FAULT
    far = {"temperature_c": 86.0, "temperature_limit_c": 105.0}
    assert severity("gpu_temperature", with_gpu(**far)) is WARNING
    unknown = {"temperature_c": 86.0, "temperature_limit_c": None}
    assert severity("gpu_temperature", with_gpu(**unknown)) is FAULT
    cool = {"temperature_c": 68.0, "temperature_limit_c": 70.0}
    assert severity("gpu_temperature", with_gpu(**cool)) is WARNING


def test_a_power_limit_that_is_reached_is_a_note() -> None:
    capped = with_gpu(throttle_reasons=("sw_power_cap",))
    assert severity("gpu_throttled", capped) is NOTE
    brake = with_gpu(throttle_reasons=("hw_slowdown", "hw_power_brake_slowdown"))
    assert severity("gpu_throttled", brake) is FAULT


def test_who_holds_the_memory_is_named() -> None:
    held = GpuProcess(pid=4711, name="trainer", memory_bytes=75 * GIB)
    facts = with_gpu(memory_free_bytes=5 * GIB, processes=(held,), utilization=0.9)
    [finding] = check_host("a", facts).findings
    assert "trainer (pid 4711, 75 GiB)" in finding.text
    assert finding.device == "gpu3"


def test_a_small_gpu_that_is_empty_is_not_in_use() -> None:
    small = with_gpu(memory_total_bytes=8 * GIB, memory_free_bytes=7 * GIB)
    assert severity("gpu_memory_used", small) is None


def test_memory_errors_that_come_now_drain_and_old_ones_do_not() -> None:
    ecc = replace(gpu().ecc, volatile_uncorrected=2)  # type: ignore[type-var]
    facts = with_gpu(ecc=ecc)
    assert severity("ecc_volatile_uncorrected", facts) is FAULT
    assert severity("ecc_volatile_uncorrected", facts, before=earlier(facts)) is FAULT
    assert severity("ecc_volatile_uncorrected", facts, before=earlier(gpu_host())) is FATAL


def test_counters_that_went_back_or_are_of_another_boot_do_not_rise() -> None:
    more, less = with_port(counters={"link_downed": 9}), with_port(counters={"link_downed": 2})
    assert severity("ib_errors_rising", more, before=earlier(less)) is FAULT
    assert severity("ib_errors_rising", less, before=earlier(more)) is None
    other_boot = replace(earlier(less), boot_id="other")
    assert severity("ib_errors_rising", more, before=other_boot) is None
    younger = replace(more, boot_id=None, uptime_s=60.0)
    assert severity("ib_errors_rising", younger, before=earlier(less)) is None


def test_a_clock_that_went_back_tells_no_rates() -> None:
    more, less = with_port(counters={"link_downed": 9}), with_port(counters={"link_downed": 2})
    host = check_host("a", more, before=replace(less, taken_s=more.taken_s + 30))
    assert [one.check for one in host.findings] == ["clock_went_back"]
    assert "ib_errors_rising" in {one.check for one in host.not_known}


@pytest.mark.parametrize(
    ("counter", "by", "weight"),
    [
        ("symbol_error", 5, NOTE),
        ("symbol_error", 500, FAULT),
        ("link_error_recovery", 1, FAULT),
        ("local_link_integrity_errors", 1, FAULT),
        ("port_rcv_remote_physical_errors", 1, WARNING),
        ("port_xmit_discards", 5000, NOTE),
        ("port_xmit_wait", 5000, None),
    ],
)
def test_counters_of_a_port_weigh_by_what_they_mean(
    counter: str, by: int, weight: Severity | None
) -> None:
    before = earlier(with_port(counters={counter: 100}))
    facts = with_port(counters={counter: 100 + by})
    assert severity("ib_errors_rising", facts, before=before) is weight


@pytest.mark.parametrize(
    ("counter", "weight"),
    [
        ("out_of_sequence", WARNING),
        ("local_ack_timeout_err", WARNING),
        ("rnr_nak_retry_err", NOTE),
        ("roce_slow_restart", NOTE),
        ("rp_cnp_handled", None),
    ],
)
def test_counters_of_hardware_weigh_by_what_they_mean(
    counter: str, weight: Severity | None
) -> None:
    before = earlier(with_port(hw_counters={counter: 0}))
    facts = with_port(hw_counters={counter: 40})
    assert severity("ib_errors_rising", facts, before=before) is weight


def test_an_unused_port_is_not_accused() -> None:
    lone = gpu_host(ib_ports=(ib_port(0), ib_port(1, pci_address="0000:40:00.1", state="DOWN")))
    assert severity("ib_port_down", lone) is None
    every_second = [
        ib_port(n, pci_address=f"0000:4{n // 2}:00.{n % 2}", state="DOWN" if n % 2 else "ACTIVE")
        for n in range(8)
    ]
    assert severity("ib_port_down", gpu_host(ib_ports=tuple(every_second))) is None
    assert severity("ib_port_down", lone, expected=ExpectedHost(nics=("mlx5_1",))) is FAULT
    up = gpu_host(ib_ports=(ib_port(0), ib_port(1, pci_address="0000:40:00.1")))
    assert severity("ib_port_down", lone, before=earlier(up)) is FAULT


def test_a_narrow_port_is_slow_also_at_the_same_rate() -> None:
    assert severity("ib_port_slow", with_port(width=2)) is FAULT
    assert severity("ib_port_slow", with_port(width=None, rate_gbit_per_s=None)) is None


def test_a_flap_is_a_fault_where_jobs_use_the_link() -> None:
    flapped = with_ethernet(carrier_changes=4)
    before = earlier(gpu_host())
    assert severity("link_flaps", flapped, before=before) is WARNING
    expected = ExpectedHost(nics=("eth0",))
    assert severity("link_flaps", flapped, before=before, expected=expected) is FAULT


def pcie(now: float | None, lanes: int | None, most: float = 32.0) -> LinkCapability:
    """A link below what its ends can."""
    return LinkCapability(
        current_gigatransfers_per_s=now,
        current_lanes=lanes,
        max_gigatransfers_per_s=most,
        max_lanes=16,
    )


@pytest.mark.parametrize(
    ("link", "weight"),
    [
        (pcie(32.0, 8), FAULT),
        (pcie(2.5, 8), FAULT),
        (pcie(2.5, 16), None),
        (pcie(16.0, 16), WARNING),
        (pcie(None, 0), None),
        (pcie(32.0, 255), None),
        (FIVE, None),
    ],
)
def test_the_width_of_a_gpu_counts_always_and_its_speed_only_awake(
    link: LinkCapability, weight: Severity | None
) -> None:
    facts = with_device(device("0000:13:00.0", PciKind.GPU, link=link))
    assert severity("pcie_downtrained", facts) is weight


def test_an_adapter_is_at_fault_where_jobs_use_it() -> None:
    slow = pcie(2.5, 16)
    used = with_device(device("0000:45:00.0", PciKind.NIC, link=slow))
    assert severity("pcie_downtrained", used) is FAULT
    unused = with_device(device("0000:99:00.0", PciKind.NIC, link=slow))
    assert severity("pcie_downtrained", unused) is WARNING
    drive = with_device(device("0000:98:00.0", PciKind.NVME, link=pcie(8.0, 2)))
    assert severity("pcie_downtrained", drive) is WARNING


def test_pcie_errors_are_a_fault_when_fatal_ones_come_now() -> None:
    facts = with_device(device("0000:13:00.0", PciKind.GPU, aer={"fatal": 1}))
    assert severity("pcie_aer", facts) is WARNING
    assert severity("pcie_aer", facts, before=earlier(facts)) is WARNING
    assert severity("pcie_aer", facts, before=earlier(gpu_host())) is FAULT
    nonfatal = with_device(device("0000:13:00.0", PciKind.GPU, aer={"nonfatal": 1}))
    assert severity("pcie_aer", nonfatal) is NOTE
    corrected = with_device(device("0000:13:00.0", PciKind.GPU, aer={"correctable": 9000}))
    assert severity("pcie_aer", corrected, before=earlier(gpu_host())) is WARNING


def test_settings_that_only_gpus_mind_are_no_matter_without_them() -> None:
    facts = cloud_vm(
        settings={"iommu": "on", "numa_balancing": "on", "cpu_governor": "powersave"},
        pci_devices=(bridge(acs_redirects=True),),
    )
    found = {one.check for one in check_host("vm", facts).findings}
    assert found == {"clock_unsynchronized"} | {"file_limit"}


def test_translation_is_by_design_where_processor_and_gpu_are_one() -> None:
    gpus = (gpu(name="NVIDIA GB200"),)
    assert severity("iommu_on", gpu_host(gpus=gpus, settings={"iommu": "on"})) is None


def test_fabric_manager_is_told_by_gpus_first() -> None:
    dead = {"nvidia-fabricmanager": "failed"}
    assert severity("fabric_manager", gpu_host(services=dead)) is WARNING
    gpus = tuple(gpu(index, fabric_state=None) for index in range(8))
    assert severity("fabric_manager", gpu_host(gpus=gpus, services=dead)) is FAULT
    # It may run in a container.
    idle = {"nvidia-fabricmanager": "inactive"}
    assert severity("fabric_manager", gpu_host(gpus=gpus, services=idle)) is WARNING
    cards_only = gpu_host(gpus=gpus, services=dead, pci_devices=())
    assert severity("fabric_manager", cards_only) is None


def test_joining_the_fabric_takes_time_after_a_boot() -> None:
    facts = replace(with_gpu(fabric_state="in progress"), uptime_s=60.0)
    assert severity("fabric_manager", facts) is WARNING
    assert severity("fabric_manager", with_gpu(fabric_state="in progress")) is FAULT


def test_dma_buf_may_do_without_the_module() -> None:
    assert severity("peer_memory", gpu_host(modules=("nvidia",))) is NOTE
    assert severity("peer_memory", cloud_vm()) is None
    no_rdma = gpu_host(modules=("nvidia",), ib_ports=())
    assert severity("peer_memory", no_rdma) is None


def test_a_driver_that_hangs_is_a_fault_unless_the_whole_host_is_starved() -> None:
    hung = with_source(Source.NVML, SourceState.TIMED_OUT)
    assert severity("hung_program", hung) is FAULT
    starved = tuple(
        replace(one, state=SourceState.TIMED_OUT) if one.source is Source.PROC else one
        for one in hung.sources
    )
    assert severity("hung_program", replace(hung, sources=starved)) is WARNING
    all_late = gpu_host(sources=readings(SourceState.TIMED_OUT))
    assert severity("hung_program", all_late) is None
    assert check_host("a", all_late).fitness is HostFitness.UNKNOWN


def test_a_driver_that_fails_is_a_fault_only_where_there_are_gpus() -> None:
    states = {
        Source.NVML: SourceState.FAILED,
        Source.NVIDIA_SMI: SourceState.FAILED,
        Source.ROCM_SMI: SourceState.ABSENT,
        Source.DCGM: SourceState.ABSENT,
    }
    sources = tuple(
        SourceReading(source=one, state=states.get(one, SourceState.READ)) for one in Source
    )
    assert severity("source_failed", gpu_host(gpus=(), sources=sources)) is FAULT
    assert severity("source_failed", cloud_vm(sources=sources)) is NOTE
    fell_back = gpu_host(sources=other(Source.NVML, SourceState.FAILED))
    assert severity("source_failed", fell_back) is WARNING


def test_a_file_system_that_turned_read_only_is_a_fault() -> None:
    now = gpu_host(mounts=(mount("/data", kind="xfs", read_only=True),))
    assert severity("mount_read_only", now) is None
    before = earlier(gpu_host(mounts=(mount("/data", kind="xfs"),)))
    assert severity("mount_read_only", now, before=before) is FAULT
    verified = gpu_host(mounts=(mount(read_only=True, device="/dev/dm-0"),))
    assert severity("mount_read_only", verified) is None


def test_a_mount_that_cannot_be_read_is_a_warning_and_one_that_hangs_a_fault() -> None:
    def of(kind: str, state: str) -> Severity | None:
        return severity("hung_mount", gpu_host(mounts=(mount("/x", kind=kind, state=state),)))

    assert of("nfs4", "hung") is FAULT
    assert of("nfs4", "failed") is WARNING
    assert of("fuse.sshfs", "failed") is NOTE


def test_large_file_systems_may_be_fuller() -> None:
    huge = mount("/data", total_bytes=10**15, free_bytes=10**13)
    assert severity("mount_full", gpu_host(mounts=(huge,))) is None
    inodes = mount("/data", total_inodes=1000, free_inodes=1)
    assert severity("mount_full", gpu_host(mounts=(inodes,))) is WARNING


def test_processes_that_wait_for_a_moment_are_a_note() -> None:
    facts = gpu_host(blocked_processes=("python (7)",))
    assert severity("blocked_processes", facts) is NOTE
    assert severity("blocked_processes", facts, before=earlier(facts)) is WARNING
    assert severity("blocked_processes", facts, before=earlier(facts, seconds=2.0)) is NOTE
    assert severity("blocked_processes", facts, before=earlier(gpu_host())) is NOTE


def test_dcgm_incidents_weigh_by_their_word() -> None:
    assert severity("dcgm_incident", with_gpu(incidents=("PCIe: Warning: replays",))) is WARNING
    assert severity("dcgm_incident", with_gpu(incidents=("PCIe: Failure: down",))) is FAULT


def test_an_interface_that_nobody_named_may_be_down() -> None:
    down = EthernetPort(name="eth9", state="down")
    facts = gpu_host(ethernet_ports=(*gpu_host().ethernet_ports, down))
    assert severity("ethernet_port_down", facts) is None
    assert severity("ethernet_port_down", facts, expected=ExpectedHost(nics=("eth9",))) is FAULT


def test_the_same_facts_give_the_same_verdict() -> None:
    facts = gpu_host(kernel_events=(KernelEvent(class_="unheard_of", text="?"),))
    assert check_host("a", facts) == check_host("a", facts)
    assert [one.check for one in check_host("a", facts).findings] == ["kernel_other"]
