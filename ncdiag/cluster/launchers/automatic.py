"""Which launcher ``auto`` is here, and why."""

from collections.abc import Sequence

from ncdiag.cluster.launcher import LauncherOptions
from ncdiag.cluster.launchers.kubernetes import KubernetesLauncher
from ncdiag.cluster.launchers.local import LocalLauncher
from ncdiag.cluster.launchers.slurm import SlurmLauncher
from ncdiag.cluster.launchers.ssh import SshLauncher
from ncdiag.cluster.loopback import is_loopback
from ncdiag.cluster.slurm_nodes import allocated_nodes
from ncdiag.cluster.slurm_step import inside_allocation
from ncdiag.model.host import Host


def best_launcher(hosts: Sequence[Host], options: LauncherOptions) -> tuple[str, str]:
    """Its name, and the reason in a few words."""
    if options.kubernetes.selector:
        return KubernetesLauncher.name, "pods are chosen by --selector"
    allocated = allocated_nodes() if inside_allocation() else None
    if allocated and all(host.name in allocated for host in hosts):
        return SlurmLauncher.name, "the hosts are in the Slurm allocation around us"
    if all(map(is_loopback, hosts)):
        return LocalLauncher.name, "all hosts are loopback addresses"
    if allocated:
        return SshLauncher.name, "not all hosts are in the Slurm allocation around us"
    return SshLauncher.name, "no allocation is around us, and no --selector is given"
