"""Hosts that are loopback addresses of this machine: no root, no ssh; for trying things out."""

import os
from collections.abc import Sequence

from ncdiag.cluster.launcher import Launch, LauncherOptions, RemoteJob, StartEnds
from ncdiag.cluster.loopback import is_loopback
from ncdiag.model.errors import UsageError
from ncdiag.model.host import Host

# A start is bound by the CPU: about two seconds of it a host. More at once only wait for each other
# until connections time out.
_STARTS_PER_CORE = 3


class LocalLauncher:
    """Starts the job directly, once for each host."""

    name = "local"
    start_ends = StartEnds.READY

    def __init__(self, options: LauncherOptions) -> None:
        self.options = options
        self.starts_at_a_time = _STARTS_PER_CORE * len(os.sched_getaffinity(0))

    def unavailable(self) -> str | None:
        """Nothing is needed."""
        return None

    def launches(self, hosts: Sequence[Host], job: RemoteJob) -> list[Launch]:
        """One command a host; raises UsageError where a host is not a loopback address."""
        for host in hosts:
            if not is_loopback(host):
                raise UsageError(
                    f"the launcher local starts loopback addresses only, and {host.name} is none "
                    "(use --launcher ssh)"
                )
        return [
            Launch(
                argv=job.command(self.options, "--host", host.name),
                hosts=(host.name,),
                stdin=job.stdin,
            )
            for host in hosts
        ]
