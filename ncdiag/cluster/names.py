"""What a host may be called: names, IP addresses and node sets, each safe to pass on to programs.

Every complaint is a :class:`UsageError`.
"""

import ipaddress
import math
import re
from typing import Final

from ClusterShell.NodeSet import RESOLVER_NOGROUP, NodeSet, NodeSetException

from ncdiag.model.errors import UsageError
from ncdiag.model.text import visible

# Ten times the largest fleet ncdiag is made for; a mistyped range must not fill the memory.
MAX_HOSTS: Final = 100_000

SHOWN_CHARS = 60
_MAX_NAME_CHARS = 253  # RFC 1035, 2.3.4, less the root's dot
_MAX_DIGITS = 18  # a longer run of digits is no host's number
_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9._-]*")
_ZONE = re.compile(r"%[A-Za-z0-9._-]{1,32}")
_IPV4_LIKE = re.compile(r"\d+\.\d+\.\d+\.\d+", re.ASCII)
BRACKETS = re.compile(r"\[([^\[\]]*)\]")
_RANGE = re.compile(r"(\d+)(?:-(\d+))?", re.ASCII)
_OUTSIDE_BRACKETS = re.compile(r",(?![^\[]*\])")
_LONG_NUMBER = re.compile(rf"\d{{{_MAX_DIGITS + 1}}}", re.ASCII)


def expand(target: str) -> tuple[str, ...]:
    """The host names of a name, a node set or an IPv6 address, each of them safe to pass on."""
    if ":" in target or not {"[", "]"} & set(target):
        return (check_target(target),)
    _check_ranges(target)
    try:
        names = tuple(NodeSet(target, resolver=RESOLVER_NOGROUP))
    except NodeSetException as error:
        reason = _first_line(error).removesuffix(f': "{target}"')
        raise UsageError(f"not a node set: {shown(target)}: {reason}") from None
    return tuple(_check_name(name) for name in names)


def parted(text: str) -> list[str]:
    """The node sets of ``a,b,gpu[1-4,7]``: a comma inside of brackets parts none."""
    return _OUTSIDE_BRACKETS.split(text)


def check_count(count: int) -> None:
    """Refuse more hosts than anybody has."""
    if count > MAX_HOSTS:
        raise UsageError(f"more than {MAX_HOSTS:,} hosts; shorten the node set")


def check_target(text: str) -> str:
    """The one name or IP address; an IPv6 address comes back without its brackets."""
    return _check_ipv6(text) if ":" in text else _check_name(text)


def check_user(user: str) -> str:
    """The user to log in as."""
    if not _NAME.fullmatch(user):
        raise UsageError(f"{shown(user)} is no user name; write user@host")
    return user


def check_port(port: int) -> int:
    """The TCP port to log in at."""
    if not 1 <= port <= 65535:
        raise UsageError(f"{port} is no port; 1 to 65535 are")
    return port


def shown(text: str) -> str:
    """Text from the file, quoted, cut to a readable length, with control characters visible."""
    cut = text if len(text) <= SHOWN_CHARS else f"{text[:SHOWN_CHARS]}..."
    return f"'{visible(cut)}'"


def _check_ranges(target: str) -> None:
    """Refuse a node set of too many hosts before it is expanded."""
    if _LONG_NUMBER.search(target):
        raise UsageError(f"a number of more than {_MAX_DIGITS} digits in {shown(target)}")
    counts = []
    for inside in BRACKETS.findall(target):
        ranges = [_RANGE.fullmatch(part) for part in inside.split(",")]
        if not all(ranges):
            raise UsageError(
                f"not a node set: {shown(target)}; ranges look like [1-8] or [001-128,130]"
            )
        counts.append(sum(max(int(r[2]) - int(r[1]) + 1, 1) if r and r[2] else 1 for r in ranges))
    check_count(math.prod(counts))


def _check_name(name: str) -> str:
    if len(name) > _MAX_NAME_CHARS:
        raise UsageError(f"a host name of more than {_MAX_NAME_CHARS} characters: {shown(name)}")
    if not _NAME.fullmatch(name):
        raise UsageError(
            f"{shown(name)} is no host name; it starts with a letter or digit, "
            "and letters, digits and ._- follow"
        )
    if _IPV4_LIKE.fullmatch(name):
        try:
            ipaddress.IPv4Address(name)
        except ValueError:
            raise UsageError(f"{name} is no IPv4 address") from None
    return name


def _check_ipv6(text: str) -> str:
    bracketed = text.startswith("[") and text.endswith("]")
    address = text[1:-1] if bracketed else text
    try:
        plain, percent, zone = address.partition("%")
        ipaddress.IPv6Address(plain)
    except ValueError:
        raise UsageError(
            f"{shown(text)} is no IPv6 address; one looks like [fe80::1%eth0]"
        ) from None
    if percent and not _ZONE.fullmatch(percent + zone):
        raise UsageError(f"{shown(zone)} is no interface name ({shown(text)})")
    return address


def _first_line(error: Exception) -> str:
    return visible(f"{error}".partition("\n")[0])
