"""How the system's ssh is called: the site's configuration, jump hosts and Kerberos hold."""

import re
import shutil
from collections.abc import Sequence
from typing import Final

from ncdiag.model.errors import UsageError
from ncdiag.model.host import Host

_DEFAULTS: Final = (
    "BatchMode=yes",  # never ask anybody for a password
    "ConnectTimeout=5",
    # A dead link ends the client after 3 x 2 to 3 x 3 seconds.
    "ServerAliveInterval=3",
    "ServerAliveCountMax=2",
    # The site's forwardings would be set up once a host, and collide.
    "ClearAllForwardings=yes",
    # A connection left behind for others to share would outlive us; an existing one is used.
    "ControlMaster=no",
)
# A start takes some two seconds, most of them for Python there: by this many a thousand hosts are
# reached in about a minute, and our own CPU bears it.
_STARTS_AT_A_TIME = 32
# A jump host sees them all at once, and refuses some of more than this (MaxStartups 10:30:100 of
# sshd_config, by default). One that only ssh's own configuration knows of is not seen here.
_STARTS_THROUGH_A_JUMP = 10
_JUMP = re.compile(r"-J.*|(?:-o)?\s*(?i:Proxy(?:Jump|Command))\b.*", re.DOTALL)
_FLAG_AND_VALUE = re.compile(r"(-[A-Za-z])\s+(\S.*)", re.DOTALL)
_KEYWORD = re.compile(r"[A-Za-z]+\s*[=\s]\s*\S.*", re.DOTALL)


def ssh_arguments(option: str) -> tuple[str, ...]:
    """The arguments of one ``--ssh-option``: ``-4``, ``-F FILE``, ``-oPort=22`` or ``Port=22``.

    Never split any further, so a value may hold spaces; raises UsageError for anything that ssh
    would take for a host.
    """
    text = option.strip()
    if match := _FLAG_AND_VALUE.fullmatch(text):
        return match[1], match[2]
    if re.fullmatch(r"-[A-Za-z0-9].*", text, re.DOTALL):
        return (text,)
    if _KEYWORD.fullmatch(text):
        return "-o", text
    raise UsageError(f"not an option of ssh: {option!r} (examples: '-F FILE', 'ProxyJump=gateway')")


def missing() -> str | None:
    """Why hosts cannot be reached by it, with the cure; ``None`` where it is there."""
    if shutil.which("ssh"):
        return None
    return "ssh is not installed (on Debian: apt-get install openssh-client)"


def all_arguments(options: Sequence[str]) -> tuple[str, ...]:
    """The arguments of every ``--ssh-option``; see :func:`ssh_arguments`."""
    return tuple(argument for option in options for argument in ssh_arguments(option))


def starts_at_a_time(options: Sequence[str]) -> int:
    """How many connections may be begun at the same time; raises UsageError as those do."""
    through_a_jump = any(map(_JUMP.fullmatch, all_arguments(options)))
    return _STARTS_THROUGH_A_JUMP if through_a_jump else _STARTS_AT_A_TIME


def client(host: Host, options: Sequence[str]) -> tuple[str, ...]:
    """The command that opens the connection; the words to run on ``host`` come after it."""
    # Of two values ssh takes the first, so what the operator said comes before our defaults,
    # and the hosts file before both.
    where: list[str] = []
    if host.user:
        where += ("-l", host.user)
    if host.port:
        where += ("-p", str(host.port))
    if host.address != host.name:
        # The host keeps its name, so that its block in the configuration still applies. ssh
        # would expand %h here; an IPv6 zone has a % of its own.
        where += ("-o", f"HostName={host.address.replace('%', '%%')}")
    defaults = [part for default in _DEFAULTS for part in ("-o", default)]
    return ("ssh", "-T", *where, *all_arguments(options), *defaults, "--", host.name)
