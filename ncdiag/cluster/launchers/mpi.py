"""MPI's own launchers, for sites where they are the way to start things: one for each host.

One mpiexec over all hosts would end with the first that is down, and take the others with it; and
its standard input, which carries the job and tells that the driver lives, reaches rank 0 alone.
"""

from collections.abc import Sequence

from ncdiag.cluster.launcher import Launch, LauncherOptions, RemoteJob, StartEnds
from ncdiag.cluster.mpi import STARTERS, MpiProgram
from ncdiag.cluster.ssh import starts_at_a_time
from ncdiag.model.host import Host


class _MpiLauncher:
    """Starts the job by the MPI starter of the same name, one command a host."""

    name: str
    start_ends = StartEnds.CONNECTED

    def __init__(self, options: LauncherOptions) -> None:
        self.options = options
        self.starts_at_a_time = starts_at_a_time(options.ssh_options)

    def unavailable(self) -> str | None:
        """Its starter has to be installed."""
        return STARTERS[self.name](self.options).unavailable()

    def launches(self, hosts: Sequence[Host], job: RemoteJob) -> list[Launch]:
        """One command a host; raises UsageError for hosts it cannot be told."""
        starter = STARTERS[self.name](self.options)
        return [
            starter.launch(
                [host],
                MpiProgram(
                    argv=job.command(self.options, "--host", host.name),
                    stdin=job.stdin,
                ),
            )
            for host in hosts
        ]


class HydraLauncher(_MpiLauncher):
    """The mpiexec of MPICH and Intel MPI."""

    name = "hydra"


class OpenMpiLauncher(_MpiLauncher):
    """Open MPI's mpirun."""

    name = "openmpi"
