"""The list of hosts as MPI launchers want it: one argument, commas between names."""

from collections.abc import Sequence

from ncdiag.model.errors import UsageError
from ncdiag.model.host import Host

# MAX_ARG_STRLEN of Linux: what one argument can hold, less some room.
_MAX_CHARS = 120_000


def host_list(hosts: Sequence[Host], launcher: str, *, suffix: str = "") -> str:
    """The names, each with ``suffix``; raises UsageError for one that would be misread."""
    for host in hosts:
        if ":" in host.name:
            raise UsageError(
                f"{launcher} cannot be told of {host.name}, as a colon means a number of ranks "
                f"there: give the host a name in the hosts file (NAME address={host.name})"
            )
    names = ",".join(f"{host.name}{suffix}" for host in hosts)
    if len(names) > _MAX_CHARS:
        raise UsageError(f"{len(hosts)} hosts are more than one launch by {launcher} can be told")
    return names
