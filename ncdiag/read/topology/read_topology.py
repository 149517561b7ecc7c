"""Reads any topology dump: what kind it is follows from what is in it, not from a file's name."""

from collections.abc import Callable
from dataclasses import dataclass

from ncdiag.model.topology import NcclGraphs, NcclTopology, NotATopologyError, Topology
from ncdiag.read.topology import (
    gpu_matrix,
    graph_xml,
    iblinkinfo,
    ibnetdiscover,
    ibnetdiscover_ports,
    ibstat,
    ibstatus,
    lstopo,
    nccl_xml,
    slurm_conf,
    slurm_yaml,
    xml_elements,
)
from ncdiag.read.topology.text import decode


@dataclass(frozen=True, slots=True)
class TextFormat:
    """A format of lines: whether a text is of it, or the beginning of it, and its reader."""

    recognises: Callable[[str], bool]
    read: Callable[[str], Topology]


# XML by the name of its root.
_XML_FORMATS: dict[str, Callable[[xml_elements.Element], NcclTopology | NcclGraphs]] = {
    nccl_xml.ROOT: nccl_xml.read,
    graph_xml.ROOT: graph_xml.read,
    lstopo.ROOT: lstopo.read,
}

# Asked in this order: the first that recognises the text reads it.
_TEXT_FORMATS = (
    TextFormat(gpu_matrix.recognises, gpu_matrix.read),
    TextFormat(iblinkinfo.recognises, iblinkinfo.read),
    TextFormat(ibnetdiscover_ports.recognises, ibnetdiscover_ports.read),
    TextFormat(ibnetdiscover.recognises, ibnetdiscover.read),
    TextFormat(ibstat.recognises, ibstat.read),
    TextFormat(ibstatus.recognises, ibstatus.read),
    TextFormat(slurm_conf.recognises, slurm_conf.read),
    TextFormat(slurm_yaml.recognises, slurm_yaml.read),
)

_KNOWN = (
    "NCCL topology or graph XML, lstopo XML, nvidia-smi topo -m, rocm-smi --showtopo, "
    "amd-smi topology, ibnetdiscover, iblinkinfo, ibstat, ibstatus, Slurm's topology.conf or .yaml"
)


def read_topology(data: bytes) -> Topology:
    """Return what the bytes of one dump hold.

    Raises ``NotATopologyError`` for what is none, ``TruncatedTopologyError`` for one that ends too
    early to be judged; messages are one line and name no file.
    """
    text = decode(data)
    if not text.strip():
        raise NotATopologyError("empty")
    xml = xml_elements.beginning(text, _XML_FORMATS)
    if xml is not None:
        root = xml_elements.parse(xml, _XML_FORMATS)
        return _XML_FORMATS[root.name](root)
    for one in _TEXT_FORMATS:
        if one.recognises(text):
            return one.read(text)
    raise NotATopologyError(f"no topology dump that is known: {_KNOWN}")
