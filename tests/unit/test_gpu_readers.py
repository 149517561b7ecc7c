"""Reports on GPUs by nvidia-smi, rocm-smi and DCGM, of several versions, and damaged ones."""

import json
import re
import tracemalloc
from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ncdiag.model.gpu_parts import EccCounts, GpuProcess, LinkCapability, RetiredMemory
from ncdiag.model.health import GpuHealth
from ncdiag.read.gpu import xml_tree
from ncdiag.read.gpu.dcgm_text import read_dcgm_text
from ncdiag.read.gpu.dcgmi_json import read_dcgmi
from ncdiag.read.gpu.nvidia_smi_xml import read_nvidia_smi
from ncdiag.read.gpu.reading import GpuReport, GpuReportError
from ncdiag.read.gpu.recorded_nvml import read_recorded_nvml
from ncdiag.read.gpu.rocm_smi_json import read_rocm_smi

DATA = Path(__file__).parents[1] / "data" / "health" / "gpu"
READERS: dict[str, Callable[[bytes], GpuReport]] = {
    "h100.xml": read_nvidia_smi,
    "v100.xml": read_nvidia_smi,
    "mi300x.json": read_rocm_smi,
    "mi210.json": read_rocm_smi,
    "dcgm.prom": read_dcgm_text,
    "dcgmi.json": read_dcgmi,
}


def sample(name: str) -> bytes:
    return (DATA / name).read_bytes()


def gpus(name: str) -> tuple[GpuHealth, ...]:
    return READERS[name](sample(name)).gpus


def smi(inner: str, before: str = "") -> GpuReport:
    text = f"{before}<nvidia_smi_log><gpu id='x'>{inner}</gpu></nvidia_smi_log>"
    return read_nvidia_smi(text.encode())


# --- nvidia-smi -----------------------------------------------------------------------------------


def test_a_hopper_gpu_is_read_whole() -> None:
    assert gpus("h100.xml")[0] == GpuHealth(
        index=0,
        uuid="GPU-00000000-0000-0000-0000-00000000001b",
        name="NVIDIA H100 80GB HBM3",
        pci_address="0000:1b:00.0",
        serial="1650000000001",
        vbios="96.00.89.00.01",
        memory_total_bytes=81559 << 20,
        memory_free_bytes=80000 << 20,
        temperature_c=61,
        temperature_limit_c=61 + 26 + 2,
        memory_temperature_c=70,
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
        compute_mode="Default",
        ecc=EccCounts(
            volatile_corrected=11,
            volatile_uncorrected=9,
            aggregate_corrected=1100,
            aggregate_uncorrected=90,
        ),
        retired=RetiredMemory(correctable=5, uncorrectable=6, pending=True, failure=False),
        pcie=LinkCapability(
            current_gigatransfers_per_s=32,
            current_lanes=8,
            max_gigatransfers_per_s=32,
            max_lanes=16,
        ),
        pcie_replays=3,
        processes=(GpuProcess(pid=4242, name="python -m trainer", memory_bytes=1000 << 20),),
        recovery_action=0,
        fabric_state="completed",
    )


def test_a_volta_gpu_of_an_old_driver_is_read_from_the_old_names() -> None:
    (gpu,) = gpus("v100.xml")
    assert gpu.ecc == EccCounts(
        volatile_corrected=7, volatile_uncorrected=1, aggregate_corrected=90
    )
    assert gpu.retired == RetiredMemory(correctable=2, uncorrectable=1, pending=True)
    assert (gpu.temperature_c, gpu.temperature_limit_c) == (34, 87)
    assert gpu.memory_temperature_limit_c == 85
    assert gpu.throttle_reasons == ("gpu_idle",)
    assert (gpu.power_w, gpu.power_limit_w) == (42.31, 300)
    assert gpu.memory_free_bytes == 32000 << 20
    assert (gpu.persistence_mode, gpu.ecc_mode, gpu.mig_mode) == (False, False, None)
    assert gpu.processes == ()
    assert not gpu.lost


def test_versions_are_those_of_the_driver_and_of_the_gpus_own_firmware() -> None:
    versions = read_nvidia_smi(sample("h100.xml")).versions
    assert versions == {"driver": "570.86.15", "cuda": "12.8", "vbios": "96.00.89.00.01"}


def test_a_gpu_that_requires_a_reset_is_lost_and_its_recovery_action_is_kept() -> None:
    gpu = gpus("h100.xml")[1]
    assert (gpu.index, gpu.lost, gpu.reason) == (1, True, "GPU requires reset")
    assert (gpu.recovery_action, gpu.fabric_state) == (4, "failed")


def test_a_gpu_that_requires_a_reset_wants_one_where_the_driver_is_too_old_to_say() -> None:
    (gpu,) = smi("<utilization><gpu_util>[GPU requires reset]</gpu_util></utilization>").gpus
    assert (gpu.lost, gpu.recovery_action) == (True, 1)


@pytest.mark.parametrize("word", ["Unknown Error", "[Unknown Error]", "ERR!"])
def test_a_gpu_of_which_nothing_can_be_read_is_lost(word: str) -> None:
    (gpu,) = smi(
        f"<temperature><gpu_temp>{word}</gpu_temp></temperature>"
        f"<utilization><gpu_util>{word}</gpu_util></utilization>"
    ).gpus
    assert (gpu.lost, gpu.reason, gpu.temperature_c) == (True, "Unknown Error", None)


def test_one_broken_sensor_makes_no_gpu_lost() -> None:
    (gpu,) = smi(
        "<temperature><gpu_temp>Unknown Error</gpu_temp></temperature>"
        "<utilization><gpu_util>3 %</gpu_util></utilization>"
    ).gpus
    assert not gpu.lost
    assert gpu.temperature_c is None


def test_the_name_of_a_process_makes_no_gpu_lost() -> None:
    (gpu,) = smi(
        "<processes><process_info><pid>5</pid><process_name>GPU is lost</process_name>"
        "</process_info></processes>"
    ).gpus
    assert not gpu.lost
    assert gpu.processes == (GpuProcess(pid=5),)


@pytest.mark.parametrize("word", ["N/A", "[N/A]", "[Not Supported]", "Not Supported", ""])
def test_what_a_gpu_does_not_have_is_not_known(word: str) -> None:
    names = ["sram_correctable", "dram_correctable", "dram_uncorrectable"]
    errors = "".join(f"<{one}>{word}</{one}>" for one in names)
    (gpu,) = smi(
        f"<ecc_errors><volatile>{errors}</volatile></ecc_errors><serial>{word}</serial>"
        f"<persistence_mode>{word}</persistence_mode><remapped_rows>{word}</remapped_rows>"
        f"<clocks_event_reasons><clocks_event_reason_hw_slowdown>{word}"
        "</clocks_event_reason_hw_slowdown></clocks_event_reasons>"
    ).gpus
    assert gpu == GpuHealth(index=0)


def test_errors_that_could_not_be_read_are_not_taken_for_none() -> None:
    errors = (
        "<sram_uncorrectable>{}</sram_uncorrectable><dram_uncorrectable>{}</dram_uncorrectable>"
    )
    for sram, dram, expected in (
        ("Unknown Error", 0, None),
        ("Unknown Error", 2, 2),
        ("N/A", 0, 0),
    ):
        (gpu,) = smi(
            f"<ecc_errors><volatile>{errors.format(sram, dram)}</volatile></ecc_errors>"
        ).gpus
        assert (gpu.ecc.volatile_uncorrected if gpu.ecc else None) == expected


def test_a_pending_repair_of_a_channel_waits_for_a_reset_like_a_pending_row() -> None:
    (gpu,) = smi(
        "<ecc_errors><channel_repair_pending>Yes</channel_repair_pending></ecc_errors>"
    ).gpus
    assert gpu.retired == RetiredMemory(pending=True)


@pytest.mark.parametrize(
    ("words", "action"),
    [
        ("None", 0),
        ("Reset", 1),
        ("GPU Reset", 1),
        ("PF FLR", 1),
        ("Reboot", 2),
        ("OS Reboot", 2),
        ("Drain P2P", 3),
        ("Drain and Reset", 4),
        ("N/A", None),
        ("something new", None),
    ],
)
def test_a_recovery_action_is_known_by_the_words_of_any_driver(
    words: str, action: int | None
) -> None:
    (gpu,) = smi(f"<gpu_recovery_action>{words}</gpu_recovery_action>").gpus
    assert gpu.recovery_action == action


def test_older_drivers_say_only_whether_a_reset_is_wanted() -> None:
    status = "<gpu_reset_status><reset_required>{}</reset_required></gpu_reset_status>"
    assert smi(status.format("Yes")).gpus[0].recovery_action == 1
    assert smi(status.format("No")).gpus[0].recovery_action == 0


@pytest.mark.parametrize(
    ("line", "index", "address", "reason"),
    [
        ("GPU0000:08:00.0: Unknown Error", 0, "0000:08:00.0", "Unknown Error"),
        ("GPU 0000:3B:00.0: GPU is lost.  Reboot", 0, "0000:3b:00.0", "GPU is lost. Reboot"),
        ("GPU1: 0000:34:00.0: Unknown Error", 1, "0000:34:00.0", "Unknown Error"),
        ("GPU 5: Unknown Error", 5, None, "Unknown Error"),
    ],
)
def test_a_gpu_that_nvidia_smi_complains_of_is_lost(
    line: str, index: int, address: str | None, reason: str
) -> None:
    said = f"Unable to determine the device handle for {line}\n"
    (gpu,) = read_nvidia_smi(said.encode()).gpus
    assert gpu == GpuHealth(index=index, pci_address=address, lost=True, reason=reason)
    beside = smi("<uuid>GPU-x</uuid>", before=said).gpus
    assert sorted(one.index for one in beside) == sorted({index, 1 if index == 0 else 0})
    assert [one.lost for one in beside].count(True) == 1


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("", "not the XML"),
        ("NVIDIA-SMI has failed", "not the XML"),
        ("<nvidia_smi_log><gpu>", "not well-formed"),
        ("<?xml version='1.0'?><log/>", "does not begin"),
        ("<nvidia_smi_log><gpu></nvidia_smi_log>", "not well-formed"),
    ],
)
def test_what_is_no_report_is_told_in_one_line(text: str, why: str) -> None:
    with pytest.raises(GpuReportError, match=why) as told:
        read_nvidia_smi(text.encode())
    assert "\n" not in str(told.value)


def test_an_entity_is_never_expanded() -> None:
    bomb = (
        '<!DOCTYPE nvidia_smi_log [<!ENTITY a "aaaaaaaa"><!ENTITY b "&a;&a;&a;&a;">]>'
        "<nvidia_smi_log><gpu><uuid>&b;</uuid></gpu></nvidia_smi_log>"
    )
    with pytest.raises(GpuReportError, match="its own DTD"):
        read_nvidia_smi(bomb.encode())


@pytest.mark.parametrize(
    ("inner", "why"),
    [
        ("<a>" * 1000 + "</a>" * 1000, "nested deeper"),
        ("<a/>" * (xml_tree.MAX_ELEMENTS + 1), "more than"),
        ("<gpu/>" * 2000, "GPUs"),
    ],
)
def test_deep_and_huge_reports_are_refused(inner: str, why: str) -> None:
    with pytest.raises(GpuReportError, match=why):
        read_nvidia_smi(f"<nvidia_smi_log>{inner}</nvidia_smi_log>".encode())


def test_one_endless_text_is_kept_only_in_part() -> None:
    data = b"<nvidia_smi_log><gpu><uuid>" + b"x" * (8 << 20)
    tracemalloc.start()
    (gpu,) = read_nvidia_smi(data + b"</uuid></gpu></nvidia_smi_log>").gpus
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert gpu.uuid is not None
    assert len(gpu.uuid) <= 256
    assert peak < 8 * len(data)


# --- rocm-smi -------------------------------------------------------------------------------------


def test_an_mi300x_is_read_below_a_warning() -> None:
    report = read_rocm_smi(sample("mi300x.json"))
    assert report.versions == {"driver": "6.10.5", "vbios": "113-MI3SRIOV-001"}
    assert report.gpus == (
        GpuHealth(
            index=0,
            uuid="0x1234567890abcdef",
            name="AMD Instinct MI300X OAM",
            pci_address="0000:1b:00.0",
            serial="692300000001",
            vbios="113-MI3SRIOV-001",
            memory_total_bytes=206141652992,
            memory_free_bytes=205844652992,
            temperature_c=48,
            memory_temperature_c=41,
            power_w=141,
            power_limit_w=750,
            sm_clock_mhz=132,
            utilization=0.5,
            pcie_replays=2,
        ),
    )


def test_an_older_rocm_smi_has_other_keys() -> None:
    (gpu,) = gpus("mi210.json")
    assert (gpu.index, gpu.uuid, gpu.name) == (1, None, "Instinct MI210")
    assert (gpu.temperature_c, gpu.memory_temperature_c) == (35, 47)
    assert (gpu.sm_clock_mhz, gpu.max_sm_clock_mhz) == (800, 1700)
    assert gpu.pcie == LinkCapability(current_gigatransfers_per_s=16, current_lanes=16)


@pytest.mark.parametrize("text", ["", "{", '{"a": 1}', "[]", "WARNING: {", '{"card0": 3}'])
def test_json_without_a_card_is_refused(text: str) -> None:
    with pytest.raises(GpuReportError):
        read_rocm_smi(text.encode())


def test_nested_or_repeated_braces_are_refused_in_little_time_and_memory() -> None:
    for data in (b"{" * (1 << 20), b'{"a":' * 200_000, b"{\n" * 500_000, b"[" * 1_000_000):
        with pytest.raises(GpuReportError):
            read_rocm_smi(data)


# --- DCGM -----------------------------------------------------------------------------------------


def test_the_text_of_the_exporter_is_read_by_gpu() -> None:
    report = read_dcgm_text(sample("dcgm.prom"))
    first, second = report.gpus
    assert report.versions == {"driver": "535.161.08"}
    assert (first.uuid, first.pci_address) == ("GPU-a0", "0000:1b:00.0")
    assert (first.temperature_c, first.memory_temperature_c, first.power_w) == (52, 50, 310.5)
    assert first.utilization == 1.0
    assert first.memory_free_bytes == 1000 << 20
    assert first.memory_total_bytes == 81000 << 20
    assert first.ecc == EccCounts(volatile_corrected=11, volatile_uncorrected=1)
    assert first.retired == RetiredMemory(correctable=4, uncorrectable=1, failure=False)
    assert first.throttle_reasons == ("hw_slowdown", "hw_thermal_slowdown")
    assert first.nvlinks is not None
    assert first.nvlinks[0].errors == {"replay": 5, "crc_flit": 0}
    assert (first.last_xid, second.last_xid) == (0, 79)


def test_values_that_dcgm_leaves_blank_are_not_known() -> None:
    second = gpus("dcgm.prom")[1]
    assert (second.sm_clock_mhz, second.power_w) == (None, None)
    assert second.retired == RetiredMemory(failure=True)


def test_a_slice_of_a_gpu_is_not_taken_for_the_gpu() -> None:
    second = gpus("dcgm.prom")[1]
    assert (second.mig_mode, second.memory_free_bytes) == (True, None)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "go_goroutines 12\n",
        'DCGM_FI_DEV_GPU_TEMP{UUID="x"} 5\n',
        'DCGM_FI_DEV_GPU_TEMP{gpu="-1"} 5\n',
        'DCGM_FI_DEV_GPU_TEMP{gpu="0"} NaN\n',
        'DCGM_FI_DEV_GPU_TEMP{gpu="0"}\n',
    ],
)
def test_text_without_a_gpu_is_refused(text: str) -> None:
    with pytest.raises(GpuReportError):
        read_dcgm_text(text.encode())


@pytest.mark.parametrize(
    ("status", "state"),
    [(0, None), (1, "not started"), (3, "completed"), (4, "failed"), (5, None), (6, None)],
)
def test_a_fabric_that_dcgm_cannot_tell_of_has_not_failed(status: int, state: str | None) -> None:
    text = f'DCGM_FI_DEV_FABRIC_MANAGER_STATUS{{gpu="0",UUID="GPU-a0"}} {status}'
    (gpu,) = read_dcgm_text(text.encode()).gpus
    assert gpu.fabric_state == state


def test_what_the_watches_of_dcgm_complain_of_is_told_by_gpu() -> None:
    (gpu,) = gpus("dcgmi.json")
    assert gpu.index == 3
    assert gpu.incidents == (
        "Memory system: Warning: A row remap is pending on GPU 3; reset it when the job is over",
        "PCIe system: Failure",
    )
    assert gpu.nvlinks is not None
    assert gpu.nvlinks[0].errors == {"crc_flit": 0, "replay": 4}


def test_a_healthy_host_has_no_incident() -> None:
    text = (
        b'{"body": {"Overall Health": {"value": "Healthy"}}, "header": ["Health Monitor Report"]}'
    )
    assert read_dcgmi(text).gpus == ()


# --- what was recorded, and any bytes -------------------------------------------------------------


def test_recorded_gpus_come_back_as_they_were() -> None:
    listed = gpus("h100.xml")
    alone = msgspec.json.encode(listed)
    whole = msgspec.json.encode({"gpus": listed, "versions": {"driver": "570.86.15"}})
    assert read_recorded_nvml(alone) == GpuReport(gpus=listed)
    assert read_recorded_nvml(whole) == GpuReport(gpus=listed, versions={"driver": "570.86.15"})


@pytest.mark.parametrize(
    "text", ["", "{}", "[3]", '[{"index": "a"}]', '{"gpus": 3}', "[" * 100_000]
)
def test_what_is_no_record_is_told_in_one_line(text: str) -> None:
    with pytest.raises(GpuReportError) as told:
        read_recorded_nvml(text.encode())
    assert "\n" not in str(told.value)


ALL = {**READERS, "nvml": read_recorded_nvml}


def refusal(read: Callable[[bytes], GpuReport], data: bytes) -> str:
    """Why it was refused; anything but a report or the one error fails the test."""
    try:
        assert isinstance(read(data), GpuReport)
    except GpuReportError as error:
        return str(error)
    return ""


@pytest.mark.parametrize("reader", sorted({one.__name__ for one in ALL.values()}))
@settings(max_examples=60, deadline=None)
@given(data=st.binary(max_size=400))
def test_any_bytes_are_read_or_refused(reader: str, data: bytes) -> None:
    read = next(one for one in ALL.values() if one.__name__ == reader)
    assert "\n" not in refusal(read, data)


@pytest.mark.parametrize("name", READERS)
@settings(max_examples=60, deadline=None)
@given(st.data())
def test_a_damaged_report_is_read_or_refused(name: str, data: st.DataObject) -> None:
    whole = sample(name)
    begin = data.draw(st.integers(0, len(whole)))
    end = data.draw(st.integers(begin, min(begin + 200, len(whole))))
    damaged = whole[:begin] + data.draw(st.binary(max_size=40)) + whole[end:]
    assert "\n" not in refusal(READERS[name], damaged)


@pytest.mark.parametrize("name", ["h100.xml", "mi300x.json", "dcgmi.json"])
def test_a_report_that_is_cut_short_is_never_read_as_a_whole_one(name: str) -> None:
    whole = sample(name).rstrip()
    expected = READERS[name](whole).gpus
    for end in range(0, len(whole), 97):
        try:
            found = READERS[name](whole[:end]).gpus
        except GpuReportError:
            continue
        assert name == "dcgmi.json"
        assert {gpu.incidents for gpu in found} <= {gpu.incidents for gpu in expected}


@pytest.mark.parametrize("name", READERS)
def test_windows_line_ends_change_nothing(name: str) -> None:
    data = sample(name)
    assert READERS[name](data.replace(b"\n", b"\r\n")) == READERS[name](data)


@settings(max_examples=100, deadline=None)
@given(
    st.dictionaries(
        st.sampled_from(
            sorted(set(re.findall(r'"([^"]{4,50})":', (DATA / "mi210.json").read_text())))
        ),
        st.none()
        | st.booleans()
        | st.integers()
        | st.floats()
        | st.text(max_size=30)
        | st.lists(st.integers(), max_size=2),
    )
)
def test_any_value_of_a_card_is_read_or_left_out(card: dict[str, object]) -> None:
    report = read_rocm_smi(json.dumps({"card0": card}).encode())
    assert [gpu.index for gpu in report.gpus] == [0]
