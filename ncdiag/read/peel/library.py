"""The prefix that NCCL and RCCL put before each of their lines.

``host:pid:tid [dev] NCCL INFO`` and, by version and level, a source location, a function, no
device at all, or the signature of a plug-in's function where the location stands.
"""

import re
from typing import NamedTuple

LEVELS = "WARN|INFO|TRACE|CALL|ABORT"
# Characters that no host name holds; what is not excluded here may be a redacted name.
_HOST = r"(?:<[\w.-]{1,100}>|[^\s:\[\]<>(){}|\"'`,;=\\]{1,255})"
_NO_HOST = frozenset(" \t\n\r\v\f:[]<>(){}|\"'`,;=\\")
_HOST_MAX = 255
# Prefix and message share a buffer of 1,024 bytes; a signature in place of a location is long.
_REACH = 1200

BARE = re.compile(
    rf"({_HOST}):(\d{{1,10}}):(\d{{1,10}}) (?:\[(-?\d{{1,4}})\] )?"
    rf"(?:\d+\.\d+ )?(?:(\S+:\d+) (?:\(([^()]{{0,200}})\) )?)?NCCL ({LEVELS})(?: |$)",
    re.ASCII,
)
_LEVEL = re.compile(rf" NCCL ({LEVELS})(?: |$)", re.ASCII)
_IDS = re.compile(r":(\d{1,10}):(\d{1,10})(?: \[(-?\d{1,4})\])?(?= )", re.ASCII)
_WHERE = re.compile(r" (?:\d+\.\d+ )?(.*\S:\d{1,7})(?: \(([^()]{0,200})\))? ?", re.ASCII)
# The rest of a prefix whose beginning is lost.
_LOST = re.compile(
    rf"(?::?(?:(?:\d{{1,10}}:)?\d{{1,10}} )?\[(-?\d{{1,4}})\] )?"
    rf"(?:(\S+:\d+) (?:\(([^()]{{0,200}})\) )?)?NCCL ({LEVELS})(?: |$)",
    re.ASCII,
)
_STREAMS = ("<stdout>", "<stderr>", "<stddiag>")


class Prefix(NamedTuple):
    """A library prefix from ``start`` to ``end`` of a text."""

    start: int
    end: int
    level: str
    host: str | None = None
    pid: str | None = None
    device: str | None = None
    location: str | None = None
    function: str | None = None


def at(text: str, start: int) -> Prefix | None:
    """The prefix that begins at ``start``, in one of the forms of the library itself."""
    found = BARE.match(text, start)
    if not found:
        return None
    host, pid, _, device, location, function, level = found.groups()
    return Prefix(start, found.end(), level, host, pid, device, location, function)


def lost_at(text: str, start: int) -> Prefix | None:
    """What is left at ``start`` of a prefix without its host."""
    found = _LOST.match(text, start)
    if not found:
        return None
    device, location, function, level = found.groups()
    return Prefix(start, found.end(), level, None, None, device, location, function)


def find_all(text: str, hosts: frozenset[str] | set[str], most: int = 256) -> list[Prefix]:
    """Every prefix in ``text``, wherever it begins; ``hosts`` are names known from clean lines."""
    found: list[Prefix] = []
    floor = 0
    for level in _LEVEL.finditer(text):
        prefix = _before(text, level, floor, hosts)
        if prefix:
            found.append(prefix)
            if len(found) == most:
                break
        floor = level.end()
    return found


def _before(
    text: str, level: re.Match[str], floor: int, hosts: frozenset[str] | set[str]
) -> Prefix | None:
    reach = max(floor, level.start() - _REACH)
    ids = None
    for candidate in _IDS.finditer(text, reach, level.start() + 1):
        if candidate[3] or level[1] == "CALL":
            ids = candidate
    if not ids:
        return None
    start = _host_start(text, ids.start(), reach, hosts)
    if start == ids.start():
        return None
    between = _WHERE.fullmatch(text, ids.end(), level.start())
    location, function = between.groups() if between else (None, None)
    host = text[start : ids.start()]
    return Prefix(start, level.end(), level[1], host, ids[1], ids[3], location, function)


def _host_start(text: str, end: int, floor: int, hosts: frozenset[str] | set[str]) -> int:
    """Where the host name that ends at ``end`` begins."""
    start = end
    if text[start - 1 : start] == ">":
        opened = text.rfind("<", max(floor, end - 102), end)
        return opened if opened >= 0 and text[opened:end] not in _STREAMS else end
    lowest = max(floor, end - _HOST_MAX)
    while start > lowest and text[start - 1] not in _NO_HOST:
        start -= 1
    token = text[start:end]
    if token not in hosts:
        # Another record may end in the same word: the longest known name is the host.
        for cut in range(1, len(token)):
            if token[cut:] in hosts:
                return start + cut
    return start
