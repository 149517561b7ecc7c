"""A handle on labs for tests and benchmarks: it drives ``bin/netlab`` as a person would."""

import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from netlab import plan, system
from netlab.lab import Lab as State

NETLAB = Path(__file__).resolve().parents[1] / "bin" / "netlab"
_DEADLINE_S = 60


@dataclass(frozen=True, slots=True)
class Lab:
    """A lab that is up: see docs/netlab.md for what its commands do."""

    name: str

    @property
    def directory(self) -> Path:
        """Everything of the lab that is a file."""
        return system.RUN_DIRECTORY / self.name

    @property
    def hosts_file(self) -> Path:
        """Its hosts, as ncdiag reads them."""
        return self.directory / "hosts.txt"

    @property
    def ssh_config(self) -> Path:
        """What lets ssh in by name."""
        return self.directory / "ssh_config"

    @property
    def driver_address(self) -> str:
        """Where hosts reach the driver."""
        return str(plan.driver_address(State.find(self.name).subnet))

    @property
    def sweep_options(self) -> list[str]:
        """What makes ``ncdiag sweep`` (and other fleet commands) run over this lab."""
        return [
            *("--nodes", str(self.hosts_file)),
            f"--ssh-option=-F{self.ssh_config}",
            *("--driver-address", self.driver_address),
        ]

    def address(self, host: str, rail: int = 0) -> str:
        """The address of a host on a rail."""
        state = State.find(self.name)
        return str(plan.address(state.subnet, state.host(host).number, rail))

    def break_(self, host: str) -> None:
        """Unplug a host."""
        netlab("break", self.name, host)

    def slow(self, *arguments: str) -> None:
        """Make something slow: ``slow("h3", "--send", "100mbit")``."""
        netlab("slow", self.name, *arguments)

    def heal(self, *places: str) -> None:
        """Take away the faults of hosts and leaves, or all."""
        netlab("heal", self.name, *places)

    def kill(self, host: str) -> None:
        """Kill all that runs on a host but its sshd."""
        netlab("kill", self.name, host)

    def command(self, host: str, *argv: str) -> list[str]:
        """The command that runs ``argv`` as if on a host, without ssh."""
        return [str(NETLAB), "exec", self.name, host, *argv]

    def ssh(self, host: str, *argv: str) -> subprocess.CompletedProcess[str]:
        """Run a command over ssh, the way ncdiag reaches the host."""
        return run(["ssh", "-F", str(self.ssh_config), "-oConnectTimeout=5", host, *argv])

    def processes(self, host: str) -> list[int]:
        """The numbers of all processes on a host, its sshd among them."""
        return sorted(system.processes([plan.namespace(self.name, host)]))


def run(argv: Sequence[str]) -> subprocess.CompletedProcess[str]:
    """Run a program to its end."""
    return subprocess.run(
        argv,
        capture_output=True,
        text=True,
        timeout=_DEADLINE_S,
        check=False,
        stdin=subprocess.DEVNULL,
    )


def netlab(*arguments: str, code: int = 0) -> subprocess.CompletedProcess[str]:
    """Run ``bin/netlab`` and insist on its exit code."""
    done = run([str(NETLAB), *arguments])
    if done.returncode != code:
        said = done.stdout + done.stderr
        raise AssertionError(f"netlab {' '.join(arguments)} ended with {done.returncode}: {said}")
    return done
