"""How the operator wants hosts to be reached, as commands are told by their options."""

import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from ncdiag.cluster.inventory import read_hosts
from ncdiag.cluster.launchers import (
    AUTO,
    KUBERNETES,
    KubernetesOptions,
    Launcher,
    LauncherOptions,
    SlurmOptions,
    best_launcher,
    choose,
)
from ncdiag.cluster.pods import find_pods, hosts_of
from ncdiag.model.errors import UsageError
from ncdiag.model.host import Host
from ncdiag.model.units import format_count


@dataclass(frozen=True, slots=True, kw_only=True)
class Way:
    """How the operator wants the hosts to be reached."""

    launcher: str
    ssh_options: Sequence[str] = ()
    python: str | None = None
    setup: str | None = None
    driver_address: str | None = None
    slurm: SlurmOptions = field(default_factory=SlurmOptions)
    kubernetes: KubernetesOptions = field(default_factory=KubernetesOptions)

    def launcher_for(self, hosts: Sequence[Host]) -> Launcher:
        """The launcher to use; raises :class:`UsageError` where it cannot be used."""
        return choose(self.launcher, hosts, self._options())

    def why(self, hosts: Sequence[Host]) -> str:
        """Why it is that launcher, where it was not named."""
        return best_launcher(hosts, self._options())[1] if self.launcher == AUTO else ""

    def hosts(self, nodes: str | None, *, at_least: int) -> tuple[Host, ...]:
        """The hosts of ``--nodes``; without it those of the pods, or of the allocation, around us.

        Raises :class:`UsageError`.
        """
        by_pods = self.launcher == AUTO and self.kubernetes.selector
        if not by_pods and self.launcher != KUBERNETES:
            return read_hosts(nodes, at_least=at_least)
        named = None if nodes is None else read_hosts(nodes, at_least=at_least)
        hosts = hosts_of(find_pods(self.kubernetes), named)
        if len(hosts) < at_least:
            raise UsageError(
                f"--selector {self.kubernetes.selector} finds pods on "
                f"{format_count(len(hosts), 'node')}, at least {at_least} needed"
            )
        return hosts

    def _options(self) -> LauncherOptions:
        return LauncherOptions(
            python=self.python or sys.executable,
            remote_setup=self.setup,
            ssh_options=self.ssh_options,
            driver_address=self.driver_address,
            slurm=self.slurm,
            kubernetes=self.kubernetes,
        )


def way_of(given: Mapping[str, Any]) -> Way:
    """The way that the parameters of a command say, by their names in ``cli.options``."""
    return Way(
        launcher=given["launcher"],
        ssh_options=tuple(given["ssh_option"]),
        python=given["remote_python"],
        setup=given["remote_setup"],
        driver_address=given["driver_address"],
        slurm=SlurmOptions(
            partition=given["partition"],
            account=given["account"],
            time_limit=given["time"],
            srun_arguments=tuple(given["srun_arg"]),
            container_image=given["container_image"],
        ),
        kubernetes=KubernetesOptions(
            selector=given["selector"],
            namespace=given["namespace"],
            context=given["kube_context"],
            container=given["container"],
        ),
    )
