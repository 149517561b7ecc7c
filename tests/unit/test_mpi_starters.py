import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from ncdiag.cluster.launchers import LAUNCHERS, LauncherOptions, choose
from ncdiag.cluster.mpi import STARTERS, MpiProgram, choose_starter, programs
from ncdiag.cluster.mpi.programs import HYDRA, OPEN_MPI, find
from ncdiag.cluster.mpi.ways import REMOTE_SHELL, VARIABLE, describe
from ncdiag.model.errors import UsageError
from ncdiag.model.host import Host

OPTIONS = LauncherOptions(python=sys.executable)
HOSTS = [Host(name="b2", address="10.0.0.2"), Host(name="a1", address="10.0.0.1")]
LOOPBACK = [Host(name=f"127.0.0.{n}", address=f"127.0.0.{n}") for n in (3, 2)]
PROGRAM = MpiProgram(
    argv=("/bin/x", "a b"), ranks_per_host=2, variables={"NCCL_DEBUG": "WARN"}, stdin=b"in\n"
)
# What they answer to --version, in the words that matter.
MPICH = "HYDRA build details:\n    Version:                                 5.0.2"
INTEL = "Intel(R) MPI Library for Linux* OS, Version 2021.13 Build 20240701"
OPEN_4 = "mpirun (Open MPI) 4.1.4\n\nReport bugs to http://www.open-mpi.org/community/help/"
OPEN_5 = "mpirun (Open MPI) 5.0.8\n\nReport bugs to https://www.open-mpi.org/community/help/"
GFORKER = "invalid mpiexec argument --version"

Install = Callable[[str, str], Path]


@pytest.fixture
def install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Install:
    """Put programs that only tell their version on an otherwise empty PATH."""
    nowhere = tmp_path / "venv" / "python"
    nowhere.parent.mkdir()
    nowhere.symlink_to(Path(sys.executable).resolve())
    monkeypatch.setattr(sys, "executable", str(nowhere))
    monkeypatch.setenv("PATH", "/nowhere")

    def add(place: str, says: str) -> Path:
        program = tmp_path / place
        program.parent.mkdir(exist_ok=True)
        program.write_text(f"#!/bin/sh\n/bin/cat <<'END'\n{says}\nEND\n")
        program.chmod(0o755)
        folder = str(program.parent)
        if program.parent != nowhere.parent and folder not in os.environ["PATH"].split(":"):
            monkeypatch.setenv("PATH", f"{os.environ['PATH']}:{folder}")
        return program

    # Else no starter has an ssh to reach hosts by.
    add("ssh/ssh", "")
    return add


@pytest.mark.parametrize(
    ("says", "whose", "version"),
    [
        (MPICH, HYDRA, "5.0.2"),
        (INTEL, HYDRA, "2021.13"),
        (OPEN_4, OPEN_MPI, "4.1.4"),
        (OPEN_5, OPEN_MPI, "5.0.8"),
    ],
)
def test_an_mpiexec_belongs_to_whom_it_says(
    install: Install, says: str, whose: str, version: str
) -> None:
    program = install("bin/mpiexec", says)
    found, _ = find(whose, ["mpiexec"])
    assert found
    assert (found.path, found.version) == (str(program), version)
    other = OPEN_MPI if whose == HYDRA else HYDRA
    assert find(other, ["mpiexec"]) == (None, f"{program} is {whose}")


def test_one_that_does_not_say_belongs_to_nobody(install: Install) -> None:
    program = install("bin/mpiexec", GFORKER)
    for whose in (HYDRA, OPEN_MPI):
        found, why = find(whose, ["mpiexec"])
        assert found is None
        assert why.startswith(f"{program} is of another MPI")


@pytest.mark.parametrize(
    "does", ["/bin/sleep 3600 & echo $! >>PIDS; wait", "while :; do echo garbage; done"]
)
def test_one_that_never_ends_its_answer_is_killed_with_what_it_started(
    install: Install, monkeypatch: pytest.MonkeyPatch, does: str
) -> None:
    monkeypatch.setattr(programs, "_TIMEOUT_S", 2.0)
    program = install("bin/mpiexec", "")
    pids = program.with_name("pids")
    program.write_text(f"#!/bin/sh\necho $$ >PIDS\n{does}\n".replace("PIDS", str(pids)))
    found, why = find(HYDRA, ["mpiexec"])
    assert found is None
    assert why == f"{program} is of nobody's (no answer to --version within 2 s)"
    end = time.monotonic() + 60
    for pid in pids.read_text().split():
        while Path(f"/proc/{pid}").exists() and time.monotonic() < end:
            time.sleep(0.01)
        assert not Path(f"/proc/{pid}").exists()


def test_another_mpi_before_it_on_path_hides_none(install: Install) -> None:
    install("a/mpirun", MPICH)
    mine = install("b/mpirun", OPEN_5)
    found, _ = find(OPEN_MPI, ["mpirun"])
    assert found
    assert found.path == str(mine)


def test_a_wheel_is_found_beside_python_without_path(install: Install) -> None:
    wheel = install("venv/mpiexec", MPICH)
    starter = choose_starter(choose("local", [], OPTIONS))
    assert starter.name == "hydra"
    assert starter.launch(LOOPBACK, PROGRAM).argv[0] == str(wheel)


def test_without_any_one_is_told_what_to_install_and_who_knows_more(install: Install) -> None:
    del install
    with pytest.raises(UsageError) as raised:
        choose_starter(choose("local", [], OPTIONS))
    told = str(raised.value)
    assert "install MPICH or Open MPI" in told
    assert "ncdiag doctor" in told
    assert len(told) < 200


def test_beside_kubernetes_there_is_none_as_no_sshd_is_in_pods(install: Install) -> None:
    install("bin/mpiexec", MPICH)
    launcher = LAUNCHERS["kubernetes"](OPTIONS)
    with pytest.raises(UsageError, match=r"--engine torch.*ncdiag manifests mpijob"):
        choose_starter(launcher)


def test_a_launcher_of_mpi_has_its_own_starter_or_none(install: Install) -> None:
    install("bin/mpirun", MPICH)
    with pytest.raises(UsageError, match=r"openmpi cannot be used: .*mpirun is Hydra"):
        choose("openmpi", [], OPTIONS)
    assert choose_starter(choose("hydra", [], OPTIONS)).name == "hydra"


def test_hydra_is_told_of_hosts_in_order_and_of_ranks_host_by_host(install: Install) -> None:
    mpiexec = install("bin/mpiexec", MPICH)
    options = LauncherOptions(python="x", driver_address="10.0.0.9")
    launch = STARTERS["hydra"](options).launch(HOSTS, PROGRAM)
    assert launch.argv == (
        *(str(mpiexec), "-launcher", "rsh", "-launcher-exec", sys.executable),
        *("-localhost", "10.0.0.9", "-hosts", "b2,a1", "-ppn", "2", "-n", "4"),
        *("-genvnone", "-genv", "NCCL_DEBUG", "WARN", "/bin/x", "a b"),
    )
    assert (launch.hosts, launch.stdin) == (("b2", "a1"), b"in\n")


def test_open_mpi_is_told_the_same(install: Install, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    mpirun = install("bin/mpirun", OPEN_5)
    launch = STARTERS["openmpi"](OPTIONS).launch(HOSTS, PROGRAM)
    assert launch.argv == (
        *(str(mpirun), "--allow-run-as-root", "--host", "b2:2,a1:2"),
        *("--map-by", "ppr:2:node:OVERSUBSCRIBE", "--bind-to", "none", "-n", "4"),
        *("-x", "NCCL_DEBUG=WARN", "/bin/x", "a b"),
    )
    assert (launch.hosts, launch.stdin) == (("b2", "a1"), b"in\n")


@pytest.mark.parametrize("name", ["hydra", "openmpi"])
def test_loopback_addresses_need_no_ssh(install: Install, name: str) -> None:
    install("bin/mpiexec", MPICH if name == "hydra" else OPEN_5)
    launch = STARTERS[name](OPTIONS).launch(LOOPBACK, PROGRAM)
    assert VARIABLE not in launch.environment
    assert "4" in launch.argv
    assert launch.argv[-2:] == PROGRAM.argv


@pytest.mark.parametrize("name", ["hydra", "openmpi"])
@pytest.mark.parametrize(
    ("hosts", "complaint"),
    [
        ([Host(name="fd00::1", address="fd00::1")], "a colon means a number of ranks"),
        (
            [Host(name=f"{n:0>60}", address="x") for n in range(3000)],
            "3000 hosts are more than one",
        ),
        (
            [Host(name=f"gpu{n:04}", address=f"10.0.{n >> 8}.{n & 255}") for n in range(5000)],
            "5000 hosts are more than one MPI launch",
        ),
    ],
)
def test_hosts_that_cannot_be_told_are_refused(
    install: Install, name: str, hosts: list[Host], complaint: str
) -> None:
    install("bin/mpiexec", MPICH if name == "hydra" else OPEN_5)
    with pytest.raises(UsageError, match=complaint):
        STARTERS[name](OPTIONS).launch(hosts, PROGRAM)


@pytest.mark.parametrize("name", ["hydra", "openmpi"])
def test_two_thousand_hosts_with_addresses_are_started_by_one_command(
    install: Install, name: str
) -> None:
    install("bin/mpiexec", MPICH if name == "hydra" else OPEN_5)
    hosts = [Host(name=f"gpu{n:04}", address=f"10.20.{n >> 8}.{n & 255}") for n in range(2000)]
    launch = STARTERS[name](OPTIONS).launch(hosts, PROGRAM)
    done = subprocess.run(["/bin/true", *launch.argv], env={**launch.environment}, check=True)
    assert done.returncode == 0


def test_a_path_with_a_blank_is_told_before_open_mpi_splits_it(
    install: Install, monkeypatch: pytest.MonkeyPatch
) -> None:
    install("bin/mpirun", OPEN_4)
    assert STARTERS["openmpi"](OPTIONS).unavailable() is None
    monkeypatch.setattr(sys, "executable", "/opt/my venv/bin/python")
    assert "at its blank" in str(STARTERS["openmpi"](OPTIONS).unavailable())


# --- what stands in for ssh ---


def called(arguments: list[str], environment: dict[str, str], folder: Path) -> tuple[int, str]:
    """What ssh would be started with, a word a line."""
    ssh = folder / "ssh"
    ssh.write_text('#!/bin/sh\nprintf "%s\\n" "$@"\n')
    ssh.chmod(0o755)
    done = subprocess.run(
        [sys.executable, "-P", "-m", REMOTE_SHELL, *arguments],
        env={"PATH": f"{folder}:/usr/bin:/bin"} | environment,
        capture_output=True,
        text=True,
        check=False,
    )
    return done.returncode, done.stdout + done.stderr


def test_each_host_is_reached_its_own_way_and_by_all_options(tmp_path: Path) -> None:
    hosts = [*HOSTS, Host(name="c", address="c", user="ops", port=2222)]
    environment = dict(describe(hosts, ("-F /my site/config", "ProxyJump=gate")))
    code, told = called(
        ["-x", "-o", "a=b", "b2", '"/opt/proxy"', "--id", "0"], environment, tmp_path
    )
    assert code == 0
    words = told.splitlines()
    assert words[:5] == ["-T", "-o", "HostName=10.0.0.2", "-F", "/my site/config"]
    assert words[-5:] == ["--", "b2", '"/opt/proxy"', "--id", "0"]
    assert "ProxyJump=gate" in words
    assert "a=b" not in words
    code, told = called(["c", "x"], environment, tmp_path)
    assert told.splitlines()[:5] == ["-T", "-l", "ops", "-p", "2222"]


def test_a_host_that_is_none_of_ours_is_never_called(tmp_path: Path) -> None:
    environment = dict(describe(HOSTS, ()))
    code, told = called(["evil", "b3", "x"], environment, tmp_path)
    assert code == 1
    assert "none of the hosts is in" in told


def test_by_hand_it_says_what_it_is(tmp_path: Path) -> None:
    code, told = called(["b2", "x"], {}, tmp_path)
    assert code == 1
    assert told.startswith("this is started by ncdiag's MPI launchers, not by hand")


def test_an_option_that_ssh_has_not_is_refused_at_once() -> None:
    with pytest.raises(UsageError, match="not an option of ssh"):
        describe(HOSTS, ("gate",))
