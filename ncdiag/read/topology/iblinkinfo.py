"""``iblinkinfo``: a block a node, or (``--line``) everything of a link in one line."""

import re
from collections.abc import Iterator
from dataclasses import dataclass

from ncdiag.model.topology import IbFabric, IbNodeKind, TruncatedTopologyError
from ncdiag.read.topology.ib_port_rows import PeerRow, PortRow, adapter_key, fabric_of
from ncdiag.read.topology.ib_rates import generation_of, is_generation
from ncdiag.read.topology.text import number, open_line, quoted

_KINDS = {
    "switch": IbNodeKind.SWITCH,
    "ca": IbNodeKind.CA,
    "router": IbNodeKind.ROUTER,
    "iwarp rnic": IbNodeKind.CA,
    "rnic": IbNodeKind.CA,
}
_MAX_LINE_CHARS = 4096
_GUID = r"0x([0-9a-fA-F]{1,16})"

_HEADER = re.compile(
    rf"(?:[<>] )?(Switch|CA|Router|iWARP RNIC|RNIC):?\s+(?:{_GUID}\s+)?(.*):", re.IGNORECASE
)
# GUID and name of the node (--line), LID, port, the arrow with the state of the link, the peer.
_ROW = re.compile(
    rf'(?:[<>] )?(?:{_GUID}\s+)?(?:"(.*?)"\s+)?(\d{{1,9}})\s+(\d{{1,9}})\[[^\]]*\]\s*'
    r"==\(([^)]*)\)[^=]*==>\s*(.*)"
)
# With single blanks: 4X 53.125 Gbps Active/ LinkUp.
_LINK = re.compile(
    r"(?:(\d{1,3})X )?(?:(\d{1,4}(?:\.\d{1,9})?) ?Gbps |([A-Z]{3}\d{0,2}) )?"
    r"(?:[^/]* )?(\w+) ?/ ?(\w+)"
)
_MAX_LINK_CHARS = 200
_PEER = re.compile(rf'(?:{_GUID}\s+)?(\d{{1,9}})\s+(\d{{1,9}})\[[^\]]*\]\s*"(.*)"\s*(.*)')
_NO_PEER = re.compile(r'\[[^\]]*\]\s*""\s*(.*)')
# iblinkinfo compares what both ends support: ( Could be 4X Could be 25.78125 Gbps).
_COULD_BE = re.compile(r"Could be ((?:(?!Could be)[^()]){1,60})")
_RECOGNISED = re.compile(r"\d\[[ \d]{0,8}\][ \t]*==\(")


# A fabric has no switch twice.
RECORD = re.compile(r"^Switch:? (0x[0-9a-fA-F]{1,16})", re.MULTILINE)


@dataclass(slots=True)
class _Block:
    """The node whose ports follow."""

    node: object
    kind: IbNodeKind
    guid: str | None
    description: str
    rows: int = 0


def recognises(text: str) -> bool:
    """Whether ``text`` has the beginning of an arrow, after a port, that holds a link's state."""
    return _RECOGNISED.search(text) is not None


def read(text: str) -> IbFabric:
    """The fabric; nodes that are only named as peers come last, without a record.

    Raises :class:`TruncatedTopologyError` for a text that ends within a line or after the header
    of a node.
    """
    fabric = fabric_of(_rows(text))
    if not fabric.nodes:
        raise TruncatedTopologyError("cut short: no whole line of a link")
    return fabric


def _rows(text: str) -> Iterator[PortRow]:
    lines = text.split("\n")
    on_lines = _ports_of_guids(lines)
    block: _Block | None = None
    cut = open_line(text)
    for place, raw in enumerate(lines, start=1):
        line = raw.strip() if len(raw) <= _MAX_LINE_CHARS else ""
        last = place == len(lines) and cut != ""
        row = _row(line, block, on_lines)
        if last and not line.endswith(")"):
            row = None
        if row is not None:
            if block is not None:
                block.rows += 1
            yield row
        elif line.endswith(":") and (match := _HEADER.fullmatch(line)) is not None:
            guid = match[2].lower().rjust(16, "0") if match[2] else None
            block = _Block(guid or place, _KINDS[match[1].lower()], guid, match[3].strip())
        elif last:
            raise TruncatedTopologyError(f"cut short: it ends with {quoted(line)}")
    if block is not None and not block.rows:
        raise TruncatedTopologyError(f"cut short: no port after {quoted(block.description)}")


def _ports_of_guids(lines: list[str]) -> dict[str, int]:
    """How many lines begin with each GUID: in ``--line`` a switch has many, a port one."""
    counts: dict[str, int] = {}
    for line in lines:
        begin = line[:24].split(maxsplit=1)
        if begin and begin[0].startswith("0x"):
            guid = begin[0][2:].lower().rjust(16, "0")
            counts[guid] = counts.get(guid, 0) + 1
    return counts


def _row(line: str, block: _Block | None, on_lines: dict[str, int]) -> PortRow | None:
    match = _ROW.fullmatch(line)
    if match is None or len(match[5]) > _MAX_LINK_CHARS:
        return None
    link = _LINK.fullmatch(" ".join(match[5].split()))
    if link is None:
        return None
    remark, peer = _peer(match[6])
    if remark is None:
        return None
    guid = match[1].lower().rjust(16, "0") if match[1] else None
    node: object
    if match[2] is not None and guid is not None:
        description, lines = match[2].strip(), on_lines.get(guid, 0)
        kind = IbNodeKind.SWITCH if lines > 1 else IbNodeKind.CA
        node = guid if lines > 1 else adapter_key(guid, int(match[4]), description)
    elif block is not None:
        kind, description, node = block.kind, block.description, block.node
        guid = guid or block.guid
    else:
        return None
    speed = generation_of(number(link[2]) or 0.0, int(link[1] or 0)) if link[2] else link[3]
    return PortRow(
        node=node,
        kind=kind,
        guid=guid,
        lid=int(match[3]),
        number=int(match[4]),
        description=description,
        peer=peer,
        width=int(link[1]) if link[1] else None,
        speed=speed if speed and is_generation(speed) else None,
        state=link[4],
        physical=link[5],
        could_be=", ".join(one.strip() for one in _COULD_BE.findall(remark)) or None,
    )


def _peer(text: str) -> tuple[str | None, PeerRow | None]:
    """The remark at the end of ``text``, ``None`` where it is not whole; the peer that it names."""
    if (match := _PEER.fullmatch(text)) is not None:
        guid, lid, port, description, rest = match.groups()
        guid = guid.lower().rjust(16, "0") if guid else None
        return _remark(rest), PeerRow(None, guid, int(lid), int(port), description)
    match = _NO_PEER.fullmatch(text)
    return (_remark(match[1]) if match else None), None


def _remark(rest: str) -> str | None:
    return rest if not rest or (rest.startswith("(") and rest.endswith(")")) else None
