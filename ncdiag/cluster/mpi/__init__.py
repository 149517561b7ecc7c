"""Ways to start one MPI program on many hosts; each returns the command, as launchers do."""

from collections.abc import Mapping

from ncdiag.cluster.launcher import Launcher
from ncdiag.cluster.mpi.base import MakesStarter, MpiProgram, MpiStarter
from ncdiag.cluster.mpi.hydra import HydraStarter
from ncdiag.cluster.mpi.openmpi import OpenMpiStarter
from ncdiag.cluster.mpi.slurm import SlurmStarter
from ncdiag.model.errors import UsageError

__all__ = ["STARTERS", "MpiProgram", "MpiStarter", "choose_starter"]

# Pods that idle have no sshd, and ssh to them would need keys of their own.
_UNREACHED: Mapping[str, str] = {
    "kubernetes": "MPI programs cannot be started by kubectl exec: take --engine torch, or let "
    "MPI have pods of its own (ncdiag manifests mpijob)"
}

STARTERS: Mapping[str, MakesStarter] = {
    starter.name: starter for starter in (HydraStarter, OpenMpiStarter, SlurmStarter)
}


def choose_starter(launcher: Launcher) -> MpiStarter:
    """How MPI programs are started beside ``launcher``.

    A launcher that starts MPI programs itself has the starter of its own name; beside ssh and local
    it is whichever mpiexec is installed. Raises UsageError where none is, and for a launcher whose
    hosts none reaches.
    """
    if reason := _UNREACHED.get(launcher.name):
        raise UsageError(reason)
    if own := STARTERS.get(launcher.name):
        starter = own(launcher.options)
        if reason := starter.unavailable():
            raise UsageError(f"the launcher {launcher.name} starts no MPI programs: {reason}")
        return starter
    for make in STARTERS.values():
        starter = make(launcher.options)
        if starter.unavailable() is None:
            return starter
    raise UsageError(
        f"there is no MPI to start programs with beside the launcher {launcher.name}: install "
        "MPICH or Open MPI, or load its module; ncdiag doctor says what was looked for"
    )
