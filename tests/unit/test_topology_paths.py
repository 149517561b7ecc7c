from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ncdiag.expect.gpu_links import (
    NVLINK_GENERATIONS,
    link_gb_per_s,
    nvlink_gb_per_s,
    nvlink_generation,
    to_switch,
)
from ncdiag.expect.nccl_links import (
    between_cpus_gb_per_s,
    pcie_gb_per_s,
    pcie_gb_per_s_as_nccl,
)
from ncdiag.expect.paths import (
    Path,
    PathType,
    gpu_adapter_path,
    gpu_pair_path,
    nearest_adapters,
)
from ncdiag.model.topology import (
    Adapter,
    Cpu,
    Gpu,
    GpuLink,
    GpuLinkKind,
    NcclTopology,
    PciDevice,
)
from ncdiag.read.topology.read_topology import read_topology

XEON = Cpu(numa=0, arch="x86_64", vendor="GenuineIntel", family_id=6, model_id=0x8F)
GRACE = Cpu(numa=0, arch="arm64")
HIDDEN = "fffffff:ffff:ff"
NVL, NVB, PIX, PXB = PathType.NVL, PathType.NVB, PathType.PIX, PathType.PXB
PXN, PHB, SYS, P2C = PathType.PXN, PathType.PHB, PathType.SYS, PathType.P2C


class Machine:
    """Puts a topology together, device by device."""

    def __init__(self, *cpus: Cpu) -> None:
        self.cpus = list(cpus or (XEON,))
        self.pci: list[PciDevice] = []
        self.gpus: list[Gpu] = []
        self.adapters: list[Adapter] = []
        self.peers: list[tuple[int, str]] = []

    def device(
        self, pci_class: int, parent: int | None = None, cpu: int = 0, speed: float = 32.0
    ) -> int:
        place = len(self.pci)
        self.pci.append(
            PciDevice(
                cpu=cpu,
                parent=parent,
                busid=f"0000:{place:02x}:00.0",
                pci_class=pci_class,
                link_speed=f"{speed} GT/s PCIe",
                gigatransfers_per_s=speed,
                lanes=16,
            )
        )
        return place

    def switch(self, parent: int | None = None, cpu: int = 0, speed: float = 32.0) -> int:
        return self.device(0x060400, parent, cpu, speed)

    def gpu(
        self, parent: int | None = None, cpu: int = 0, sm: str = "90", *, switched: int = 0
    ) -> Gpu:
        pci = self.device(0x030200, parent, cpu)
        links = (GpuLink(GpuLinkKind.NVLINK, HIDDEN, switched, 0x068000),) if switched else ()
        gpu = Gpu(pci=pci, index=len(self.gpus), rank=len(self.gpus), sm=sm, gdr=True, links=links)
        self.gpus.append(gpu)
        return gpu

    def adapter(
        self, parent: int | None = None, cpu: int = 0, speed: float | None = 400.0
    ) -> Adapter:
        pci = self.device(0x020700, parent, cpu)
        adapter = Adapter(
            name=f"mlx5_{len(self.adapters)}",
            cpu=cpu,
            pci=pci,
            index=len(self.adapters),
            speed_gbit_per_s=speed,
            gdr=True,
        )
        self.adapters.append(adapter)
        return adapter

    def link(self, first: int, second: int, count: int) -> None:
        for one, other in ((first, second), (second, first)):
            row = GpuLink(GpuLinkKind.NVLINK, self.pci[self.gpus[other].pci].busid, count, 0x030200)
            self.gpus[one] = replace(self.gpus[one], links=(*self.gpus[one].links, row))

    def topology(self) -> NcclTopology:
        return NcclTopology(
            tuple(self.cpus),
            tuple(self.pci),
            tuple(self.gpus),
            tuple(self.adapters),
            tuple(self.peers),
        )


def test_switches_between_gpu_and_adapter_are_counted_one_by_one() -> None:
    machine = Machine(XEON, replace(XEON, numa=1))
    outer = machine.switch()
    inner = machine.switch(outer, speed=16.0)
    gpu = machine.gpu(inner)
    beside, above, on_cpu = machine.adapter(inner), machine.adapter(outer), machine.adapter()
    far = machine.adapter(machine.switch(cpu=1), cpu=1)
    socket = Adapter(name="eth0", cpu=1, speed_gbit_per_s=10.0)
    machine.adapters.append(socket)
    topology = machine.topology()

    def to(adapter: Adapter) -> tuple[PathType, float | None, tuple[str, ...]]:
        path = gpu_adapter_path(topology, gpu, adapter)
        return path.type, path.gb_per_s, path.via

    assert to(beside) == (PIX, 48.0, ("0000:01:00.0",))
    assert to(above) == (PXB, 24.0, ("0000:01:00.0", "0000:00:00.0"))
    assert to(on_cpu) == (PHB, 24.0, ("0000:01:00.0", "0000:00:00.0", "CPU 0"))
    assert to(far) == (
        SYS,
        22.0,
        ("0000:01:00.0", "0000:00:00.0", "CPU 0", "CPU 1", "0000:06:00.0"),
    )
    assert to(socket)[:2] == (SYS, 22.0)
    assert nearest_adapters(topology, gpu) == (PIX, (beside,))


def test_equally_near_adapters_are_all_nearest_and_none_is_none() -> None:
    machine = Machine()
    gpu = machine.gpu()
    assert nearest_adapters(machine.topology(), gpu) == (None, ())
    adapters = (machine.adapter(), machine.adapter())
    for as_nccl in (False, True):
        nearest = nearest_adapters(machine.topology(), gpu, as_nccl=as_nccl)
        assert nearest == (PHB, adapters)


def test_what_the_file_does_not_say_is_no_bandwidth() -> None:
    topology = NcclTopology(
        cpus=(Cpu(numa=None),),
        pci=(PciDevice(cpu=0), PciDevice(cpu=0, lanes=16)),
        gpus=(Gpu(pci=0),),
        adapters=(Adapter(name=None, cpu=0, pci=1, has_element=False),),
    )
    (gpu,), (adapter,) = topology.gpus, topology.adapters
    assert gpu_adapter_path(topology, gpu, adapter) == Path(PHB, None, ("CPU 0",))
    # NCCL takes generation 3 with 16 lanes then.
    assert gpu_adapter_path(topology, gpu, adapter, as_nccl=True).gb_per_s == 12.0


def test_pairs_by_nvlink_count_their_links() -> None:
    machine = Machine(XEON, replace(XEON, numa=1))
    for number in range(4):
        machine.gpu(cpu=number // 2, sm="70")
    machine.link(0, 1, 2)
    machine.link(1, 2, 1)
    topology = machine.topology()
    first, second, third, fourth = topology.gpus
    assert gpu_pair_path(topology, first, second) == Path(NVL, 40.0)
    assert gpu_pair_path(topology, second, third) == Path(NVL, 20.0)
    assert gpu_pair_path(topology, first, third).type is SYS
    assert gpu_pair_path(topology, first, first) == Path(PathType.LOC, 5000.0)
    relayed = gpu_pair_path(topology, first, third, as_nccl=True)
    assert relayed == Path(NVB, 20.0, ("0000:01:00.0",))
    assert gpu_pair_path(topology, first, fourth, as_nccl=True) == Path(
        SYS, 22.0, ("CPU 0", "CPU 1")
    )


def test_a_link_told_by_one_end_only_is_still_a_link() -> None:
    machine = Machine()
    first, second = machine.gpu(), machine.gpu()
    row = GpuLink(GpuLinkKind.NVLINK, "0000:01:00.0", 3, 0x030200)
    machine.gpus[0] = replace(first, links=(row,))
    topology = machine.topology()
    assert gpu_pair_path(topology, second, topology.gpus[0]) == Path(NVL, pytest.approx(61.8))


@pytest.mark.parametrize("as_nccl", [False, True])
def test_gpus_behind_switches_reach_each_other_with_the_lesser_of_both(*, as_nccl: bool) -> None:
    machine = Machine()
    whole, lame, out = machine.gpu(switched=18), machine.gpu(switched=12), machine.gpu()
    topology = machine.topology()
    path = gpu_pair_path(topology, whole, lame, as_nccl=as_nccl)
    assert path == Path(NVL, 247.2, ("NVSwitch",))
    assert gpu_pair_path(topology, whole, out, as_nccl=as_nccl).type is PHB


@pytest.mark.parametrize("as_nccl", [False, True])
def test_gpus_of_two_hosts_are_joined_by_switches_or_by_the_network(*, as_nccl: bool) -> None:
    machine = Machine(replace(GRACE, host_hash="0x1"), replace(GRACE, host_hash="0x2"))
    first, second = machine.gpu(sm="100", switched=18), machine.gpu(cpu=1, sm="100", switched=18)
    alone = machine.gpu(cpu=1, sm="100")
    adapter = machine.adapter(cpu=1)
    topology = machine.topology()
    assert gpu_pair_path(topology, first, second, as_nccl=as_nccl) == Path(
        NVL, 721.8, ("NVSwitch",)
    )
    assert gpu_pair_path(topology, first, alone, as_nccl=as_nccl).type is PathType.NET
    assert gpu_adapter_path(topology, first, adapter, as_nccl=as_nccl).type is PathType.NET
    assert nearest_adapters(topology, first, as_nccl=as_nccl) == (None, ())
    assert nearest_adapters(topology, alone, as_nccl=as_nccl)[0] is PHB


def test_the_same_bus_id_on_another_host_is_another_gpu() -> None:
    machine = Machine(replace(XEON, host_hash="0x1"), replace(XEON, host_hash="0x2"))
    machine.gpu()
    machine.gpu()
    machine.gpu(cpu=1)
    machine.link(0, 1, 4)
    machine.pci[2] = replace(machine.pci[2], busid=machine.pci[1].busid)
    topology = machine.topology()
    first, second, other = topology.gpus
    for as_nccl in (False, True):
        assert gpu_pair_path(topology, first, second, as_nccl=as_nccl).type is NVL
        assert gpu_pair_path(topology, first, other, as_nccl=as_nccl).type is PathType.NET


def test_nccl_counts_the_port_and_takes_the_gpu_beside_it_as_a_relay() -> None:
    machine = Machine(XEON, replace(XEON, numa=1))
    switches = [machine.switch(cpu=cpu) for cpu in (0, 1)]
    gpus = [machine.gpu(switches[cpu], cpu, switched=18) for cpu in (0, 1)]
    adapters = [machine.adapter(switches[cpu], cpu, speed=200.0) for cpu in (0, 1)]
    topology = machine.topology()
    own = gpu_adapter_path(topology, gpus[0], adapters[0], as_nccl=True)
    assert own == Path(PIX, 25.0, ("0000:00:00.0",))
    other = gpu_adapter_path(topology, gpus[0], adapters[1], as_nccl=True)
    assert other == Path(PXN, 25.0, ("NVSwitch", "0000:03:00.0", "0000:01:00.0"))
    assert gpu_adapter_path(topology, gpus[0], adapters[1]).type is SYS
    assert nearest_adapters(topology, gpus[0], as_nccl=True) == (PIX, (adapters[0],))


@pytest.mark.parametrize("which", ["gpu", "adapter"])
def test_without_gpudirect_the_path_goes_through_the_cpu_and_nobody_relays(which: str) -> None:
    machine = Machine()
    switches = [machine.switch(), machine.switch()]
    for switch in switches:
        machine.gpu(switch, switched=18)
        machine.adapter(switch)
    if which == "gpu":
        machine.gpus[0] = replace(machine.gpus[0], gdr=False)
    else:
        machine.adapters[0] = replace(machine.adapters[0], gdr=False)
    topology = machine.topology()
    path = gpu_adapter_path(topology, topology.gpus[0], topology.adapters[0], as_nccl=True)
    assert path.type is PHB
    relayed = gpu_adapter_path(topology, topology.gpus[1], topology.adapters[0], as_nccl=True)
    assert relayed.type is PHB
    assert gpu_adapter_path(topology, topology.gpus[0], topology.adapters[0]).type is PIX


def test_chip_to_chip_and_then_pcie_is_a_kind_of_its_own() -> None:
    machine = Machine(GRACE, replace(GRACE, numa=1))
    for cpu in (0, 1):
        gpu = machine.gpu(cpu=cpu, sm="100", switched=18)
        machine.gpus[cpu] = replace(gpu, c2c_gb_per_s=450.0)
        machine.adapter(cpu=cpu)
    topology = machine.topology()
    gpu, (near, far) = topology.gpus[0], topology.adapters
    assert gpu_adapter_path(topology, gpu, near).type is PHB
    assert gpu_adapter_path(topology, gpu, near, as_nccl=True).type is P2C
    relayed = gpu_adapter_path(topology, gpu, far, as_nccl=True)
    assert relayed.type is PXN
    assert relayed.gb_per_s == 48.0


def broadcom(device: PciDevice, subsystem: str) -> PciDevice:
    return replace(
        device,
        vendor="0x1000",
        device="0xc030",
        subsystem_vendor="0x1000",
        subsystem_device=subsystem,
    )


def test_the_two_levels_of_one_switch_are_one_to_nccl() -> None:
    machine = Machine()
    upper = machine.switch()
    lower = machine.switch(upper)
    other = machine.switch(upper)
    gpu, beside, across = machine.gpu(lower), machine.adapter(upper), machine.adapter(other)
    machine.pci[upper] = broadcom(machine.pci[upper], "0x0100")
    machine.pci[lower] = broadcom(machine.pci[lower], "0x1003")
    topology = machine.topology()
    assert gpu_adapter_path(topology, gpu, beside).type is PXB
    assert gpu_adapter_path(topology, gpu, beside, as_nccl=True).type is PIX
    assert gpu_adapter_path(topology, gpu, across, as_nccl=True).type is PXB


def test_peer_links_of_switches_spare_the_way_through_the_cpu() -> None:
    machine = Machine()
    one, other = machine.switch(), machine.switch()
    gpu, adapter = machine.gpu(one), machine.adapter(other)
    machine.peers = [(one, "0000:01:00.0"), (other, "0000:00:00.0"), (one, "0000:77:00.0")]
    topology = machine.topology()
    assert gpu_adapter_path(topology, gpu, adapter).type is PHB
    assert gpu_adapter_path(topology, gpu, adapter, as_nccl=True).type is PXB


def test_xgmi_counts_as_nvlink_with_its_own_rate() -> None:
    machine = Machine()
    for _ in range(2):
        machine.gpu(sm="228")
    for one, other in ((0, 1), (1, 0)):
        row = GpuLink(GpuLinkKind.XGMI, machine.pci[other].busid, 1, 0x120000)
        machine.gpus[one] = replace(machine.gpus[one], gcn="942", links=(row,))
    topology = machine.topology()
    for as_nccl in (False, True):
        path = gpu_pair_path(topology, *topology.gpus, as_nccl=as_nccl)
        assert path == Path(NVL, 48.0)
    assert nvlink_gb_per_s(topology.gpus[0]) is None


@pytest.mark.parametrize(
    ("sm", "links", "gb_per_s"),
    [("70", 6, 120.0), ("80", 12, 240.0), ("86", 4, 48.0), ("90", 18, 370.8), ("103", 18, 721.8)],
)
def test_nvlink_counts_for_what_nccl_takes_it(sm: str, links: int, gb_per_s: float) -> None:
    row = GpuLink(GpuLinkKind.NVLINK, HIDDEN, links, None)
    assert to_switch(row)
    assert nvlink_gb_per_s(Gpu(pci=0, sm=sm, links=(row,))) == gb_per_s
    assert nvlink_gb_per_s(Gpu(pci=0, sm=sm)) == 0.0


def test_nvlink_is_unknown_where_the_part_is() -> None:
    for sm in (None, "", "52", "gfx90a", "x", "99999"):
        assert nvlink_generation(Gpu(pci=0, sm=sm)) is None
        assert nvlink_gb_per_s(Gpu(pci=0, sm=sm)) is None
    assert link_gb_per_s(Gpu(pci=0, sm="gfx90a"), GpuLinkKind.XGMI) == 36.0
    assert link_gb_per_s(Gpu(pci=0, sm="120", gcn="908"), GpuLinkKind.XGMI) == 24.0
    assert [one.sm for one in NVLINK_GENERATIONS] == sorted(one.sm for one in NVLINK_GENERATIONS)


@pytest.mark.parametrize(
    ("speed", "rate", "lanes", "dumped", "nccl"),
    [
        ("16.0 GT/s PCIe", 16.0, 16, 24.0, 24.0),
        ("16 GT/s", 16.0, 8, 12.0, 12.0),
        ("32.0 GT/s PCIe", 32.0, 0, 48.0, 48.0),
        ("16.0 GT/s", 16.0, 16, 24.0, 12.0),
        ("2.5 GT/s PCIe", 2.5, 1, 0.1875, 0.1875),
        ("64.0 GT/s PCIe", 64.0, 16, 96.0, 96.0),
        ("Unknown", None, 16, None, 12.0),
        ("", None, None, None, 12.0),
        (None, 32.0, 16, 48.0, 48.0),
        ("7 GT/s", 7.0, 16, None, 12.0),
    ],
)
def test_pcie_counts_by_lanes_and_generation(
    speed: str | None, rate: float | None, lanes: int | None, dumped: float | None, nccl: float
) -> None:
    device = PciDevice(cpu=0, link_speed=speed, gigatransfers_per_s=rate, lanes=lanes)
    assert pcie_gb_per_s(device) == dumped
    assert pcie_gb_per_s_as_nccl(device) == nccl


def test_between_cpus_the_model_tells() -> None:
    rates = [between_cpus_gb_per_s(replace(XEON, model_id=model)) for model in (207, 143, 106, 79)]
    assert rates == [40.0, 22.0, 10.0, 6.0]
    assert between_cpus_gb_per_s(replace(XEON, vendor="AuthenticAMD")) == 16.0
    assert between_cpus_gb_per_s(GRACE) == 6.0
    assert between_cpus_gb_per_s(Cpu(numa=0, arch="ppc64")) == 32.0
    assert between_cpus_gb_per_s(Cpu(numa=0, vendor="  Shanghai  ")) == 6.0
    assert between_cpus_gb_per_s(Cpu(numa=0)) is None


def test_a_rack_of_72_is_one_nvlink_domain() -> None:
    cpus = [replace(GRACE, numa=cpu % 2, host_hash=f"0x{cpu // 2}") for cpu in range(36)]
    machine = Machine(*cpus)
    for cpu in range(36):
        for _ in range(2):
            gpu = machine.gpu(cpu=cpu, sm="100", switched=18)
            machine.gpus[-1] = replace(gpu, c2c_gb_per_s=450.0)
            machine.adapter(machine.switch(cpu=cpu), cpu=cpu)
    topology = machine.topology()
    for as_nccl in (False, True):
        pairs = {
            gpu_pair_path(topology, first, second, as_nccl=as_nccl).type
            for first in topology.gpus
            for second in topology.gpus
            if first is not second
        }
        assert pairs == {NVL}
        kinds = [nearest_adapters(topology, gpu, as_nccl=as_nccl) for gpu in topology.gpus]
        assert {kind for kind, _ in kinds} == {P2C if as_nccl else PHB}
        assert {len(adapters) for _, adapters in kinds} == {2}


def test_a_gpu_below_another_is_odd_and_still_has_paths() -> None:
    machine = Machine()
    first = machine.gpu()
    second = machine.gpu(first.pci)
    adapter = machine.adapter()
    topology = machine.topology()
    assert gpu_pair_path(topology, first, second).type is PIX
    assert gpu_adapter_path(topology, second, adapter).type is PHB
    assert gpu_adapter_path(topology, second, adapter, as_nccl=True).type is PathType.NET


@st.composite
def topologies(draw: st.DrawFn) -> NcclTopology:
    machine = Machine(
        *(
            replace(XEON, numa=numa, host_hash=draw(st.sampled_from(["0x1", "0x1", "0x2"])))
            for numa in range(draw(st.integers(1, 3)))
        )
    )
    for place in range(draw(st.integers(1, 12))):
        above = [pci for pci in range(place) if machine.pci[pci].pci_class in {0x060400, 0x010802}]
        parent = draw(st.sampled_from([None, *above]))
        cpu = machine.pci[parent].cpu if parent is not None else None
        if cpu is None:
            cpu = draw(st.integers(0, len(machine.cpus) - 1))
        match draw(st.sampled_from(["switch", "gpu", "adapter", "odd"])):
            case "switch":
                machine.switch(parent, cpu)
            case "gpu":
                machine.gpu(parent, cpu, switched=draw(st.sampled_from([0, 0, 18])))
            case "adapter":
                machine.adapter(parent, cpu, speed=draw(st.sampled_from([None, -1.0, 100.0])))
            case _:
                machine.device(0x010802, parent, cpu)
    if len(machine.gpus) > 1:
        for _ in range(draw(st.integers(0, 3))):
            first, second = draw(st.permutations(range(len(machine.gpus))))[:2]
            machine.link(first, second, draw(st.integers(1, 4)))
    return machine.topology()


@settings(max_examples=100)
@given(topologies())
def test_every_pair_has_a_path_whatever_the_tree(topology: NcclTopology) -> None:
    for first in topology.gpus:
        for second in topology.gpus:
            there = gpu_pair_path(topology, first, second)
            back = gpu_pair_path(topology, second, first)
            assert there.type is back.type
            seen = gpu_pair_path(topology, first, second, as_nccl=True)
            if there.type is NVL:
                assert seen.type <= NVL
            same_host = (
                topology.cpus[topology.pci[first.pci].cpu].host_hash
                == topology.cpus[topology.pci[second.pci].cpu].host_hash
            )
            assert (there.type < PathType.NET) == (same_host or there.type is NVL)
            assert (seen.type < PathType.NET) == (same_host or seen.type is NVL)
        for as_nccl in (False, True):
            nearest, adapters = nearest_adapters(topology, first, as_nccl=as_nccl)
            assert (nearest is None) == (not adapters)
            for adapter in topology.adapters:
                kind = gpu_adapter_path(topology, first, adapter, as_nccl=as_nccl).type
                assert kind >= PathType.NET or (nearest is not None and kind >= nearest)


def test_a_port_that_is_part_of_a_virtual_one_is_not_counted_beside_it() -> None:
    net = '<net name="{name}" dev="{dev}" speed="200000" port="1" gdr="1" net="{used}"/>'
    nets = "".join(
        net.format(name=name, dev=dev, used=used)
        for dev, (name, used) in enumerate((("mlx5_0", 0), ("mlx5_1", 0), ("mlx5_0+mlx5_1", 1)))
    )
    topology = read_topology(
        '<system><cpu numaid="0"><pci busid="0000:10:00.0" class="0x060400">'
        '<pci busid="0000:11:00.0" class="0x030200"><gpu dev="0" sm="90" gdr="1"/></pci>'
        f'<pci busid="0000:12:00.0" class="0x020700"><nic>{nets}</nic></pci>'
        "</pci></cpu></system>".encode()
    )
    assert isinstance(topology, NcclTopology)
    (gpu,) = topology.gpus
    assert len(nearest_adapters(topology, gpu)[1]) == 3
    kind, adapters = nearest_adapters(topology, gpu, as_nccl=True)
    assert kind is PathType.PIX
    assert [one.name for one in adapters] == ["mlx5_0+mlx5_1"]
