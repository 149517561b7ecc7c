"""``ncdiag topo capture`` on this host: with programs, a sysfs and a PyTorch made for the test."""

import json
import os
import stat
import sys
from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest

from ncdiag.cli import main
from ncdiag.health.topology import capture as capturing
from ncdiag.health.topology import pcie_links, programs
from ncdiag.health.topology.pcie_links import check_links, collect_links, decode_links, encode_links
from ncdiag.health.topology.programs import Outcome, ask
from ncdiag.model.topology import TopologySeverity

MATRIX = "\tGPU0\tGPU1\nGPU0\t X \tNV4\nGPU1\tNV4\t X \n"
PORTS = "CA 'mlx5_0'\n\tPort 1:\n\t\tState: Active\n\t\tPhysical state: LinkUp\n\t\tRate: 400\n"

Capture = pytest.CaptureFixture[str]
Install = Callable[[str, str, str], Path]


@pytest.fixture
def install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Install:
    """Put a program on an otherwise empty PATH that refuses all but the given arguments."""
    folder = tmp_path / "bin"
    folder.mkdir()
    monkeypatch.setenv("PATH", str(folder))
    monkeypatch.setattr(programs, "_MORE_FOLDERS", ())

    def make(name: str, arguments: str, body: str) -> Path:
        path = folder / name
        refuse = f'[ "$*" = "{arguments}" ] || {{ echo "bad option: $*" >&2; exit 64; }}'
        path.write_text(f"#!/bin/sh\n{refuse}\nPATH=/usr/bin:/bin\n{body}\n")
        path.chmod(path.stat().st_mode | stat.S_IXUSR)
        return path

    return make


@pytest.fixture
def sysfs(tmp_path: Path) -> Path:
    """A sysfs with a GPU, two adapters, a virtual function and a disk."""
    root = tmp_path / "root"
    (root / "sys/bus/pci/devices").mkdir(parents=True)
    device(root, "0000:1b:00.0", "0x030200", current=("2.5 GT/s PCIe", 16))
    device(root, "0000:2a:00.0", "0x020700", current=("32.0 GT/s PCIe", 8), names=("mlx5_0",))
    device(root, "0000:3a:00.0", "0x020000", slot=("16.0 GT/s PCIe", 8), current=("16 GT/s", 8))
    device(root, "0000:3b:00.1", "0x020000", current=("Unknown", 255), virtual=True)
    device(root, "0000:4a:00.0", "0x010802")
    return root


def device(
    root: Path,
    busid: str,
    pci_class: str,
    *,
    current: tuple[str, int] = ("32.0 GT/s PCIe", 16),
    slot: tuple[str, int] = ("32.0 GT/s PCIe", 16),
    names: tuple[str, ...] = (),
    virtual: bool = False,
) -> None:
    port = root / f"sys/devices/pci0000:00/0000:00:{busid[5:7]}.0"
    path = port / busid
    path.mkdir(parents=True)
    ends = [(path, "current", current), (path, "max", ("32.0 GT/s PCIe", 16)), (port, "max", slot)]
    for where, which, (speed, lanes) in ends:
        (where / f"{which}_link_speed").write_text(f"{speed}\n")
        (where / f"{which}_link_width").write_text(f"{lanes}\n")
    (path / "class").write_text(f"{pci_class}\n")
    (path / "vendor").write_text("0x15b3\n")
    for name in names:
        (path / "infiniband" / name).mkdir(parents=True)
    if virtual:
        (path / "physfn").mkdir()
    (root / "sys/bus/pci/devices" / busid).symlink_to(path)


def test_a_link_is_judged_by_what_both_of_its_ends_can_do(sysfs: Path) -> None:
    links = collect_links(sysfs)
    assert [one.busid for one in links.devices] == ["0000:1b:00.0", "0000:2a:00.0", "0000:3a:00.0"]
    assert links.devices[1].names == ("mlx5_0",)
    found = {one.where: (one.name, one.severity) for one in check_links(links)}
    assert found == {
        "0000:1b:00.0": ("pcie_downgraded_speed", TopologySeverity.INFO),
        "0000:2a:00.0": ("pcie_downgraded_width", TopologySeverity.DEGRADED),
    }
    assert decode_links(encode_links(links)) == links


def test_a_host_without_sysfs_has_no_links(tmp_path: Path) -> None:
    assert collect_links(tmp_path).devices == ()


def test_what_is_there_is_written_and_absence_is_no_failure(
    install: Install, sysfs: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: Capture
) -> None:
    install("nvidia-smi", "topo -m", f"printf '{MATRIX}'")
    install("amd-smi", "topology", "echo broken >&2; exit 3")
    install("ibstat", "", f'printf "{PORTS}"')
    install("lstopo", "--of xml", "printf '<topology><object/></topology>'")
    real = collect_links(sysfs)
    monkeypatch.setattr(capturing, "collect_links", lambda: real)
    monkeypatch.setattr(capturing, "_GPU_NODES", ())
    monkeypatch.setattr("socket.gethostname", lambda: "gpu07")
    output = tmp_path / "dumps"
    assert main.run(["topo", "capture", "--output", str(output), "--format", "json"]) == 1
    found = json.loads(capfd.readouterr().out)
    outcomes = {one["kind"]: one["outcome"] for one in found["hosts"][0]["dumps"]}
    assert outcomes == {
        "pcie": "captured",
        "nccl": "absent",
        "nvidia": "captured",
        "rocm": "absent",
        "amd": "failed",
        "ibstat": "captured",
        "lstopo": "captured",
    }
    assert {one["reason"] for one in found["hosts"][0]["dumps"] if one["outcome"] == "failed"} == {
        "amd-smi failed (exit code 3): broken"
    }
    assert sorted(path.name for path in output.iterdir()) == [
        "capture.json",
        "gpu07.ibstat.txt",
        "gpu07.lstopo.xml",
        "gpu07.nvidia.txt",
        "gpu07.pcie.json",
    ]
    assert json.loads((output / "capture.json").read_text()) == found
    assert main.run(["topo", "show", str(output / "gpu07.nvidia.txt")]) == 0
    capfd.readouterr()
    assert main.run(["topo", "capture", "--output", str(output)]) == 2
    assert "is not empty; give another --output" in capfd.readouterr().err
    assert main.run(["topo", "capture", "--output", str(output), "--force"]) == 1
    out = capfd.readouterr().out
    assert "nvidia    nvidia-smi topo -m: gpu07\n" in out
    assert "DEGRADED  gpu07: 0000:2a:00.0 (mlx5_0) runs with 8 lanes" in out


def test_a_host_that_has_nothing_leaves_it_undecided(
    install: Install, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: Capture
) -> None:
    install("ibstat", "", "exit 0")  # as it does on a host without an adapter
    monkeypatch.setattr(capturing, "collect_links", pcie_links.PcieLinks)
    monkeypatch.setattr(capturing, "_GPU_NODES", ())
    assert main.run(["topo", "capture", "--output", str(tmp_path / "dumps")]) == 3
    assert "ibstat has nothing to tell" in capfd.readouterr().out


def running(path: str) -> list[str]:
    """The processes that run the program at ``path``."""
    found = []
    for one in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            arguments = one.read_bytes().split(b"\0")
        except OSError:  # it has ended meanwhile
            continue
        if path.encode() in arguments:
            found.append(one.parent.name)
    return found


def test_a_program_has_its_limits(install: Install, monkeypatch: pytest.MonkeyPatch) -> None:
    path = install("slow", "", "sleep 600 & wait")
    slow = ask(["slow"], timeout_s=1)
    assert (slow.outcome, slow.reason) == (Outcome.FAILED, "slow gave no answer within 1 s")
    assert not running(str(path))
    monkeypatch.setattr(programs, "MAX_BYTES", 1000)
    install("endless", "", "yes")
    assert "printed more than" in (ask(["endless"], timeout_s=30).reason or "")
    install("noisy", "", "printf 'a\\033[2Jb\\n' >&2; kill -9 $$")
    assert ask(["noisy"], timeout_s=30).reason == "noisy failed (SIGKILL): a\\x1b[2Jb"
    assert ask(["gone"], timeout_s=30).outcome is Outcome.ABSENT
    (install("damaged", "", "").with_name("damaged")).write_bytes(b"#!/nowhere\n")
    assert "cannot be started" in (ask(["damaged"], timeout_s=30).reason or "")


TORCH = """
import os
from . import cuda
def ones(count, device): return device
"""
CUDA = """
import os
from types import SimpleNamespace
def is_available(): return {available}
def device_count(): return 2
def synchronize(device): pass
def all_reduce(ones):
    assert ones == ["cuda:0", "cuda:1"], ones
    {work}
nccl = SimpleNamespace(all_reduce=all_reduce)
"""
WRITES = 'open(os.environ["NCCL_TOPO_DUMP_FILE"], "w").write("<system/>")'


@pytest.mark.parametrize(
    ("available", "work", "outcome", "reason"),
    [
        (True, WRITES, Outcome.CAPTURED, None),
        (True, f"{WRITES}; os.abort()", Outcome.CAPTURED, None),
        (True, "pass", Outcome.FAILED, "NCCL came up and wrote no topology"),
        (False, "pass", Outcome.FAILED, "NCCL failed (exit code 1): PyTorch finds no GPU"),
        (True, "import time; time.sleep(600)", Outcome.FAILED, "NCCL gave no answer within"),
    ],
)
def test_nccl_writes_its_topology_in_a_process_of_its_own(
    available: object,
    work: str,
    outcome: Outcome,
    reason: str | None,
    tmp_path: Path,
) -> None:
    (tmp_path / "torch").mkdir()
    (tmp_path / "torch/__init__.py").write_text(TORCH)
    (tmp_path / "torch/cuda.py").write_text(CUDA.format(available=available, work=work))
    root = str(Path(__file__).parents[2])
    path = os.pathsep.join((str(tmp_path), root, os.environ.get("PYTHONPATH", "")))
    limit_s = 1.0 if "sleep" in work else 60.0
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYTHONPATH", path)
        patch.setenv("NCCL_TOPO_DUMP_FILE_RANK", "3")
        patch.setitem(sys.modules, "torch", None)
        patch.delitem(sys.modules, "torch")
        answer = capturing._nccl(limit_s, exists=lambda _: True)
    assert answer.outcome is outcome
    assert (answer.reason or "").startswith(reason or "")
    assert answer.output == (b"<system/>" if outcome is Outcome.CAPTURED else b"")


def test_a_worker_answers_the_driver_in_json(monkeypatch: pytest.MonkeyPatch) -> None:
    dumps = (capturing.Captured(kind="nvidia", outcome="captured", data=b"\xff\x00"),)
    monkeypatch.setattr(capturing, "capture", lambda: capturing.Capture(dumps=dumps))
    payload = msgspec.json.encode(capturing.CaptureTask())
    answer = capturing.capture_for_driver(payload)
    assert msgspec.json.decode(answer, type=capturing.Capture).dumps == dumps
