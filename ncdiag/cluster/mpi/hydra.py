"""Hydra, the process manager of MPICH, Intel MPI and MVAPICH: one mpiexec for all hosts."""

import sys
from collections.abc import Iterator, Sequence
from typing import Final

from ncdiag.cluster.launcher import Launch, LauncherOptions
from ncdiag.cluster.loopback import is_loopback
from ncdiag.cluster.mpi import ways
from ncdiag.cluster.mpi.base import MpiProgram
from ncdiag.cluster.mpi.names import host_list
from ncdiag.cluster.mpi.own_address import own_address
from ncdiag.cluster.mpi.programs import HYDRA, find
from ncdiag.model.errors import UsageError
from ncdiag.model.host import Host

_NAMES: Final = ("mpiexec.hydra", "mpiexec", "mpirun")


class HydraStarter:
    """Reaches hosts by ssh as the launcher ssh does; this machine's loopback addresses by fork."""

    name = "hydra"
    rank_variable = "PMI_RANK"

    def __init__(self, options: LauncherOptions) -> None:
        self.options = options

    def unavailable(self) -> str | None:
        """An mpiexec has to be there that is Hydra's, and ssh."""
        found, why = find(HYDRA, _NAMES)
        if found is None:
            return (
                f"{why} (apt-get install mpich, {sys.executable} -m pip install mpich, "
                "or load the site's module of MPICH or Intel MPI)"
            )
        return ways.unavailable()

    def launch(self, hosts: Sequence[Host], program: MpiProgram) -> Launch:
        """One mpiexec; raises UsageError for hosts that it cannot be told."""
        names = host_list(hosts, self.name)
        found, why = find(HYDRA, _NAMES)
        if found is None:
            raise UsageError(f"no mpiexec of Hydra: {why}")
        local = all(map(is_loopback, hosts))
        # Not its launcher ssh, which puts off a host that it has been to before.
        way = ("fork",) if local else ("rsh", "-launcher-exec", sys.executable)
        environment = {
            # What it calls a host is our name for it, which only our ssh may know.
            "HYDRA_HOSTNAME_PROPAGATION": "0",
        }
        if not local:
            extra = f"-P -m {ways.REMOTE_SHELL}"
            environment |= {
                "HYDRA_LAUNCHER_EXTRA_ARGS": extra,
                "I_MPI_HYDRA_BOOTSTRAP_EXEC_EXTRA_ARGS": extra,
                **ways.describe(hosts, self.options.ssh_options),
            }
        ranks = str(program.ranks_per_host)
        argv = (
            *(found.path, "-launcher", *way, *self._own_address(hosts)),
            *("-hosts", names, "-ppn", ranks, "-n", str(program.ranks_per_host * len(hosts))),
            *_variables(program),
            *program.argv,
        )
        return Launch(
            argv=argv,
            hosts=tuple(host.name for host in hosts),
            stdin=program.stdin,
            environment=environment,
        )

    def _own_address(self, hosts: Sequence[Host]) -> tuple[str, ...]:
        """Where hosts call back: by default at our name, which they may not be able to look up."""
        address = self.options.driver_address or own_address(hosts)
        return ("-localhost", address) if address else ()


def _variables(program: MpiProgram) -> Iterator[str]:
    # Like ssh: hosts get no variable of ours.
    yield "-genvnone"
    for name, value in program.variables.items():
        yield from ("-genv", name, value)
