"""Ways to start a job on many hosts; each returns commands, so that what calls them stays one."""

import difflib
import sys
from collections.abc import Sequence

from ncdiag.cluster.launcher import (
    KubernetesOptions,
    Launch,
    Launcher,
    LauncherOptions,
    Registry,
    RemoteJob,
    SlurmOptions,
    StartEnds,
)
from ncdiag.cluster.launchers.automatic import best_launcher
from ncdiag.cluster.launchers.kubernetes import KubernetesLauncher
from ncdiag.cluster.launchers.local import LocalLauncher
from ncdiag.cluster.launchers.mpi import HydraLauncher, OpenMpiLauncher
from ncdiag.cluster.launchers.slurm import SlurmLauncher
from ncdiag.cluster.launchers.ssh import SshLauncher
from ncdiag.cluster.loopback import is_loopback
from ncdiag.cluster.ssh import ssh_arguments
from ncdiag.model.errors import UsageError
from ncdiag.model.host import Host

__all__ = [
    "AUTO",
    "KUBERNETES",
    "LAUNCHERS",
    "KubernetesOptions",
    "Launch",
    "Launcher",
    "LauncherOptions",
    "RemoteJob",
    "SlurmOptions",
    "StartEnds",
    "best_launcher",
    "choose",
    "is_loopback",
    "ssh_arguments",
]

AUTO = "auto"
KUBERNETES = KubernetesLauncher.name
LAUNCHERS: Registry = {
    launcher.name: launcher
    for launcher in (
        LocalLauncher,
        SshLauncher,
        SlurmLauncher,
        HydraLauncher,
        OpenMpiLauncher,
        KubernetesLauncher,
    )
}


def choose(name: str, hosts: Sequence[Host], options: LauncherOptions | None = None) -> Launcher:
    """The launcher called ``name``; ``auto`` is the best one here.

    Raises UsageError where there is no such launcher, or it cannot be used here.
    """
    options = options or LauncherOptions(python=sys.executable)
    if name == AUTO:
        name, _ = best_launcher(hosts, options)
    if name not in LAUNCHERS:
        known = [AUTO, *LAUNCHERS]
        near = difflib.get_close_matches(name.lower(), known, n=1)
        hint = f"did you mean {near[0]}?" if near else f"there are {', '.join(known)}"
        raise UsageError(f"no launcher is called {name!r}: {hint}")
    launcher = LAUNCHERS[name](options)
    if reason := launcher.unavailable():
        raise UsageError(f"the launcher {name} cannot be used: {reason}")
    return launcher
