"""Slurm over the hosts of a netlab: munged and slurmctld beside the driver, a slurmd in each host.

Everything has ports and a folder of its own. The slurmd of a host runs inside its network
namespace, so that Slurm's tasks run there too, with the host's own address and its slow links.
"""

import os
import secrets
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, Self

PROGRAMS = ("munged", "slurmctld", "slurmd", "srun", "salloc", "scancel", "scontrol", "sinfo")
PACKAGES = "slurmd slurmctld slurm-client munge"
START_S = 90.0
# What several slurmd on one machine need, with all their files in ``folder``.
ON_ONE_MACHINE = """
SlurmUser=root
SlurmdUser=root
AuthType=auth/munge
AuthInfo=socket={folder}/munge.socket
CryptoType=crypto/munge
StateSaveLocation={folder}/state
SlurmctldPidFile={folder}/slurmctld.pid
SlurmctldLogFile={folder}/slurmctld.log
SlurmdSpoolDir={folder}/%n
SlurmdPidFile={folder}/%n.pid
SlurmdLogFile={folder}/%n.log
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
MpiDefault=none
ReturnToService=2
"""
# The short time-outs bound how long those who wait for a dead node do so.
CONFIGURATION = (
    """
ClusterName=netlab
SlurmctldHost={controller}({address})
SlurmctldPort={port}
SlurmdPort={slurmd_port}
"""
    + ON_ONE_MACHINE
    + """
MessageTimeout=5
SlurmdTimeout=10
KillWait=2
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU
{nodes}
PartitionName=all Nodes={names} Default=YES OverSubscribe=FORCE:4
PartitionName=gpu Nodes={names} OverSubscribe=FORCE:4
"""
)


def missing() -> str | None:
    """Which programs of Slurm are not here, with the packages that bring them."""
    names = [name for name in PROGRAMS if not shutil.which(name)]
    return f"not installed: {', '.join(names)} (packages {PACKAGES})" if names else None


def wait_for(condition: Callable[[], Any], what: str, seconds: float = START_S) -> Any:
    """Poll until ``condition`` holds; fails the test after ``seconds``."""
    end = time.monotonic() + seconds
    while not (found := condition()):
        assert time.monotonic() < end, f"still waiting for {what}"
        time.sleep(0.1)
    return found


class SlurmLab:
    """A cluster that is up; ``environment`` is the one in which Slurm's commands find it."""

    def __init__(self, lab: Any, hosts: Sequence[str]) -> None:
        self.lab = lab
        self.hosts = tuple(hosts)
        self.folder = Path(tempfile.mkdtemp(prefix="slurm-lab-"))
        self.environment = {
            **{name: value for name, value in os.environ.items() if not name.startswith("SLURM")},
            "SLURM_CONF": str(self.folder / "slurm.conf"),
        }
        self._parts: dict[str, subprocess.Popen[bytes]] = {}

    def __enter__(self) -> Self:
        try:
            self._start()
        except BaseException:
            self.close()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def run(
        self, *argv: str, timeout_s: float = 60, **more: str
    ) -> subprocess.CompletedProcess[str]:
        """Run a program to its end where Slurm is found; ``more`` is added to its environment."""
        process = subprocess.Popen(
            argv,
            env={**self.environment, **more},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )
        try:
            out, error = process.communicate(timeout=timeout_s)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()  # not for what it wrote: others may hold its pipes open
            raise
        return subprocess.CompletedProcess(argv, process.returncode, out, error)

    def states(self) -> Mapping[str, str]:
        """Each node with its state, as sinfo writes it."""
        told = self.run("sinfo", "-h", "-N", "-p", "all", "-o", "%N %t").stdout
        return dict(line.split() for line in told.splitlines())

    def jobs(self) -> list[str]:
        """The numbers of the jobs that are not over."""
        return self.run("squeue", "-h", "-o", "%i").stdout.split()

    def start_node(self, host: str) -> None:
        """Start the slurmd of a host, and wait until jobs may use it."""
        (self.folder / host).mkdir(exist_ok=True)
        self._spawn(f"slurmd-{host}", *self.lab.command(host, "slurmd", "-D", "-N", host))

    def stop_node(self, host: str) -> None:
        """Kill the slurmd of a host with all that it runs, as a crash of the node would."""
        self.lab.kill(host)
        self._parts.pop(f"slurmd-{host}").wait(30)

    def wait_until_idle(self) -> None:
        """Wait until every node can take a job."""
        wait_for(lambda: set(self.states().values()) == {"idle"}, f"idle nodes: {self.states()}")

    def close(self) -> None:
        """End everything and leave nothing."""
        for part in reversed(self._parts.values()):
            part.terminate()
        for part in reversed(self._parts.values()):
            with suppress(subprocess.TimeoutExpired):
                part.wait(10)
            part.kill()
            part.wait()
        shutil.rmtree(self.folder, ignore_errors=True)

    def _start(self) -> None:
        self.folder.chmod(0o755)
        (self.folder / "state").mkdir()
        key = self.folder / "munge.key"
        key.touch(mode=0o600)
        key.write_bytes(secrets.token_bytes(64))
        (self.folder / "slurm.conf").write_text(self._configuration())
        files = [
            f"--{kind}={self.folder}/munge.{kind}" for kind in ("socket", "pid-file", "log-file")
        ]
        self._spawn("munged", "munged", "--foreground", "--force", f"--key-file={key}", *files)
        wait_for((self.folder / "munge.socket").exists, "munge")
        self._spawn("slurmctld", "slurmctld", "-D")
        for host in self.hosts:
            self.start_node(host)
        self.wait_until_idle()

    def _spawn(self, name: str, *argv: str) -> None:
        with (self.folder / f"{name}.out").open("wb") as log:
            self._parts[name] = subprocess.Popen(
                argv,
                env=self.environment,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )

    def _configuration(self) -> str:
        with socket.socket() as one, socket.socket() as two:
            one.bind(("", 0))
            two.bind(("", 0))
            port, slurmd_port = one.getsockname()[1], two.getsockname()[1]
        return CONFIGURATION.format(
            controller=socket.gethostname(),
            address=self.lab.driver_address,
            port=port,
            slurmd_port=slurmd_port,
            folder=self.folder,
            names=",".join(self.hosts),
            nodes="\n".join(
                f"NodeName={host} NodeHostname={host} NodeAddr={self.lab.address(host)} CPUs=2"
                for host in self.hosts
            ),
        )
