"""``ncdiag topo show``: JSON by its contract, and a view of each kind that fits a terminal."""

import gzip
import io
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from rich.console import Console

from ncdiag.cli import main
from ncdiag.cli.topo import reading
from ncdiag.model.errors import ExitCode, UsageError
from ncdiag.model.topology import (
    Adapter,
    Cpu,
    Gpu,
    GpuLink,
    GpuLinkKind,
    GpuMatrix,
    GraphChannel,
    IbFabric,
    IbLocalPort,
    IbNode,
    IbNodeKind,
    IbPort,
    IbPorts,
    MatrixCell,
    NcclGraph,
    NcclGraphs,
    NcclTopology,
    PciDevice,
    SlurmSwitch,
    SlurmTopology,
    Topology,
    TopologyFinding,
    TopologySeverity,
)
from ncdiag.report.topology import json_report, text

EXAMPLES = Path(__file__).parents[2] / "examples" / "topology"
HEALTHY, FAULTY = EXAMPLES / "gpu01.xml", EXAMPLES / "gpu02.xml"
HOSTILE = "\x1b[31m[red]<b>&x;\u202e$a$"

Capture = pytest.CaptureFixture[str]


@pytest.fixture(autouse=True)
def eighty_columns(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.setenv("NO_COLOR", "1")


def shown(capfd: Capture, *arguments: str) -> str:
    assert main.run(["topo", "show", *arguments]) == ExitCode.DONE
    out, err = capfd.readouterr()
    assert err == ""
    return out


def document(capfd: Capture, *arguments: str) -> dict[str, Any]:
    return dict(json.loads(shown(capfd, *arguments, "--format", "json")))


def hostile_topologies(name: str = HOSTILE) -> list[Topology]:
    """One of each kind, with ``name`` wherever a dump may hold text."""
    nccl = NcclTopology(
        cpus=(Cpu(numa=0, arch=name, vendor=name, host_hash=name),),
        pci=(
            PciDevice(cpu=0, busid=name, pci_class=0x060400, link_speed=name),
            PciDevice(cpu=0, parent=0, busid=f"{name}1", pci_class=0x030200),
            PciDevice(cpu=0, parent=0, busid=f"{name}2", pci_class=0x020000),
        ),
        gpus=(Gpu(pci=1, sm=name, gdr=False, links=(GpuLink(GpuLinkKind.NVLINK, name, 3),)),),
        adapters=(Adapter(name=name, cpu=0, pci=2, guid=name), Adapter(name=f"{name}s", cpu=0)),
        version=name,
    )
    graph = NcclGraph(0, name, 1, 1.0, 1.0, name, name, channels=(GraphChannel((name,), (name,)),))
    matrix = GpuMatrix(
        gpus=(name,),
        nics=(f"{name}n",),
        cells=(MatrixCell(name, f"{name}n", name),),
        nic_names={f"{name}n": name},
        numa={name: 0},
        cpu_affinity={name: name},
        damage=(name,),
    )
    port = IbPort(1, "b", 1, name, 4, name, name, name)
    fabric = IbFabric(
        nodes=(
            IbNode(IbNodeKind.SWITCH, name, name, (port,)),
            IbNode(IbNodeKind.CA, "b", name, (IbPort(1, name, 1, name, 4, name),)),
        )
    )
    ports = IbPorts((IbLocalPort(name, 1, name, name, 400.0, name, name),))
    slurm = SlurmTopology(
        "tree",
        (SlurmSwitch(name, switches=("leaf", f"{name}gone")), SlurmSwitch("leaf", (), (name,))),
    )
    return [nccl, NcclGraphs((graph,)), matrix, fabric, ports, slurm]


def rendered(topology: Topology, *, width: int = 80, matrix: bool = False) -> str:
    finding = TopologyFinding(HOSTILE, TopologySeverity.DEGRADED, HOSTILE, HOSTILE)
    out = io.StringIO()
    console = Console(file=out, width=width, markup=False, emoji=False, highlight=False)
    text.render(HOSTILE, topology, [finding], console, matrix=matrix, nccl=matrix, verbose=True)
    return out.getvalue()


def test_the_json_is_that_of_the_contract(capfd: Capture) -> None:
    found = document(capfd, str(HEALTHY))
    assert found["schema"] == "ncdiag/topology/1"
    assert (found["kind"], found["findings"]) == ("nccl-topology", [])
    assert found["cpus"][0] == {"numa": 0, "arch": "x86_64", "vendor": "GenuineIntel"}
    assert (found["nvswitches"], found["hosts"]) == (4, 1)
    assert found["gpus"][3] == {
        "busid": "0000:33:00.0",
        "index": 3,
        "rank": 3,
        "sm": "90",
        "pcie_gen": 5,
        "pcie_lanes": 16,
        "pcie_gb_per_s": 48.0,
        "nvlinks": 18,
        "link_kind": "nvlink",
        "nvlink_gb_per_s": 370.8,
        "nvlink_to": "switch",
        "c2c_gb_per_s": None,
        "nearest_nics": ["mlx5_2", "mlx5_3"],
        "nearest_path": "PIX",
        "nearest_nics_nccl": ["mlx5_2", "mlx5_3"],
        "nearest_path_nccl": "PIX",
    }
    assert found["nics"][5] == {
        "name": "mlx5_5",
        "speed_gbit_per_s": 400.0,
        "port": 1,
        "guid": "0xa0b0c00005",
        "gdr": True,
        "busid": "0000:99:00.0",
    }


def test_the_architecture_of_an_amd_part_is_no_count_of_compute_units() -> None:
    gpu = Gpu(pci=0, sm="304", gcn="gfx942")
    made = NcclTopology((Cpu(0),), (PciDevice(0),), (gpu, replace(gpu, gcn=None)), ())
    (first, second) = json.loads(json_report.render(made, ()))["gpus"]
    assert (first["sm"], second["sm"]) == ("gfx942", "304")


def test_show_says_what_is_wrong_and_exits_with_0(capfd: Capture) -> None:
    classes = {one["class"] for one in document(capfd, str(FAULTY))["findings"]}
    assert classes == {"nvlink_missing", "nic_speed_mixed", "pcie_downgraded_width"}
    assert "3 things wrong, such as nvlink_missing (0000:33:00.0)" in shown(capfd, str(FAULTY))


def test_the_tree_shows_each_device_once_and_fits(capfd: Capture) -> None:
    out = shown(capfd, str(FAULTY))
    lines = out.splitlines()
    assert max(map(len, lines)) <= 80 or lines[0].startswith(str(FAULTY))
    assert max(map(len, lines[1:])) <= 80
    assert sum("mlx5_5  0000:99:00.0  gen5 x8  400 Gbit/s" in line for line in lines) == 1
    assert "NVLink 18 to switches, 370.8 GB/s each way: GPU 0-2,4-7" in lines
    assert "NVLink 14 to switches, 288.4 GB/s each way: GPU 3" in lines


def test_the_matrix_is_cut_into_pieces_that_fit(
    capfd: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "40")
    lines = shown(capfd, str(HEALTHY), "--matrix").splitlines()
    assert max(map(len, lines[1:])) <= 40
    assert sum(line.startswith("GPU7") for line in lines) == 4
    assert "NVL 370.8 GB/s" in lines
    assert any(line.startswith("PIX 48 GB/s") for line in lines)
    assert "PXN" in shown(capfd, str(HEALTHY), "--matrix", "--nccl")


@pytest.mark.parametrize("topology", hostile_topologies(), ids=lambda one: one.kind.value)
def test_hostile_text_is_made_visible_in_every_view(topology: Topology) -> None:
    matrix = isinstance(topology, NcclTopology)
    for out in (rendered(topology), rendered(topology, matrix=matrix)):
        assert "\x1b" not in out
        assert "\u202e" not in out
        assert "\\x1b[31m[red]" in out
    written = json_report.render(topology, [])
    assert b"\\u001b" not in written
    assert "\u202e".encode() not in written
    assert json.loads(written)["kind"] == topology.kind


@pytest.mark.parametrize("topology", hostile_topologies("x"), ids=lambda one: one.kind.value)
@pytest.mark.parametrize("width", [1, 8, 20])
def test_a_narrow_terminal_ends_no_view(topology: Topology, width: int) -> None:
    assert "x" in rendered(topology, width=width)


def test_deep_and_circular_trees_are_printed_as_far_as_they_can_be() -> None:
    pci = tuple(
        PciDevice(cpu=0, parent=number - 1 if number else None, busid=f"{number}")
        for number in range(200)
    )
    deep = NcclTopology((Cpu(numa=-1),), pci, (Gpu(pci=199),), ())
    assert "GPU ?" in rendered(deep, width=1000)
    circle = SlurmTopology("tree", (SlurmSwitch("a", ("b",)), SlurmSwitch("b", ("a",))))
    assert "no root: every switch stands below another" in rendered(circle)
    assert json.loads(json_report.render(circle, []))["roots"] == 0


def test_an_adapter_under_two_sockets_is_one() -> None:
    twice = tuple(Adapter(name="eth0", cpu=cpu, port=0, guid="0x0") for cpu in (0, 1))
    topology = NcclTopology((Cpu(numa=0), Cpu(numa=1)), (), (), twice)
    assert len(json.loads(json_report.render(topology, []))["nics"]) == 1


def test_a_switch_hidden_from_a_virtual_machine_is_none() -> None:
    links = (GpuLink(GpuLinkKind.NVLINK, "fffffff:ffff:ff", 18, 0x068000),)
    gpu = Gpu(pci=0, sm="90", links=links)
    topology = NcclTopology((Cpu(numa=0),), (PciDevice(cpu=0),), (gpu,), ())
    found = json.loads(json_report.render(topology, []))
    assert (found["nvswitches"], found["gpus"][0]["nvlink_to"]) == (0, "switch")
    assert found["gpus"][0]["nearest_path"] is None


@pytest.mark.parametrize(("targets", "end"), [(("a",), "gpu"), (("a", "s"), "mixed"), ((), "none")])
def test_where_links_of_a_gpu_end(targets: tuple[str, ...], end: str) -> None:
    classes = {"a": 0x030200, "s": 0x068000}
    links = tuple(GpuLink(GpuLinkKind.NVLINK, name, 2, classes[name]) for name in targets)
    pci = (PciDevice(cpu=0, busid="a"), PciDevice(cpu=0, busid="b"))
    topology = NcclTopology((Cpu(numa=0),), pci, (Gpu(pci=0), Gpu(pci=1, links=links)), ())
    assert json.loads(json_report.render(topology, []))["gpus"][1]["nvlink_to"] == end


def test_a_cable_counts_once_with_the_rate_of_its_slower_end() -> None:
    def port(peer: str, speed: str | None) -> IbPort:
        return IbPort(1, peer, 1, None, None if speed is None else 4, speed)

    switch = IbNode(IbNodeKind.SWITCH, "s", "leaf", (port("h", "HDR"), IbPort(2, "g", 1)))
    host = IbNode(IbNodeKind.CA, "h", "node1 mlx5_0", (port("s", "EDR"),))
    loop = IbNode(IbNodeKind.CA, "l", None, (IbPort(1, "l", 2), IbPort(2, "l", 1)))
    unseen = IbNode(IbNodeKind.CA, "g", None, (), has_record=False)
    found = json.loads(json_report.render(IbFabric((switch, host, loop, unseen)), []))
    assert (found["switches"], found["cas"], found["links"]) == (1, 2, 3)
    assert found["links_by_rate"] == {"4xEDR": 1}


def test_a_compressed_dump_and_standard_input_are_read(
    tmp_path: Path, capfd: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    packed = tmp_path / "node.xml.gz"
    packed.write_bytes(gzip.compress(HEALTHY.read_bytes()))
    plain = document(capfd, str(HEALTHY))
    assert document(capfd, str(packed)) == plain
    with HEALTHY.open("rb") as file:
        monkeypatch.setattr("sys.stdin", io.TextIOWrapper(file))
        assert document(capfd, "-") == plain


@pytest.fixture
def bad_inputs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("text").write_text("hello\n")
    Path("empty").write_bytes(b"")
    Path("damaged.gz").write_bytes(gzip.compress(HEALTHY.read_bytes())[:-30])
    Path("trailed.gz").write_bytes(gzip.compress(HEALTHY.read_bytes()) + b"\0\0more")
    Path("cut.xml").write_bytes(HEALTHY.read_bytes()[:900])
    Path("graph.xml").write_text('<graphs version="1"><graph id="0" nchannels="0"/></graphs>')


@pytest.mark.usefixtures("bad_inputs")
@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        ([], 2, "name one dump, - for standard input, or --live with a tool"),
        (["gone.xml"], 2, "gone.xml: no such file"),
        (["."], 2, ". is a folder; name a dump, or use ncdiag topo diff"),
        (["text"], 2, "text: no topology dump that is known"),
        (["empty"], 2, "empty: empty"),
        (["damaged.gz"], 3, "damaged.gz: the compressed data ends too early"),
        (["trailed.gz"], 3, "trailed.gz: bytes that are not compressed follow the compressed data"),
        ([""], 2, '"": no such file'),
        (["cut.xml"], 3, "cut.xml: cut short"),
        (["graph.xml", "--matrix"], 2, "--matrix needs paths of GPUs, and this is: NCCL graphs"),
        (["graph.xml", "--nccl"], 2, "--nccl needs an NCCL topology, and this is: NCCL graphs"),
        (["graph.xml", "--svg", "x.svg"], 2, "there is no picture of NCCL graphs"),
        (["graph.xml", "--svg", "empty"], 2, "empty is already there; name another file"),
        (["graph.xml", "--png", "graph.xml", "--force"], 2, "graph.xml is the dump to read"),
        (["graph.xml", "--svg", "-"], 2, "a picture goes to a file; name one"),
        (["graph.xml", "--png", ""], 2, "a picture goes to a file; name one"),
        (["graph.xml", "--png", "a", "--svg", "a"], 2, "a cannot hold both pictures"),
        (["graph.xml", "--live", "iblinkinfo"], 2, "name one dump, - for standard input"),
        (["--live", "mlxlink"], 2, "invalid value for '--live'"),
    ],
)
def test_bad_input_is_one_line(
    arguments: list[str],
    code: int,
    message: str,
    capfd: Capture,
) -> None:
    assert main.run(["topo", "show", *arguments]) == code
    out, err = capfd.readouterr()
    assert err.startswith(f"ncdiag: {message}")
    assert err.count("\n") == 1
    assert out == "" or "--svg" in arguments


def test_what_is_too_large_is_refused_before_it_fills_the_memory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reading, "MAX_BYTES", 1 << 20)
    bomb = tmp_path / "bomb.gz"
    bomb.write_bytes(gzip.compress(bytes(2 << 20)))
    with pytest.raises(UsageError, match=r"bomb\.gz holds more than 1 MiB"):
        reading.read_bytes(str(bomb))


@settings(max_examples=60, deadline=None)
@given(data=st.binary(max_size=200) | st.binary(max_size=60).map(gzip.compress))
def test_any_bytes_are_read_or_refused(
    data: bytes, tmp_path_factory: pytest.TempPathFactory
) -> None:
    path = tmp_path_factory.getbasetemp() / "any"
    path.write_bytes(data)
    assert main.run(["topo", "show", str(path), "--format", "json"]) in {0, 2, 3}
