"""What a launcher is: it says which commands start a job on hosts, and starts nothing itself."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Final, Protocol

from ncdiag.cluster.launch import Launch
from ncdiag.model.host import Host

__all__ = [
    "KubernetesOptions",
    "Launch",
    "Launcher",
    "LauncherOptions",
    "MakesLauncher",
    "Registry",
    "RemoteJob",
    "SlurmOptions",
    "StartEnds",
]

# Sourced in a function, so that a set-up file sees no arguments (conda's activate would take ours
# for its own), and with no input, since the job is waiting there. A file that hangs would outlive
# whoever started us, since sshd ends nothing: the guard ends it, with its process group, once our
# parent is another one.
_SOURCE_FIRST: Final = (
    'set_up() { . "$0" </dev/null; }; '
    'guard() { while sleep 1 && read -r _ _ _ parent _ <"/proc/$$/stat" && '
    '[ "$parent" = "$PPID" ]; do :; done; kill -s KILL -- "-$$"; }; '
    "guard </dev/null >/dev/null 2>&1 & guard=$!; set_up; "
    '{ kill "$guard"; wait "$guard"; } 2>/dev/null || :; exec "$@"'
)


@dataclass(frozen=True, slots=True, kw_only=True)
class RemoteJob:
    """A module of ncdiag to run on every host; the same ``stdin`` goes to all of them."""

    module: str
    stdin: bytes = b""

    def command(self, options: "LauncherOptions", *arguments: str) -> tuple[str, ...]:
        """The command to run on a host, set up as ``options`` say.

        ``-P`` keeps Python from importing whatever lies in the folder it starts in.
        """
        python = (options.python, "-P", "-m", self.module, *arguments)
        setup = options.remote_setup
        if not setup:
            return python
        # Without a slash the shell would look for the file along PATH.
        return ("sh", "-c", _SOURCE_FIRST, setup if "/" in setup else f"./{setup}", *python)


@dataclass(frozen=True, slots=True, kw_only=True)
class SlurmOptions:
    """What Slurm is told: for an allocation of our own, and for every step.

    ``time_limit`` is in Slurm's own notation. ``srun_arguments`` are passed on one by one as they
    are typed; ``container_image`` is for pyxis.
    """

    partition: str | None = None
    account: str | None = None
    time_limit: str | None = None
    srun_arguments: tuple[str, ...] = ()
    container_image: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class KubernetesOptions:
    """Which pods stand for hosts, and how kubectl finds them."""

    selector: str | None = None
    namespace: str | None = None
    context: str | None = None
    container: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class LauncherOptions:
    """How the operator wants things started.

    ``python`` is the interpreter on the hosts; ``remote_setup`` a file there that is sourced before
    it; ``ssh_options`` are passed on as they are typed. ``driver_address`` is where hosts reach
    this machine; ``None`` leaves it to be found.
    """

    python: str
    remote_setup: str | None = None
    ssh_options: Sequence[str] = field(default=())
    driver_address: str | None = None
    slurm: SlurmOptions = field(default_factory=SlurmOptions)
    kubernetes: KubernetesOptions = field(default_factory=KubernetesOptions)


class StartEnds(StrEnum):
    """When a start no longer counts against those that may be under way at a time."""

    CONNECTED = "connected"
    READY = "ready"


class Launcher(Protocol):
    """One way to start a job on hosts.

    ``starts_at_a_time`` bounds the launches that are under way; ``start_ends`` says when one is
    over: once the host answers, or, where the hosts share this machine's cores, once it is ready.
    """

    name: str
    starts_at_a_time: int
    start_ends: StartEnds
    options: LauncherOptions

    def unavailable(self) -> str | None:
        """Why this launcher cannot be used here, with the cure; ``None`` if it can."""
        ...

    def launches(self, hosts: Sequence[Host], job: RemoteJob) -> list[Launch]:
        """The commands that start ``job`` on ``hosts``; raises UsageError for hosts it cannot."""
        ...


class MakesLauncher(Protocol):
    """How the registry makes a launcher."""

    def __call__(self, options: LauncherOptions) -> Launcher:
        """Make it; raises UsageError where an option makes no sense."""
        ...


Registry = Mapping[str, MakesLauncher]
