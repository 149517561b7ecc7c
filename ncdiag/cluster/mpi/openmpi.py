"""Open MPI's mpirun, versions 4 and 5: one for all hosts."""

import os
import sys
from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from ncdiag.cluster.die_with_parent import die_with_parent
from ncdiag.cluster.launcher import Launch, LauncherOptions
from ncdiag.cluster.loopback import is_loopback
from ncdiag.cluster.mpi import ways
from ncdiag.cluster.mpi.base import MpiProgram
from ncdiag.cluster.mpi.names import host_list
from ncdiag.cluster.mpi.programs import OPEN_MPI, find
from ncdiag.model.errors import UsageError
from ncdiag.model.host import Host

_NAMES: Final = ("mpirun", "mpiexec")


class OpenMpiStarter:
    """Reaches hosts by ssh as the launcher ssh does; this machine's loopback addresses directly.

    What version 4 calls rsh version 5 leaves to PRRTE and calls ssh. Both are told by variables,
    as each minds only its own.
    """

    name = "openmpi"
    rank_variable = "OMPI_COMM_WORLD_RANK"

    def __init__(self, options: LauncherOptions) -> None:
        self.options = options

    def unavailable(self) -> str | None:
        """An mpirun has to be there that is Open MPI's, and ssh."""
        found, why = find(OPEN_MPI, _NAMES)
        if found is None:
            return f"{why} (apt-get install openmpi-bin, or load the site's module of Open MPI)"
        if " " in sys.executable:
            return f"it splits the path of {sys.executable} at its blank: install ncdiag elsewhere"
        return ways.unavailable()

    def launch(self, hosts: Sequence[Host], program: MpiProgram) -> Launch:
        """One mpirun; raises UsageError for hosts that it cannot be told."""
        found, why = find(OPEN_MPI, _NAMES)
        if found is None:
            raise UsageError(f"no mpirun of Open MPI: {why}")
        a_host = program.ranks_per_host
        total = a_host * len(hosts)
        if all(map(is_loopback, hosts)):
            # To it they are all one machine.
            where: tuple[str, ...] = ("--host", f"localhost:{total}")
            where += ("--map-by", ":OVERSUBSCRIBE")
            reached: Mapping[str, str] = {}
            # On hosts its daemon ends them when mpirun is killed; here that is mpirun itself.
            command = die_with_parent(program.argv, started_by_us=False)
        else:
            where = ("--host", host_list(hosts, self.name, suffix=f":{a_host}"))
            where += ("--map-by", f"ppr:{a_host}:node:OVERSUBSCRIBE")
            reached = self._by_our_ssh(hosts)
            command = program.argv
        argv = (
            found.path,
            *(("--allow-run-as-root",) if os.geteuid() == 0 else ()),
            *where,
            *("--bind-to", "none", "-n", str(total)),
            *_variables(program),
            *command,
        )
        return Launch(
            argv=argv,
            hosts=tuple(host.name for host in hosts),
            stdin=program.stdin,
            environment=reached,
        )

    def _by_our_ssh(self, hosts: Sequence[Host]) -> Mapping[str, str]:
        agent = f"{sys.executable} -P -m {ways.REMOTE_SHELL}"
        settings = {
            # Also inside an allocation, of whose steps nothing is known here.
            "OMPI_MCA_plm": "rsh",
            "PRTE_MCA_plm": "ssh",
            "OMPI_MCA_plm_rsh_agent": agent,
            "PRTE_MCA_plm_ssh_agent": agent,
            # Else hosts start other hosts, and know nothing of our ssh.
            "OMPI_MCA_plm_rsh_no_tree_spawn": "1",
            "PRTE_MCA_plm_ssh_no_tree_spawn": "1",
        }
        return {**settings, **ways.describe(hosts, self.options.ssh_options)}


def _variables(program: MpiProgram) -> Iterator[str]:
    for name, value in program.variables.items():
        yield from ("-x", f"{name}={value}")
