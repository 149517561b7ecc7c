"""``ibstatus``: the ports of this host as the kernel shows them in sysfs."""

import re

from ncdiag.model.topology import IbPorts
from ncdiag.read.topology.local_ports import LocalPort, ports_of
from ncdiag.read.topology.text import open_line

_PORT = re.compile(r"Infiniband device '([^']{1,64})' port (\d{1,3}) status:", re.IGNORECASE)
_KEY = re.compile(r"(state|phys state|rate|link_layer):[ \t]*(.*)")
# A host has no port twice.
RECORD = re.compile(
    r"^[ \t]*Infiniband device ('[^'\n]{1,64}' port \d{1,3})", re.MULTILINE | re.IGNORECASE
)
# The kernel puts its number before the name of a state.
_NUMBER = re.compile(r"\d{1,2}:[ \t]*")
_FIELDS = {"state": "state", "phys state": "physical", "rate": "rate", "link_layer": "link_layer"}
_MAX_LINE_CHARS = 4096


def recognises(text: str) -> bool:
    """Whether ``text`` has a port as ``ibstatus`` heads it."""
    return _PORT.search(text) is not None


def read(text: str) -> IbPorts:
    """The ports; raises :class:`TruncatedTopologyError` where the last of them is not whole."""
    ports: list[LocalPort] = []
    for raw in text.split("\n"):
        line = raw.strip() if len(raw) <= _MAX_LINE_CHARS else ""
        if match := _PORT.fullmatch(line):
            ports.append(LocalPort(match[1], int(match[2])))
        elif ports and (match := _KEY.fullmatch(line)):
            ports[-1].values[_FIELDS[match[1]]] = _NUMBER.sub("", match[2].strip(), count=1)
    return ports_of(ports, cut=open_line(text))
