import re
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ncdiag.model.topology import (
    Adapter,
    GpuLinkKind,
    NcclTopology,
    NotATopologyError,
    TruncatedTopologyError,
)
from ncdiag.read.topology import xml_elements
from ncdiag.read.topology.read_topology import read_topology

HGX = """
<!-- two boards of a made-up machine -->
<system version="1">
  <cpu host_hash="0xfeed" numaid="0" affinity="ffff" arch="x86_64" vendor="GenuineIntel"
       familyid="6" modelid="143">
    <pci busid="0000:10:00.0" class="0x060400" vendor="0x1000" device="0xc030"
         subsystem_vendor="0x1000" subsystem_device="0x0102" link_speed="32.0 GT/s PCIe"
         link_width="16">
      <pcilink target="0000:30:00.0"/>
      <pci busid="0000:12:00.0" class="0x030200" vendor="0x10de" device="0x2330"
           link_speed="32.0 GT/s PCIe" link_width="16">
        <gpu dev="0" sm="90" rank="4" gdr="1">
          <nvlink target="0000:a1:00.0" count="5" tclass="0x068000"/>
          <nvlink target="0000:a2:00.0" count="4" tclass="0x068000"/>
          <c2c bw="50000" count="9"/>
        </gpu>
      </pci>
      <pci busid="0000:14:00.0" class="0x020700" link_speed="16 GT/s" link_width="8">
        <nic>
          <net name="mlx5_0" dev="3" latency="0.5" speed="400000" port="1" guid="0xabc"
               maxconn="128" gdr="0"/>
        </nic>
      </pci>
    </pci>
    <nic><net name="eth0" dev="4" speed="-1" port="0" guid="0x0" gdr="0"/></nic>
  </cpu>
</system>
"""

XGMI = """<system version="2">
  <cpu numaid="-1" arch="x86_64" vendor="AuthenticAMD" familyid="175" modelid="1">
    <pci busid="0000:C1:00.0" class="0x120000" link_speed="" link_width="0">
      <gpu dev="0" sm="228" gcn="942" arch="38911" rank="0" gdr="1">
        <xgmi target="0000:C6:00.0" count="1" tclass="0x120000"/>
      </gpu>
    </pci>
    <pci busid="0000:C6:00.0" class="0x120000" link_speed="Unknown">
      <gpu dev="" sm="" rank="x"/>
    </pci>
  </cpu>
</system>"""

BY_CLASS = """<system version="1"><cpu numaid="1">
  <pci busid="ffff:ff:01.0" class="0x060400" link_speed="32 GT/s" link_width="16">
    <pci busid="0001:00:00.0" class="0x030200" link_speed="32 GT/s" link_width="16"/>
    <pci busid="0101:00:00.0" class="0x020700" link_speed="32 GT/s" link_width="16"><nic/></pci>
  </pci></cpu></system>"""

LSTOPO = """<?xml version="1.0" encoding="UTF-8"?>
<!DOCTYPE topology SYSTEM "hwloc2.dtd">
<topology version="2.0"><object type="Machine" os_index="0">
  <object type="Package" os_index="0">
    <object type="NUMANode" os_index="3" cpuset="0x0000000f"><page_type size="4096" count="1"/>
    </object>
    <object type="Bridge" bridge_type="0-1" bridge_pci="0000:[00-0f]">
      <object type="Bridge" bridge_type="1-1" pci_busid="0000:01:00.0"
              pci_type="0604 [1000:c010] [0000:0000] b0" pci_link_speed="15.75">
        <object type="PCIDev" pci_busid="0000:02:00.0"
                pci_type="0302 [10de:20b0] [10de:134f] a1" pci_link_speed="15.75">
          <object type="OSDev" name="nvml6" osdev_type="1"/>
        </object>
        <object type="PCIDev" pci_busid="0000:03:00.0"
                pci_type="0207 [15b3:101b] [15b3:0007] 00" pci_link_speed="15.75">
          <object type="OSDev" name="ib5" osdev_type="2"/>
          <object type="OSDev" name="mlx5_7" osdev_type="3"/>
        </object>
        <object type="PCIDev" pci_busid="0000:04:00.0" pci_type="0300 [1a03:2000] [1a03:2000] 41"/>
      </object>
    </object>
  </object>
</object></topology>"""


def nccl(text: str) -> NcclTopology:
    topology = read_topology(text.encode())
    assert isinstance(topology, NcclTopology)
    return topology


def test_a_dump_says_what_each_device_is() -> None:
    topology = nccl(HGX)
    (cpu,) = topology.cpus
    assert (cpu.numa, cpu.vendor, cpu.model_id, cpu.host_hash) == (0, "GenuineIntel", 143, "0xfeed")
    switch, gpu_pci, nic_pci = topology.pci
    assert switch.pci_class == 0x060400
    assert switch.subsystem_device == "0x0102"
    assert (gpu_pci.parent, gpu_pci.gigatransfers_per_s, gpu_pci.lanes) == (0, 32.0, 16)
    assert (nic_pci.link_speed, nic_pci.gigatransfers_per_s, nic_pci.lanes) == ("16 GT/s", 16.0, 8)
    (gpu,) = topology.gpus
    assert (gpu.index, gpu.sm, gpu.rank, gpu.gdr, gpu.has_element) == (0, "90", 4, True, True)
    assert topology.busid(gpu) == "0000:12:00.0"
    assert [(link.kind, link.target, link.count) for link in gpu.links] == [
        (GpuLinkKind.NVLINK, "0000:a1:00.0", 5),
        (GpuLinkKind.NVLINK, "0000:a2:00.0", 4),
    ]
    assert gpu.c2c_gb_per_s == 450.0
    assert topology.pci_peer_links == ((0, "0000:30:00.0"),)


def test_adapters_keep_their_place_and_their_odd_speeds() -> None:
    infiniband, ethernet = nccl(HGX).adapters
    assert infiniband == Adapter(
        name="mlx5_0",
        cpu=0,
        pci=2,
        index=3,
        speed_gbit_per_s=400.0,
        port=1,
        guid="0xabc",
        gdr=False,
        latency_us=0.5,
        max_connections=128,
    )
    assert (ethernet.name, ethernet.pci, ethernet.speed_gbit_per_s) == ("eth0", None, -0.001)


def test_rccl_dumps_name_xgmi_and_leave_things_out() -> None:
    topology = nccl(XGMI)
    assert topology.version == "2"
    assert topology.cpus[0].numa == -1
    first, second = topology.gpus
    assert (first.gcn, first.sm, first.links[0].kind) == ("942", "228", GpuLinkKind.XGMI)
    assert topology.busid(first) == "0000:c1:00.0"
    assert first.links[0].target == topology.busid(second)
    assert (second.index, second.sm, second.rank, second.gdr) == (None, None, None, None)
    assert (topology.pci[0].link_speed, topology.pci[0].lanes) == ("", 0)
    assert (topology.pci[1].gigatransfers_per_s, topology.pci[1].lanes) == (None, None)


def test_without_elements_the_pci_classes_tell() -> None:
    topology = nccl(BY_CLASS)
    assert [(one.pci, one.has_element) for one in topology.gpus] == [(1, False)]
    assert [(one.pci, one.name, one.has_element) for one in topology.adapters] == [(2, None, False)]


def test_where_there_are_elements_a_class_alone_is_no_gpu() -> None:
    topology = nccl(
        '<system><cpu><pci busid="01:00.0" class="0x030000"/>'
        '<pci busid="02:00.0" class="0x030200"><gpu dev="0"/></pci></cpu></system>'
    )
    assert [topology.busid(gpu) for gpu in topology.gpus] == ["0000:02:00.0"]


def test_several_hosts_and_the_same_adapter_twice_are_all_kept() -> None:
    cpus = "".join(
        f'<cpu numaid="0" host_hash="0x{host}"><nic><net name="eth0" dev="0"/></nic></cpu>'
        for host in range(3)
    )
    topology = nccl(f"<system>{cpus}</system>")
    assert [cpu.host_hash for cpu in topology.cpus] == ["0x0", "0x1", "0x2"]
    assert [(one.name, one.cpu) for one in topology.adapters] == [
        ("eth0", 0),
        ("eth0", 1),
        ("eth0", 2),
    ]


def test_devices_outside_of_a_cpu_get_one_of_which_nothing_is_known() -> None:
    topology = nccl('<system><pci busid="1"><gpu dev="1"/></pci><gpu dev="2"/></system>')
    assert [cpu.numa for cpu in topology.cpus] == [None]
    assert [gpu.index for gpu in topology.gpus] == [1, 2]
    assert {device.cpu for device in topology.pci} == {0}


@pytest.mark.parametrize(
    ("busid", "kept"),
    [
        ("00000000:1B:00.0", "0000:1b:00.0"),
        ("1b:00.0", "0000:1b:00.0"),
        ("00010000:1b:00.0", "10000:1b:00.0"),
        ("fffffff:ffff:ff", "fffffff:ffff:ff"),
        ("fffffff:FF:ff.0", "fffffff:ff:ff.0"),
        ("", None),
    ],
)
def test_bus_ids_are_spelled_one_way(busid: str, kept: str | None) -> None:
    pci = nccl(f'<system><cpu><pci busid="{busid}"/></cpu></system>').pci
    assert pci[0].busid == kept


@pytest.mark.parametrize(
    "text",
    [
        'node7$ cat topo.xml\n<system><cpu numaid="5"/></system>',
        '<system><cpu numaid="5"/></system>\nnode7$ exit <br>',
        '\n\n<?xml version="1.0" encoding="ISO-8859-1"?><system><cpu numaid="5"/></system>',
        '<system><cpu numaid="5" vendor="A&B &other; &lt;"/></system>',
        '<system name="x"><odd><pci/></odd><cpu numaid="5"/><cpu2/></system>',
        '<system>some text<cpu numaid="5"></cpu></system>',
    ],
)
def test_what_nccl_would_take_is_taken(text: str) -> None:
    assert [cpu.numa for cpu in nccl(text).cpus] == [5]


def test_values_that_are_no_numbers_are_unknown() -> None:
    text = (
        '<system><cpu numaid="99999999999999999999999" modelid="0x8f" familyid="06">'
        '<nic><net name="a" speed="inf" latency="nan" dev="1e3" maxconn=" "/></nic>'
        '<pci busid="1" class="bridge"><gpu sm=" "><c2c bw="1e308" count="999999999"/></gpu></pci>'
        "</cpu></system>"
    )
    topology = nccl(text)
    assert (topology.cpus[0].numa, topology.cpus[0].model_id) == (None, 0x8F)
    assert topology.cpus[0].family_id == 6
    (net,) = topology.adapters
    assert (net.speed_gbit_per_s, net.latency_us, net.index, net.max_connections) == (
        None,
        None,
        None,
        None,
    )
    assert (topology.gpus[0].sm, topology.gpus[0].c2c_gb_per_s) == (None, None)
    assert topology.pci[0].pci_class is None


@pytest.mark.parametrize("count", ["-4", "four", "", "4.5", "9" * 40])
def test_a_count_of_links_is_a_number_or_unknown(count: str) -> None:
    rows = f'<nvlink target="a" count="{count}"/><nvlink target="b" count="5"/>'
    (gpu,) = nccl(f'<system><cpu><pci busid="1"><gpu>{rows}</gpu></pci></cpu></system>').gpus
    assert [link.count for link in gpu.links] == [None, 5]


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("<inventory><cpu/></inventory>", "<inventory>"),
        ("<html><body></html>", "a web page"),
        ("<system><cpu></system>", "mismatched tag in line 1"),
        ("<system><memory/></system>", "without a <cpu>"),
        ('<system><cpu numaid="0" numaid="1"/></system>', "duplicate attribute"),
        ("<graphs><ring/></graphs>", "without a <graph>"),
        ("<topology><thing/></topology>", "without an <object>"),
        ("<!-- nothing else -->", "without an element"),
        ("<<<<<<< HEAD\n", "not well-formed"),
        (f"<system><cpu a='{'x' * 70000}'/></system>", "a tag of over 64 KiB"),
        ("<system>" + "<pci>" * 100, "nested deeper than 64"),
        ("<system><cpu>" + "<gpu/>" * 1100 + "</cpu></system>", "1100 GPUs"),
    ],
)
def test_other_xml_is_refused_in_one_line(text: str, told: str) -> None:
    with pytest.raises(NotATopologyError, match=re.escape(told)) as refused:
        read_topology(text.encode())
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize(
    "doctype",
    [
        '<!DOCTYPE system [<!ENTITY a "aaaa"><!ENTITY b "&a;&a;&a;">]>',
        '<!DOCTYPE system [<!ENTITY a SYSTEM "file:///etc/hostname">]>',
        '<!DOCTYPE system SYSTEM "http://192.0.2.1/x.dtd">',
        '<!DOCTYPE topology [<!ENTITY a "aaaa">]>',
        '<!DOCTYPE system [<!ENTITY % p SYSTEM "file:///etc/hostname"> %p;]>',
    ],
)
def test_no_dtd_and_no_entities(doctype: str) -> None:
    with pytest.raises(NotATopologyError, match="with a DTD"):
        read_topology(f'{doctype}<system><cpu numaid="0">&a;&b;</cpu></system>'.encode())


def test_size_and_number_of_elements_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(xml_elements, "MAX_ELEMENTS", 100)
    with pytest.raises(NotATopologyError, match="more than 100 elements"):
        read_topology(b"<system><cpu>" + b"<x/>" * 200)
    monkeypatch.setattr(xml_elements, "MAX_CHARS", 100)
    with pytest.raises(NotATopologyError, match="larger than"):
        read_topology(HGX.encode())


@pytest.mark.parametrize(
    "text",
    [
        HGX[: HGX.index("mlx5_0")],
        HGX[: HGX.index("</system>")],
        "<system>",
        "<system></system>",
        "<system vers",
        "<graphs version='1'>",
        "<graphs/>",
        "<topology/>",
        LSTOPO[:-20],
    ],
)
def test_what_ends_too_early_is_cut_short(text: str) -> None:
    with pytest.raises(TruncatedTopologyError, match="cut short"):
        read_topology(text.encode())


def test_cut_anywhere_there_is_an_answer_or_the_documented_error() -> None:
    whole = HGX.rindex("</system>") + len("</system>")
    for offset in range(len(HGX)):
        data = HGX[:offset].encode()
        if offset >= whole:
            assert isinstance(read_topology(data), NcclTopology)
            continue
        with pytest.raises((NotATopologyError, TruncatedTopologyError)) as refused:
            read_topology(data)
        if offset > HGX.index("<cpu"):
            assert refused.type is TruncatedTopologyError


def test_lstopo_tells_numa_nodes_and_the_pci_tree() -> None:
    topology = nccl(LSTOPO)
    assert [(cpu.numa, cpu.affinity) for cpu in topology.cpus] == [(3, "0x0000000f")]
    assert [device.parent for device in topology.pci] == [None, 0, 0, 0]
    assert topology.pci[0].pci_class == 0x060400
    assert (topology.pci[1].vendor, topology.pci[1].subsystem_device) == ("0x10de", "0x134f")
    assert [(gpu.pci, gpu.index) for gpu in topology.gpus] == [(1, 6)]
    assert [(one.name, one.pci) for one in topology.adapters] == [("mlx5_7", 2)]


def test_lstopo_of_version_1_nests_devices_in_the_numa_node() -> None:
    topology = nccl(
        '<topology><object type="Machine"><object type="NUMANode" os_index="1">'
        '<object type="PCIDev" pci_busid="0000:07:00.0" pci_type="0200 [8086:1572] [0:0] 02">'
        '<object type="OSDev" name="eth9" osdev_type="2"/></object></object>'
        '<object type="PCIDev" pci_busid="0000:08:00.0" pci_type="0302 [10de:1db6] [0:0] a1"/>'
        "</object></topology>"
    )
    assert [cpu.numa for cpu in topology.cpus] == [1, None]
    assert [(one.name, one.cpu) for one in topology.adapters] == [("eth9", 0)]
    assert topology.pci[topology.gpus[0].pci].cpu == 1


NAMES = ("system", "cpu", "pci", "gpu", "nic", "net", "nvlink", "xgmi", "c2c", "pcilink", "odd")
ATTRIBUTES = st.dictionaries(
    st.sampled_from(
        ("busid", "class", "link_speed", "link_width", "count", "target", "tclass", "dev", "sm")
    ),
    st.sampled_from(("", "0", "-1", "0x030200", "0000:01:00.0", "16.0 GT/s PCIe", "1_0", "٣", "x")),
    max_size=4,
)
ELEMENTS = st.recursive(
    st.tuples(st.sampled_from(NAMES), ATTRIBUTES, st.just([])),
    lambda inner: st.tuples(st.sampled_from(NAMES), ATTRIBUTES, st.lists(inner, max_size=4)),
    max_leaves=20,
)


def written(element: Any) -> str:
    name, attributes, children = element
    said = "".join(f' {key}="{value}"' for key, value in attributes.items())
    return f"<{name}{said}>{''.join(map(written, children))}</{name}>"


@settings(max_examples=150)
@given(st.lists(ELEMENTS, max_size=4))
def test_any_nesting_gives_devices_in_order_or_the_documented_error(elements: list[Any]) -> None:
    text = f"<system>{''.join(map(written, elements))}</system>"
    try:
        topology = nccl(text)
    except (NotATopologyError, TruncatedTopologyError):
        # Elements that NCCL does not know are left out with all that they hold.
        assert all(
            name in {"odd", "system", "nvlink", "xgmi", "c2c", "pcilink", "nic"}
            for name, _, _ in elements
        )
        return
    for place, device in enumerate(topology.pci):
        assert device.parent is None or device.parent < place
        assert device.cpu < len(topology.cpus)
    assert all(gpu.pci < len(topology.pci) for gpu in topology.gpus)
    assert text.count("<gpu") >= sum(gpu.has_element for gpu in topology.gpus)
