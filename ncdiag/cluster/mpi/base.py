"""What starts an MPI program: it says which command does, and starts nothing itself."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from ncdiag.cluster.launcher import Launch, LauncherOptions
from ncdiag.model.host import Host


@dataclass(frozen=True, slots=True, kw_only=True)
class MpiProgram:
    """A program to run as one MPI job: ``ranks_per_host`` ranks on each host.

    Ranks go host by host in the order of the hosts: with two a host, 0 and 1 are on the first.
    ``variables`` are set for every rank, and are no secrets. ``stdin`` reaches rank 0 alone, which
    has to read all of it (Hydra fails over what is left unread) and must not wait for its end (Open
    MPI 5 never tells it).
    """

    argv: tuple[str, ...]
    ranks_per_host: int = 1
    variables: Mapping[str, str] = field(default_factory=dict)
    stdin: bytes = b""


class MpiStarter(Protocol):
    """One way to start MPI programs on hosts (Open MPI's mpirun, Hydra's mpiexec, Slurm's srun).

    ``rank_variable`` is the environment variable that holds a process's rank.
    """

    name: str
    rank_variable: str

    def unavailable(self) -> str | None:
        """Why it cannot be used here, with the cure; ``None`` if it can."""
        ...

    def launch(self, hosts: Sequence[Host], program: MpiProgram) -> Launch:
        """The one command that runs ``program`` on ``hosts``; raises UsageError."""
        ...


class MakesStarter(Protocol):
    """How the registry makes one; ``options`` are the launcher's."""

    def __call__(self, options: LauncherOptions) -> MpiStarter:
        """Make it."""
        ...
