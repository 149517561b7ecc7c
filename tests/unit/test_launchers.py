import json
import os
import re
import shlex
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from live_processes import runs

from ncdiag.cluster.launcher import _SOURCE_FIRST
from ncdiag.cluster.launchers import (
    LAUNCHERS,
    KubernetesOptions,
    Launch,
    LauncherOptions,
    RemoteJob,
    SlurmOptions,
    choose,
    is_loopback,
    ssh_arguments,
)
from ncdiag.model.errors import UsageError
from ncdiag.model.host import Host

JOB = RemoteJob(module="ncdiag.x", stdin=b"secret\n")
SMALL_JOB = RemoteJob(module="ncdiag.x")
POD = KubernetesOptions(selector="app=ncdiag")
SMALL = LauncherOptions(python="/usr/bin/python3", kubernetes=POD)
LARGE = LauncherOptions(
    kubernetes=KubernetesOptions(
        selector="app=ncdiag", namespace="ai", context="prod", container="main"
    ),
    driver_address="10.0.0.9",
    python="/opt/my python/bin/python",
    remote_setup="setup.sh",
    ssh_options=("-F /etc/my ssh/config", "-oProxyJump=gate", "-4", "Ciphers=aes256-ctr"),
    slurm=SlurmOptions(
        partition="gpu",
        srun_arguments=("--gres=gpu:8", "--comment=two words"),
        container_image="/images/my torch.sqsh",
    ),
)
SOURCE = _SOURCE_FIRST
LARGE_WORKER = "'/opt/my python/bin/python' -P -m ncdiag.x --host gpu1"
SSH_DEFAULTS = (
    *("-o", "BatchMode=yes", "-o", "ConnectTimeout=5"),
    *("-o", "ServerAliveInterval=3", "-o", "ServerAliveCountMax=2"),
    *("-o", "ClearAllForwardings=yes", "-o", "ControlMaster=no"),
)

KUBECTL = Path(__file__).parents[1] / "data" / "kubectl" / "kubectl"
SMALL_WORKER = ("/usr/bin/python3", "-P", "-m", "ncdiag.x", "--host", "gpu1")
FULL_WORKER = (
    *("sh", "-c", SOURCE, "./setup.sh"),
    *("/opt/my python/bin/python", "-P", "-m", "ncdiag.x", "--host", "gpu1"),
)
REMOTE_SHELL = "-P -m ncdiag.cluster.mpi.remote_shell"
HYDRA = {
    "HYDRA_HOSTNAME_PROPAGATION": "0",
    "HYDRA_LAUNCHER_EXTRA_ARGS": REMOTE_SHELL,
    "I_MPI_HYDRA_BOOTSTRAP_EXEC_EXTRA_ARGS": REMOTE_SHELL,
}
OPEN_MPI = {
    "OMPI_MCA_plm": "rsh",
    "PRTE_MCA_plm": "ssh",
    "OMPI_MCA_plm_rsh_agent": f"{sys.executable} {REMOTE_SHELL}",
    "PRTE_MCA_plm_ssh_agent": f"{sys.executable} {REMOTE_SHELL}",
    "OMPI_MCA_plm_rsh_no_tree_spawn": "1",
    "PRTE_MCA_plm_ssh_no_tree_spawn": "1",
}
PLAIN_WAY = {"NCDIAG_REMOTE_SHELL": '{"options":[],"hosts":{"gpu1":null}}'}
FULL_WAY = {
    "NCDIAG_REMOTE_SHELL": '{"options":["-F /etc/my ssh/config","-oProxyJump=gate","-4",'
    '"Ciphers=aes256-ctr"],"hosts":{"gpu1":["10.0.0.1","ops",2222]}}'
}
SLURM_STEP = (
    *("srun", "--overlap", "--no-kill", "--kill-on-bad-exit=0", "--wait=0"),
    *("--nodes=1", "--ntasks=1", "--ntasks-per-node=1", "--distribution=arbitrary"),
    *("--nodelist=gpu1", "--cpu-bind=none", "--export=ALL", "--job-name=ncdiag"),
)
SLURM_FLEET = ("--mpi=none", "--input=all", "--label")
SLURM_HOST = ("--host-from", "SLURMD_NODENAME")


@pytest.fixture(autouse=True)
def _outside_of_slurm(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("SLURM_JOB_ID", raising=False)


@pytest.fixture(autouse=True)
def programs(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder on PATH with an mpiexec of Hydra, an mpirun of Open MPI, and a kubectl."""
    folder = tmp_path_factory.mktemp("bin")
    for name, says in (("mpiexec.hydra", "HYDRA build details:"), ("mpirun", "(Open MPI) 5.0.8")):
        (folder / name).write_text(f"#!/bin/sh\necho 'mpirun {says}'\n")
        (folder / name).chmod(0o755)
    (folder / "kubectl").symlink_to(KUBECTL)
    pod = {
        "metadata": {"name": "ncdiag-x7", "labels": {"app": "ncdiag"}},
        "spec": {"nodeName": "gpu1"},
        "status": {"podIP": "10.0.0.1", "conditions": [{"type": "Ready", "status": "True"}]},
    }
    elsewhere = {"metadata": pod["metadata"] | {"namespace": "ai"}}
    (folder / "pods.json").write_text(json.dumps({"items": [pod, pod | elsewhere]}))
    monkeypatch.setenv("KUBECTL_PODS", f"{folder}/pods.json")
    monkeypatch.setenv("PATH", f"{folder}:{os.environ['PATH']}")
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    return folder


def wait_until(condition: Callable[[], bool]) -> None:
    end = time.monotonic() + 30.0
    while not condition():
        assert time.monotonic() < end, "it never came true"
        time.sleep(0.01)


@dataclass(frozen=True)
class Row:
    """The least and the most a launcher has to say, side by side with what is expected."""

    plain_host: Host
    plain_argv: tuple[str, ...]
    full_host: Host
    full_argv: tuple[str, ...]
    label: str | None = None
    plain_environment: Mapping[str, str] = field(default_factory=dict)
    full_environment: Mapping[str, str] = field(default_factory=dict)


TABLE = {
    "local": Row(
        Host(name="127.0.0.2", address="127.0.0.2"),
        ("/usr/bin/python3", "-P", "-m", "ncdiag.x", "--host", "127.0.0.2"),
        Host(name="one", address="::1"),
        (
            *("sh", "-c", SOURCE, "./setup.sh"),
            *("/opt/my python/bin/python", "-P", "-m", "ncdiag.x", "--host", "one"),
        ),
    ),
    "ssh": Row(
        Host(name="gpu1", address="gpu1"),
        (
            *("ssh", "-T", *SSH_DEFAULTS, "--", "gpu1"),
            "exec /usr/bin/python3 -P -m ncdiag.x --host gpu1",
        ),
        Host(name="gpu1", address="fe80::1%eth0", user="ops", port=2222),
        (
            *("ssh", "-T", "-l", "ops", "-p", "2222", "-o", "HostName=fe80::1%%eth0"),
            *("-F", "/etc/my ssh/config", "-oProxyJump=gate", "-4", "-o", "Ciphers=aes256-ctr"),
            *SSH_DEFAULTS,
            *("--", "gpu1"),
            f"exec sh -c {shlex.quote(SOURCE)} ./setup.sh {LARGE_WORKER}",
        ),
    ),
    "slurm": Row(
        Host(name="gpu1", address="gpu1"),
        (*SLURM_STEP, *SLURM_FLEET, "/usr/bin/python3", "-P", "-m", "ncdiag.x", *SLURM_HOST),
        Host(name="gpu1", address="10.0.0.1"),
        (
            *SLURM_STEP,
            *("--container-image=/images/my torch.sqsh", "--gres=gpu:8", "--comment=two words"),
            *SLURM_FLEET,
            *("sh", "-c", SOURCE, "./setup.sh"),
            *("/opt/my python/bin/python", "-P", "-m", "ncdiag.x", *SLURM_HOST),
        ),
        label=r"^\s*(?P<index>\d+): ",
    ),
    "hydra": Row(
        Host(name="gpu1", address="gpu1"),
        (
            *("{bin}/mpiexec.hydra", "-launcher", "rsh", "-launcher-exec", sys.executable),
            *("-hosts", "gpu1", "-ppn", "1", "-n", "1", "-genvnone", *SMALL_WORKER),
        ),
        Host(name="gpu1", address="10.0.0.1", user="ops", port=2222),
        (
            *("{bin}/mpiexec.hydra", "-launcher", "rsh", "-launcher-exec", sys.executable),
            *("-localhost", "10.0.0.9", "-hosts", "gpu1", "-ppn", "1", "-n", "1"),
            *("-genvnone", *FULL_WORKER),
        ),
        plain_environment=HYDRA | PLAIN_WAY,
        full_environment=HYDRA | FULL_WAY,
    ),
    "openmpi": Row(
        Host(name="gpu1", address="gpu1"),
        (
            *("{bin}/mpirun", "--host", "gpu1:1", "--map-by", "ppr:1:node:OVERSUBSCRIBE"),
            *("--bind-to", "none", "-n", "1", *SMALL_WORKER),
        ),
        Host(name="gpu1", address="10.0.0.1", user="ops", port=2222),
        (
            *("{bin}/mpirun", "--host", "gpu1:1", "--map-by", "ppr:1:node:OVERSUBSCRIBE"),
            *("--bind-to", "none", "-n", "1", *FULL_WORKER),
        ),
        plain_environment=OPEN_MPI | PLAIN_WAY,
        full_environment=OPEN_MPI | FULL_WAY,
    ),
    "kubernetes": Row(
        Host(name="gpu1", address="gpu1"),
        ("kubectl", "exec", "--stdin", "ncdiag-x7", "--", *SMALL_WORKER),
        Host(name="gpu1", address="10.0.0.1"),
        (
            *("kubectl", "exec", "--context=prod", "--namespace=ai", "--stdin"),
            *("--container=main", "ncdiag-x7", "--", *FULL_WORKER),
        ),
    ),
}


@pytest.mark.parametrize("name", LAUNCHERS)
def test_each_launcher_returns_the_commands_of_its_row(name: str, programs: Path) -> None:
    row = TABLE[name]

    def here(argv: tuple[str, ...]) -> tuple[str, ...]:
        return tuple(word.replace("{bin}", str(programs)) for word in argv)

    assert LAUNCHERS[name](SMALL).launches([row.plain_host], SMALL_JOB) == [
        Launch(
            argv=here(row.plain_argv),
            hosts=(row.plain_host.name,),
            label=row.label,
            environment=row.plain_environment,
        )
    ]
    assert LAUNCHERS[name](LARGE).launches([row.full_host], JOB) == [
        Launch(
            argv=here(row.full_argv),
            hosts=(row.full_host.name,),
            stdin=b"secret\n",
            label=row.label,
            environment=row.full_environment,
        )
    ]


def test_no_row_is_left_of_a_launcher_that_is_gone() -> None:
    assert set(TABLE) == set(LAUNCHERS)


@pytest.mark.parametrize("name", LAUNCHERS)
def test_a_secret_stands_in_no_command(name: str) -> None:
    [launch] = LAUNCHERS[name](LARGE).launches([TABLE[name].full_host], JOB)
    assert not any("secret" in argument for argument in launch.argv)


@pytest.mark.parametrize("name", LAUNCHERS)
def test_every_host_is_covered_once(name: str) -> None:
    hosts = [Host(name=f"127.0.0.{n}", address=f"127.0.0.{n}") for n in range(2, 9)]
    launches = LAUNCHERS[name](SMALL).launches(hosts, JOB)
    assert [host for launch in launches for host in launch.hosts] == [h.name for h in hosts]


def test_the_set_up_is_sourced_with_neither_arguments_nor_the_jobs_input(tmp_path: object) -> None:
    setup = f"{tmp_path}/set up.sh"
    with open(setup, "w", encoding="utf-8") as file:  # noqa: PTH123 - a plain path is the point
        file.write('export FROM_SETUP="args:$#"\ncat\nfalse\n')
    program = "import os, sys; print(os.environ['FROM_SETUP'], sys.argv[1:], sys.stdin.read())"
    command = SMALL_JOB.command(LauncherOptions(python="x", remote_setup=setup))
    shell, python = command[:4], (sys.executable, "-c", program, "a b")
    output = subprocess.run(
        [*shell, *python], input="job", capture_output=True, text=True, check=True
    ).stdout
    assert output == "args:0 ['a b'] job\n"


def test_a_set_up_that_hangs_ends_with_whoever_started_it(tmp_path: Path) -> None:
    setup, pids = tmp_path / "setup.sh", tmp_path / "pids"
    setup.write_text(f'sleep 600 & echo "$$ $!" >"{pids}.new"; mv "{pids}.new" "{pids}"; wait\n')
    command = SMALL_JOB.command(LauncherOptions(python="x", remote_setup=str(setup)))
    starter = f"import subprocess; subprocess.Popen({command!r}, start_new_session=True).wait()"
    with subprocess.Popen([sys.executable, "-c", starter]) as started:
        wait_until(pids.exists)
        started.kill()
    shell, sleeping = map(int, pids.read_text().split())
    try:
        wait_until(lambda: not runs(shell) and not runs(sleeping))
    finally:
        for pid in (shell, sleeping):
            if runs(pid):
                os.kill(pid, signal.SIGKILL)


def test_a_set_up_leaves_no_process_beside_the_job(tmp_path: Path) -> None:
    setup = tmp_path / "setup.sh"
    setup.write_text("set -eu\n")
    program = (
        "import os; from pathlib import Path\n"
        "print(Path(f'/proc/self/task/{os.getpid()}/children').read_text().split())"
    )
    command = SMALL_JOB.command(LauncherOptions(python="x", remote_setup=str(setup)))
    output = subprocess.run(
        [*command[:4], sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    assert (output.stdout, output.stderr) == ("[]\n", "")


@pytest.mark.parametrize(
    ("option", "arguments"),
    [
        ("-F/path", ("-F/path",)),
        ("-F /a path/x", ("-F", "/a path/x")),
        (" -J gate ", ("-J", "gate")),
        ("-o ProxyCommand=nc -x %h", ("-o", "ProxyCommand=nc -x %h")),
        ("-oProxyJump=x", ("-oProxyJump=x",)),
        ("-4", ("-4",)),
        ("StrictHostKeyChecking no", ("-o", "StrictHostKeyChecking no")),
        ("Port=22", ("-o", "Port=22")),
    ],
)
def test_an_ssh_option_may_be_written_as_one_is_used_to(
    option: str, arguments: tuple[str, ...]
) -> None:
    assert ssh_arguments(option) == arguments


@pytest.mark.parametrize("option", ["", " ", "--", "-", "gpu1", "Port", "$(reboot)", "-\n"])
def test_what_ssh_would_take_for_a_host_is_refused(option: str) -> None:
    with pytest.raises(UsageError, match="not an option of ssh"):
        LAUNCHERS["ssh"](LauncherOptions(python="x", ssh_options=(option,)))


@pytest.mark.parametrize("name", ["ssh", "hydra", "openmpi"])
@pytest.mark.parametrize(
    ("option", "at_a_time"),
    [
        ("-J gate", 10),
        ("-Jgate", 10),
        ("proxyjump gate", 10),
        ("-oProxyCommand=nc -x %h", 10),
        ("-o ProxyJump=gate", 10),
        ("Port=22", 32),
        ("-F /proxyjump", 32),
        ("-j", 32),
    ],
)
def test_a_jump_host_is_not_asked_by_more_at_once_than_it_takes(
    name: str, option: str, at_a_time: int
) -> None:
    launcher = LAUNCHERS[name](LauncherOptions(python="x", ssh_options=(option,)))
    assert launcher.starts_at_a_time == at_a_time


def test_ssh_itself_understands_the_command() -> None:
    host = Host(name="gpu1", address="fe80::1%eth0", user="ops", port=2222)
    [launch] = LAUNCHERS["ssh"](SMALL).launches([host], SMALL_JOB)
    if LAUNCHERS["ssh"](SMALL).unavailable():
        pytest.skip("ssh is not installed")
    told = subprocess.run(
        [launch.argv[0], "-G", "-F", "/dev/null", *launch.argv[1:-1]],
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    settings = dict(line.split(" ", 1) for line in told.splitlines())
    assert settings["hostname"] == "fe80::1%eth0"
    assert (settings["user"], settings["port"]) == ("ops", "2222")
    assert settings["batchmode"] == "yes"


@pytest.mark.parametrize("address", ["127.0.0.1", "127.9.9.9", "::1", "localhost"])
def test_loopback_addresses_are_local(address: str) -> None:
    assert is_loopback(Host(name="a", address=address))


@pytest.mark.parametrize("address", ["10.0.0.1", "127.0.0.1.example.org", "gpu1", "::2"])
def test_other_addresses_are_not(address: str) -> None:
    host = Host(name="a", address=address)
    assert not is_loopback(host)
    with pytest.raises(UsageError, match="a is none"):
        LAUNCHERS["local"](SMALL).launches([host], SMALL_JOB)


def test_auto_is_local_only_where_every_host_is() -> None:
    one, other = Host(name="a", address="127.0.0.2"), Host(name="b", address="10.0.0.1")
    assert choose("auto", [one, one]).name == "local"
    assert choose("auto", [one, other]).name == "ssh"


def test_an_unknown_launcher_is_told_with_those_there_are() -> None:
    with pytest.raises(UsageError, match=r"'pdsh': there are auto, local, ssh, slurm"):
        choose("pdsh", [])
    with pytest.raises(UsageError, match=re.escape("did you mean ssh?")):
        choose("sssh", [])


def test_a_launcher_that_cannot_be_used_says_why(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/nowhere")
    with pytest.raises(UsageError, match=r"ssh is not installed \(on Debian"):
        choose("ssh", [])
