"""NVML asked through a module that plays it: whole GPUs, lost ones, and those that say little."""

import sys
from collections.abc import Mapping
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import fake_nvml
import pytest
from fake_nvml import FakeNvml, NvmlError

from ncdiag.health.sources.gpu_nvml import ask_nvml, collect
from ncdiag.health.sources.place import HostRoot
from ncdiag.model.gpu_parts import EccCounts, GpuProcess, LinkCapability, NvlinkFacts, RetiredMemory
from ncdiag.model.health import GpuHealth, SourceState

UP, DOWN = 1, 0


def h100(**changes: Any) -> dict[str, Any]:
    """A GPU of which everything can be asked, with two NVLinks, the second of them down."""

    def link(number: int) -> int:
        if number > 17:
            raise NvmlError(2)
        if number > 1:
            raise NvmlError(fake_nvml.NOT_SUPPORTED)
        return (UP, DOWN)[number]

    return {
        "UUID": "GPU-1b",
        "Name": b"NVIDIA H100 80GB HBM3",
        "PciInfo": SimpleNamespace(busId=b"00000000:1B:00.0"),
        "Serial": "1650000000001",
        "VbiosVersion": "96.00.89.00.01",
        "MemoryInfo": SimpleNamespace(total=80 << 30, free=79 << 30, used=1 << 30),
        "Temperature": lambda sensor: {0: 61}[sensor],
        "TemperatureThreshold": lambda which: {0: 92, 1: 89, 2: 95, 3: 87}[which],
        "UtilizationRates": SimpleNamespace(gpu=25, memory=3),
        "PowerUsage": 512_500,
        "EnforcedPowerLimit": 650_000,
        "PowerManagementDefaultLimit": 700_000,
        "ClockInfo": lambda clock: {1: 1755}[clock],
        "MaxClockInfo": lambda clock: {1: 1980}[clock],
        "CurrentClocksEventReasons": 0x4 | 0x40,
        "PersistenceMode": 1,
        "MigMode": [0, 1],
        "EccMode": [1, 1],
        "ComputeMode": 3,
        "TotalEccErrors": lambda kind, since: 100 * since + 10 * kind + 1,
        "RemappedRows": (5, 6, 1, 0),
        "NvLinkState": link,
        "NvLinkErrorCounter": lambda _link, counter: counter,
        "CurrPcieLinkGeneration": 5,
        "CurrPcieLinkWidth": 8,
        "MaxPcieLinkGeneration": 5,
        "MaxPcieLinkWidth": 16,
        "PcieReplayCounter": 3,
        "ComputeRunningProcesses": [
            SimpleNamespace(pid=4242, usedGpuMemory=1 << 30),
            SimpleNamespace(pid=7, usedGpuMemory=None),
        ],
        "fields": {82: 70, 230: 0},
        "fabric": (3, 0),
        **changes,
    }


def asked(*gpus: Mapping[str, Any] | NvmlError, **options: Any) -> tuple[GpuHealth, ...]:
    module = FakeNvml(gpus, **options)
    found = ask_nvml(module)
    assert found.state is SourceState.READ
    assert module.open == 0, "what was opened is closed"
    read: tuple[GpuHealth, ...] = found.facts["gpus"]
    return read


def test_everything_that_nvml_tells_of_a_gpu_is_read() -> None:
    (gpu,) = asked(h100(), processes={4242: "python\x1b[2J"})
    assert gpu == GpuHealth(
        index=0,
        uuid="GPU-1b",
        name="NVIDIA H100 80GB HBM3",
        pci_address="0000:1b:00.0",
        serial="1650000000001",
        vbios="96.00.89.00.01",
        memory_total_bytes=80 << 30,
        memory_free_bytes=79 << 30,
        temperature_c=61,
        temperature_limit_c=89,
        memory_temperature_c=70,
        memory_temperature_limit_c=95,
        power_w=512.5,
        power_limit_w=650,
        default_power_limit_w=700,
        sm_clock_mhz=1755,
        max_sm_clock_mhz=1980,
        utilization=0.25,
        throttle_reasons=("sw_power_cap", "hw_thermal_slowdown"),
        persistence_mode=True,
        mig_mode=False,
        ecc_mode=True,
        compute_mode="Exclusive_Process",
        ecc=EccCounts(
            volatile_corrected=1,
            volatile_uncorrected=11,
            aggregate_corrected=101,
            aggregate_uncorrected=111,
        ),
        retired=RetiredMemory(correctable=5, uncorrectable=6, pending=True, failure=False),
        nvlinks=(
            NvlinkFacts(
                link=0,
                active=True,
                errors={"replay": 0, "recovery": 1, "crc_flit": 2, "crc_data": 3},
            ),
            NvlinkFacts(
                link=1,
                active=False,
                errors={"replay": 0, "recovery": 1, "crc_flit": 2, "crc_data": 3},
            ),
        ),
        pcie=LinkCapability(
            current_gigatransfers_per_s=32,
            current_lanes=8,
            max_gigatransfers_per_s=32,
            max_lanes=16,
        ),
        pcie_replays=3,
        processes=(
            GpuProcess(pid=4242, name="python\\x1b[2J", memory_bytes=1 << 30),
            GpuProcess(pid=7),
        ),
        recovery_action=0,
        fabric_state="completed",
    )


def test_versions_are_told_beside_the_gpus() -> None:
    found = ask_nvml(FakeNvml([h100(), h100(VbiosVersion="96.00.90.00.00")]))
    assert found.facts["versions"] == {
        "driver": "570.86.15",
        "cuda": "12.8",
        "vbios": "96.00.89.00.01, 96.00.90.00.00",
    }


def test_a_gpu_whose_handle_is_lost_is_told_and_the_others_are_read() -> None:
    gpus = asked(h100(), NvmlError(fake_nvml.GPU_IS_LOST), h100(UUID="GPU-c"))
    assert [gpu.lost for gpu in gpus] == [False, True, False]
    assert gpus[1] == GpuHealth(index=1, lost=True, reason="GPU is lost")
    assert gpus[2].uuid == "GPU-c"


def test_a_gpu_lost_between_two_questions_is_told_with_its_name_and_is_asked_no_more() -> None:
    module = FakeNvml([h100(Temperature=NvmlError(fake_nvml.GPU_IS_LOST))])
    (gpu,) = ask_nvml(module).facts["gpus"]
    assert (gpu.uuid, gpu.pci_address) == ("GPU-1b", "0000:1b:00.0")
    assert (gpu.lost, gpu.reason, gpu.ecc) == (True, "GPU is lost", None)
    assert module.asked[-1] == "Temperature"


def test_a_gpu_that_requires_a_reset_is_lost_and_wants_one() -> None:
    (gpu,) = asked(h100(MemoryInfo=NvmlError(fake_nvml.RESET_REQUIRED)))
    assert (gpu.lost, gpu.recovery_action) == (True, 1)
    (gpu,) = asked(NvmlError(fake_nvml.RESET_REQUIRED))
    assert (gpu.lost, gpu.recovery_action) == (True, 1)


def test_a_gpu_that_answers_everything_with_an_unknown_error_is_lost() -> None:
    broken = {name: NvmlError(fake_nvml.UNKNOWN) for name in fake_nvml.DEVICE_FUNCTIONS}
    broken["UUID"] = "GPU-1b"  # type: ignore[assignment]
    gpus = asked(broken, h100())
    assert [gpu.lost for gpu in gpus] == [True, False]
    assert (gpus[0].uuid, gpus[0].reason) == ("GPU-1b", "Unknown Error")


def test_one_question_with_an_unknown_error_makes_no_gpu_lost() -> None:
    (gpu,) = asked(h100(Temperature=NvmlError(fake_nvml.UNKNOWN)))
    assert (gpu.lost, gpu.temperature_c) == (False, None)
    assert gpu.memory_total_bytes == 80 << 30


def test_a_gpu_that_supports_nothing_is_there_and_unknown() -> None:
    assert asked({}) == (GpuHealth(index=0),)


def test_a_gpu_that_we_may_not_see_is_not_called_lost() -> None:
    (gpu,) = asked(NvmlError(fake_nvml.NO_PERMISSION))
    assert gpu == GpuHealth(index=0, reason="Insufficient Permissions")


def test_functions_that_an_older_module_lacks_are_done_without() -> None:
    old = h100(
        CurrentClocksThrottleReasons=0x8,
        RetiredPages=lambda cause: [[1, 2], [3]][cause],
        RetiredPagesPendingStatus=1,
    )
    lacks = ["nvmlDeviceGetCurrentClocksEventReasons", "nvmlDeviceGetRemappedRows"]
    (gpu,) = asked(old, lacks=lacks)
    assert gpu.throttle_reasons == ("hw_slowdown",)
    assert gpu.retired == RetiredMemory(correctable=2, uncorrectable=1, pending=True)


def test_answers_of_the_wrong_kind_are_not_known() -> None:
    def misfit(*_arguments: object) -> object:
        raise TypeError

    odd: dict[str, Any] = dict.fromkeys(fake_nvml.DEVICE_FUNCTIONS, misfit)
    assert asked(odd) == (GpuHealth(index=0),)
    odd = dict.fromkeys(fake_nvml.DEVICE_FUNCTIONS, "?")
    (gpu,) = asked(odd)
    assert (gpu.temperature_c, gpu.ecc, gpu.nvlinks, gpu.processes) == (None, None, None, None)


def test_the_limit_is_told_from_the_margin_where_the_driver_gives_no_thresholds() -> None:
    margins = h100(
        TemperatureThreshold=NvmlError(fake_nvml.NOT_SUPPORTED),
        MarginTemperature=26,
        fields={194: -2, 196: 0},
    )
    (gpu,) = asked(margins)
    assert gpu.temperature_limit_c == 61 + 26 + 2


def test_the_highest_working_temperature_is_the_limit_where_there_is_no_other() -> None:
    def threshold(which: int) -> int:
        if which != 3:
            raise NvmlError(fake_nvml.NOT_SUPPORTED)
        return 87

    (gpu,) = asked(h100(TemperatureThreshold=threshold))
    assert (gpu.temperature_limit_c, gpu.memory_temperature_limit_c) == (87, None)


def test_errors_of_newer_nvlinks_are_values_by_number_and_link() -> None:
    newer = h100(
        NvLinkErrorCounter=NvmlError(fake_nvml.NOT_SUPPORTED),
        fields={(208, 0): 4, (215, 0): 1, (208, 1): 0},
    )
    (gpu,) = asked(newer)
    assert gpu.nvlinks == (
        NvlinkFacts(link=0, active=True, errors={"receive": 4, "link_recovery": 1}),
        NvlinkFacts(link=1, active=False, errors={"receive": 0}),
    )


def test_a_gpu_without_nvlinks_has_none() -> None:
    (gpu,) = asked(h100(NvLinkState=NvmlError(fake_nvml.NOT_SUPPORTED)))
    assert gpu.nvlinks is None


@pytest.mark.parametrize(
    ("fabric", "expected"),
    [
        ((0, 0), None),
        ((1, 0), "not started"),
        ((2, 0), "in progress"),
        ((3, 0), "completed"),
        ((3, 999), "failed"),
    ],
)
@pytest.mark.parametrize("function", ["fabric", "old fabric"])
def test_the_state_of_the_fabric_is_told_in_words(
    function: str, fabric: tuple[int, int], expected: str | None
) -> None:
    (gpu,) = asked({function: fabric})
    assert gpu.fabric_state == expected


@pytest.mark.parametrize(
    ("code", "state"),
    [
        (fake_nvml.LIBRARY_NOT_FOUND, SourceState.ABSENT),
        (fake_nvml.DRIVER_NOT_LOADED, SourceState.ABSENT),
        (fake_nvml.NO_PERMISSION, SourceState.DENIED),
        (fake_nvml.LIB_RM_VERSION_MISMATCH, SourceState.FAILED),
        (fake_nvml.UNKNOWN, SourceState.FAILED),
    ],
)
def test_nvml_that_does_not_begin_is_absent_denied_or_failed(code: int, state: SourceState) -> None:
    found = ask_nvml(FakeNvml([h100()], init=NvmlError(code)))
    assert (found.state, found.facts) == (state, {})
    assert found.reason


def test_gpus_that_cannot_be_counted_are_a_failure() -> None:
    module = FakeNvml([h100()], count=NvmlError(fake_nvml.UNKNOWN))
    found = ask_nvml(module)
    assert (found.state, module.open) == (SourceState.FAILED, 0)
    assert found.reason == "NVML does not count the GPUs: Unknown Error"


def test_without_the_module_nvml_is_absent(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pynvml", None)
    found = collect(HostRoot())
    assert (found.state, found.reason) == (SourceState.ABSENT, "nvidia-ml-py is not installed")


def test_the_module_is_asked_on_a_live_host(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pynvml", FakeNvml([h100()]))
    assert [gpu.uuid for gpu in collect(HostRoot()).facts["gpus"]] == ["GPU-1b"]


def test_a_recorded_host_gives_what_was_recorded(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "pynvml", FakeNvml([h100()]))
    assert collect(HostRoot(tmp_path)).state is SourceState.ABSENT
    (tmp_path / "recorded").mkdir()
    record = tmp_path / "recorded" / "nvml.json"
    record.write_text('{"gpus": [{"index": 3, "lost": true}], "versions": {"driver": "1"}}')
    found = collect(HostRoot(tmp_path))
    assert found.facts == {
        "gpus": (GpuHealth(index=3, lost=True),),
        "versions": {"driver": "1"},
    }
    record.write_text('{"gpus": [{"index": "three"}]}')
    assert collect(HostRoot(tmp_path)).state is SourceState.FAILED
    record.write_text("!denied")
    assert collect(HostRoot(tmp_path)).state is SourceState.DENIED
