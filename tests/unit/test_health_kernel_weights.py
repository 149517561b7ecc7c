"""How much what the kernel has logged weighs: by class, number and words."""

from dataclasses import replace
from typing import Any

import pytest
from gpu_hosts import (
    with_event,
    with_gpu,
)
from health_weighing import AGAIN, BURST, FATAL, FAULT, NOTE, WARNING, event, on_gpu, severity

from ncdiag.health.checks import check_host
from ncdiag.model.health import (
    KernelEvent,
    Severity,
)


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
    assert event("gpu_memory_error", code=None, severity="degraded") is NOTE
    assert event("gpu_memory_error", code=None) is FATAL
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
