"""Banners that people put over a kernel log they paste: ``== dmesg vq-07 (10.4.0.7) ==``.

They are worded freely, so that only lines of a kernel are given to the host in them.
"""

import re
from typing import NamedTuple

from ncdiag.model.log import NOBODY
from ncdiag.read.line import Line

# A host that is one of a list has a digit.
_HOST = r"(?=[A-Za-z_.-]{1,250}\d)[A-Za-z][\w.-]{0,252}"
_BANNER = re.compile(
    r"(?:(?P<mark>[=#*])(?P=mark){1,80}|---{1,80})(?P<file>>?) {0,8}(?P<title>[\w/(.].{0,200}?)"
    r" {0,8}(?:<?={2,80}|#{2,80}|\*{2,80}|-{3,80})?:?"
)
_PROMPT = re.compile(
    r"(?:\[?[\w.-]{1,64}@(?P<here>[\w.-]{1,253})[: ][^\s$#\]]{0,80}\]?)?[$#]"
    r" (?P<command>\w.{0,400})",
    re.ASCII,
)
_COMMAND = re.compile(
    r"(?:sudo )?(?:ssh (?:(?:-[46ACfnqTtvx]{1,8}|-[FiJlop] ?\S{1,128}) ){0,8}(?:[\w.-]{1,64}@)?"
    rf"(?P<host>{_HOST}) |(?:pdsh|clush|srun) (?:-[bBLNS]{{1,4}} ){{0,4}}-w ?(?P<of>{_HOST}) "
    r"(?:-[bBLNS]{1,4} ){0,4})?['\"]?(?:sudo )?"
    r"(?:dmesg\b(?!.{0,300} (?:-F|--file))"
    r"|journalctl\b(?!.{0,300} (?:-[DHM]|--(?:file|directory|host|machine|root|image))))",
    re.ASCII,
)
_ADDRESS = re.compile(r"(?<![\w.])\d{1,3}(?:\.\d{1,3}){3}(?![\w.])", re.ASCII)
# What kernel logs are called.
_LOG = r"(?:dmesg|journalctl|journal|kmsg|kern|syslog|messages)"
_IS_LOG = re.compile(rf"(?<![A-Za-z]){_LOG}(?![A-Za-z])|kernel (?:log|messages|ring)")
_NO_NAME = re.compile(rf"^{_LOG}[-_.]|[-_.]{_LOG}(?=$|[-_.])|\.(?:log|txt|out|gz)(?=$|\.)|^{_LOG}$")
_SUFFIX = re.compile(r"\.(?:log|kern|messages|syslog)$")
_PARTS = re.compile(r"[\s:,;()\[\]|'\"]+")
_NAME = re.compile(_HOST, re.ASCII)
# Words with numbers that are no hosts: parts and kinds of hosts, of jobs, of stories.
_NO_HOST = re.compile(
    r"(?:mlx|bnxt|eth|en[ospx]|ib|bond|nvme|nvidia|nvswitch|gpu|cpu|hca|nic|xid|sxid|cuda)_?\d.*"
    r"|(?:rank|local_?rank|proc|worker|job|slurm|run|train(?:er|ing)?|eval|exp|task|step|epoch|try"
    r"|trial|attempt|part|log|std(?:out|err)|test|case|day|boot|pod|container|v|rev|before|after"
    r"|utc|gmt)[-_.]?\d.*|(?:[abh]|gb|mi)[1-9]\d\d[a-z]?",
    re.ASCII | re.IGNORECASE,
)
# How drivers begin their messages where not even a time stands before them.
_KERNEL = re.compile(
    r"NVRM: |nvidia-[\w-]{1,32}: |mlx[45]_\w{1,8}[: ]|bnxt_en |pcieport |EDAC |mce: "
    r"|\{\d{1,9}\}\[Hardware Error\]: ",
    re.ASCII,
)


_FIRST = tuple("=#*-$[")
_PROMPT_MOST = 64


class _Named(NamedTuple):
    """What a banner names; ``sure`` if a kernel log is below it."""

    host: str | None = None
    address: str | None = None
    sure: bool = True


_NONE = _Named()


class Banners:
    """Knows the banner of the block at hand; takes every line of one input, in order."""

    def __init__(self) -> None:
        self._named = _NONE

    def under(self, line: Line, *, ends: bool) -> Line:
        """``line``, as the host's of its banner if a kernel says it; ``ends`` if others begin."""
        banner = _NONE if ends else _banner(line)
        if banner:
            self._named = banner
        if banner or not self._named.host or not line.text.strip():
            return line
        speaker, named = line.speaker, self._named
        others = speaker.host is not None and speaker.host != named.host
        if others or line.level or speaker.rank is not None:
            self._named = _NONE
        elif _is_of_kernel(line) and not speaker.address:
            self._named = named._replace(sure=True)
            return line._replace(speaker=speaker._replace(host=named.host, address=named.address))
        elif not named.sure:
            self._named = _NONE
        return line


def _is_of_kernel(line: Line) -> bool:
    speaker = line.speaker
    if line.origin is None and speaker == NOBODY:
        return _KERNEL.match(line.text) is not None
    return line.origin == "kernel" and not (speaker.label or speaker.pid)


def _banner(line: Line) -> _Named | None:
    """What ``line`` names if it is a banner, or a command at a prompt."""
    text = line.text.strip()
    if line.origin or line.speaker != NOBODY:
        return None
    if not text.startswith(_FIRST) and "@" not in text[:_PROMPT_MOST]:
        return None
    if found := _PROMPT.fullmatch(text):
        command = _COMMAND.match(found["command"])
        name = command and (command["host"] or command["of"] or found["here"])
        return _Named(name) if name and _is_host(name) else _NONE
    found = _BANNER.fullmatch(text)
    return _titled(found["title"], of_file=bool(found["file"])) if found else None


def _titled(title: str, *, of_file: bool) -> _Named:
    sure = _IS_LOG.search(title) is not None
    if of_file:
        name = _of_path(title) if sure or _SUFFIX.search(title) else None
        return _Named(name, sure=sure) if name else _NONE
    names = {name for word in _PARTS.split(title) if (name := _name_in(word))}
    addresses = _ADDRESS.findall(title)
    if not sure or len(names) != 1:
        return _NONE
    return _Named(names.pop(), addresses[0] if len(addresses) == 1 else None)


def _of_path(path: str) -> str | None:
    """The host that a file is called after, or else its folder."""
    return next((name for part in path.split("/")[:-3:-1] if (name := _name_in(part))), None)


def _name_in(word: str) -> str | None:
    """The host in a word, which may be the name of its log."""
    name = _NO_NAME.sub("", word.rstrip("."))
    return name if _is_host(name) else None


def _is_host(name: str) -> bool:
    return _NAME.fullmatch(name) is not None and not _NO_HOST.fullmatch(name)
