"""How NCCL reads a list of devices: NCCL_IB_HCA, NCCL_SOCKET_IFNAME and NCCL_OOB_NET_IFNAME.

``[^][=]name[:port[:rail[:plane]]],...``: names are prefixes, or whole names after ``=``; with ``^``
all devices but these are taken. Both signs stand once, at the front, in this order, and are meant
for the whole list. Source: NCCL 2.30.7, src/misc/utils.cc and src/transport/net_ib/init.cc.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

MAX_ENTRIES: Final = 32
"""What stands behind so many entries is not read."""

# What C's atoi reads of the start of a text.
_ATOI = re.compile(r"[ \t\n\v\f\r]*([+-]?[0-9]+)")
_NUMBER = re.compile(r"[0-9]+")


class ListProblem(StrEnum):
    """What in a list is not read as it looks."""

    BLANK = "blank"
    INNER_CARET = "inner_caret"
    INNER_EQUALS = "inner_equals"
    WRONG_ORDER = "wrong_order"
    BAD_PORT = "bad_port"
    TOO_MANY = "too_many"
    EXCLUDES_ALL = "excludes_all"
    IGNORED = "ignored"


@dataclass(frozen=True, slots=True)
class Entry:
    """One name of a list; ``port`` ``None`` is any."""

    name: str
    port: int | None = None
    rail: int | None = None
    plane: int | None = None


@dataclass(frozen=True, slots=True)
class DeviceList:
    """A list as NCCL reads it, and what is odd about it with the text it is odd in.

    Without ``entries`` every device matches.
    """

    entries: tuple[Entry, ...]
    exact: bool
    exclude: bool
    problems: tuple[tuple[ListProblem, str], ...] = ()

    def selects(self, device: str) -> bool:
        """Whether ``device`` is used; it may carry a port, as ``mlx5_0:1``."""
        matches = not self.entries or any(self.matches(entry, device) for entry in self.entries)
        return matches is not self.exclude

    def matches(self, entry: Entry, device: str) -> bool:
        """Whether ``entry`` alone is meant for ``device``."""
        name, port = _split_device(device)
        if entry.port is not None and entry.port != (port or max(entry.port, 1)):
            return False
        return name == entry.name if self.exact else name.startswith(entry.name)


def parse(value: str, *, sockets: bool = False) -> DeviceList:
    """Read ``value`` as NCCL does; ``sockets`` as it reads NCCL_SOCKET_IFNAME."""
    if sockets and len(value) <= 1:
        ignored = [(ListProblem.IGNORED, value)] if value else []
        return DeviceList((), exact=False, exclude=False, problems=tuple(ignored))
    exclude = value.startswith("^")
    rest = value[1:] if exclude else value
    exact = rest.startswith("=")
    rest = rest[1:] if exact else rest
    texts = [text for text in rest.split(",") if text]
    entries = tuple(_entry(text, sockets=sockets) for text in texts[:MAX_ENTRIES])
    problems = [found for text in texts for found in _problems_of(text)]
    if exact and not exclude and rest.startswith("^"):
        problems = [(ListProblem.WRONG_ORDER, "=^"), *problems[1:]]
    if len(texts) > MAX_ENTRIES:
        problems.append((ListProblem.TOO_MANY, str(len(texts))))
    if exclude and not entries:
        problems.append((ListProblem.EXCLUDES_ALL, value))
    return DeviceList(entries, exact=exact, exclude=exclude, problems=tuple(problems))


def select(value: str, devices: Sequence[str], *, sockets: bool = False) -> tuple[str, ...]:
    """Those of ``devices`` that NCCL uses with ``value``, in their order."""
    wanted = parse(value, sockets=sockets)
    return tuple(device for device in devices if wanted.selects(device))


def _entry(text: str, *, sockets: bool) -> Entry:
    name, *numbers = text.split(":")
    if sockets:  # An interface has no ports, and NCCL compares none.
        return Entry(name)
    port, rail, plane = ([_atoi(number) for number in numbers[:3]] + [None] * 3)[:3]
    return Entry(name, None if port == -1 else port, rail, plane)


def _atoi(text: str) -> int:
    found = _ATOI.match(text[:24])
    return int(found[1]) if found else 0


def _problems_of(text: str) -> list[tuple[ListProblem, str]]:
    found = []
    if text.strip() != text or any(char.isspace() for char in text):
        found.append((ListProblem.BLANK, text))
    bare = text.strip()
    if bare.startswith("^"):
        found.append((ListProblem.INNER_CARET, bare))
    elif bare.startswith("="):
        found.append((ListProblem.INNER_EQUALS, bare))
    numbers = bare.split(":")[1:]
    if numbers and not (_NUMBER.fullmatch(numbers[0]) and _atoi(numbers[0]) > 0):
        found.append((ListProblem.BAD_PORT, bare))
    return found


def _split_device(device: str) -> tuple[str, int | None]:
    name, colon, port = device.rpartition(":")
    if colon and _NUMBER.fullmatch(port):
        return name, _atoi(port)
    return device, None
