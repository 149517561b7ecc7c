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
    it is whichever mpiexec is installed. Raises UsageError, with where it looked, where none is,
    and for a launcher whose hosts none reaches.
    """
    if reason := _UNREACHED.get(launcher.name):
        raise UsageError(reason)
    reasons = []
    own = launcher.name in STARTERS
    for name in (launcher.name,) if own else tuple(STARTERS):
        starter = STARTERS[name](launcher.options)
        reason = starter.unavailable()
        if reason is None:
            return starter
        reasons.append(f"{name}: {reason}")
    why = "; ".join(reasons) or "none is known"
    raise UsageError(f"no way to start MPI programs beside the launcher {launcher.name}: {why}")
