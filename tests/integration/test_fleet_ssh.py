import contextlib
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psutil
import pytest

sys.path.insert(0, str(Path(__file__).parent / "importable"))

import fleet_functions as functions
from processes import children, runs, wait_until

from ncdiag.cluster.fleet import CompanionSpec, Fleet, FleetOptions, HostLost
from ncdiag.cluster.inventory import read_hosts
from ncdiag.cluster.launchers import Launcher, LauncherOptions, choose
from ncdiag.model.host import Host
from netlab.testing import Lab

IMPORTABLE = Path(__file__).parent / "importable"
ECHO = CompanionSpec("echo", ("python", str(IMPORTABLE / "echo_companion.py")))
LONG_S = 60.0
# An sshd passes no environment on, so the hosts learn from a set-up file where our functions are.
SETUP = f"export PYTHONPATH={IMPORTABLE}\necho Welcome\n"


@dataclass(frozen=True)
class Sshd:
    """A server of our own on loopback, and a client configuration that leads to it."""

    port: int
    config: Path
    setup: Path

    def launcher(self, **options: Any) -> Launcher:
        options.setdefault("python", sys.executable)
        ssh_options = (f"-F {self.config}",)
        return choose("ssh", [], LauncherOptions(ssh_options=ssh_options, **options))


def free_port() -> int:
    with socket.socket() as sock:
        sock.bind(("127.0.0.1", 0))
        return int(sock.getsockname()[1])


@pytest.fixture(scope="module")
def silent_port() -> Iterator[int]:
    """A port that accepts connections and says nothing."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield server.getsockname()[1]


@pytest.fixture(scope="module")
def sshd(tmp_path_factory: pytest.TempPathFactory, silent_port: int) -> Iterator[Sshd]:
    program = shutil.which("sshd", path="/usr/sbin:/usr/local/sbin:/usr/bin")
    if program is None:
        pytest.skip("sshd is not installed (apt-get install openssh-server)")
    if os.geteuid() != 0:
        pytest.skip("an sshd for this test is started as root only")
    Path("/run/sshd").mkdir(exist_ok=True)
    folder = tmp_path_factory.mktemp("ssh dir")
    for name in ("host", "user", "stranger"):
        subprocess.run(
            ["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(folder / name)], check=True
        )
    port = free_port()
    host_key = (folder / "host.pub").read_text()
    (folder / "known").write_text(f"[127.0.0.1]:{port} {host_key}")
    (folder / "setup.sh").write_text(SETUP)
    (folder / "sshd.conf").write_text(
        f'Port {port}\nListenAddress 127.0.0.1\nHostKey "{folder}/host"\nPidFile none\n'
        f'AuthorizedKeysFile "{folder}/user.pub"\nStrictModes no\nUsePAM no\nMaxStartups 100\n'
        "PasswordAuthentication yes\nPermitRootLogin yes\n"
    )
    (folder / "config").write_text(
        f"Host refused\n  Port {free_port()}\n"
        f"Host silent\n  Port {silent_port}\n"
        f'Host stranger\n  IdentityFile "{folder}/stranger"\n'
        "Host unknown-key\n  UserKnownHostsFile /dev/null\n"
        "Host nameless\n  HostName no-such-host.invalid\n"
        # ssh tries the keys of all blocks that match.
        f'Host * !stranger\n  IdentityFile "{folder}/user"\n'
        f"Host *\n  HostName 127.0.0.1\n  Port {port}\n"
        f'  IdentitiesOnly yes\n  UserKnownHostsFile "{folder}/known"\n'
        "  StrictHostKeyChecking yes\n"
    )
    with subprocess.Popen(
        [program, "-D", "-e", "-f", str(folder / "sshd.conf")], stderr=subprocess.PIPE
    ) as server:
        try:
            assert server.stderr is not None
            assert any(b"Server listening" in line for line in server.stderr)
            yield Sshd(port, folder / "config", folder / "setup.sh")
        finally:
            server.kill()


def named(*names: str) -> list[Host]:
    return [Host(name=name, address=name) for name in names]


def about(fleet: Fleet, host: str) -> dict[str, Any]:
    return dict(json.loads(fleet.call(host, functions.about, b"echo", timeout_s=LONG_S).result()))


def open_fleet(hosts: list[Host], launcher: Launcher, **options: Any) -> Fleet:
    options.setdefault("ready_s", LONG_S)
    return Fleet(hosts, launcher, companions=[ECHO], options=FleetOptions(**options))


def test_every_way_in_which_ssh_fails_is_told_and_the_others_go_on(sshd: Sshd) -> None:
    bad = ("refused", "silent", "stranger", "unknown-key", "nameless")
    with open_fleet(named("good", *bad), sshd.launcher(remote_setup=str(sshd.setup))) as fleet:
        fleet.start()
        assert fleet.up == ("good",)
        told = {name: reason.partition(":")[0] for name, reason in fleet.unreachable.items()}
        assert told == {
            "refused": "refused",
            "silent": "timed out",
            "stranger": "permission denied",
            "unknown-key": "host key unknown",
            "nameless": "unknown name",
        }
        assert "password" in fleet.unreachable["stranger"]
        answer = about(fleet, "good")
        assert answer["environment"]["PYTHONPATH"] == str(IMPORTABLE)
        assert not [value for value in answer["environment"].values() if "PRIVATE KEY" in value]
    assert not [pid for pid in (answer["pid"], answer["companion"]) if runs(pid)]


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        ({"python": "/no/python3"}, "no python there: /no/python3 "),
        ({"python": "/etc"}, "no python there: /etc "),
        ({"remote_setup": "/no/setup.sh"}, "no such file there: /no/setup.sh (--remote-setup)"),
        ({"remote_setup": "setup.sh"}, "no such file there: ./setup.sh (--remote-setup)"),
    ],
)
def test_what_is_missing_on_a_host_is_named(
    sshd: Sshd, options: dict[str, str], reason: str
) -> None:
    with open_fleet(named("good"), sshd.launcher(**options)) as fleet:
        fleet.start()
        assert fleet.unreachable["good"].startswith(reason)


def test_a_python_without_ncdiag_is_told(sshd: Sshd, tmp_path: Path) -> None:
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(tmp_path)], check=True)
    launcher = sshd.launcher(python=str(tmp_path / "bin" / "python"))
    with open_fleet(named("good"), launcher) as fleet:
        fleet.start()
        assert fleet.unreachable["good"].startswith("no ncdiag there")


def test_the_address_of_the_hosts_file_is_used_with_the_block_of_the_name(sshd: Sshd) -> None:
    host = Host(name="nameless", address="127.0.0.1", port=sshd.port)
    with open_fleet([host], sshd.launcher()) as fleet:
        fleet.start()
        assert fleet.up == ("nameless",)


EIGHT = """
rate = "500mbit"
[leaves]
leaf1 = ["h1", "h2", "h3", "h4"]
leaf2 = ["h5", "h6", "h7", "h8"]
"""
FOUR = EIGHT.replace(', "h3", "h4"', "").replace(', "h7", "h8"', "")

BringUp = Callable[[str], Lab]


@contextlib.contextmanager
def lab_fleet(lab: Lab, tmp_path: Path) -> Iterator[Fleet]:
    hosts = list(read_hosts(str(lab.hosts_file)))
    setup = tmp_path / "setup.sh"
    setup.write_text(SETUP)
    options = LauncherOptions(
        python=sys.executable,
        remote_setup=str(setup),
        ssh_options=(f"-F{lab.ssh_config}",),
    )
    with open_fleet(hosts, choose("auto", hosts, options)) as fleet:
        yield fleet


@pytest.mark.root
def test_eight_hosts_over_ssh_find_the_driver_by_themselves(lab: BringUp, tmp_path: Path) -> None:
    cluster = lab(EIGHT)
    before = children(os.getpid())
    with lab_fleet(cluster, tmp_path) as fleet:
        fleet.start()
        assert fleet.unreachable == {}
        answers = {name: about(fleet, name) for name in fleet.up}
        assert {name: answer["hostname"] for name, answer in answers.items()} == {
            name: name for name in ("h1", "h2", "h3", "h4", "h5", "h6", "h7", "h8")
        }
        for name, answer in answers.items():
            # The one port that is not on loopback asks for the run's certificate.
            assert sorted(answer["listens"]) == sorted(["127.0.0.1", cluster.address(name)])
            assert answer["pid"] in cluster.processes(name)
        for pid in {*children(os.getpid()), *(answer["pid"] for answer in answers.values())}:
            assert b"PRIVATE KEY" not in Path(f"/proc/{pid}/cmdline").read_bytes()
        listens = [
            (connection.laddr.ip, connection.laddr.port)
            for connection in psutil.Process().net_connections("inet")
            if connection.status == psutil.CONN_LISTEN
        ]
        open_ports = {port for address, port in listens if address != "127.0.0.1"}
        assert open_ports == {int(fleet._driver._client.scheduler.address.rpartition(":")[2])}  # type: ignore[union-attr] # it is started
    assert children(os.getpid()) == before
    for name, answer in answers.items():
        assert not runs(answer["pid"])
        assert not runs(answer["companion"])
        # Nothing but the sshd that was there before, once its session is over.
        wait_until(lambda name=name: len(cluster.processes(name)) == 1)  # type: ignore[misc]


@pytest.mark.root
def test_a_host_that_is_cut_off_is_lost_and_the_others_are_not(
    lab: BringUp, tmp_path: Path
) -> None:
    cluster = lab(FOUR)
    with lab_fleet(cluster, tmp_path) as fleet:
        fleet.start()
        assert len(fleet.up) == 4
        pid = about(fleet, "h1")["pid"]
        waiting = fleet.call("h1", functions.sleep, b"600", timeout_s=LONG_S)
        other = fleet.call("h2", functions.sleep, b"1", timeout_s=LONG_S)
        cluster.break_("h1")
        assert other.result() == b"slept"
        with pytest.raises(HostLost, match="lost: its connection timed out"):
            waiting.result()
        assert fleet.up == ("h2", "h5", "h6")
        # It hears no beat any more.
        wait_until(lambda: not runs(pid))
        for name in fleet.up:
            assert fleet.call(name, functions.echo, b"x", timeout_s=LONG_S).result() == b"x"


@pytest.mark.root
def test_a_worker_killed_on_its_host_is_lost_at_once(lab: BringUp, tmp_path: Path) -> None:
    with lab_fleet(lab(FOUR), tmp_path) as fleet:
        fleet.start()
        victim = about(fleet, "h5")
        waiting = fleet.call("h5", functions.sleep, b"600", timeout_s=LONG_S)
        os.kill(victim["pid"], signal.SIGKILL)
        with pytest.raises(HostLost, match="lost: worker ended"):
            waiting.result()
        wait_until(lambda: not runs(victim["companion"]))
        assert set(fleet.up) == {"h1", "h2", "h6"}


@pytest.mark.root
def test_a_killed_driver_leaves_nothing_also_behind_a_dead_link(
    lab: BringUp, tmp_path: Path
) -> None:
    cluster = lab(FOUR)
    setup = tmp_path / "setup.sh"
    setup.write_text(SETUP)
    driver_code = f"""
import json, sys
sys.path.insert(0, {str(IMPORTABLE)!r})
import fleet_functions
from ncdiag.cluster.fleet import CompanionSpec, Fleet
from ncdiag.cluster.inventory import read_hosts
from ncdiag.cluster.launchers import LauncherOptions, choose
hosts = read_hosts({str(cluster.hosts_file)!r})
options = LauncherOptions(python=sys.executable, remote_setup={str(setup)!r},
                          ssh_options=({f"-F{cluster.ssh_config}"!r},))
echo = CompanionSpec("echo", ("python", {str(IMPORTABLE / "echo_companion.py")!r}))
with Fleet(hosts, choose("ssh", hosts, options), companions=[echo]) as fleet:
    fleet.start()
    calls = [fleet.call(name, fleet_functions.about, b"echo", timeout_s=60) for name in fleet.up]
    print(json.dumps([json.loads(call.result()) for call in calls]), flush=True)
    fleet.call(fleet.up[0], fleet_functions.sleep, b"600", timeout_s=600).result()
"""
    with subprocess.Popen([sys.executable, "-c", driver_code], stdout=subprocess.PIPE) as driver:
        assert driver.stdout is not None
        answers = json.loads(driver.stdout.readline())
        pids = [answer[kind] for answer in answers for kind in ("pid", "companion")]
        assert len(pids) == 8
        clients = children(driver.pid)
        cluster.break_("h1")
        driver.kill()
    # What is promised: 15 s after the driver's end no process is left, here or on any host.
    wait_until(lambda: not any(map(runs, [*pids, *clients])), patience_s=15.0)
