"""What several ``env`` commands share: arguments, and how profiles and settings are found."""

import os
import sys
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer

from ncdiag.model.environment import Profile, Setting
from ncdiag.model.errors import UsageError
from ncdiag.model.text import visible
from ncdiag.profiles import placeholders, profile_files
from ncdiag.profiles.context import STANDARD_INPUT
from ncdiag.profiles.placeholders import HostValues

OUTPUT = "Output"
HOSTS = "Hosts and how to reach them"
STDIN = "-"
# The largest script or manifest that anybody writes is far below.
MAX_SETTINGS_BYTES = 16 * 1024**2

ProfileName = Annotated[
    str,
    typer.Argument(metavar="PROFILE", show_default=False, help="A profile's name, or its file."),
]
Inventory = Annotated[
    str | None,
    typer.Option(
        "--nodes",
        metavar="FILE|SET",
        rich_help_panel=HOSTS,
        help="Fill in {nic.socket} and {hca.compute} from nic= of these hosts, not from this one. "
        "Contacts nobody.",
    ),
]


def filled(profile: Profile, nodes: str | None) -> tuple[Profile, HostValues | None]:
    """``profile`` filled in for the hosts of ``nodes``, else for this host, and by whose values.

    Raises :class:`UsageError` where a value is missing, or hosts need different ones.
    """
    placeholders.check(profile)
    if not placeholders.needed(profile.settings):
        return profile, None
    hosts = _inventory(nodes) if nodes is not None else (_this_host(),)
    first = placeholders.fill(profile, hosts[0])
    for other in hosts[1:]:
        if placeholders.fill(profile, other).settings != first.settings:
            raise UsageError(
                f"{visible(hosts[0].host)} and {visible(other.host)} need different values "
                "(nic= of the hosts file): do it host by host, or with ncdiag env run on each"
            )
    return first, hosts[0]


def _this_host() -> HostValues:
    from ncdiag.health.devices import values_here

    return values_here()


def _inventory(nodes: str) -> tuple[HostValues, ...]:
    from ncdiag.cluster.inventory import read_hosts
    from ncdiag.health.devices import values_of

    return tuple(map(values_of, read_hosts(nodes)))


@dataclass(frozen=True, slots=True)
class Source:
    """What an operator named: the settings in it, and the profile if it is one.

    ``unread`` is whether it names variables and sets none that can be read, ``in_crlf`` whether it
    is output of ``env`` with the line ends of Windows.
    """

    name: str
    settings: tuple[Setting, ...]
    profile: Profile | None = None
    unread: bool = False
    in_crlf: bool = False


def source_of(operand: str) -> Source:
    """A profile, a file that sets variables, or standard input (``-``).

    A profile's name comes first, so that the folder a command is run in changes nothing.
    """
    if operand == STDIN:
        return _of_bytes(STANDARD_INPUT, sys.stdin.buffer.read(MAX_SETTINGS_BYTES + 1))
    is_profile = operand in profile_files.names() or operand.endswith(profile_files.SUFFIX)
    if not is_profile and (Path(operand).exists() or profile_files.is_path(operand)):
        return _of_bytes(operand, read_file(operand))
    profile = profile_files.load(operand)
    placeholders.check(profile)
    return Source(profile.name, profile.settings, profile)


def _of_bytes(name: str, data: bytes) -> Source:
    from ncdiag.profiles.sources import is_environment_in_crlf, mentions, read_settings

    settings = read_settings(data, name)
    return Source(
        name,
        settings,
        unread=not settings and mentions(data),
        in_crlf=bool(settings) and is_environment_in_crlf(data, name),
    )


def read_file(path: str) -> bytes:
    """The bytes of a file that is to hold settings; raises :class:`UsageError`."""
    try:
        with open(path, "rb") as file:  # noqa: PTH123 - kept as it was typed
            data = file.read(MAX_SETTINGS_BYTES + 1)
    except OSError as error:
        raise UsageError(f"{visible(path)}: {error.strerror}") from None
    if len(data) > MAX_SETTINGS_BYTES:
        raise UsageError(f"{visible(path)}: it is larger than 16 MiB; name a script or manifest")
    return data


def own_settings() -> tuple[Setting, ...]:
    """What this process's environment sets of the variables that ncdiag knows."""
    from ncdiag.profiles.sources import environment_settings

    return environment_settings(dict(os.environ))


def effective(settings: Iterable[Setting]) -> dict[str, Setting]:
    """The last setting of each variable; what is unset in the end is left out."""
    last = {one.name: one for one in settings}
    return {name: one for name, one in last.items() if one.value is not None}
