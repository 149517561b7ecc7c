"""``ibnetdiscover --ports`` (``-p``): one line a port, each connection twice."""

import re
from collections.abc import Iterator

from ncdiag.model.topology import IbFabric, IbNodeKind, TruncatedTopologyError
from ncdiag.read.topology.ib_port_rows import PeerRow, PortRow, adapter_key, fabric_of
from ncdiag.read.topology.ib_rates import is_generation
from ncdiag.read.topology.text import open_line, quoted

_KINDS = {"CA": IbNodeKind.CA, "SW": IbNodeKind.SWITCH, "RT": IbNodeKind.ROUTER}
_NEAR = r"(CA|SW|RT|\?\?)[ \t]+(\d{1,9})[ \t]+(\d{1,9})[ \t]+0x([0-9a-fA-F]{1,16})"
_RATE = r"(?:(\d{1,3})x|\?\?)[ \t]+([A-Z]+\d*|\?+)"
_ROW = re.compile(_NEAR + r"[ \t]+" + _RATE + r"(.*)")
_PEER = re.compile(r"[ \t]+-[ \t]+" + _NEAR + r"[ \t]+\((.*)\)[ \t]*")
_NAMES = re.compile(r"[ \t]*'(.*)' - '(.*)'[ \t]*")
_RECOGNISED = re.compile(r"^[ \t]*" + _NEAR + r"[ \t]+(?:\d{1,3}x|\?\?)", re.MULTILINE)
_MAX_LINE_CHARS = 4096


def recognises(text: str) -> bool:
    """Whether a line of ``text`` is such a port."""
    return _RECOGNISED.search(text) is not None


def read(text: str) -> IbFabric:
    """The fabric; raises :class:`TruncatedTopologyError` for a text that ends within a line."""
    fabric = fabric_of(_rows(text))
    if not fabric.nodes:
        raise TruncatedTopologyError("cut short: no whole line of a port")
    return fabric


def _rows(text: str) -> Iterator[PortRow]:
    lines, cut = text.split("\n"), open_line(text)
    for number, line in enumerate(lines, start=1):
        row = _row(line.strip()) if len(line) <= _MAX_LINE_CHARS else None
        last = number == len(lines) and cut != ""
        if last and not _is_whole(line.strip(), row):
            row = None
        if row is not None:
            yield row
        elif last:
            raise TruncatedTopologyError(f"cut short: it ends with {quoted(line)}")


def _row(line: str) -> PortRow | None:
    match = _ROW.fullmatch(line)
    if match is None:
        return None
    kind, lid, number, guid, width, speed, rest = match.groups()
    far = _PEER.fullmatch(rest)
    if far is None and rest.lstrip().startswith("-"):
        return None
    description, peer = _name(rest), None
    if far is not None:
        names = _NAMES.fullmatch(far[5])
        description, peer_name = names.groups() if names else (None, None)
        peer = PeerRow(
            _KINDS.get(far[1]), far[4].lower().rjust(16, "0"), int(far[2]), int(far[3]), peer_name
        )
    guid = guid.lower().rjust(16, "0")
    of_switch = kind == "SW"
    return PortRow(
        node=guid if of_switch else adapter_key(guid, int(number), description),
        kind=_KINDS.get(kind, IbNodeKind.CA),
        guid=guid,
        lid=int(lid),
        number=int(number),
        description=description,
        peer=peer,
        width=int(width) if width else None,
        speed=speed if is_generation(speed) else None,
    )


def _is_whole(line: str, row: PortRow | None) -> bool:
    """Whether a line that no other follows has all that one of its kind has."""
    if row is None or row.peer is None:
        return row is not None and line.endswith("'") and line.count("'") > 1
    return row.description is not None


def _name(text: str) -> str | None:
    """The description of a port without a peer; older releases print it without quotes."""
    name = text.strip()
    quotes = len(name) > 1 and name.startswith("'") and name.endswith("'")
    return (name[1:-1] if quotes else name) or None
