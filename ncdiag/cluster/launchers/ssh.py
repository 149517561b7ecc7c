"""The system's ssh, so that the site's configuration, jump hosts and Kerberos work as they do."""

import shlex
from collections.abc import Sequence

from ncdiag.cluster import ssh
from ncdiag.cluster.launcher import Launch, LauncherOptions, RemoteJob, StartEnds
from ncdiag.model.host import Host


class SshLauncher:
    """Starts the job by one ssh connection a host, which stays open as long as the job runs."""

    name = "ssh"
    start_ends = StartEnds.CONNECTED

    def __init__(self, options: LauncherOptions) -> None:
        self.options = options
        self.starts_at_a_time = ssh.starts_at_a_time(options.ssh_options)

    def unavailable(self) -> str | None:
        """Ssh has to be installed."""
        return ssh.missing()

    def launches(self, hosts: Sequence[Host], job: RemoteJob) -> list[Launch]:
        """One command a host."""
        return [
            Launch(argv=self._argv(host, job), hosts=(host.name,), stdin=job.stdin)
            for host in hosts
        ]

    def _argv(self, host: Host, job: RemoteJob) -> tuple[str, ...]:
        # sshd hands the command to the user's shell: the one place where a string has to pass
        # through a shell, and each word of it is quoted.
        command = "exec " + shlex.join(job.command(self.options, "--host", host.name))
        return (*ssh.client(host, self.options.ssh_options), command)
