"""``ibstat``: the adapters of this host and their ports."""

import re

from ncdiag.model.topology import IbPorts, TruncatedTopologyError
from ncdiag.read.topology.local_ports import LocalPort, ports_of
from ncdiag.read.topology.text import integer, open_line

# libibumad's node types; one port alone is headed with a colon (ibstat CA PORT).
_ADAPTER = re.compile(r"(?:CA|iWARP RNIC|RNIC|Switch|Router):? '([^']{1,64})'")
_PORT = re.compile(r"Port (\d{1,3}):")
_KEY = re.compile(
    r"(State|Physical state|Rate|Link layer|Port GUID|Number of ports|CA type):[ \t]*(.*)",
    re.IGNORECASE,
)
_RECOGNISED = re.compile(
    r"^[ \t]*(?:CA|iWARP RNIC|RNIC):? '[^'\n]{1,64}'[ \t]*\n"
    r"[ \t]*(?:CA type|Number of ports|Firmware version|Port \d)",
    re.MULTILINE,
)
# A host has no adapter twice.
RECORD = re.compile(r"^[ \t]*CA '([^'\n]{1,64})'", re.MULTILINE)
_NODE_GUID = re.compile(r"^[ \t]*Node GUID:", re.MULTILINE)
_FIELDS = {
    "state": "state",
    "physical state": "physical",
    "rate": "rate",
    "link layer": "link_layer",
    "port guid": "guid",
}
_MAX_LINE_CHARS = 4096


def recognises(text: str) -> bool:
    """Whether ``text`` has an adapter as ``ibstat`` heads it."""
    return _RECOGNISED.search(text) is not None


def read(text: str) -> IbPorts:
    """The ports; raises :class:`TruncatedTopologyError` where one of them is not whole."""
    ports: list[LocalPort] = []
    adapter, part, stated, begun = None, "", 0, 0
    for raw in text.split("\n"):
        line = raw.strip() if len(raw) <= _MAX_LINE_CHARS else ""
        if match := _ADAPTER.fullmatch(line):
            adapter, part, stated, begun = match[1], "", 0, len(ports)
        elif adapter is None:
            continue
        elif match := _PORT.fullmatch(line):
            ports.append(LocalPort(adapter, int(match[1]), {"part": part}))
        elif match := _KEY.fullmatch(line):
            key, value = match[1].lower(), match[2].strip()
            if key == "number of ports":
                stated = integer(value) or 0
            elif key == "ca type":
                part = value
            elif len(ports) > begun:
                ports[-1].values[_FIELDS[key]] = value
    if len(ports) - begun < stated:
        raise TruncatedTopologyError(
            f"cut short: {len(ports) - begun} of the {stated} ports of {adapter}"
        )
    # Who leaves out lines of the ports leaves out this one of the adapter.
    unfiltered = _NODE_GUID.search(text) is not None
    needed = ("guid",) if unfiltered and ports and "link_layer" not in ports[-1].values else ()
    return ports_of(ports, cut=open_line(text), needed=needed)
