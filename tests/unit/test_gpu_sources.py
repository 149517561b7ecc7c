"""GPUs asked of programs, recorded or on PATH, and of an exporter; and several sources as one."""

import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from ncdiag.health.sources import gpu_dcgm, gpu_nvidia_smi, gpu_rocm
from ncdiag.health.sources.found import Found
from ncdiag.health.sources.merge_gpus import merge
from ncdiag.health.sources.place import HostRoot
from ncdiag.model.gpu_parts import EccCounts
from ncdiag.model.health import GpuHealth, Source, SourceState

DATA = Path(__file__).parents[1] / "data" / "health"
LIVE = HostRoot()


@pytest.fixture
def programs(monkeypatch: pytest.MonkeyPatch) -> None:
    """Put the programs that play nvidia-smi and dcgmi first, and set none of what they heed."""
    monkeypatch.setenv("PATH", f"{DATA / 'programs'}:/usr/bin:/bin")
    for name in ("NVIDIA_SMI_XML", "NVIDIA_SMI_SAYS", "NVIDIA_SMI_CODE", "NVIDIA_SMI_HANGS"):
        monkeypatch.delenv(name, raising=False)
    for name in ("DCGMI_JSON", "DCGMI_SAYS", "DCGMI_CODE", "DCGMI_HANGS"):
        monkeypatch.delenv(name, raising=False)


def recorded(root: Path, name: str, data: bytes | str) -> HostRoot:
    folder = root / "recorded"
    folder.mkdir(exist_ok=True)
    (folder / name).write_bytes(data if isinstance(data, bytes) else data.encode())
    return HostRoot(root)


def sample(name: str) -> bytes:
    return (DATA / "gpu" / name).read_bytes()


# --- nvidia-smi -----------------------------------------------------------------------------------


@pytest.mark.usefixtures("programs")
def test_nvidia_smi_is_asked_and_read(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NVIDIA_SMI_XML", str(DATA / "gpu" / "h100.xml"))
    found = gpu_nvidia_smi.collect(LIVE)
    assert found.state is SourceState.READ
    assert [gpu.index for gpu in found.facts["gpus"]] == [0, 1]
    assert found.facts["versions"]["driver"] == "570.86.15"


@pytest.mark.usefixtures("programs")
def test_a_complaint_before_the_report_and_an_exit_code_lose_nothing(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    said = "Unable to determine the device handle for GPU2: 0000:34:00.0: Unknown Error"
    monkeypatch.setenv("NVIDIA_SMI_SAYS", f"{said}\n{sample('v100.xml').decode()}")
    monkeypatch.setenv("NVIDIA_SMI_CODE", "15")
    found = gpu_nvidia_smi.collect(LIVE)
    assert [(gpu.index, gpu.lost) for gpu in found.facts["gpus"]] == [(0, False), (2, True)]


@pytest.mark.usefixtures("programs")
@pytest.mark.parametrize(
    ("said", "state", "count"),
    [
        ("No devices were found", SourceState.READ, 0),
        ("Unable to determine the device handle for GPU0000:08:00.0: GPU is lost", "read", 1),
        (
            "NVIDIA-SMI has failed because it couldn't communicate with the NVIDIA driver. Make",
            SourceState.ABSENT,
            None,
        ),
        ("Failed to initialize NVML: Driver/library version mismatch", SourceState.FAILED, None),
        ("<nvidia_smi_log><gpu>", SourceState.FAILED, None),
    ],
)
def test_what_nvidia_smi_says_in_place_of_a_report_is_understood(
    monkeypatch: pytest.MonkeyPatch, said: str, state: SourceState, count: int | None
) -> None:
    monkeypatch.setenv("NVIDIA_SMI_SAYS", said)
    for code in ("9", "0"):
        monkeypatch.setenv("NVIDIA_SMI_CODE", code)
        found = gpu_nvidia_smi.collect(LIVE)
        assert found.state == state
        assert len(found.facts.get("gpus", ())) == (count or 0)
        assert ("gpus" in found.facts) == (count is not None)


@pytest.mark.usefixtures("programs")
def test_a_hung_nvidia_smi_costs_its_deadline_and_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NVIDIA_SMI_HANGS", "1")
    monkeypatch.setattr(gpu_nvidia_smi, "_ANSWER_S", 0.2)
    found = gpu_nvidia_smi.collect(LIVE)
    assert (found.state, found.facts) == (SourceState.TIMED_OUT, {})
    assert found.reason == "nvidia-smi gave no answer within 0.2 s"


def test_without_nvidia_smi_it_is_absent(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr("ncdiag.health.topology.programs._MORE_FOLDERS", ())
    monkeypatch.setenv("PATH", str(tmp_path))
    assert gpu_nvidia_smi.collect(LIVE).state is SourceState.ABSENT
    assert gpu_rocm.collect(LIVE).state is SourceState.ABSENT


def test_a_recorded_report_is_read(tmp_path: Path) -> None:
    assert gpu_nvidia_smi.collect(HostRoot(tmp_path)).state is SourceState.ABSENT
    found = gpu_nvidia_smi.collect(recorded(tmp_path, "nvidia-smi.xml", sample("v100.xml")))
    assert found.facts["gpus"][0].name == "Tesla V100-SXM2-32GB"
    for played, state in (("!denied", "denied"), ("!failed it broke", "failed")):
        played_root = recorded(tmp_path, "nvidia-smi.xml", played)
        assert gpu_nvidia_smi.collect(played_root).state == state


# --- rocm-smi -------------------------------------------------------------------------------------


def test_rocm_smi_is_read_as_recorded(tmp_path: Path) -> None:
    found = gpu_rocm.collect(recorded(tmp_path, "rocm-smi.json", sample("mi300x.json")))
    assert found.facts["gpus"][0].name == "AMD Instinct MI300X OAM"
    assert found.facts["versions"]["driver"] == "6.10.5"
    broken = gpu_rocm.collect(recorded(tmp_path, "rocm-smi.json", "ERROR: no devices\n"))
    assert (broken.state, broken.reason) == (SourceState.FAILED, "rocm-smi: no JSON")


# --- DCGM -----------------------------------------------------------------------------------------


def test_the_exporter_and_dcgmi_are_one_source(tmp_path: Path) -> None:
    recorded(tmp_path, "dcgm.prom", sample("dcgm.prom"))
    found = gpu_dcgm.collect(recorded(tmp_path, "dcgmi.json", sample("dcgmi.json")))
    assert [gpu.index for gpu in found.facts["gpus"]] == [0, 1, 3]
    assert found.facts["gpus"][2].incidents is not None
    assert (found.state, found.reason) == (SourceState.READ, None)


CONTENT = '{"body": {"Overall Health": {"value": "Healthy"}}, "header": ["Health Monitor Report"]}'


def test_watches_that_are_content_say_so_of_every_gpu_of_the_exporter(tmp_path: Path) -> None:
    recorded(tmp_path, "dcgm.prom", sample("dcgm.prom"))
    found = gpu_dcgm.collect(recorded(tmp_path, "dcgmi.json", CONTENT))
    assert [gpu.incidents for gpu in found.facts["gpus"]] == [(), ()]


def test_watches_that_are_content_do_not_count_as_a_list_of_no_gpus(tmp_path: Path) -> None:
    found = gpu_dcgm.collect(recorded(tmp_path, "dcgmi.json", CONTENT))
    assert (found.state, found.facts) == (SourceState.ABSENT, {})
    assert found.reason == "dcgm.prom is not recorded; its watches complain of nothing"
    recorded(tmp_path, "dcgm.prom", "!failed the exporter broke")
    found = gpu_dcgm.collect(HostRoot(tmp_path))
    assert (found.state, found.reason) == (SourceState.FAILED, "the exporter broke")


def test_a_part_of_dcgm_that_failed_is_told_beside_what_was_read(tmp_path: Path) -> None:
    recorded(tmp_path, "dcgm.prom", sample("dcgm.prom"))
    found = gpu_dcgm.collect(recorded(tmp_path, "dcgmi.json", "!failed dcgmi broke"))
    assert (found.state, found.reason) == (SourceState.READ, "dcgmi broke")
    assert len(found.facts["gpus"]) == 2


def test_dcgm_that_is_not_there_is_absent_and_one_that_is_broken_has_failed(tmp_path: Path) -> None:
    assert gpu_dcgm.collect(HostRoot(tmp_path)).state is SourceState.ABSENT
    found = gpu_dcgm.collect(recorded(tmp_path, "dcgmi.json", "{}"))
    assert found.state is SourceState.FAILED


@pytest.mark.usefixtures("programs")
def test_a_host_engine_that_was_told_to_watch_nothing_is_absent(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(gpu_dcgm, "EXPORTER_PORT", free_port())
    found = gpu_dcgm.collect(LIVE)
    assert found.state is SourceState.ABSENT
    assert "watches not enabled" in str(found.reason)


@pytest.mark.usefixtures("programs")
def test_dcgmi_is_asked_and_a_hung_one_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gpu_dcgm, "EXPORTER_PORT", free_port())
    monkeypatch.setenv("DCGMI_JSON", str(DATA / "gpu" / "dcgmi.json"))
    assert [gpu.index for gpu in gpu_dcgm.collect(LIVE).facts["gpus"]] == [3]
    monkeypatch.setenv("DCGMI_HANGS", "1")
    monkeypatch.setattr(gpu_dcgm, "_DCGMI_S", 0.2)
    assert gpu_dcgm.collect(LIVE).state is SourceState.TIMED_OUT


def free_port() -> int:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        port: int = listener.getsockname()[1]
        return port


@contextmanager
def served(answer: bytes, *, stays_open: bool = False) -> Iterator[int]:
    """A port of loopback that answers one request with these bytes."""
    done = threading.Event()

    def serve(listener: socket.socket) -> None:
        connection, _ = listener.accept()
        with connection:
            connection.recv(65_536)
            connection.sendall(answer)
            if stays_open:
                done.wait(30)

    with socket.create_server(("127.0.0.1", 0)) as listener:
        thread = threading.Thread(target=serve, args=(listener,), daemon=True)
        thread.start()
        try:
            yield listener.getsockname()[1]
        finally:
            done.set()
            thread.join(30)


def ok(body: bytes) -> bytes:
    return b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%s" % (len(body), body)


def exported(monkeypatch: pytest.MonkeyPatch, port: int) -> Found:
    monkeypatch.setattr(gpu_dcgm, "EXPORTER_PORT", port)
    monkeypatch.setattr(gpu_dcgm, "_EXPORTER_S", 0.5)
    return gpu_dcgm._exporter(LIVE)


def test_an_exporter_on_this_host_is_read(monkeypatch: pytest.MonkeyPatch) -> None:
    with served(ok(sample("dcgm.prom"))) as port:
        found = exported(monkeypatch, port)
    assert found.state is SourceState.READ
    assert [gpu.uuid for gpu in found.facts["gpus"]] == ["GPU-a0", "GPU-a1"]


@pytest.mark.parametrize(
    "answer",
    [
        ok(b"hello"),
        b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n",
        b"HTTP/1.1 302 Found\r\nLocation: http://192.0.2.1/\r\nContent-Length: 0\r\n\r\n",
        b"SSH-2.0-OpenSSH_9.2\r\n",
        b"",
    ],
)
def test_something_else_on_its_port_is_no_exporter_and_no_fault(
    monkeypatch: pytest.MonkeyPatch, answer: bytes
) -> None:
    with served(answer) as port:
        assert exported(monkeypatch, port).state is SourceState.ABSENT


def test_an_exporter_that_stalls_costs_its_deadline(monkeypatch: pytest.MonkeyPatch) -> None:
    stalled = b"HTTP/1.1 200 OK\r\nContent-Length: 100000\r\n\r\n# HELP"
    with served(stalled, stays_open=True) as port:
        assert exported(monkeypatch, port).state is SourceState.TIMED_OUT


def test_an_exporter_that_never_ends_is_left_at_the_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gpu_dcgm, "MAX_BYTES", 1000)
    with served(ok(b"#" * 5000)) as port:
        answer = gpu_dcgm._fetch(port)
    assert 1000 < len(answer.output) <= 5000


# --- several sources as one -----------------------------------------------------------------------


def test_gaps_of_the_driver_are_filled_by_dcgm_also_within_a_record() -> None:
    (gpu,) = merge(
        {
            Source.DCGM: [
                GpuHealth(
                    index=0,
                    uuid="a",
                    temperature_c=70,
                    ecc=EccCounts(volatile_corrected=9, volatile_uncorrected=3),
                )
            ],
            Source.NVML: [
                GpuHealth(index=0, uuid="a", temperature_c=60, ecc=EccCounts(volatile_corrected=1))
            ],
        }
    )
    assert gpu.temperature_c == 60
    assert gpu.ecc == EccCounts(volatile_corrected=1, volatile_uncorrected=3)


def test_gpus_are_joined_by_uuid_then_address_then_number() -> None:
    driver = [
        GpuHealth(index=0, uuid="a", pci_address="0000:01:00.0"),
        GpuHealth(index=1, uuid="b", pci_address="0000:02:00.0"),
        GpuHealth(index=2),
    ]
    other = [
        GpuHealth(index=0, uuid="b", power_w=1),
        GpuHealth(index=1, pci_address="0000:01:00.0", power_w=2),
        GpuHealth(index=2, power_w=3),
    ]
    merged = merge({Source.NVML: driver, Source.DCGM: other})
    assert [(gpu.index, gpu.uuid, gpu.power_w) for gpu in merged] == [
        (0, "a", 2),
        (1, "b", 1),
        (2, None, 3),
    ]


def test_a_gpu_of_the_same_number_but_another_uuid_tells_nothing_of_this_one() -> None:
    first = GpuHealth(index=0, uuid="a")
    other = GpuHealth(index=0, uuid="b", power_w=1)
    assert merge({Source.NVML: [first], Source.DCGM: [other]}) == (first,)


def test_a_lost_gpu_that_one_source_numbers_and_another_addresses_is_one() -> None:
    merged = merge(
        {
            Source.NVML: [
                GpuHealth(index=0, pci_address="0000:01:00.0"),
                GpuHealth(index=1, lost=True, reason="GPU is lost"),
            ],
            Source.NVIDIA_SMI: [
                GpuHealth(index=0, pci_address="0000:02:00.0", lost=True, reason="Unknown Error"),
                GpuHealth(index=1, pci_address="0000:01:00.0"),
            ],
        }
    )
    assert [(gpu.index, gpu.lost, gpu.pci_address) for gpu in merged] == [
        (0, False, "0000:01:00.0"),
        (1, True, "0000:02:00.0"),
    ]
    assert merged[1].reason == "GPU is lost"


def test_a_gpu_without_a_name_does_not_take_what_is_told_of_a_named_one() -> None:
    merged = merge(
        {
            Source.NVML: [GpuHealth(index=0), GpuHealth(index=1, uuid="b")],
            Source.DCGM: [GpuHealth(index=0, uuid="b", power_w=1)],
        }
    )
    assert [gpu.power_w for gpu in merged] == [None, 1]


def test_a_gpu_that_only_dcgm_remembers_does_not_hide_that_the_driver_lost_it() -> None:
    gone = GpuHealth(index=1, uuid="b")
    kept = GpuHealth(index=0, uuid="a")
    assert merge({Source.NVML: [kept], Source.DCGM: [kept, gone]}) == (kept,)
    assert merge({Source.DCGM: [gone, kept]}) == (kept, gone)


def test_a_lost_gpu_takes_its_name_from_others_and_nothing_that_they_remember() -> None:
    (gpu,) = merge(
        {
            Source.NVML: [GpuHealth(index=0, lost=True, reason="GPU is lost")],
            Source.DCGM: [GpuHealth(index=0, uuid="a", temperature_c=40, last_xid=79)],
        }
    )
    assert (gpu.uuid, gpu.last_xid, gpu.temperature_c) == ("a", 79, None)
    assert (gpu.lost, gpu.reason) == (True, "GPU is lost")


def test_a_gpu_that_one_source_calls_lost_is_lost() -> None:
    (gpu,) = merge(
        {
            Source.NVML: [GpuHealth(index=0, uuid="a")],
            Source.NVIDIA_SMI: [GpuHealth(index=0, uuid="a", lost=True, reason="GPU is lost")],
        }
    )
    assert (gpu.lost, gpu.reason) == (True, "GPU is lost")


def test_gpus_of_amd_stand_beside_those_of_nvidia() -> None:
    nvidia, amd = GpuHealth(index=0, uuid="a"), GpuHealth(index=0)
    assert merge({Source.ROCM_SMI: [amd], Source.NVML: [nvidia]}) == (nvidia, amd)
    assert merge({}) == ()
