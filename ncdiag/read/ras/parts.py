"""What text and JSON reports have in common: results, events of peers, limits."""

import re
from typing import NamedTuple

from ncdiag.model.log import RasMember

# A report of a large job lists few; a file may hold the reports of a whole night.
MAX_REPORTS = 1000
MAX_ISSUES = 1000
MAX_MEMBERS = 64

NOTHING_LAUNCHED = -1
SUCCESS = 0
IN_PROGRESS = 7
RESULTS = {
    1: "Unhandled CUDA error",
    2: "System error",
    3: "Internal error",
    4: "Invalid argument",
    5: "Invalid usage",
    6: "Remote process error",
}

# Events of a monitor's stream that tell of trouble, and the section a report has for it.
EVENTS = {
    "PEER_DEAD": "DEAD",
    "PEER_TIMEOUT_DEAD": "DEAD",
    "PEER_INIT_TIMEOUT": "TIMEOUT",
    "PEER_SEND_STUCK": "TIMEOUT",
    "PEER_UNRESPONSIVE": "TIMEOUT",
    "PEER_KEEPALIVE_TIMEOUT": "TIMEOUT",
}
RECOVERED = "PEER_RECOVERED"
OTHER_EVENTS = frozenset(
    {"PEER_NEW", "PEER_CONNECTING", "PEER_CONNECTED", "PEER_DISCONNECTED", "PEER_RETRY", RECOVERED}
)

_PROCESS = re.compile(
    r"[Pp]rocess (\d{1,10}) on node ([^\s<>]{1,80})"
    r"(?: managing GPUs? (\d[\d,]{0,200}(?: \(NVML [\d,]{1,200}\))?))?"
)
_ADDRESS = re.compile(r"(?<![.:%\w-])([.:%\w-]{2,80})<\d{1,5}>")


class Peer(NamedTuple):
    """The process that an event is about."""

    host: str | None
    pid: str | None
    gpus: str | None = None


def peer_in(text: str) -> Peer | None:
    """The process that ``text`` names, by number and node or by its address alone."""
    if found := _PROCESS.search(text):
        pid, host, gpus = found.groups()
        return Peer(host, pid, gpus)
    if found := _ADDRESS.search(text):
        return Peer(found[1], None)
    return None


def member(peer: Peer, rank: int | None = None, *, status: str | None = None) -> RasMember:
    """A member of an issue that is known by its process."""
    return RasMember(rank, peer.host, peer.pid, peer.gpus, None, status)
