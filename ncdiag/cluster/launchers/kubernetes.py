"""kubectl exec into pods that are there already, one a node."""

import shutil
from collections.abc import Sequence

from ncdiag.cluster.launch import telling
from ncdiag.cluster.launcher import Launch, LauncherOptions, RemoteJob, StartEnds
from ncdiag.cluster.pods import NOT_INSTALLED, Pod, find_pods, kubectl
from ncdiag.model.host import Host
from ncdiag.model.text import visible

# Each is a connection through the API server, which the whole cluster shares. By this many, of some
# two seconds each, a thousand pods are reached in about two minutes.
_STARTS_AT_A_TIME = 16


class KubernetesLauncher:
    """Starts the job in the pod of each host, which is a node; the connection stays open."""

    name = "kubernetes"
    start_ends = StartEnds.CONNECTED
    starts_at_a_time = _STARTS_AT_A_TIME

    def __init__(self, options: LauncherOptions) -> None:
        self.options = options

    def unavailable(self) -> str | None:
        """Kubectl has to be installed."""
        return None if shutil.which("kubectl") else NOT_INSTALLED

    def launches(self, hosts: Sequence[Host], job: RemoteJob) -> list[Launch]:
        """One command a host; where its pod is not ready, one that says why.

        Raises UsageError where kubectl refuses or no pod is found at all.
        """
        pods = find_pods(self.options.kubernetes)
        return [self._launch(host, pods.get(host.name), job) for host in hosts]

    def _launch(self, host: Host, pod: Pod | None, job: RemoteJob) -> Launch:
        options = self.options.kubernetes
        if pod is None:
            return telling(host.name, f"no pod of --selector {options.selector} is on that node")
        if pod.trouble is not None:
            return telling(host.name, visible(pod.trouble))
        container = (f"--container={options.container}",) if options.container else ()
        command = job.command(self.options, "--host", host.name)
        argv = kubectl("exec", options, "--stdin", *container, pod.name, "--", *command)
        return Launch(argv=argv, hosts=(host.name,), stdin=job.stdin)
