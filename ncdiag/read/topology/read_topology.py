"""Reads any topology dump: what kind it is follows from what is in it, not from a file's name."""

from importlib import import_module
from typing import Any, Final, Protocol

from ncdiag.model.topology import NcclGraphs, NcclTopology, NotATopologyError, Topology
from ncdiag.read.topology import xml_elements
from ncdiag.read.topology.text import decode


class XmlFormat(Protocol):
    """A module for one format of XML."""

    def read(self, root: xml_elements.Element, /) -> NcclTopology | NcclGraphs:
        """Return what is below the root."""


class TextFormat(Protocol):
    """A module for one format of lines."""

    def recognises(self, text: str, /) -> bool:
        """Whether the text is of this format, or the beginning of it."""

    def read(self, text: str, /) -> Topology:
        """Return what the text holds."""


# The modules beside this one, imported when their turn comes; of XML by the name of its root.
_XML_FORMATS: Final = {"system": "nccl_xml", "graphs": "graph_xml", "topology": "lstopo"}

# Asked in this order: the first that recognises the text reads it.
_TEXT_FORMATS: Final = (
    "gpu_matrix",
    "iblinkinfo",
    "ibnetdiscover_ports",
    "ibnetdiscover",
    "ibstat",
    "ibstatus",
    "slurm_conf",
    "slurm_yaml",
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
        xml_format: XmlFormat = _module(_XML_FORMATS[root.name])
        return xml_format.read(root)
    for name in _TEXT_FORMATS:
        text_format: TextFormat = _module(name)
        if text_format.recognises(text):
            return text_format.read(text)
    raise NotATopologyError(f"no topology dump that is known: {_KNOWN}")


def _module(name: str) -> Any:
    return import_module(f"{__package__}.{name}")
