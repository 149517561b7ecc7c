"""Pictures of dumps: well-formed whatever the dump holds, and ringed where something is wrong."""

import xml.etree.ElementTree as ET
from pathlib import Path

import pytest

from ncdiag.cli import main
from ncdiag.diagnose.topology.check import check
from ncdiag.model.errors import UsageError
from ncdiag.model.topology import (
    Adapter,
    Cpu,
    Gpu,
    GpuLink,
    GpuLinkKind,
    GpuMatrix,
    IbFabric,
    IbNode,
    IbNodeKind,
    IbPort,
    IbPorts,
    MatrixCell,
    NcclTopology,
    PciDevice,
    SlurmSwitch,
    SlurmTopology,
    Topology,
    TopologyFinding,
    TopologySeverity,
)
from ncdiag.read.topology.read_topology import read_topology
from ncdiag.report.topology import picture, picture_nccl
from ncdiag.report.topology.drawing import ALARM

EXAMPLES = Path(__file__).parents[2] / "examples" / "topology"
HOSTILE = "\x1b]0;--><script>&x;\u202e$\\frac{1}{2}$ é 図"
SVG = "{http://www.w3.org/2000/svg}"


def read(name: str) -> NcclTopology:
    topology = read_topology((EXAMPLES / name).read_bytes())
    assert isinstance(topology, NcclTopology)
    return topology


def topologies(name: str) -> list[Topology]:
    pci = (
        PciDevice(cpu=0, busid=name, pci_class=0x060400),
        PciDevice(cpu=0, parent=0, busid=f"{name}1", pci_class=0x030200),
        PciDevice(cpu=0, parent=0, busid=f"{name}2", pci_class=0x020000),
    )
    links = (GpuLink(GpuLinkKind.NVLINK, name, 4, 0x068000),)
    nccl = NcclTopology(
        (Cpu(numa=0, vendor=name), Cpu(numa=None)),
        pci,
        (Gpu(pci=1, links=links),),
        tuple(Adapter(name=f"{name}{port}", cpu=0, pci=2, port=port) for port in range(4)),
    )
    switch = IbNode(IbNodeKind.SWITCH, name, name, (IbPort(1, "b", 1), IbPort(2, "c", 1)))
    other = IbNode(IbNodeKind.SWITCH, "b", name, (IbPort(1, name, 1),))
    host = IbNode(IbNodeKind.CA, "c", name, (IbPort(1, name, 2),))
    return [
        nccl,
        GpuMatrix((name,), ("n",), (MatrixCell(name, "n", name),)),
        IbFabric((switch, other, host)),
        SlurmTopology("tree", (SlurmSwitch(name, ("leaf",)), SlurmSwitch("leaf", (), (name,)))),
    ]


@pytest.mark.parametrize("topology", topologies(HOSTILE), ids=lambda one: one.kind.value)
def test_hostile_text_stays_text(topology: Topology) -> None:
    findings = (TopologyFinding("x", TopologySeverity.INFO, HOSTILE, HOSTILE),)
    drawn = picture.render(HOSTILE, topology, findings, "svg")
    tags = {element.tag for element in ET.fromstring(drawn).iter()}  # noqa: S314 - our own picture
    assert f"{SVG}script" not in tags
    assert b"\x1b" not in drawn
    assert picture.render(HOSTILE, topology, (), "png").startswith(b"\x89PNG")


@pytest.mark.parametrize(
    "topology",
    [
        NcclTopology((), (), (), ()),
        NcclTopology((Cpu(numa=0),), (), (), ()),
        GpuMatrix((), (), ()),
        IbFabric(()),
        SlurmTopology("tree", ()),
        SlurmTopology("tree", (SlurmSwitch("a", ("b",)), SlurmSwitch("b", ("a",)))),
    ],
)
def test_what_is_empty_or_circular_is_drawn(topology: Topology) -> None:
    assert b"</svg>" in picture.render("x", topology, (), "svg")


def test_what_is_wrong_is_ringed() -> None:
    topology = read("gpu02.xml")
    canvas = picture_nccl.draw(topology, frozenset(one.where for one in check(topology)))
    ringed = {box.lines[0] for box in canvas.boxes if box.alarm}
    assert ringed == {"GPU 3", "mlx5_2", "mlx5_5"}
    assert [line.label for line in canvas.lines if line.colour == ALARM] == ["14: 288.4 GB/s"]
    healthy = picture_nccl.draw(read("gpu01.xml"), frozenset())
    assert not any(box.alarm for box in healthy.boxes)
    assert not any(line.colour == ALARM for line in healthy.lines)


def test_no_two_devices_lie_on_each_other() -> None:
    canvas = picture_nccl.draw(read("gpu01.xml"), frozenset())
    places = [(box.x, box.y) for box in canvas.boxes]
    assert len(set(places)) == len(places) == 2 + 4 + 16 + 1
    narrow = [
        (one, other)
        for one in canvas.boxes
        for other in canvas.boxes
        if one is not other
        and abs(one.x - other.x) < (one.width + other.width) / 2
        and abs(one.y - other.y) < (one.height + other.height) / 2
    ]
    assert narrow == []


def test_a_picture_that_nobody_could_open_is_refused() -> None:
    switches = tuple(
        IbNode(IbNodeKind.SWITCH, f"{number}", None, (IbPort(1, "h", number),))
        for number in range(400)
    )
    fabric = IbFabric((*switches, IbNode(IbNodeKind.CA, "h", "node", ())))
    with pytest.raises(UsageError, match="too much for one picture"):
        picture.render("x", fabric, (), "png")
    with pytest.raises(UsageError, match="there is no picture of InfiniBand ports"):
        picture.render("x", IbPorts(()), (), "png")


def test_the_command_writes_both(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    svg, png = tmp_path / "a.svg", tmp_path / "b.png"
    arguments = ["topo", "show", str(EXAMPLES / "gpu02.xml"), "--svg", str(svg), "--png", str(png)]
    assert main.run(arguments) == 0
    assert ET.fromstring(svg.read_bytes()).tag == f"{SVG}svg"  # noqa: S314 - our own picture
    assert png.read_bytes().startswith(b"\x89PNG")
    first = svg.read_bytes()
    assert main.run([*arguments, "--force"]) == 0
    assert svg.read_bytes() == first
    assert main.run(arguments) == 2
    assert "is already there; name another file, or add --force" in capfd.readouterr().err
