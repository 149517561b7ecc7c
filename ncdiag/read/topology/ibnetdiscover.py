"""What ``ibnetdiscover`` prints: records of nodes, or lists of them (``-l``, ``ibnodes``).

With or without ``-f``, ``-g``, ``-m``, ``-s``; the net files of ibsim have the same grammar. A
record is a header (``Switch 41 "S-..."``, ``Ca 1 "H-..."``) and a line for each connected port.
Lines of neither kind are left out: progress, complaints of the tool, chassis.
"""

import re
from dataclasses import dataclass, field

from ncdiag.model.topology import (
    IbFabric,
    IbNode,
    IbNodeKind,
    IbPort,
    TruncatedTopologyError,
)
from ncdiag.read.topology.ib_last_record import refuse_cut_record
from ncdiag.read.topology.ib_rates import SPEED_OF_BIT, WIDTH_OF_BIT, is_generation
from ncdiag.read.topology.text import open_line, quoted

_KINDS = {
    "switch": IbNodeKind.SWITCH,
    "ca": IbNodeKind.CA,
    "hca": IbNodeKind.CA,
    "rt": IbNodeKind.ROUTER,
    "router": IbNodeKind.ROUTER,
}
_KIND_OF_PREFIX = {"S": IbNodeKind.SWITCH, "H": IbNodeKind.CA, "R": IbNodeKind.ROUTER}

_BEGINNING = re.compile(r"^(?:# Topology file: |vendid=0x)", re.MULTILINE)
# A listing says once when it was made.
RECORD = re.compile(r"^(# Topology file:)", re.MULTILINE)
_HEADER = re.compile(
    r"(?P<kind>Switch|Ca|Hca|Rt|Router)\s+(?P<ports>\d{1,9})\s+"
    r'"(?P<id>[^"]{1,255})"\s*(?:#\s*(?P<comment>.*))?',
    re.IGNORECASE,
)
_HEADER_COMMENT = re.compile(r'"(?P<description>.*)"(?P<rest>.*)')
_PORT = re.compile(
    r"\[(?P<number>\d{1,9})\](?:\[ext[^\]]*\]|\([^)]*\)|\s)*"
    r'"(?P<peer>[^"]{1,255})"\s*\[(?P<peer_port>\d{1,9})\](?P<rest>.*)'
)
_PORT_COMMENT = re.compile(r'#\s*(?:lid\s+(?P<lid>\d{1,9})[^"]*)?"(?P<description>.*)"(?P<rest>.*)')
_LID = re.compile(r"\blid\s+(\d{1,9})")
_RATE = re.compile(r"(?:\b(\d{1,3})x|\?\?)(\w+|\?+)")
_CODE = re.compile(r"\b([ws])=(\d{1,3})\b")
_ANY_CODE = re.compile(r"\b\w=\d+")
_GUID_ID = re.compile(r"([SHR])-(?:0x)?([0-9a-fA-F]{1,16})")
_LISTED = re.compile(
    r"(?P<kind>Switch|Ca|Rt|Router)\s*:\s*0x(?P<guid>[0-9a-fA-F]{1,16})\s+ports\s+\d+"
    r'(?:\s+devid\s+(?P<device>0x[0-9a-fA-F]+))?[^"]*"(?P<description>.*)"(?P<rest>.*)'
)
_LMC_AT_END = re.compile(r"\blmc \d+$")
_KEY = re.compile(
    r"(?P<key>vendid|devid|sysimgguid|switchguid|caguid|rtguid|routerguid)=(?P<value>.*)"
)
_RECOGNISED = re.compile(
    r'^[ \t]*(?:(?:Switch|Ca|Hca|Rt|Router)[ \t]+\d{1,9}[ \t]+"[^"\n]'
    r"|(?:Switch|Ca|Rt|Router)[ \t]*:[ \t]*0x[0-9a-f]{1,16}[ \t]+ports[ \t])",
    re.MULTILINE | re.IGNORECASE,
)
_BLANK_AT_END = re.compile(r"\n[ \t]*\n\s*\Z")
# A description has 64 bytes (IBA specification, NodeDescription); no line needs more.
_MAX_LINE_CHARS = 4096


@dataclass(slots=True)
class _Record:
    """One record as it grows."""

    kind: IbNodeKind
    guid: str
    description: str | None = None
    lid: int | None = None
    device_id: str | None = None
    ports: dict[int, IbPort] = field(default_factory=dict)

    def node(self) -> IbNode:
        return IbNode(
            kind=self.kind,
            guid=self.guid,
            description=self.description,
            ports=tuple(self.ports.values()),
            lid=self.lid,
            device_id=self.device_id,
        )


def recognises(text: str) -> bool:
    """Whether there is a title, a record, or a list of nodes in ``text``."""
    return _BEGINNING.search(text) is not None or _RECOGNISED.search(text) is not None


def read(text: str) -> IbFabric:
    """The fabric; nodes that are only named as peers come last, without a record.

    Raises :class:`TruncatedTopologyError` for a text that begins or ends within a record, or has
    none.
    """
    reader = _Reader()
    for line in text.split("\n"):
        reader.read(line.strip())
    return reader.finish(cut=open_line(text), blank_at_end=_BLANK_AT_END.search(text) is not None)


class _Reader:
    """Takes line after line."""

    def __init__(self) -> None:
        self._records: dict[str, _Record] = {}
        self._peers: dict[str, IbNode] = {}
        self._record: _Record | None = None
        self._announced: dict[str, str] = {}
        self._last = ""
        self._speeds: set[str | None] = set()
        self._commented = 0
        self._listed = 0
        self._keys = 0
        self._codes = 0

    def read(self, line: str) -> None:
        if not line or len(line) > _MAX_LINE_CHARS:
            return
        self._last = line
        if match := _PORT.match(line):
            self._add_port(match)
        elif match := _HEADER.match(line):
            self._begin(match)
        elif match := _KEY.match(line):
            self._keys += 1
            self._announced[match["key"]] = match["value"].strip()
        elif match := _LISTED.match(line):
            self._add_listed(match)

    def _begin(self, match: re.Match[str]) -> None:
        guid, _ = _identity(match["id"])
        record = _Record(_KINDS[match["kind"].lower()], guid)
        comment = _HEADER_COMMENT.match(match["comment"] or "")
        if comment:
            self._commented += 1
            record.description = comment["description"]
            record.lid = _number(_LID.search(comment["rest"]))
        elif not _GUID_ID.fullmatch(match["id"]):
            record.description = match["id"]
        record.device_id = self._announced.get("devid")
        self._announced = {}
        self._record = self._records.setdefault(guid, record)

    def _add_port(self, match: re.Match[str]) -> None:
        if self._record is None:
            raise TruncatedTopologyError(f"cut short at its beginning: {quoted(match[0])}")
        port, lid = _port(match)
        self._speeds.add(port.speed)
        self._commented += port.peer_description is not None
        self._codes = max(self._codes, len(_ANY_CODE.findall(match["rest"])))
        if self._record.lid is None:
            self._record.lid = lid
        self._record.ports.setdefault(port.number, port)
        guid, kind = _identity(match["peer"])
        if guid not in self._peers:
            comment = _PORT_COMMENT.search(match["rest"])
            self._peers[guid] = IbNode(
                kind=kind or IbNodeKind.CA,
                guid=guid,
                description=port.peer_description,
                ports=(),
                lid=_number(_LID.search(comment["rest"])) if comment else None,
                has_record=False,
            )

    def _add_listed(self, match: re.Match[str]) -> None:
        guid = match["guid"].lower().rjust(16, "0")
        record = _Record(_KINDS[match["kind"].lower()], guid, match["description"])
        record.lid = _number(_LID.search(match["rest"]))
        self._listed += "lmc" in match["rest"]
        record.device_id = match["device"]
        self._records.setdefault(guid, record)
        self._record = None

    def finish(self, *, cut: str, blank_at_end: bool) -> IbFabric:
        """The fabric; ``cut`` is the line that the text breaks off in.

        A blank line ends a record.
        """
        if not self._records:
            raise TruncatedTopologyError("cut short: a title, and no node after it")
        if self._announced or (cut and self._ends_early(cut)):
            raise TruncatedTopologyError(f"cut short: it ends with {quoted(self._last)}")
        nodes = [record.node() for record in self._records.values()]
        if self._record is not None and not blank_at_end:
            refuse_cut_record(nodes, self._record.node())
        named = [node for guid, node in self._peers.items() if guid not in self._records]
        return IbFabric(tuple(nodes + named))

    def _ends_early(self, line: str) -> bool:
        """Whether a line lacks what its like have."""
        if line.startswith("#"):
            return False
        if match := _PORT.match(line):
            return self._lacks(match["rest"])
        if match := _LISTED.match(line):
            of_switch = _KINDS[match["kind"].lower()] is IbNodeKind.SWITCH
            return of_switch and self._listed > 0 and not _LMC_AT_END.search(line)
        beginnings = ("[", *_KINDS, "vendid", "devid", "sysimgguid", "caguid", "switchguid")
        lower = line.lower()
        return any(lower.startswith(word) or word.startswith(lower) for word in beginnings)

    def _lacks(self, rest: str) -> bool:
        """Whether ``rest`` of a port's line has no rate, or no description, and others have."""
        if not self._commented:
            return False
        comment = _PORT_COMMENT.search(rest)
        # A net file of ibsim has neither keys nor rates.
        if comment is None or (not self._keys and self._speeds == {None}):
            return comment is None
        rate = _RATE.search(comment["rest"])
        if rate is None:
            return len(_CODE.findall(comment["rest"])) < 2
        codes = len(_ANY_CODE.findall(comment["rest"]))
        return (
            not _is_speed(rate[2])
            or codes < self._codes
            or (rate[2] == "FDR" and "FDR10" in self._speeds)
        )


def _port(match: re.Match[str]) -> tuple[IbPort, int | None]:
    """The port of a line, and the port's own LID where an adapter gives it."""
    comment = _PORT_COMMENT.search(match["rest"])
    after = comment["rest"] if comment else match["rest"]
    rate = _RATE.search(after)
    codes = {key: int(code) for key, code in _CODE.findall(after)}
    width = int(rate[1]) if rate and rate[1] else WIDTH_OF_BIT.get(codes.get("w", 0))
    speed = rate[2] if rate and is_generation(rate[2]) else None
    if rate is None:
        speed = SPEED_OF_BIT.get(codes.get("s", 0))
    guid, _ = _identity(match["peer"])
    port = IbPort(
        number=int(match["number"]),
        peer_guid=guid,
        peer_port=int(match["peer_port"]),
        peer_description=comment["description"] if comment else None,
        width=width,
        speed=speed,
    )
    lid = comment["lid"] if comment else None
    return port, None if lid is None else int(lid)


def _identity(text: str) -> tuple[str, IbNodeKind | None]:
    """GUID and kind of ``S-0002c90300000001``; any other name stands for itself."""
    match = _GUID_ID.fullmatch(text)
    if match is None:
        return text, None
    return match[2].lower().rjust(16, "0"), _KIND_OF_PREFIX[match[1]]


def _is_speed(text: str) -> bool:
    return is_generation(text) or set(text) == {"?"}


def _number(match: re.Match[str] | None) -> int | None:
    return None if match is None else int(match[1])
