"""The system's ssh, so that the site's configuration, jump hosts and Kerberos work as they do."""

import re
import shlex
import shutil
from collections.abc import Sequence
from typing import Final

from ncdiag.cluster.launchers.base import Launch, LauncherOptions, RemoteJob, StartEnds
from ncdiag.model.errors import UsageError
from ncdiag.model.host import Host

_DEFAULTS: Final = (
    "BatchMode=yes",  # never ask anybody for a password
    "ConnectTimeout=5",
    # A dead link ends the client after 3 x 2 to 3 x 3 seconds.
    "ServerAliveInterval=3",
    "ServerAliveCountMax=2",
    # The site's forwardings would be set up once a host, and collide.
    "ClearAllForwardings=yes",
    # A connection left behind for others to share would outlive us; an existing one is used.
    "ControlMaster=no",
)
# sshd's default MaxStartups (10:30:100) is per host; what this bounds is a jump host, and our CPU.
_STARTS_AT_A_TIME = 32
_FLAG_AND_VALUE = re.compile(r"(-[A-Za-z])\s+(\S.*)", re.DOTALL)
_KEYWORD = re.compile(r"[A-Za-z]+\s*[=\s]\s*\S.*", re.DOTALL)


def ssh_arguments(option: str) -> tuple[str, ...]:
    """The arguments of one ``--ssh-option``: ``-4``, ``-F FILE``, ``-oPort=22`` or ``Port=22``.

    Never split any further, so a value may hold spaces; raises UsageError for anything that ssh
    would take for a host.
    """
    text = option.strip()
    if match := _FLAG_AND_VALUE.fullmatch(text):
        return match[1], match[2]
    if re.fullmatch(r"-[A-Za-z0-9].*", text, re.DOTALL):
        return (text,)
    if _KEYWORD.fullmatch(text):
        return "-o", text
    raise UsageError(f"not an option of ssh: {option!r} (examples: '-F FILE', 'ProxyJump=gateway')")


class SshLauncher:
    """Starts the job by one ssh connection a host, which stays open as long as the job runs."""

    name = "ssh"
    start_ends = StartEnds.CONNECTED
    starts_at_a_time = _STARTS_AT_A_TIME

    def __init__(self, options: LauncherOptions) -> None:
        self.options = options
        self._arguments = tuple(
            argument for option in options.ssh_options for argument in ssh_arguments(option)
        )

    def unavailable(self) -> str | None:
        """Ssh has to be installed."""
        if shutil.which("ssh"):
            return None
        return "ssh is not installed (on Debian: apt-get install openssh-client)"

    def launches(self, hosts: Sequence[Host], job: RemoteJob) -> list[Launch]:
        """One command a host."""
        return [
            Launch(argv=self._argv(host, job), hosts=(host.name,), stdin=job.stdin)
            for host in hosts
        ]

    def client(self, host: Host) -> tuple[str, ...]:
        """The command that opens the connection; the words to run on ``host`` come after it."""
        # Of two values ssh takes the first, so what the operator said comes before our defaults,
        # and the hosts file before both.
        where: list[str] = []
        if host.user:
            where += ("-l", host.user)
        if host.port:
            where += ("-p", str(host.port))
        if host.address != host.name:
            # The host keeps its name, so that its block in the configuration still applies. ssh
            # would expand %h here; an IPv6 zone has a % of its own.
            where += ("-o", f"HostName={host.address.replace('%', '%%')}")
        defaults = [part for default in _DEFAULTS for part in ("-o", default)]
        return ("ssh", "-T", *where, *self._arguments, *defaults, "--", host.name)

    def _argv(self, host: Host, job: RemoteJob) -> tuple[str, ...]:
        # sshd hands the command to the user's shell: the one place where a string has to pass
        # through a shell, and each word of it is quoted.
        command = "exec " + shlex.join(job.command(self.options, "--host", host.name))
        return (*self.client(host), command)
