"""The prefix that NCCL and RCCL put before each of their lines.

``host:pid:tid [dev] NCCL INFO`` and, by version and level, a source location, a function, no
device at all, or the signature of a plug-in's function where the location stands.
"""

import re
from typing import NamedTuple

from ncdiag.read.peel import quotes

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
# Up to 2.2 the library did not name itself.
_NAMELESS = re.compile(
    rf"({_HOST}):(\d{{1,10}}):(\d{{1,10}}) \[(-?\d{{1,4}})\] (?:(\S+:\d+) )?()(WARN|INFO) ",
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
# The file that grep puts before lines around those it found.
_FOUND_IN = re.compile(
    r"[\w./-]{1,250}\.(?:log|out|err|txt)[\w.]{0,16}-(?:\d{1,9}-)?(?=\w)", re.ASCII
)
_SMALL_PID = 200
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


def shares_pids(pid: str) -> bool:
    """Whether processes of many hosts have such a number: the first in their containers."""
    return int(pid) <= _SMALL_PID


def is_extended(name: str, end: str) -> bool:
    """Whether ``name`` is ``end`` with further words before it, as names are made."""
    before = name[: -len(end)]
    return before[:1].isalnum() and before[-1:] in {"-", ".", "_"}


class Hosts:
    """Names of hosts, and of their processes, that stood where a record begins.

    Another record may end in the very word a host name continues; what is known tells them apart.
    """

    _MOST = 65536
    _SHORTEST = 3

    def __init__(self) -> None:
        self._names: set[str] = set()
        self._processes: set[tuple[str, str]] = set()
        self._by_pid: dict[str, str] = {}

    def learn(self, host: str, pid: str | None = None) -> None:
        """Know a host, and a process of it."""
        if len(self._processes) < self._MOST and len(self._names) < self._MOST:
            self._names.add(host)
            if pid:
                self._processes.add((host, pid))
                self._by_pid[pid] = host

    def knows(self, host: str, pid: str) -> bool:
        """Whether this process was seen."""
        return (host, pid) in self._processes

    def glued(self, token: str, pid: str) -> int:
        """How much of ``token`` stands before the name of a host with a process ``pid``."""
        cuts = range(1, len(token))
        return next((cut for cut in cuts if (token[cut:], pid) in self._processes), 0)

    def may_be_two(self, token: str, pid: str) -> bool:
        """Whether ``token`` may be a host of its own, though another's name is its end."""
        known = token in self._names and shares_pids(pid)
        return known or is_extended(token, token[self.glued(token, pid) :])

    def ending(self, token: str) -> int:
        """How much of ``token`` stands before the name of a known host."""
        if token in self._names:
            return 0
        cuts = range(1, len(token) - self._SHORTEST + 1)
        return next((cut for cut in cuts if token[cut:] in self._names), 0)

    def whole(self, token: str, pid: str) -> str:
        """The host that ``token`` means, whose first letters were cut off or run over."""
        known = self._by_pid.get(pid, "")
        if self.is_tail(token, pid):
            return known
        if token.startswith("0x") and token.endswith(known[-self._SHORTEST :]):
            return known or token
        return token

    def is_tail(self, token: str, pid: str) -> bool:
        """Whether ``token`` is only the end of the name of the host whose process ``pid`` is."""
        known = self._by_pid.get(pid, "")
        return len(known) > len(token) and known.endswith(token) and not self.knows(token, pid)


def at(text: str, start: int) -> Prefix | None:
    """The prefix that begins at ``start``, in one of the forms of the library itself."""
    found = BARE.match(text, start) or _NAMELESS.match(text, start)
    if not found:
        return None
    host, pid, _, device, location, function, level = found.groups()
    if in_file(host):
        return None
    return Prefix(start, found.end(), level, host, pid, device, location, function or None)


def in_file(host: str) -> int:
    """How much of ``host`` is the name of the file that its line was found in."""
    found = _FOUND_IN.match(host) if "." in host and "-" in host else None
    return found.end() if found else 0


def lost_at(text: str, start: int) -> Prefix | None:
    """What is left at ``start`` of a prefix without its host."""
    found = _LOST.match(text, start)
    if not found:
        return None
    device, location, function, level = found.groups()
    return Prefix(start, found.end(), level, None, None, device, location, function)


def find_all(text: str, hosts: Hosts, most: int = 256) -> list[Prefix]:
    """Every prefix in ``text``, wherever it begins; ``hosts`` are known from clean lines."""
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


def _before(text: str, level: re.Match[str], floor: int, hosts: Hosts) -> Prefix | None:
    reach = max(floor, level.start() - _REACH)
    ids = None
    for candidate in _IDS.finditer(text, reach, level.start() + 1):
        if candidate[3] or level[1] == "CALL":
            ids = candidate
    if not ids:
        return None
    start = _host_start(text, ids, reach, hosts)
    if start == ids.start() or not quotes.spoken(text, start):
        return None
    between = _WHERE.fullmatch(text, ids.end(), level.start())
    location, function = between.groups() if between else (None, None)
    host = hosts.whole(text[start : ids.start()], ids[1])
    return Prefix(start, level.end(), level[1], host, ids[1], ids[3], location, function)


def _host_start(text: str, ids: re.Match[str], floor: int, hosts: Hosts) -> int:
    """Where the host name begins that stands before ``ids``."""
    start = end = ids.start()
    if text[start - 1 : start] == ">":
        opened = text.rfind("<", max(floor, end - 102), end)
        return opened if opened >= 0 and text[opened:end] not in _STREAMS else end
    lowest = max(floor, end - _HOST_MAX)
    while start > lowest and text[start - 1] not in _NO_HOST:
        start -= 1
    if start and text[start - 1] == "\\" and text[start] in "nrt" and start + 1 < end:
        # The end of a line, as strings spell it.
        start += 1
    start += in_file(text[start:end])
    token = text[start:end]
    if start >= 3 and text.startswith("-> ", start - 3) and len(token) > 1:
        # The result of a back-trace is one digit.
        return start + 1
    return start + (hosts.glued(token, ids[1]) or hosts.ending(token))
