"""Stands in for ssh where mpiexec or mpirun calls it: by it our own ssh options reach the hosts.

Started as ``python -P -m ncdiag.cluster.mpi.remote_shell [OPTION...] HOST WORD...``. Both launchers
split what they are told of ssh at blanks and know of one way to every host; this looks up in the
environment how each host is reached, and becomes that ssh.
"""

import os
import shutil
import sys
from collections.abc import Sequence

import msgspec

from ncdiag.cluster.mpi.ways import VARIABLE, Way, Ways
from ncdiag.cluster.ssh import client
from ncdiag.model.errors import UsageError
from ncdiag.model.host import Host


def command(arguments: Sequence[str], ways: Ways) -> tuple[str, ...]:
    """The ssh to become; raises UsageError where no host of ours is among ``arguments``.

    What stands before the host is meant for the ssh that the launcher knows of, such as ``-x``.
    """
    for place, name in enumerate(arguments):
        if name in ways.hosts:
            way = ways.hosts[name] or Way()
            host = Host(name=name, address=way.address or name, user=way.user, port=way.port)
            return (*client(host, ways.options), *arguments[place + 1 :])
    raise UsageError(f"none of the hosts is in: {' '.join(arguments[:2])}")


def main() -> None:
    """Become ssh."""
    try:
        ways = msgspec.json.decode(os.environ.pop(VARIABLE, ""), type=Ways)
        argv = command(sys.argv[1:], ways)
    except (msgspec.MsgspecError, UsageError) as error:
        sys.exit(f"this is started by ncdiag's MPI launchers, not by hand ({error})")
    program = shutil.which(argv[0])
    if program is None:
        sys.exit("ssh is not installed")
    os.execv(program, argv)  # noqa: S606 - no shell is what is wanted


if __name__ == "__main__":
    main()
