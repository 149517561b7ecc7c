import json
import os
import resource
import signal
import socket
import ssl
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest

sys.path.insert(0, str(Path(__file__).parent / "importable"))

import fleet_functions as functions
from processes import children, runs, wait_until

from ncdiag import __version__
from ncdiag.cluster.fleet import (
    CallFailed,
    CallTimeout,
    CompanionSpec,
    Fleet,
    FleetOptions,
    HostLost,
)
from ncdiag.cluster.fleet.scratch import Scratch, remove_stale
from ncdiag.cluster.launchers import LauncherOptions, choose
from ncdiag.model.errors import UsageError
from ncdiag.model.host import Host

IMPORTABLE = Path(__file__).parent / "importable"
HOSTS = [Host(name=f"127.0.0.{n}", address=f"127.0.0.{n}") for n in range(2, 6)]
NAMES = tuple(host.name for host in HOSTS)
ECHO = CompanionSpec("echo", ("python", str(IMPORTABLE / "echo_companion.py")))
# Longer than any call here takes on a busy machine.
LONG_S = 60.0


@pytest.fixture(autouse=True)
def importable(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Workers can import what is called on them, and leave their folders where we look."""
    monkeypatch.setenv("PYTHONPATH", str(IMPORTABLE))
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr(tempfile, "tempdir", None)


MakeFleet = Callable[..., Fleet]


@pytest.fixture
def make_fleet() -> Iterator[MakeFleet]:
    """Fleets that are closed at the end, whatever happens."""
    fleets: list[Fleet] = []

    def make(hosts: list[Host] = HOSTS, python: str = sys.executable, **options: Any) -> Fleet:
        options.setdefault("ready_s", LONG_S)
        launcher = choose("local", hosts, LauncherOptions(python=python))
        fleet = Fleet(hosts, launcher, companions=[ECHO], options=FleetOptions(**options))
        fleets.append(fleet)
        return fleet

    yield make
    for fleet in fleets:
        fleet.close()


@pytest.fixture
def fleet(make_fleet: MakeFleet) -> Fleet:
    fleet = make_fleet()
    fleet.start()
    return fleet


def about(fleet: Fleet, host: str) -> dict[str, Any]:
    answer = fleet.call(host, functions.about, b"echo", timeout_s=LONG_S).result()
    return dict(json.loads(answer))


def say(fleet: Fleet, host: str, text: str, deadline_s: float = LONG_S) -> bytes:
    request = json.dumps({"name": "echo", "say": text, "deadline_s": deadline_s}).encode()
    return fleet.call(host, functions.ask_companion, request, timeout_s=2 * LONG_S).result()


def test_each_host_answers_in_a_thread_of_a_worker_of_its_own(fleet: Fleet) -> None:
    assert fleet.up == NAMES
    assert fleet.unreachable == {}
    assert fleet.versions == dict.fromkeys(NAMES, __version__)
    calls = [fleet.call(name, functions.about, b"echo", timeout_s=LONG_S) for name in NAMES]
    done = list(fleet.as_completed(calls))
    assert {call.host for call in done} == set(NAMES)
    answers = [json.loads(call.result()) for call in calls]
    assert len({answer["pid"] for answer in answers}) == len(NAMES)
    assert len({answer["companion"] for answer in answers}) == len(NAMES)
    assert all(answer["thread"] for answer in answers)
    assert all(answer["python"] == sys.executable for answer in answers)


def test_megabytes_pass_whole(fleet: Fleet) -> None:
    payload = os.urandom(4_000_000)
    assert fleet.call(NAMES[0], functions.echo, payload, timeout_s=LONG_S).result() == payload


def test_what_a_function_raises_comes_back_as_one_line(fleet: Fleet) -> None:
    def failure(function: Callable[[bytes], bytes]) -> str:
        with pytest.raises(CallFailed) as raised:
            fleet.call(NAMES[0], function, b"no \x1b[2J", timeout_s=LONG_S).result()
        return str(raised.value)

    assert failure(functions.fail) == "RuntimeError: no \\x1b[2J"
    assert failure(functions.leave) == "SystemExit: no \\x1b[2J"
    assert failure(functions.wrong_type).startswith("TypeError: ")
    assert fleet.call(NAMES[0], functions.echo, b"alive", timeout_s=LONG_S).result() == b"alive"


def test_a_call_that_does_not_end_is_given_up_and_the_host_works_on(fleet: Fleet) -> None:
    call = fleet.call(NAMES[0], functions.sleep, b"20", timeout_s=0.3)
    with pytest.raises(CallTimeout, match=r"no answer within 0\.3 s"):
        call.result()
    assert fleet.call(NAMES[0], functions.echo, b"x", timeout_s=LONG_S).result() == b"x"
    assert fleet.up == NAMES


def test_only_a_function_of_a_module_can_be_called(fleet: Fleet) -> None:
    with pytest.raises(ValueError, match="only a function of a module"):
        fleet.call(NAMES[0], lambda payload: payload, b"", timeout_s=1.0)


def test_a_killed_worker_fails_its_own_calls_only(fleet: Fleet) -> None:
    victim, other = about(fleet, NAMES[0]), NAMES[1]
    hanging = fleet.call(NAMES[0], functions.sleep, b"600", timeout_s=LONG_S)
    working = fleet.call(other, functions.sleep, b"0.5", timeout_s=LONG_S)
    os.kill(victim["pid"], signal.SIGKILL)
    with pytest.raises(HostLost, match="lost: worker ended"):
        hanging.result()
    assert working.result() == b"slept"
    assert fleet.unreachable == {NAMES[0]: "lost: worker ended (by signal 9)"}
    assert fleet.up == NAMES[1:]
    wait_until(lambda: not runs(victim["companion"]))
    with pytest.raises(HostLost, match="lost: worker ended"):
        fleet.call(NAMES[0], functions.echo, b"", timeout_s=LONG_S).result()


def test_a_stopped_worker_holds_no_call_longer_than_its_time_out(fleet: Fleet) -> None:
    pid = about(fleet, NAMES[0])["pid"]
    os.kill(pid, signal.SIGSTOP)
    try:
        with pytest.raises(CallTimeout):
            fleet.call(NAMES[0], functions.echo, b"", timeout_s=0.5).result()
        assert fleet.call(NAMES[1], functions.echo, b"x", timeout_s=LONG_S).result() == b"x"
        fleet.close()
        assert not runs(pid)
    finally:
        if runs(pid):
            os.kill(pid, signal.SIGKILL)


@pytest.mark.parametrize("how", ["crash", "hang", "stop", "kill"])
def test_a_companion_that_fails_is_replaced_and_costs_one_request(fleet: Fleet, how: str) -> None:
    before = about(fleet, NAMES[0])
    if how in ("stop", "kill"):
        number = signal.SIGSTOP if how == "stop" else signal.SIGKILL
        os.kill(before["companion"], number)
    with pytest.raises(CallFailed, match=r"^CompanionFailed: echo "):
        say(fleet, NAMES[0], how, deadline_s=0.5)
    assert say(fleet, NAMES[0], "hello") == b'"hello"'
    assert about(fleet, NAMES[0])["companion"] != before["companion"]
    assert about(fleet, NAMES[0])["pid"] == before["pid"]
    assert not runs(before["companion"])


def test_closing_leaves_no_process_and_no_folder(fleet: Fleet, tmp_path: Path) -> None:
    for name in NAMES:
        about(fleet, name)
    before = children(os.getpid())
    assert len(before) >= 2 * len(NAMES)
    assert len(list(tmp_path.iterdir())) == len(NAMES) + 1
    fleet.close()
    assert not [pid for pid in before if runs(pid)]
    assert list(tmp_path.iterdir()) == []
    fleet.close()
    with pytest.raises(HostLost, match="closed"):
        fleet.call(NAMES[0], functions.echo, b"", timeout_s=1.0).result()


def test_closing_ends_calls_under_way(fleet: Fleet) -> None:
    call = fleet.call(NAMES[0], functions.sleep, b"600", timeout_s=LONG_S)
    fleet.close()
    with pytest.raises(HostLost, match="closed"):
        call.result()


def test_closing_before_starting_and_while_starting_is_fine(make_fleet: MakeFleet) -> None:
    make_fleet().close()
    fleet = make_fleet()

    def interrupt(host: str, text: str) -> None:
        raise KeyboardInterrupt(host, text)

    with pytest.raises(KeyboardInterrupt):
        fleet.start(interrupt)
    fleet.close()
    wait_until(lambda: not children(os.getpid()))


def test_no_secret_is_in_a_command_an_environment_or_a_file(fleet: Fleet, tmp_path: Path) -> None:
    pids = [about(fleet, name)["pid"] for name in NAMES]
    for pid in {*pids, *children(os.getpid()), os.getpid()}:
        for kind in ("cmdline", "environ"):
            assert b"PRIVATE KEY" not in Path(f"/proc/{pid}/{kind}").read_bytes()
    for path in tmp_path.rglob("*"):
        assert not path.is_file() or b"PRIVATE KEY" not in path.read_bytes()


def test_every_open_port_is_on_loopback_here(fleet: Fleet) -> None:
    listens = [address for name in NAMES for address in about(fleet, name)["listens"]]
    assert set(listens) == {"127.0.0.1"}
    own = psutil.Process().net_connections("inet")
    assert {c.laddr.ip for c in own if c.status == psutil.CONN_LISTEN} == {"127.0.0.1"}


def test_who_lacks_the_runs_key_is_not_let_in(fleet: Fleet) -> None:
    assert fleet._driver is not None
    port = int(fleet._driver._client.scheduler.address.rpartition(":")[2])
    stranger = ssl.create_default_context()
    stranger.check_hostname = False
    stranger.verify_mode = ssl.CERT_NONE
    with (
        socket.create_connection(("127.0.0.1", port), timeout=LONG_S) as raw,
        stranger.wrap_socket(raw) as tls,
    ):
        assert tls.version() == "TLSv1.3"
        # In TLS 1.3 the refusal comes with the first read.
        with pytest.raises(ssl.SSLError, match="CERTIFICATE_REQUIRED"):
            tls.recv(1)


DRIVER = f"""
import json, sys, time
sys.path.insert(0, {str(IMPORTABLE)!r})
import fleet_functions
from ncdiag.cluster.fleet import CompanionSpec, Fleet
from ncdiag.cluster.launchers import choose
from ncdiag.model.host import Host
hosts = [Host(name=f"127.0.0.{{n}}", address=f"127.0.0.{{n}}") for n in range(2, 6)]
echo = CompanionSpec("echo", ("python", {str(IMPORTABLE / "echo_companion.py")!r}))
with Fleet(hosts, choose("auto", hosts), companions=[echo]) as fleet:
    fleet.start()
    calls = [fleet.call(name, fleet_functions.about, b"echo", timeout_s=60) for name in fleet.up]
    print(json.dumps([json.loads(call.result()) for call in calls]), flush=True)
    fleet.call(fleet.up[0], fleet_functions.sleep, b"600", timeout_s=600).result()
"""


def start_driver(**options: Any) -> tuple["subprocess.Popen[bytes]", list[int]]:
    driver = subprocess.Popen([sys.executable, "-c", DRIVER], stdout=subprocess.PIPE, **options)
    assert driver.stdout is not None
    answers = json.loads(driver.stdout.readline())
    return driver, [answer[kind] for answer in answers for kind in ("pid", "companion")]


@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGTERM, signal.SIGINT])
def test_a_driver_that_dies_leaves_no_process(how: signal.Signals, tmp_path: Path) -> None:
    driver, pids = start_driver()
    with driver:
        assert len(pids) == 2 * len(HOSTS)
        assert all(map(runs, pids))
        driver.send_signal(how)
    wait_until(lambda: not any(map(runs, pids)), patience_s=15.0)
    # Only a driver that could not clean up leaves its own folder, for the next run to remove.
    wait_until(lambda: len(list(tmp_path.iterdir())) <= (how is not signal.SIGINT))


def test_the_workers_of_a_driver_that_is_stopped_end_by_themselves_and_say_why() -> None:
    driver, pids = start_driver(stderr=subprocess.PIPE)
    with driver:
        driver.send_signal(signal.SIGSTOP)
        try:
            wait_until(lambda: not any(map(runs, pids)))
            driver.send_signal(signal.SIGCONT)
            assert driver.stderr is not None
            said = driver.stderr.read()
        finally:
            driver.kill()
    assert b"HostLost: lost: it heard nothing from the driver for 8 s" in said


def test_a_worker_that_was_killed_is_cleaned_up_after_by_the_next(tmp_path: Path) -> None:
    leave_one = (
        "import os; from ncdiag.cluster.fleet.scratch import Scratch; s = Scratch();"
        "(s.path / 'left').touch(); os._exit(0)"
    )
    subprocess.run([sys.executable, "-c", leave_one], check=True)
    mine = Scratch()
    assert len(list(tmp_path.iterdir())) == 2
    remove_stale()
    assert list(tmp_path.iterdir()) == [mine.path]
    mine.remove()
    assert list(tmp_path.iterdir()) == []


def fake_python(folder: Path, cases: str) -> str:
    """An interpreter that behaves differently on each host."""
    script = folder / "python-of-many-faces"
    script.write_text(f'#!/bin/sh\ncase "$5" in\n{cases}\nesac\nexec {sys.executable} "$@"\n')
    script.chmod(0o755)
    return str(script)


def test_a_host_that_does_not_come_up_says_why_and_the_others_go_on(
    make_fleet: MakeFleet, tmp_path_factory: pytest.TempPathFactory
) -> None:
    python = fake_python(
        tmp_path_factory.mktemp("bin"),
        "127.0.0.3) echo \"ModuleNotFoundError: No module named 'ncdiag'\" >&2; exit 1;;\n"
        "127.0.0.4) exec sleep 600;;\n"
        "127.0.0.5) echo 'it broke \033[2J' >&2; exit 3;;",
    )
    fleet = make_fleet(python=python, ready_s=12.0)
    told: dict[str, list[str]] = {name: [] for name in NAMES}
    fleet.start(lambda host, text: told[host].append(text))
    reasons = {
        "127.0.0.3": "no ncdiag there: install it for the Python of --remote-python",
        "127.0.0.4": "timed out: it did not start within 12 s",
        "127.0.0.5": "it broke \\x1b[2J",
    }
    assert fleet.unreachable == reasons
    assert told == {
        "127.0.0.2": ["starting", "up"],
        **{name: ["starting", f"unreachable: {reason}"] for name, reason in reasons.items()},
    }
    assert fleet.call("127.0.0.2", functions.echo, b"x", timeout_s=LONG_S).result() == b"x"
    with pytest.raises(HostLost, match="no ncdiag there"):
        fleet.call("127.0.0.3", functions.echo, b"x", timeout_s=LONG_S).result()


def test_noise_before_the_hello_is_ignored_and_another_version_told(
    make_fleet: MakeFleet, tmp_path_factory: pytest.TempPathFactory
) -> None:
    hello = json.dumps({"host": "127.0.0.2", "version": "0.0.1"})
    python = fake_python(
        tmp_path_factory.mktemp("bin"),
        f"127.0.0.2) echo 'Welcome!'; printf '\\377{{\\n'; echo 'ncdiag-worker: {hello}';;",
    )
    fleet = make_fleet(HOSTS[:1], python)
    told: list[str] = []
    fleet.start(lambda _, text: told.append(text))
    assert told == ["starting", f"runs ncdiag 0.0.1, not {__version__} as here", "up"]


def test_an_interpreter_that_does_not_exist_is_named(make_fleet: MakeFleet) -> None:
    fleet = make_fleet(python="/no/such/python")
    fleet.start()
    reason = "cannot start /no/such/python: No such file or directory"
    assert fleet.unreachable == dict.fromkeys(NAMES, reason)
    assert fleet.up == ()


def test_a_limit_of_open_files_that_is_too_low_is_told_before_anything_starts(
    make_fleet: MakeFleet, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(resource, "getrlimit", lambda _: (64, 64))
    monkeypatch.setattr(resource, "setrlimit", lambda *_: None)
    with pytest.raises(UsageError, match=r"4 hosts need about 72 open files here, .* is 64"):
        make_fleet().start()
    assert not children(os.getpid())


def test_workers_reach_a_driver_over_ipv6(make_fleet: MakeFleet) -> None:
    if not socket.has_ipv6 or not Path("/proc/net/if_inet6").exists():
        pytest.skip("this machine has no IPv6")
    fleet = make_fleet(HOSTS[:1], driver_address="::1")
    fleet.start()
    assert fleet.unreachable == {}
    assert set(about(fleet, "127.0.0.2")["listens"]) == {"127.0.0.1", "::1"}


def test_a_driver_address_that_leads_nowhere_is_the_reason(make_fleet: MakeFleet) -> None:
    fleet = make_fleet(HOSTS[:1], driver_address="127.0.0.1.invalid")
    fleet.start()
    assert fleet.up == ()
    assert "cannot reach the driver at 127.0.0.1.invalid, port" in fleet.unreachable["127.0.0.2"]


def test_what_dask_and_the_hosts_say_goes_to_the_log(
    make_fleet: MakeFleet, tmp_path_factory: pytest.TempPathFactory, capfd: Any
) -> None:
    log = tmp_path_factory.mktemp("log") / "fleet.log"
    python = fake_python(log.parent, "127.0.0.2) echo 'hello \033[2J' >&2;;")
    fleet = make_fleet(HOSTS[:2], python, log_path=log)
    fleet.start()
    os.kill(about(fleet, "127.0.0.3")["pid"], signal.SIGKILL)
    wait_until(lambda: fleet.up == ("127.0.0.2",))
    fleet.close()
    assert "127.0.0.2: hello \\x1b[2J\n" in log.read_text()
    assert capfd.readouterr() == ("", "")


def test_a_host_the_launcher_cannot_start_is_wrong_use(make_fleet: MakeFleet) -> None:
    fleet = make_fleet([Host(name="gpu1", address="gpu1")])
    with pytest.raises(UsageError, match="gpu1 is none"):
        fleet.start()


def test_a_fleet_starts_as_many_at_a_time_as_the_launcher_says(make_fleet: MakeFleet) -> None:
    fleet = make_fleet()
    fleet._launcher.starts_at_a_time = 1
    told: list[str] = []
    fleet.start(lambda _, text: told.append(text))
    assert told == ["starting", "up"] * len(HOSTS)


def test_importing_the_fleet_loads_nothing_heavy() -> None:
    code = (
        "import sys, ncdiag.cluster.fleet.worker\n"
        "print({'distributed', 'dask', 'torch', 'asyncio', 'cryptography'} & set(sys.modules))"
    )
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, check=True).stdout
    assert out == b"set()\n"
