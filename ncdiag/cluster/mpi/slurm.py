"""Slurm as the process manager of an MPI job: one srun inside the allocation around us."""

from collections.abc import Sequence

from ncdiag.cluster import slurm_step
from ncdiag.cluster.launcher import Launch, LauncherOptions
from ncdiag.cluster.mpi.base import MpiProgram
from ncdiag.cluster.slurm_job import default_mpi
from ncdiag.cluster.slurm_step import site_arguments, step_arguments
from ncdiag.model.host import Host


class SlurmStarter:
    """How ranks find one another (PMI) is Slurm's MpiDefault, or ``--srun-arg=--mpi=pmix``."""

    name = "slurm"
    rank_variable = "SLURM_PROCID"

    def __init__(self, options: LauncherOptions) -> None:
        self.options = options

    def unavailable(self) -> str | None:
        """Srun has to be there, and an allocation: outside of one each srun would ask for its own.

        Where Slurm has to be asked first, that is done before anything is started.
        """
        if reason := slurm_step.missing():
            return reason
        if slurm_step.inside_allocation():
            return self._without_pmi()
        return "not inside a Slurm allocation (salloc -N4 ncdiag ..., or --launcher slurm)"

    def _without_pmi(self) -> str | None:
        told = any(one.startswith("--mpi=") for one in self.options.slurm.srun_arguments)
        if told or default_mpi() != "none":
            return None
        return (
            "Slurm's MpiDefault is none, with which each rank would be alone: name one of "
            "'srun --mpi=list', such as --srun-arg=--mpi=pmix (Open MPI) or --mpi=pmi2 (MPICH)"
        )

    def launch(self, hosts: Sequence[Host], program: MpiProgram) -> Launch:
        """One step, which ends whole with the first rank that fails; raises UsageError."""
        argv = (
            *("srun", "--overlap", "--kill-on-bad-exit=1", "--wait=0", "--overcommit"),
            *step_arguments(hosts, program.ranks_per_host),
            *site_arguments(self.options),
            "--input=0",
            *program.argv,
        )
        return Launch(
            argv=argv,
            hosts=tuple(host.name for host in hosts),
            stdin=program.stdin,
            # Not --export=NAME=VALUE, which a comma in a value would cut.
            environment=dict(program.variables),
        )
