"""How each host is reached by ssh, told in one variable to what stands in for ssh."""

from collections.abc import Mapping, Sequence
from typing import Final

import msgspec

from ncdiag.cluster import ssh
from ncdiag.model.errors import UsageError
from ncdiag.model.host import Host

# What stands in for ssh; not imported here, since Python complains of a module that it is to run
# and has already.
REMOTE_SHELL: Final = "ncdiag.cluster.mpi.remote_shell"
VARIABLE: Final = "NCDIAG_REMOTE_SHELL"
# MAX_ARG_STRLEN of Linux, which one variable with its name has to fit into, less some room.
_MAX_CHARS = 120_000


class Way(msgspec.Struct, frozen=True, array_like=True, omit_defaults=True):
    """How one host is reached, where its name does not say it all."""

    address: str | None = None
    user: str | None = None
    port: int | None = None


class Ways(msgspec.Struct, frozen=True):
    """The options of ssh for all hosts, and the hosts with a way of their own."""

    options: tuple[str, ...] = ()
    hosts: dict[str, Way | None] = {}


def describe(hosts: Sequence[Host], ssh_options: Sequence[str]) -> Mapping[str, str]:
    """The variables to start mpiexec with; raises UsageError for options that ssh has not."""
    ssh.all_arguments(ssh_options)
    ways = Ways(tuple(ssh_options), {host.name: _way(host) for host in hosts})
    text = msgspec.json.encode(ways).decode()
    if len(text) > _MAX_CHARS:
        raise UsageError(
            f"{len(hosts)} hosts are more than one MPI launch can be told how to reach: "
            "put addresses, users and ports into ssh's configuration, or name fewer hosts"
        )
    return {VARIABLE: text}


def unavailable() -> str | None:
    """Why hosts cannot be reached by it; ``None`` if they can."""
    return ssh.missing()


def _way(host: Host) -> Way | None:
    if host.address == host.name and not host.user and not host.port:
        return None
    return Way(host.address if host.address != host.name else None, host.user, host.port)
