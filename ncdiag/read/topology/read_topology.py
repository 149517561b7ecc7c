"""Reads any topology dump: what kind it is follows from what is in it, not from a file's name."""

from collections.abc import Iterator
from dataclasses import dataclass
from importlib import import_module
from typing import Any, Final, Protocol

from ncdiag.model.topology import NcclGraphs, NcclTopology, NotATopologyError, Topology
from ncdiag.read.topology import xml_elements
from ncdiag.read.topology.parts import Part, at_repeats, headed, marked
from ncdiag.read.topology.text import decode, quoted


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

    # A module whose dumps may follow each other in one text has RECORD, a pattern of what none of
    # them has twice, or pieces(text), which parts them.


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

# A text that was found to be of one format may hold another one besides, if it has such a word.
_WORDS: Final = {
    "gpu_matrix": ("GPU0", "TABLE:"),
    "iblinkinfo": ("==(",),
    "ibnetdiscover_ports": ("SW ", "CA "),
    "ibnetdiscover": ('"S-', '"H-'),
    "ibstat": ("CA '",),
    "ibstatus": ("nfiniband device '",),
    "slurm_conf": ("SwitchName=", "BlockName="),
    "slurm_yaml": ("switches:", "blocks:"),
}
# Formats that say the same things: the first of them that recognises a text reads it.
_SAME_FAMILY: Final = (
    {"iblinkinfo", "ibnetdiscover_ports", "ibnetdiscover"},
    {"ibstat", "ibstatus"},
    {"slurm_conf", "slurm_yaml"},
)
_MOST_DUMPS: Final = 4096
_MOST_NAMED: Final = 8

_KNOWN = (
    "NCCL topology or graph XML, lstopo XML, nvidia-smi topo -m, rocm-smi --showtopo, "
    "amd-smi topology, ibnetdiscover, iblinkinfo, ibstat, ibstatus, Slurm's topology.conf or .yaml"
)


class SeveralTopologiesError(NotATopologyError):
    """The input is not one dump but several, where one is asked for."""


@dataclass(frozen=True, slots=True)
class Dump:
    """One dump of an input; ``label`` tells it from the others there, empty if it is the only one.

    ``format`` is the module that reads ``text``.
    """

    label: str
    format: str
    text: str

    def read(self) -> Topology:
        """Return what the dump holds; raises the errors of :func:`read_topology`."""
        if self.format in _TEXT_FORMATS:
            text_format: TextFormat = _module(self.format)
            return text_format.read(self.text)
        root = xml_elements.parse(self.text, _XML_FORMATS)
        xml_format: XmlFormat = _module(_XML_FORMATS[root.name])
        return xml_format.read(root)


def read_topology(data: bytes) -> Topology:
    """Return what the bytes of one dump hold.

    Raises ``NotATopologyError`` for what is none, ``TruncatedTopologyError`` for one that ends too
    early to be judged, ``SeveralTopologiesError`` where there are several, so that none is passed
    over; messages are one line and name no file.
    """
    found = dumps(data)
    if len(found) > 1:
        names = ", ".join(quoted(one.label) for one in found[:_MOST_NAMED])
        more = f" and {len(found) - _MOST_NAMED} more" if len(found) > _MOST_NAMED else ""
        raise SeveralTopologiesError(
            f"holds {len(found)} dumps ({names}{more}); put each into a file of its own"
        )
    return found[0].read()


def dumps(data: bytes) -> tuple[Dump, ...]:
    """Return each dump that the bytes hold, not read yet: of several hosts, or of several tools.

    Marks of a launcher before every line are taken off. Raises ``NotATopologyError`` if there is
    none.
    """
    text = decode(data)
    if not text.strip():
        raise NotATopologyError("empty")
    for parts in (marked(text), headed(text), [("", text)]):
        if found := _labelled(parts):
            return found
    raise NotATopologyError(f"no topology dump that is known: {_KNOWN}")


def _labelled(parts: list[Part]) -> tuple[Dump, ...]:
    by_part = [(label, list(_dumps(text))) for label, text in parts]
    by_part = [(label, found) for label, found in by_part if found]
    if sum(len(found) for _, found in by_part) > _MOST_DUMPS:
        raise NotATopologyError(f"more than {_MOST_DUMPS} dumps in one file")
    if len(by_part) == 1 and len(by_part[0][1]) == 1:
        return tuple(by_part[0][1])
    labelled = []
    for label, found in by_part:
        for number, one in enumerate(found, start=1):
            names = [label] if label else []
            names += [f"{number}"] if len(found) > 1 or not label else []
            labelled.append(Dump(":".join(names), one.format, one.text))
    return tuple(labelled)


def _dumps(text: str) -> Iterator[Dump]:
    """Yield the dumps of one host's text: XML and what stands around it, else tables and lists."""
    xml = xml_elements.beginning(text, _XML_FORMATS)
    if xml is None:
        yield from _of_text(text)
        return
    yield from _of_text(text[: len(text) - len(xml)])
    for document, rest in xml_elements.documents(xml, _XML_FORMATS):
        yield Dump("", "xml", document)
        yield from _of_text(rest)


def _of_text(text: str) -> Iterator[Dump]:
    if not text.strip():
        return
    found: set[str] = set()
    for name in _TEXT_FORMATS:
        if any(name in family and found & family for family in _SAME_FAMILY):
            continue
        if found and not any(word in text for word in _WORDS[name]):
            continue
        text_format = _module(name)
        if text_format.recognises(text):
            found.add(name)
            for piece in _pieces(text_format, text):
                yield Dump("", name, piece)


def _pieces(text_format: Any, text: str) -> Iterator[str]:
    """Yield the dumps of one format that follow each other: each begins with what was before."""
    record = getattr(text_format, "RECORD", None)
    if record is not None:
        yield from at_repeats(text, record)
    elif hasattr(text_format, "pieces"):
        yield from text_format.pieces(text)
    else:
        yield text


def _module(name: str) -> Any:
    return import_module(f"{__package__}.{name}")
