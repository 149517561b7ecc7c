"""What ``ibstat`` and ``ibstatus`` have in common: ports of this host, value after value."""

import re
from collections.abc import Sequence
from dataclasses import dataclass, field

from ncdiag.model.topology import IbLocalPort, IbPorts, TruncatedTopologyError
from ncdiag.read.topology.ib_rates import is_generation
from ncdiag.read.topology.text import number, quoted

_NEEDED = ("state", "physical", "rate")
# rdma_port_get_link_layer, and libibumad's names for it.
_LINK_LAYERS = {"infiniband", "ethernet", "ib", "unknown", "unspecified"}
# The last lines of a port, whole: of ibstat and ibstatus, and of their releases before link layers.
_LAST_LINE = re.compile(
    r"port guid:\s*0x[0-9a-f]{16}|rate:\s*[\d.]+ gb/sec \(\d+x(?: \w+)?\)", re.IGNORECASE
)
_WORDS = (
    *("ca '", "ca: '", "ca type:", "number of ports:", "firmware version:", "hardware version:"),
    *("node guid:", "system image guid:", "port ", "state:", "physical state:", "rate:"),
    *("base lid:", "lmc:", "sm lid:", "capability mask:", "link layer:", "link_layer:"),
    *("infiniband device '", "default gid:", "phys state:"),
)
_RATE = re.compile(r"(\d{1,6}(?:\.\d{1,6})?)(?:\s*(?:Gb/sec|\().*)?")
# The kernel writes what the rate is made of beside it: (4X NDR).
_LANES = re.compile(r"\((\d{1,2})X(?:\s+([A-Z]{3}\d{0,2}))?\)", re.IGNORECASE)
_MOST_RATE_CHARS = 80
_GUID = re.compile(r"0x([0-9a-fA-F]{1,16})")


@dataclass(slots=True)
class LocalPort:
    """A port as it is read: the values by the names of :class:`IbLocalPort`."""

    ca: str
    port: int
    values: dict[str, str] = field(default_factory=dict)


def ports_of(ports: Sequence[LocalPort], *, cut: str, needed: Sequence[str] = ()) -> IbPorts:
    """The record of ``ports``; ``cut`` is the line that the text breaks off in.

    ``needed`` names values that the last port must have besides those that all have. Raises
    :class:`TruncatedTopologyError` where there is no port, or the last is not whole.
    """
    if not ports:
        raise TruncatedTopologyError("cut short: an adapter, and no port of it")
    last = ports[-1]
    needed = [*_NEEDED, *needed]
    if any("link_layer" in port.values for port in ports):
        needed.append("link_layer")
    missing = next((key for key in needed if not last.values.get(key)), None)
    if missing:
        name = f"{last.ca} port {last.port}"
        raise TruncatedTopologyError(f"cut short: {name} without its {missing.replace('_', ' ')}")
    if _is_cut(cut):
        raise TruncatedTopologyError(f"cut short: it ends with {quoted(cut)}")
    return IbPorts(tuple(_record(port) for port in ports))


def _is_cut(line: str) -> bool:
    """Whether a line is one of these tools, and not one that a port ends with, whole."""
    lower = line.lower()
    key, _, value = lower.partition(":")
    if key in ("link layer", "link_layer"):
        return value.strip() not in _LINK_LAYERS
    own = any(lower.startswith(word) or word.startswith(lower) for word in _WORDS)
    return bool(line) and own and not _LAST_LINE.fullmatch(line)


def _record(port: LocalPort) -> IbLocalPort:
    rate = _RATE.match(port.values.get("rate", ""))
    lanes = _LANES.search(port.values.get("rate", "")[:_MOST_RATE_CHARS])
    speed = (lanes[2] or "").upper() if lanes else ""
    guid = _GUID.fullmatch(port.values.get("guid", ""))
    return IbLocalPort(
        ca=port.ca,
        port=port.port,
        state=port.values.get("state") or None,
        physical=port.values.get("physical") or None,
        rate_gbit_per_s=number(rate[1]) if rate else None,
        link_layer=port.values.get("link_layer") or None,
        guid=guid[1].lower().rjust(16, "0") if guid else None,
        width=int(lanes[1]) if lanes else None,
        speed=speed if is_generation(speed) else None,
        part=port.values.get("part") or None,
    )
