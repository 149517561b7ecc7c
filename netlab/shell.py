"""The ssh side of a lab: keys, one sshd a host, and the driver's ssh config."""

import os
import shutil
import socket
import time
from collections.abc import Sequence
from ipaddress import IPv4Network
from pathlib import Path

from netlab import plan, system
from netlab.config import Host, LabConfig
from netlab.errors import COULD_NOT, NetlabError

# The directory into which Debian's sshd confines its unprivileged part; it must be there.
_SSHD_RUN = Path("/run/sshd")
_ANSWER_DEADLINE_S = 15.0

# What makes a namespace a host: a hostname of its own, and a /sys that shows its own interfaces,
# with the machine's control groups put back (slurmd will not start without them).
_BECOME_HOST = """
set -e
echo "$1" > /proc/sys/kernel/hostname
mount -t sysfs sysfs "$2"
if [ -d /sys/fs/cgroup ]; then mount --rbind /sys/fs/cgroup "$2/fs/cgroup"; fi
mount --move "$2" /sys
shift 2
exec "$@"
"""


def on_host(config: LabConfig, host: Host, directory: Path, argv: Sequence[str]) -> list[str]:
    """The command that runs ``argv`` as if on a host."""
    return [
        "nsenter",
        f"--net={system.namespace_path(plan.namespace(config.name, host.name))}",
        "unshare",
        "--uts",
        "--mount",
        "--propagation=slave",
        "sh",
        "-c",
        _BECOME_HOST,
        "sh",
        host.name,
        str(directory / "sys"),
        *argv,
    ]


def pid_file(directory: Path, host: str) -> Path:
    """Where a host's sshd writes its process number."""
    return directory / "hosts" / host / "sshd.pid"


def sshd_pid(directory: Path, config: LabConfig, host: str) -> int | None:
    """The process number of a host's listening sshd, if it runs."""
    try:
        pid = int(pid_file(directory, host).read_text())
    except (FileNotFoundError, ValueError):
        return None
    return pid if pid in system.processes([plan.namespace(config.name, host)]) else None


def write_keys(config: LabConfig, directory: Path) -> None:
    """Make the driver's key and a key for each host, all new: old host keys are a known trap."""
    places = [directory / "id_ed25519"]
    for host in config.hosts:
        (directory / "hosts" / host.name).mkdir(parents=True)
        places.append(directory / "hosts" / host.name / "host_key")
    system.run_all(
        ["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", f"netlab-{config.name}", "-f", str(p)]
        for p in places
    )
    shutil.copyfile(directory / "id_ed25519.pub", directory / "authorized_keys")


def write_configs(config: LabConfig, subnet: IPv4Network, directory: Path) -> None:
    """Write known_hosts, ssh_config and each host's sshd_config."""
    known, hosts = [], []
    for host in config.hosts:
        address = plan.address(subnet, host.number)
        kind, key, *_ = (directory / "hosts" / host.name / "host_key.pub").read_text().split()
        known.append(f"{host.name},{address} {kind} {key}\n")
        hosts.append(f"Host {host.name} {address}\n  HostName {address}\n\n")
        (directory / "hosts" / host.name / "sshd_config").write_text(_sshd_config(host, directory))
    (directory / "known_hosts").write_text("".join(known))
    (directory / "ssh_config").write_text("".join(hosts) + _ssh_config(directory))


def _ssh_config(directory: Path) -> str:
    return f"""Host *
  User root
  IdentityFile {directory}/id_ed25519
  IdentitiesOnly yes
  BatchMode yes
  StrictHostKeyChecking yes
  UserKnownHostsFile {directory}/known_hosts
  GlobalKnownHostsFile /dev/null
"""


def _sshd_config(host: Host, directory: Path) -> str:
    own = directory / "hosts" / host.name
    root = f'SetEnv "NCDIAG_ROOT={host.root}"\n' if host.root else ""
    # PAM would want accounts and sessions of the real machine. The lab's directory need not be a
    # home, hence StrictModes. A sweep opens all its connections at once, hence MaxStartups.
    return f"""Port 22
HostKey {own}/host_key
PidFile {own}/sshd.pid
AuthorizedKeysFile {directory}/authorized_keys
PasswordAuthentication no
KbdInteractiveAuthentication no
PermitRootLogin prohibit-password
UsePAM no
StrictModes no
MaxStartups 1000
MaxSessions 1000
UseDNS no
PrintMotd no
{root}"""


def start_sshds(config: LabConfig, hosts: Sequence[Host], directory: Path) -> None:
    """Start the sshd of each host, which then runs on its own."""
    _SSHD_RUN.mkdir(mode=0o755, exist_ok=True)
    (directory / "sys").mkdir(exist_ok=True)
    sshd = shutil.which("sshd")  # it starts itself anew for each connection: needs its full path
    if sshd is None:
        raise NetlabError("not installed: sshd (apt-get install openssh-server)")
    system.run_all(
        on_host(
            config,
            host,
            directory,
            [sshd, "-f", str(own / "sshd_config"), "-E", str(own / "sshd.log")],
        )
        for host in hosts
        for own in [directory / "hosts" / host.name]
    )


def wait_for_sshds(hosts: Sequence[Host], subnet: IPv4Network, directory: Path) -> None:
    """Return once every sshd greets a caller, and the first one lets the driver's key in."""
    deadline = time.monotonic() + _ANSWER_DEADLINE_S
    for host in hosts:
        while not _greets(str(plan.address(subnet, host.number))):
            if time.monotonic() > deadline:
                log = directory / "hosts" / host.name / "sshd.log"
                said = log.read_text(errors="replace").splitlines() if log.exists() else []
                raise NetlabError(f"sshd of {host.name} does not answer: {said[-1:]}", COULD_NOT)
            time.sleep(0.02)
    if hosts:
        system.run(["ssh", "-F", str(directory / "ssh_config"), hosts[0].name, "true"])


def _greets(address: str) -> bool:
    try:
        with socket.create_connection((address, 22), timeout=1.0) as connection:
            return connection.recv(4) == b"SSH-"
    except OSError:
        return False


def environment(host: Host) -> dict[str, str]:
    """The environment in which commands run on a host."""
    return {**os.environ, **({"NCDIAG_ROOT": host.root} if host.root else {})}
