"""``ncdiag topo check`` and ``ncdiag topo diff`` as commands: text, JSON, exit codes."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from ncdiag.cli import main
from ncdiag.diagnose.topology.classes import CLASSES
from ncdiag.health.topology.pcie_links import Link, PcieDevice, PcieLinks, encode_links
from ncdiag.model.errors import ExitCode
from ncdiag.report.topology import classes

EXAMPLES = Path(__file__).parents[2] / "examples" / "topology"
HEALTHY, FAULTY = EXAMPLES / "gpu01.xml", EXAMPLES / "gpu02.xml"
PORTS = "CA 'mlx5_0'\n  Port 1:\n    State: Active\n    Physical state: LinkUp\n    Rate: {}\n"

Capture = pytest.CaptureFixture[str]


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.setenv("NO_COLOR", "1")
    return tmp_path


def links(lanes: int = 16, *, gpu: bool = False, rate: float = 32.0) -> bytes:
    full = Link(gigatransfers_per_s=32.0, lanes=16)
    now = Link(gigatransfers_per_s=rate, lanes=lanes)
    device = PcieDevice(
        busid="0000:1b:00.0", gpu=gpu, names=("mlx5_0",), current=now, maximum=full, slot=full
    )
    return encode_links(PcieLinks(devices=(device,)))


def test_what_is_wrong_is_told_by_severity_with_what_to_do(capfd: Capture) -> None:
    assert main.run(["topo", "check", str(HEALTHY), str(FAULTY)]) == ExitCode.WRONG
    out, err = capfd.readouterr()
    assert err == ""
    lines = out.splitlines()
    assert lines[0] == "DEGRADED  3 degraded in 2 dumps"
    assert "  DEGRADED  nvlink_missing  0000:33:00.0  in gpu02.xml" in lines
    assert any(line.strip().startswith("-> look at nvidia-smi nvlink") for line in lines)
    assert "  ok  gpu01.xml: NCCL topology, 8 GPUs, 8 adapters, 2 CPUs, 4 NVSwitches" in lines
    assert max(map(len, lines)) <= 80


def test_a_healthy_dump_is_ok(capfd: Capture) -> None:
    assert main.run(["topo", "check", str(HEALTHY)]) == ExitCode.DONE
    assert capfd.readouterr().out.startswith("OK  nothing wrong in 1 dump\n")


def test_the_json_is_that_of_the_contract(capfd: Capture) -> None:
    assert main.run(["topo", "check", "--format", "json", str(FAULTY)]) == ExitCode.WRONG
    found = json.loads(capfd.readouterr().out)
    assert list(found) == ["schema", "kind", "inputs", "findings", "errors"]
    assert found["schema"] == "ncdiag/topology-check/1"
    assert found["kind"] == "nccl-topology"
    assert found["inputs"] == [{"path": str(FAULTY), "kind": "nccl-topology"}]
    assert set(found["findings"][0]) == {"path", "class", "severity", "where", "explanation"}


def test_inputs_of_several_kinds_have_no_kind_together(folder: Path, capfd: Capture) -> None:
    (folder / "ports.txt").write_text(PORTS.format(400))
    assert main.run(["topo", "check", "--format", "json", str(HEALTHY), "ports.txt"]) == 0
    assert json.loads(capfd.readouterr().out)["kind"] is None


@pytest.mark.parametrize(
    ("inputs", "code", "verdict"),
    [
        (["cut.xml"], 3, None),
        (["text"], 2, None),
        (["text", "cut.xml"], 3, None),
        (["good.xml", "text"], 3, "UNDECIDED  nothing wrong in 1 dump; 1 input could"),
        (["good.xml", "bad.xml", "cut.xml"], 1, "DEGRADED  3 degraded in 2 dumps; 1 input could"),
        (["gone.xml", "bad.xml"], 2, None),
        ([], 2, None),
    ],
)
def test_the_exit_code_of_what_cannot_be_judged(
    inputs: list[str], code: int, verdict: str | None, capfd: Capture
) -> None:
    shutil.copy(HEALTHY, "good.xml")
    shutil.copy(FAULTY, "bad.xml")
    Path("cut.xml").write_bytes(HEALTHY.read_bytes()[:700])
    Path("text").write_text("hello\n")
    assert main.run(["topo", "check", *inputs]) == code
    out, err = capfd.readouterr()
    assert err.count("\n") == 1
    assert out.startswith(verdict) if verdict else out == ""


def test_a_folder_is_checked_but_not_what_is_hidden(folder: Path, capfd: Capture) -> None:
    shutil.copy(HEALTHY, folder / "one.xml")
    (folder / ".hidden").write_text("no dump\n")
    (folder / "below").mkdir()
    assert main.run(["topo", "check", "."]) == ExitCode.DONE
    assert "in 1 dump" in capfd.readouterr().out


def test_every_class_is_listed_and_explained(capfd: Capture) -> None:
    assert main.run(["topo", "check", "--list-classes"]) == ExitCode.DONE
    listed = capfd.readouterr().out
    assert max(map(len, listed.splitlines())) <= 80
    for one in CLASSES:
        assert f"\n{one.name} " in listed
        assert classes.find(one.name.upper().replace("_", "-")) is one
    assert main.run(["topo", "check", "--explain", "nvlink_missing"]) == ExitCode.DONE
    assert "What to do\nLook at nvidia-smi nvlink" in capfd.readouterr().out
    assert main.run(["topo", "check", "--explain", "nvlink"]) == ExitCode.USAGE
    assert "did you mean nvlink_missing" in capfd.readouterr().err
    assert main.run(["topo", "check", "--list-classes", "--format", "json"]) == ExitCode.DONE
    assert len(json.loads(capfd.readouterr().out)["classes"]) == len(CLASSES)


def test_a_link_below_what_both_ends_can_do_is_found(folder: Path, capfd: Capture) -> None:
    (folder / "host.pcie.json").write_bytes(links(lanes=8))
    assert main.run(["topo", "check", "host.pcie.json"]) == ExitCode.WRONG
    assert "(mlx5_0) runs with 8 lanes" in capfd.readouterr().out
    assert main.run(["topo", "show", "host.pcie.json"]) == ExitCode.DONE
    assert "32 GT/s x8" in capfd.readouterr().out
    (folder / "host.pcie.json").write_bytes(links(gpu=True, rate=2.5))
    assert main.run(["topo", "check", "host.pcie.json"]) == ExitCode.DONE
    assert "look again under load" in " ".join(capfd.readouterr().out.split())
    (folder / "host.pcie.json").write_bytes(links().replace(b'"lanes": 16', b'"lanes": []'))
    assert main.run(["topo", "show", "host.pcie.json"]) == ExitCode.USAGE
    assert capfd.readouterr().err.startswith("ncdiag: host.pcie.json: not PCIe links")


def fleet(folder: Path, hosts: int = 6, odd: int = 3) -> Path:
    below = folder / "fleet"
    below.mkdir()
    for number in range(1, hosts + 1):
        text = (FAULTY if number == odd else HEALTHY).read_text()
        (below / f"gpu{number:02d}.xml").write_text(text.replace("0xa0b0c", f"0x{number:05x}"))
    return below


def test_the_odd_host_is_named(folder: Path, capfd: Capture) -> None:
    below = fleet(folder)
    (below / "notes.txt").write_text("not a dump\n")
    assert main.run(["topo", "diff", str(below)]) == ExitCode.WRONG
    out, err = capfd.readouterr()
    assert err.startswith(f"ncdiag: {below}/notes.txt: no topology dump that is known")
    assert out.startswith("DIFFERENT  1 of 6 hosts: gpu03; 1 dump cannot be read")
    assert "    5  gpu[01-02,04-06]\n" in out
    assert main.run(["topo", "diff", str(below), "--format", "json"]) == ExitCode.WRONG
    found = json.loads(capfd.readouterr().out)
    assert (found["schema"], found["hosts"], found["failed"]) == ("ncdiag/topology-diff/1", 6, 1)
    assert found["groups"][0]["hosts"] == "gpu[01-02,04-06]"
    assert found["groups"][0]["count"] == 5
    assert found["groups"][0]["differs"] == []
    assert {one["where"] for one in found["findings"]} == {"gpu03"}


def test_a_fleet_that_is_alike_is_ok(folder: Path, capfd: Capture) -> None:
    below = fleet(folder, odd=0)
    assert main.run(["topo", "diff", str(below)]) == ExitCode.DONE
    assert capfd.readouterr().out.startswith("OK  6 hosts, none differs\n")
    (below / "gpu07.xml").write_bytes(HEALTHY.read_bytes()[:700])
    assert main.run(["topo", "diff", str(below)]) == ExitCode.UNDECIDED


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        ([], 2, "nothing to compare; name a folder of dumps, or several dumps"),
        (["fleet/gpu01.xml"], 2, "one dump has nothing to be compared with; "),
        (["empty"], 2, "empty: no file is in that folder"),
        (["gone"], 2, "gone: no such file or folder"),
        (
            ["fleet/gpu01.xml", "ports.txt"],
            2,
            "fleet/gpu01.xml holds an NCCL topology and ports.txt",
        ),
        (["cut.xml", "text"], 3, "cut.xml: cut short"),
        (["none", "none2", "none3"], 2, "ncdiag: none: empty (and 2 more cannot be read)\n"),
    ],
)
def test_what_cannot_be_compared_is_an_error(
    arguments: list[str], code: int, message: str, folder: Path, capfd: Capture
) -> None:
    fleet(folder)
    (folder / "empty").mkdir()
    (folder / "ports.txt").write_text(PORTS.format(400))
    (folder / "cut.xml").write_bytes(HEALTHY.read_bytes()[:700])
    (folder / "text").write_text("hello\n")
    for name in ("none", "none2", "none3"):
        (folder / name).touch()
    assert main.run(["topo", "diff", *arguments]) == code
    out, err = capfd.readouterr()
    assert out == ""
    assert message in err
    assert err.count("\n") == 1


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ([], "d: no file is in that folder"),
        (["capture.json"], "d: no dump is in that folder; its capture.json says why"),
        (["below/a.xml"], "d: no dump is in that folder, only folders, which are not looked into"),
        (["README", "below/a.xml"], "d holds a single file"),
    ],
)
def test_a_folder_with_nothing_to_compare_says_why(
    content: list[str], message: str, folder: Path, capfd: Capture
) -> None:
    (folder / "d").mkdir()
    for name in content:
        (folder / "d" / name).parent.mkdir(exist_ok=True)
        (folder / "d" / name).write_text("{}\n")
    assert main.run(["topo", "diff", "d"]) == ExitCode.USAGE
    assert message in capfd.readouterr().err


def test_a_path_that_is_not_there_is_refused_before_anything_is_checked(
    folder: Path, capfd: Capture
) -> None:
    shutil.copy(FAULTY, folder / "bad.xml")
    assert main.run(["topo", "check", "bad.xml", "gone.xml"]) == ExitCode.USAGE
    out, err = capfd.readouterr()
    assert out == ""
    assert "gone.xml: no such file or folder; nothing was checked or compared" in err


def test_a_link_to_nothing_in_a_folder_is_a_dump_that_cannot_be_read(
    folder: Path, capfd: Capture
) -> None:
    below = fleet(folder, odd=0)
    (below / "self").symlink_to(".")
    (below / "gpu07.xml").symlink_to("/nowhere/gpu07.xml")
    for command in ("diff", "check"):
        assert main.run(["topo", command, str(below)]) == ExitCode.UNDECIDED
        out, err = capfd.readouterr()
        assert err == f"ncdiag: {below}/gpu07.xml: a link to no file\n"
        assert out.startswith("UNDECIDED")


def test_a_pipe_in_a_folder_is_not_waited_for(folder: Path, capfd: Capture) -> None:
    below = fleet(folder, odd=0)
    os.mkfifo(below / "pipe.xml")
    for command in ("diff", "check"):
        assert main.run(["topo", command, str(below)]) == ExitCode.USAGE
        assert f"{below}/pipe.xml: a pipe or device" in capfd.readouterr().err


def test_a_folder_of_a_capture_is_compared_kind_by_kind(folder: Path, capfd: Capture) -> None:
    below = folder / "dumps"
    below.mkdir()
    for number in range(1, 6):
        host = f"gpu{number}.cluster"
        (below / f"{host}.nccl.xml").write_bytes((FAULTY if number == 2 else HEALTHY).read_bytes())
        (below / f"{host}.ibstat.txt").write_text(PORTS.format(200 if number == 4 else 400))
        (below / f"{host}.pcie.json").write_bytes(links(lanes=8 if number == 5 else 16))
    (below / "capture.json").write_text("{}\n")
    assert main.run(["topo", "diff", "dumps", "--format", "json"]) == ExitCode.WRONG
    found = json.loads(capfd.readouterr().out)
    assert (found["hosts"], found["failed"]) == (5, 0)
    assert {one["where"] for one in found["findings"]} == {
        "gpu2.cluster",
        "gpu4.cluster",
        "gpu5.cluster",
    }
    assert main.run(["topo", "diff", "dumps"]) == ExitCode.WRONG
    out = capfd.readouterr().out
    assert out.startswith("DIFFERENT  3 of 5 hosts: gpu[2,4-5].cluster\n")
    assert "    4  run as they can\n" in out


def test_hosts_of_one_name_are_told_apart_by_their_path(folder: Path, capfd: Capture) -> None:
    names = []
    for place in ("a", "b", "c", "d"):
        (folder / place).mkdir()
        names.append(f"{place}/node.xml")
        shutil.copy(FAULTY if place == "c" else HEALTHY, names[-1])
    assert main.run(["topo", "diff", *names, "--format", "json"]) == ExitCode.WRONG
    found = json.loads(capfd.readouterr().out)
    assert {one["where"] for one in found["findings"]} == {"c/node.xml"}


@pytest.mark.parametrize("command", [["check"], ["show"]])
def test_the_fabric_itself_can_be_asked(
    command: list[str], folder: Path, capfd: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    tool = folder / "ibnetdiscover"
    node = (
        'Switch 2 "S-0002c90000000001" # "leaf" base port 0 lid 1 lmc 0\n'
        '[1] "H-0002c90000000002"[1](2c90000000002) # "node1 mlx5_0" lid 2 4xHDR\n\n'
        'Ca 1 "H-0002c90000000002" # "node1 mlx5_0"\n'
        '[1](2c90000000002) "S-0002c90000000001"[1] # lid 2 lmc 0 "leaf" lid 1 4xHDR\n'
    )
    tool.write_text(f"#!/bin/sh\n[ $# = 0 ] || exit 64\ncat <<'END'\n{node}END\n")
    tool.chmod(0o755)
    monkeypatch.setenv("PATH", f"{folder}:/usr/bin:/bin")
    assert main.run(["topo", *command, "--live", "ibnetdiscover"]) == ExitCode.DONE
    out = capfd.readouterr().out
    assert "live:ibnetdiscover: InfiniBand fabric, 1 switch, 1 adapter, 1 cable" in out


def test_help_of_every_command_fits(capfd: Capture) -> None:
    for command in ([], ["show"], ["check"], ["diff"], ["capture"]):
        assert main.run(["topo", *command, "--help"]) == ExitCode.DONE
        assert max(map(len, capfd.readouterr().out.splitlines())) <= 80


def test_nothing_heavy_is_loaded_to_compare(folder: Path) -> None:
    below = fleet(folder)
    code = (
        "import sys; from ncdiag.cli.main import run; run(['topo', 'diff', sys.argv[1]])\n"
        "heavy = {'torch', 'pandas', 'matplotlib', 'distributed', 'numpy'} & set(sys.modules)\n"
        "sys.exit(f'{heavy}' if heavy else 0)"
    )
    argv = [sys.executable, "-c", code, str(below)]
    done = subprocess.run(argv, capture_output=True, text=True, check=False, timeout=60)
    assert (done.returncode, done.stderr) == (0, "")


def test_advice_for_amd_gpus_names_their_tools(folder: Path, capfd: Capture) -> None:
    gpu = (
        '<pci busid="0000:0{at}:00.0" class="0x120000" vendor="0x1002" device="0x74a1">'
        '<gpu dev="{at}" sm="304" gcn="942">{links}</gpu></pci>'
    )
    links = [
        "".join(f'<xgmi target="0000:0{b}:00.0" count="1"/>' for b in range(6) if b != a)
        for a in range(6)
    ]
    links[3] = ""
    gpus = "".join(gpu.format(at=at, links=one) for at, one in enumerate(links))
    (folder / "amd.xml").write_text(f'<system><cpu numaid="0">{gpus}</cpu></system>')
    assert main.run(["topo", "check", "amd.xml"]) == ExitCode.WRONG
    out = capfd.readouterr().out
    assert "amd-smi" in out
    assert "nvidia" not in out
    assert not [line for line in out.splitlines() if line != line.rstrip()]


def test_hosts_of_two_models_are_called_so(folder: Path, capfd: Capture) -> None:
    for number in range(6):
        text = HEALTHY.read_text()
        if number % 2:
            text = text.replace('busid="0000:', 'busid="0001:').replace('"0000:', '"0001:')
        (folder / f"n{number}.xml").write_text(text)
    assert main.run(["topo", "diff", "."]) == ExitCode.DONE
    head = capfd.readouterr().out.splitlines()[0]
    assert head == "OK  6 hosts: 2 server models, 3 hosts each; nobody stands out"


@pytest.mark.parametrize("alike", [1, 2, 3])
def test_without_a_majority_it_is_undecided(alike: int, folder: Path, capfd: Capture) -> None:
    for number in range(alike):
        shutil.copy(HEALTHY, folder / f"good{number}.xml")
        shutil.copy(FAULTY, folder / f"other{number}.xml")
    assert main.run(["topo", "diff", "."]) == ExitCode.UNDECIDED
    head = capfd.readouterr().out.splitlines()[0]
    hosts = f"{alike * 2} hosts"
    assert head == f"UNDECIDED  {hosts}: they differ, and no majority says which are wrong"
    assert main.run(["topo", "diff", ".", "--format", "json"]) == ExitCode.UNDECIDED
    assert json.loads(capfd.readouterr().out)["undecided"] is True


@pytest.mark.parametrize(("one", "other"), [(1, 1), (2, 2), (5, 2)])
def test_too_few_hosts_of_a_model_are_undecided(
    one: int, other: int, folder: Path, capfd: Capture
) -> None:
    text = HEALTHY.read_text()
    second = text.replace('busid="0000:', 'busid="0001:').replace('"0000:', '"0001:')
    second = second.replace('sm="90"', 'sm="100"')
    for number in range(one):
        (folder / f"a{number}.xml").write_text(text)
    for number in range(other):
        (folder / f"b{number}.xml").write_text(second)
    assert main.run(["topo", "diff", "."]) == ExitCode.UNDECIDED
    head = capfd.readouterr().out.splitlines()[0]
    assert head.startswith(f"UNDECIDED  {one + other} hosts: 2 server models, ")
