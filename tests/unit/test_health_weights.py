"""How much a finding weighs: what drains a host, what is only a warning, and who is not accused."""

from dataclasses import replace
from typing import Any

import pytest
from ailing_hosts import (
    FIVE,
    GIB,
    HOUR_S,
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
    with_event,
    with_gpu,
    with_port,
    with_source,
)

from ncdiag.health.checks import ExpectedHost, check_host
from ncdiag.model.health import (
    EthernetPort,
    GpuProcess,
    HealthFacts,
    HostFitness,
    KernelEvent,
    LinkCapability,
    NvlinkFacts,
    PciKind,
    Severity,
    Source,
    SourceReading,
    SourceState,
)

NOTE, WARNING, FAULT, FATAL = Severity


def severity(check: str, facts: HealthFacts, **how: Any) -> Severity | None:
    """What ``check`` says of ``facts``; ``None`` where it says nothing."""
    host = check_host("gpu001", facts, **how)
    found = [one.severity for one in host.findings if one.check == check]
    return found[0] if found else None


def event(class_: str, **told: Any) -> Severity | None:
    """How much an event of the kernel log weighs."""
    facts = with_event(class_, **told)
    return severity(f"kernel_{class_.removeprefix('kernel_')}", facts)


def on_gpu(class_: str, told: dict[str, Any], **changes: Any) -> Severity | None:
    """The same of an event of GPU 3, of which something else is known as well."""
    facts = replace(with_gpu(**changes), kernel_events=with_event(class_, **told).kernel_events)
    return severity(f"kernel_{class_}", facts)


AGAIN = {"count": 5, "last_since_boot_s": 15 * HOUR_S}
BURST = {"count": 5, "last_since_boot_s": 9 * HOUR_S + 2}


@pytest.mark.parametrize("code", [48, 64, 95, 140, 157, 171, 172])
def test_an_uncorrectable_memory_error_drains(code: int) -> None:
    assert on_gpu("gpu_memory_error", {"code": code}, recovery_action=None) is FATAL


@pytest.mark.parametrize("code", [63, 94, 156])
def test_a_memory_error_that_waits_for_a_reset_is_a_warning(code: int) -> None:
    told = {"code": code, "severity": None if code == 94 else "degraded"}
    assert on_gpu("gpu_memory_error", told, retired=None) is WARNING


def test_a_row_that_was_swapped_out_since_is_a_note() -> None:
    assert event("gpu_memory_error", code=63, severity="degraded") is NOTE
    assert event("gpu_memory_error", code=92, severity="degraded") is NOTE
    assert event("gpu_memory_error", code=92, severity="degraded", **AGAIN) is WARNING


@pytest.mark.parametrize("code", [8, 13, 31, 43, 45, 80])
def test_the_fault_of_a_program_is_a_note_until_it_comes_back_for_hours(code: int) -> None:
    class_ = "xid_followup" if code in {43, 45} else "xid_application_fault"
    assert event(class_, code=code) is NOTE
    assert event(class_, code=code, **BURST) is NOTE
    assert event(class_, code=code, **AGAIN) is WARNING


@pytest.mark.parametrize("code", [46, 54, 61, 62, 109, 143, 158, 167])
def test_a_unit_that_stopped_drains(code: int) -> None:
    assert on_gpu("gpu_internal_fault", {"code": code}, recovery_action=None) is FATAL


@pytest.mark.parametrize("code", [14, 78, 93, 121, 125, 162])
def test_xids_worth_knowing_are_notes(code: int) -> None:
    assert event("gpu_internal_fault", code=code, severity="info") is NOTE


def test_what_a_reset_mends_is_a_warning_once_the_driver_asks_for_nothing() -> None:
    assert on_gpu("gpu_memory_error", {"code": 95}, recovery_action=0) is WARNING
    assert on_gpu("gsp_timeout", {"code": 119}, recovery_action=0) is WARNING
    assert on_gpu("gsp_timeout", {"code": 119}, recovery_action=1) is FATAL
    assert on_gpu("gsp_timeout", {"code": 119}, recovery_action=0, lost=True) is FATAL
    # Neither a reset nor the driver's word brings these back.
    assert on_gpu("gpu_fell_off_bus", {"code": 79}, recovery_action=0) is FATAL
    assert on_gpu("gpu_memory_error", {"code": 64}, recovery_action=0) is FATAL


def test_a_gpu_that_could_not_be_started_and_answers_now_is_a_warning() -> None:
    told = {"text": "RmInitAdapter failed!"}
    assert on_gpu("gpu_internal_fault", told) is WARNING
    assert on_gpu("gpu_internal_fault", told, lost=True) is FATAL


def test_xid_154_counts_by_its_number() -> None:
    words = "GPU recovery action changed from 0x1 (GPU Reset Required) to 0x{} (Words)"
    for number, weight in {0: NOTE, 1: FATAL, 2: FATAL, 3: FATAL, 4: FATAL}.items():
        told = {"code": 154, "text": words.format(number)}
        assert on_gpu("xid_followup", told, recovery_action=None) is weight
    told = {"code": 154, "text": words.format(2)}
    # NVML has the last word; of several records the text is the last one's.
    assert on_gpu("xid_followup", told, recovery_action=0) is NOTE
    assert on_gpu("xid_followup", {**told, "count": 2}, recovery_action=None) is FATAL
    unheard_of = {"code": 154, "text": words.format(63)}
    assert on_gpu("xid_followup", unheard_of, recovery_action=None) is FAULT
    assert on_gpu("xid_followup", {"code": 154}, recovery_action=None) is WARNING


def test_an_error_is_over_once_the_log_says_that_the_driver_asks_for_nothing() -> None:
    error = KernelEvent(
        class_="gpu_memory_error", text="", code=95, device="0000:13:00.0", since_boot_s=9000.0
    )
    action = KernelEvent(
        class_="xid_followup",
        text="GPU recovery action changed from 0x1 (GPU Reset Required) to 0x0 (None)",
        code=154,
        device="0000:13:00.0",
        since_boot_s=9900.0,
    )

    def weight(*events: KernelEvent) -> Severity | None:
        facts = replace(with_gpu(recovery_action=None), kernel_events=events)
        return severity("kernel_gpu_memory_error", facts)

    assert weight(error) is FATAL
    assert weight(error, action) is WARNING
    assert weight(error, replace(action, since_boot_s=100.0)) is FATAL
    assert weight(error, replace(action, device="0000:10:00.0")) is FATAL


@pytest.mark.parametrize(
    ("told", "weight"),
    [
        ({"code": 74, "text": "NVLink: fatal error detected on link 5"}, FATAL),
        (
            {"code": 74, "text": "NVLink: non-fatal error on link 5", "severity": "degraded"},
            WARNING,
        ),
        ({"code": 149, "text": "NETIR_LINK_DOWN Nonfatal XC0"}, FATAL),
        ({"code": 145, "text": "RLW_REMAP Nonfatal", "severity": "degraded", **AGAIN}, FAULT),
        ({"code": 136, "text": "Link Training Failed"}, FATAL),
        ({"text": "Trunk port failure detected", "severity": "degraded"}, WARNING),
    ],
)
def test_nvlink_weighs_by_fatal_and_nonfatal(told: dict[str, Any], weight: Severity) -> None:
    assert on_gpu("nvlink_error", told, recovery_action=None) is weight


@pytest.mark.parametrize(
    ("class_", "told", "weight"),
    [
        ("nvswitch_fatal", {"code": 23003}, FATAL),
        ("nvswitch_fatal", {"code": 99999}, FAULT),
        ("nvswitch_nonfatal", {"code": 20001}, NOTE),
        ("nvswitch_nonfatal", {"code": 20001, "count": 50}, WARNING),
        ("nvswitch_nonfatal", {"code": 24001, "count": 50}, NOTE),
        ("nic_firmware_fault", {"text": "synd 0x1: firmware internal error"}, FATAL),
        ("nic_firmware_fault", {"text": "CREATE_CQ(0x400) timeout. Will cause a leak"}, FAULT),
        ("nic_firmware_fault", {"text": "NETDEV WATCHDOG: eth0 (virtio_net): transmit"}, WARNING),
        ("nic_link_down", {}, NOTE),
        ("nic_link_down", AGAIN, WARNING),
        ("nic_link_down", {**AGAIN, "last_since_boot_s": 40.0, "since_boot_s": 4.0}, NOTE),
        ("pcie_error", {"text": "AER: Uncorrected (Fatal) error received"}, FATAL),
        ("pcie_error", {"text": "AER: Uncorrected (Non-Fatal) error received"}, WARNING),
        ("pcie_error", {"text": "AER: Corrected error", "severity": "degraded"}, NOTE),
        ("pcie_error", {"text": "Corrected", "severity": "degraded", "count": 900}, WARNING),
        ("pcie_error", {"text": "DPC: containment event"}, FAULT),
        ("pcie_error", {"text": "pciehp: Slot(3): Card not present"}, WARNING),
        ("host_memory_error", {"text": "EDAC MC0: 1 CE", "severity": "degraded"}, NOTE),
        ("host_memory_error", {"text": "EDAC MC0: 1 UE"}, FATAL),
        ("host_memory_error", {"text": "Deferred error"}, FAULT),
        ("host_memory_error", {"text": "Memory failure: 0x1b: page: Recovered"}, WARNING),
        ("host_memory_error", {"text": "Memory failure: 0x1b: page: Failed"}, FATAL),
        ("oom_kill", AGAIN, NOTE),
        ("kernel_stall", AGAIN, WARNING),
        ("storage_error", {"text": "nvme0n1: I/O error", **AGAIN}, FAULT),
        ("storage_error", {"text": "nfs: server not responding", **AGAIN}, WARNING),
        ("storage_error", {"text": "I/O error, dev fd0", "device": "fd0", **AGAIN}, WARNING),
        ("thermal_power", AGAIN, WARNING),
        ("host_config_warning", {}, WARNING),
    ],
)
def test_events_of_the_host_weigh_by_what_they_say(
    class_: str, told: dict[str, Any], weight: Severity
) -> None:
    assert event(class_, **told) is weight


def test_a_stall_is_a_fault_while_tasks_are_stuck() -> None:
    facts = replace(with_event("kernel_stall", **AGAIN), blocked_processes=("python (7)",))
    assert severity("kernel_stall", facts) is FAULT


def test_an_event_names_the_gpu_whose_address_it_has() -> None:
    facts = with_event("gsp_timeout", code=119, device="0000:13:00")
    [finding] = check_host("a", facts).findings
    assert finding.device == "gpu3"
    assert finding.class_ == "gsp_timeout"
    assert "Xid 119" in finding.text
    assert "9 h 00 min after boot" in finding.text


def test_text_of_the_kernel_cannot_move_the_cursor() -> None:
    facts = with_event("process_crash", "evil\x1b[2Jname" + "x" * 5000, device="a\x07b")
    [finding] = check_host("a", facts).findings
    assert "\x1b" not in finding.text
    assert len(finding.text) < 300
    assert finding.device == "a\\x07b"


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


def links(active: set[int], number: int = 12, **errors: int) -> tuple[NvlinkFacts, ...]:
    """Links of which some are up."""
    return tuple(
        NvlinkFacts(link=link, active=link in active, errors=errors) for link in range(number)
    )


def cards(*active: set[int], **changes: Any) -> HealthFacts:
    """A host with PCIe cards and no switch."""
    gpus = tuple(
        gpu(index, name="NVIDIA A100-PCIE-40GB", nvlinks=links(up), fabric_state=None)
        for index, up in enumerate(active)
    )
    return gpu_host(gpus=gpus, pci_devices=(), **changes)


def test_cards_without_nvlink_or_without_a_bridge_are_not_accused() -> None:
    every = set(range(12))
    assert severity("nvlink_down", cards(set(), set(), set(), set())) is None
    assert severity("nvlink_down", cards(every, every, set(), set())) is None
    assert severity("nvlink_down", cards(*[every] * 6, set(), set())) is None
    assert severity("nvlink_down", gpu_host(gpus=(gpu(nvlinks=()),))) is None


def test_links_that_are_unused_on_every_gpu_are_not_accused() -> None:
    assert severity("nvlink_down", cards(*[{0, 1, 2, 3}] * 4)) is None


def test_one_link_down_among_peers_is_a_fault() -> None:
    every = set(range(12))
    assert severity("nvlink_down", cards(*[every] * 7, every - {4})) is FAULT


def test_a_link_that_was_up_before_is_a_fault_also_without_peers() -> None:
    before = earlier(cards({0, 1, 2}))
    assert severity("nvlink_down", cards({0, 1}), before=before) is FAULT


def test_all_links_down_on_a_board_with_switches_are_a_fault_and_after_a_boot_a_warning() -> None:
    gpus = tuple(gpu(index, nvlinks=links(set())) for index in range(8))
    assert severity("nvlink_down", gpu_host(gpus=gpus)) is FAULT
    assert severity("nvlink_down", gpu_host(gpus=gpus, uptime_s=60.0)) is WARNING


def test_split_gpus_have_no_nvlinks_by_design() -> None:
    gpus = tuple(gpu(index, nvlinks=links(set()), mig_mode=True) for index in range(8))
    assert severity("nvlink_down", gpu_host(gpus=gpus)) is None


def test_nvlink_errors_warn_when_old_and_are_a_fault_when_they_rise() -> None:
    facts = with_gpu(nvlinks=links({0}, replay=7))
    assert severity("nvlink_errors", facts) is WARNING
    assert severity("nvlink_errors", facts, before=earlier(facts)) is WARNING
    before = earlier(with_gpu(nvlinks=links({0}, replay=6)))
    assert severity("nvlink_errors", facts, before=before) is FAULT


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
