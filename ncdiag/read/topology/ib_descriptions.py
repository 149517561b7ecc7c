"""What the descriptions of InfiniBand nodes say: a host and its adapter, a switch's short name."""

import re
from dataclasses import dataclass

# Set by a switch for the adapter within it that reduces data (SHARP).
_AGGREGATION = re.compile(r"aggregation node", re.IGNORECASE)
# Of an adapter that nobody named: the maker's text, which says nothing of the host.
_UNNAMED = re.compile(
    r"technologies|connectx|infinihost|mellanox|quantum|bluefield|\bmt\d{3,}|^localhost\b|\(none\)",
    re.IGNORECASE,
)
_HOST = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9._-]{0,252})")
# What managed switches, and chips that nobody named, call themselves.
_SWITCH = re.compile(r"MF0;|.*(?:infiniscale|switchx|switch-?ib|quantum)", re.IGNORECASE)
# As Mellanox switches call themselves: MF0;leaf01:MQM9700/U1, MF0;core1:MCS8500/L01/U1.
_MANAGED_SWITCH = re.compile(r"MF0;([^:;]+):([^/]*)(?:/(.*?))?/U\d+")


@dataclass(frozen=True, slots=True)
class HostAdapter:
    """The host of a channel adapter, and what it calls the adapter (``mlx5_0``, ``HCA-1``)."""

    host: str
    device: str | None


def is_aggregation_node(description: str | None) -> bool:
    """Whether this is the adapter within a switch, which belongs to no host."""
    return description is not None and _AGGREGATION.search(description) is not None


def host_adapter(description: str | None) -> HostAdapter | None:
    """The host and the device that an adapter's description names; ``None`` where it names none."""
    if not description or _UNNAMED.search(description):
        return None
    words = description.split()
    if not 1 <= len(words) <= 2 or not _HOST.fullmatch(words[0]):
        return None
    return HostAdapter(words[0], words[1] if len(words) == 2 else None)


def is_switch(description: str | None) -> bool:
    """Whether a node of which no more is known can only be a switch."""
    return description is not None and _SWITCH.match(description) is not None


def switch_name(description: str | None) -> str | None:
    """The name that an administrator gave a switch, without maker, model and chip."""
    if not description:
        return None
    managed = _MANAGED_SWITCH.fullmatch(description.strip())
    if managed is None:
        return description.strip()
    name, _, part = managed.groups()
    return f"{name}/{part}" if part else str(name)
