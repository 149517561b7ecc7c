"""A real lab: namespaces, bridges, shapers and sshds, measured with iperf3 and reached by ssh."""

import json
import os
import shutil
import signal
import socket
import subprocess
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

import pytest

from netlab import system
from netlab.testing import NETLAB, Lab, netlab, run

pytestmark = pytest.mark.root

BringUp = Callable[[str], Lab]

TWO_HOSTS = """
rate = "200mbit"
[leaves]
leaf1 = ["a", "b"]
"""


def wait_for(condition: Callable[[], bool], what: str) -> None:
    deadline = time.monotonic() + 10
    while not condition():
        assert time.monotonic() < deadline, f"gave up waiting for {what}"
        time.sleep(0.01)


@contextmanager
def iperf3_server(lab: Lab, host: str, port: int = 5201) -> Iterator[None]:
    """Serve iperf3 on a host for as long as the block runs."""
    if shutil.which("iperf3") is None:
        pytest.skip("iperf3 is not installed (apt-get install iperf3)")
    with subprocess.Popen(
        lab.command(host, "iperf3", "-s", "-p", str(port), "--forceflush"),
        stdout=subprocess.PIPE,
        text=True,
    ) as server:
        try:
            assert server.stdout is not None
            assert any("Server listening" in line for line in server.stdout)
            yield
        finally:
            server.kill()


def mbit_per_s(lab: Lab, source: str, target: str, rail: int = 0, port: int = 5201) -> float:
    """What the target measures of what the source's iperf3 server sends it.

    The first 0.2 of one second are left out: full token buckets make them too fast.
    """
    client = ("iperf3", "-c", lab.address(source, rail), "-p", str(port), "-R", "-J")
    done = run(lab.command(target, *client, "-t", "1", "-i", "0.1"))
    assert done.returncode == 0, done.stdout + done.stderr
    intervals = [interval["sum"] for interval in json.loads(done.stdout)["intervals"][2:]]
    seconds = sum(interval["seconds"] for interval in intervals)
    return 8e-6 * sum(interval["bytes"] for interval in intervals) / seconds


def payload(rate_mbit_per_s: float) -> object:
    """What TCP and IP headers leave of a rate at MTU 1500, within 5 %."""
    return pytest.approx(0.955 * rate_mbit_per_s, rel=0.05)


def connects(address: str) -> bool:
    try:
        with socket.create_connection((address, 22), timeout=2):
            return True
    except OSError:
        return False


def traces(lab: Lab) -> list[str]:
    """Everything that a lab could leave behind."""
    left = [ns for ns in system.existing_namespaces() if ns.startswith(lab.name)]
    left += [device.name for device in Path("/sys/class/net").glob(f"*{lab.name}*")]
    left += [line for line in Path("/proc/mounts").read_text().splitlines() if lab.name in line]
    for entry in Path("/proc").glob("[0-9]*"):
        try:
            command = (entry / "cmdline").read_bytes().decode(errors="replace")
        except OSError:
            continue
        if str(lab.directory) in command:
            left.append(command)
    return left + [str(lab.directory)] * lab.directory.exists()


@pytest.mark.alone
def test_planted_rates_are_what_iperf3_measures(lab: BringUp) -> None:
    here = lab("""
        rate = "400mbit"
        [leaves]
        leaf1 = ["h[1-2]"]
        leaf2 = ["h[3-4]"]
        [hosts.h4]
        rate = "300mbit"
        [[faults]]
        host = "h1"
        send = "100mbit"
        [[faults]]
        host = "h2"
        receive = "80mbit"
        [[faults]]
        host = "h3"
        to = "h4"
        send = "50mbit"
    """)
    with iperf3_server(here, "h1"):
        assert mbit_per_s(here, "h1", "h3") == payload(100)
    with iperf3_server(here, "h2"):
        assert mbit_per_s(here, "h2", "h1") == payload(400)
    with iperf3_server(here, "h3"):
        assert mbit_per_s(here, "h3", "h1") == payload(400)
        assert mbit_per_s(here, "h3", "h2") == payload(80)
        assert mbit_per_s(here, "h3", "h4") == payload(50)
    with iperf3_server(here, "h4"):
        assert mbit_per_s(here, "h4", "h3") == payload(300)


@pytest.mark.alone
def test_a_slow_pair_shares_the_rate_of_its_host(lab: BringUp) -> None:
    here = lab("""
        rate = "200mbit"
        [leaves]
        leaf1 = ["a", "b", "c"]
        [[faults]]
        host = "a"
        to = "b"
        send = "120mbit"
    """)
    with (
        iperf3_server(here, "a", 5201),
        iperf3_server(here, "a", 5202),
        ThreadPoolExecutor() as both,
    ):
        slow = both.submit(mbit_per_s, here, "a", "b", port=5201)
        other = both.submit(mbit_per_s, here, "a", "c", port=5202)
        assert slow.result() + other.result() == payload(200)


@pytest.mark.alone
def test_a_slow_uplink_slows_only_what_crosses_it(lab: BringUp) -> None:
    here = lab("""
        rate = "300mbit"
        [leaves]
        leaf1 = ["a", "b"]
        leaf2 = ["c"]
        [[faults]]
        leaf = "leaf1"
        uplink = "60mbit"
    """)
    with iperf3_server(here, "a"):
        assert mbit_per_s(here, "a", "b") == payload(300)
        assert mbit_per_s(here, "a", "c") == payload(60)
    with iperf3_server(here, "c"):
        assert mbit_per_s(here, "c", "b") == payload(60)


@pytest.mark.alone
def test_rails_do_not_meet_and_are_slow_apart(lab: BringUp) -> None:
    here = lab("""
        rate = "300mbit"
        nics = 2
        [leaves]
        leaf1 = ["a", "b"]
        leaf2 = ["c"]
        [[faults]]
        rail = 1
        send = "200mbit"
        receive = "200mbit"
        [[faults]]
        host = "c"
        rail = 1
        receive = "60mbit"
    """)
    with iperf3_server(here, "a"):
        assert mbit_per_s(here, "a", "c", rail=0) == payload(300)
        assert mbit_per_s(here, "a", "c", rail=1) == payload(60)
        assert mbit_per_s(here, "a", "b", rail=1) == payload(200)
    crossing = ("ping", "-c1", "-W1", "-I", "eth0", here.address("b", rail=1))
    assert run(here.command("a", *crossing)).returncode != 0


def test_ssh_reaches_each_host_as_a_machine_of_its_own(lab: BringUp, tmp_path: Path) -> None:
    (tmp_path / "fake root").mkdir()
    here = lab(TWO_HOSTS + '[hosts.b]\nroot = "fake root"\n')
    script = 'hostname; ls /sys/class/net; echo "$NCDIAG_ROOT"; ls -d /sys/fs/cgroup/*'
    first, second = here.ssh("a", script), here.ssh("b", script)
    groups = sorted(map(str, Path("/sys/fs/cgroup").iterdir()))
    assert (first.returncode, first.stderr) == (0, "")
    assert first.stdout.splitlines() == ["a", "eth0", "lo", "", *groups]
    assert second.stdout.splitlines()[:4] == ["b", "eth0", "lo", str(tmp_path / "fake root")]
    assert run(here.command("b", "sh", "-c", script)).stdout == second.stdout
    assert socket.gethostname() not in ("a", "b")


def test_the_hosts_file_says_what_the_lab_claims_to_be(lab: BringUp) -> None:
    text = 'uplink = "1gbit"\n' + TWO_HOSTS + "[hosts.b]\nnics = 2\n"
    here = lab(text + '[[faults]]\nhost = "a"\nsend = "50mbit"\n')
    a, b = here.address("a"), here.address("b")
    assert here.hosts_file.read_text() == (
        f"a address={a} leaf=leaf1 nic=eth0 rate=200mbit uplink=1gbit\n"
        f"b address={b} leaf=leaf1 nic=eth0,eth1 rate=200mbit uplink=1gbit\n"
    )
    bare = lab("hosts_file = []\n" + text)
    assert bare.hosts_file.read_text().splitlines()[0] == f"a address={bare.address('a')}"


def test_a_host_that_is_down_has_no_route_and_one_without_sshd_refuses(lab: BringUp) -> None:
    here = lab("""
        rate = "200mbit"
        [leaves]
        leaf1 = ["h[1-3]"]
        [[faults]]
        host = "h2"
        down = true
        [[faults]]
        host = "h3"
        sshd = false
    """)
    assert here.ssh("h1", "true").returncode == 0
    down, refusing = here.ssh("h2", "true"), here.ssh("h3", "true")
    assert (down.returncode, refusing.returncode) == (255, 255)
    assert "No route to host" in down.stderr
    assert "Connection refused" in refusing.stderr
    assert here.processes("h2") == here.processes("h3") == []
    here.heal()
    assert here.ssh("h2", "hostname").stdout + here.ssh("h3", "hostname").stdout == "h2\nh3\n"


@pytest.mark.alone
def test_hosts_break_slow_down_and_heal_while_something_runs(lab: BringUp) -> None:
    here = lab(TWO_HOSTS)
    sshd = here.processes("b")
    here.break_("b")
    assert not connects(here.address("b"))
    assert connects(here.address("a"))
    assert here.processes("b") == sshd, "a broken link must not end what runs behind it"
    here.heal("b")
    assert here.ssh("b", "hostname").stdout == "b\n"
    with iperf3_server(here, "a"):
        here.slow("a", "--send", "50mbit", "--to", "b")
        assert mbit_per_s(here, "a", "b") == payload(50)
        here.slow("a", "--send", "80mbit", "--to", "b")
        assert mbit_per_s(here, "a", "b") == payload(80)
        here.heal("a")
        assert mbit_per_s(here, "a", "b") == payload(200)
        here.slow("b", "--receive", "60mbit")
        assert mbit_per_s(here, "a", "b") == payload(60)


def test_kill_ends_what_runs_on_one_host_and_spares_its_sshd(lab: BringUp) -> None:
    here = lab(TWO_HOSTS)
    sleepers = {
        host: subprocess.Popen(here.command(host, "sleep", "60"), start_new_session=True)
        for host in ("a", "b")
    }
    for host in sleepers:
        wait_for(lambda host=host: len(here.processes(host)) == 2, f"the sleeper on {host}")
    here.kill("a")
    assert sleepers["a"].wait(10) == -signal.SIGKILL
    assert sleepers["b"].poll() is None
    assert here.ssh("a", "hostname").stdout == "a\n"
    netlab("down", here.name)
    assert sleepers["b"].wait(10) == -signal.SIGKILL


def test_two_labs_run_side_by_side_and_each_goes_alone(lab: BringUp) -> None:
    first, second = lab(TWO_HOSTS), lab(TWO_HOSTS)
    assert first.driver_address != second.driver_address
    assert first.ssh("a", "hostname").stdout == second.ssh("a", "hostname").stdout == "a\n"
    listed = netlab("status").stdout
    assert f"lab {first.name}: up, 2 hosts" in listed
    assert f"--ssh-option=-F{second.ssh_config}" in listed
    netlab("down", first.name)
    assert traces(first) == []
    assert second.ssh("b", "hostname").stdout == "b\n"


def test_down_leaves_nothing_and_may_be_repeated(lab: BringUp) -> None:
    here = lab(TWO_HOSTS)
    assert len(traces(here)) > 5, "the search for what is left must be able to find it"
    stray = here.ssh("a", "setsid sleep 61 >/dev/null 2>&1 </dev/null & echo $!").stdout
    netlab("down", here.name)
    assert traces(here) == []
    wait_for(lambda: not Path("/proc", stray.strip(), "exe").exists(), "the stray process's end")
    assert "no lab called" in netlab("down", here.name).stderr


def test_a_lab_that_was_killed_while_coming_up_can_be_removed(lab: BringUp, tmp_path: Path) -> None:
    here = lab(TWO_HOSTS)  # lends its name, so that the fixture cleans up after this test too
    netlab("down", here.name)
    file = tmp_path / f"{here.name}.toml"
    file.write_text('rate = "200mbit"\n[leaves]\nleaf1 = ["h[1-20]"]\n')
    for moment in ("-h1", "-h20"):
        process = subprocess.Popen([NETLAB, "up", file], stdout=subprocess.PIPE)
        wait_for(lambda m=moment: f"{here.name}{m}" in system.existing_namespaces(), "a namespace")
        process.kill()
        process.communicate()
        assert "already" in netlab("up", str(file), code=2).stderr
        netlab("down", str(file))
        assert traces(here) == []
    netlab("up", str(file))


def test_up_refuses_what_it_does_not_own(lab: BringUp, tmp_path: Path) -> None:
    here = lab(TWO_HOSTS)
    file = tmp_path / f"{here.name}.toml"
    assert netlab("up", str(file), code=2).stderr.count("\n") == 1
    assert here.ssh("a", "true").returncode == 0

    subnet = here.driver_address.rsplit(".", 2)[0] + ".0.0/16"
    other = tmp_path / f"o{os.getpid()}.toml"
    other.write_text(f'subnet = "{subnet}"\n' + TWO_HOSTS)
    assert "is not free" in netlab("up", str(other), code=2).stderr

    other.write_text(TWO_HOSTS)
    foreign = f"{other.stem}-b"
    assert run(["ip", "netns", "add", foreign]).returncode == 0
    try:
        assert "belongs to no lab" in netlab("up", str(other), code=2).stderr
        assert foreign in system.existing_namespaces(), "a foreign namespace must be left alone"
        assert f"{other.stem}-a" not in system.existing_namespaces()
    finally:
        run(["ip", "netns", "del", foreign])


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (("heal", "LAB", "nobody"), "no host called 'nobody'"),
        (("slow", "LAB", "a", "--send", "fast"), "is not a rate"),
        (("slow", "LAB", "a"), "needs --send"),
        (("break", "LAB", "a", "--rail", "1"), "there is no rail 1"),
        (("break", "nolab", "a"), "no lab called nolab"),
        (("down",), "needs a lab"),
        (("down", "../etc"), "a lab cannot be called"),
        (("destroy", "LAB"), "invalid choice"),
        (("up", "missing.toml"), "cannot read"),
    ],
)
def test_wrong_use_gets_one_line_and_changes_nothing(
    one_lab: Lab, arguments: tuple[str, ...], says: str
) -> None:
    before = (one_lab.directory / "state.json").read_text()
    argv = [one_lab.name if argument == "LAB" else argument for argument in arguments]
    done = netlab(*argv, code=2)
    assert done.stderr.startswith("netlab: ")
    assert says in done.stderr
    assert done.stderr.count("\n") == 1
    assert (one_lab.directory / "state.json").read_text() == before


@pytest.fixture(scope="module")
def one_lab(lab_names: Iterator[str], tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lab]:
    """A lab for tests that change nothing."""
    here = Lab(next(lab_names))
    file = tmp_path_factory.mktemp("lab") / f"{here.name}.toml"
    file.write_text(TWO_HOSTS)
    try:
        netlab("up", str(file))
        yield here
    finally:
        netlab("down", here.name)
