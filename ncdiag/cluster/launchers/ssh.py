"""The system's ssh, so that the site's configuration, jump hosts and Kerberos work as they do."""

import shlex
from collections.abc import Sequence

from ncdiag.cluster import ssh
from ncdiag.cluster.launcher import Launch, LauncherOptions, RemoteJob, StartEnds
from ncdiag.model.host import Host

# sshd's default MaxStartups (10:30:100) is per host; what this bounds is a jump host, and our CPU.
_STARTS_AT_A_TIME = 32


class SshLauncher:
    """Starts the job by one ssh connection a host, which stays open as long as the job runs."""

    name = "ssh"
    start_ends = StartEnds.CONNECTED
    starts_at_a_time = _STARTS_AT_A_TIME

    def __init__(self, options: LauncherOptions) -> None:
        ssh.all_arguments(options.ssh_options)  # refuses what is none
        self.options = options

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
