"""The launcher slurm beside a Slurm of two small programs: srun, and scontrol with its nodes."""

import os
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from ncdiag.cluster.launchers import LauncherOptions, RemoteJob, SlurmOptions
from ncdiag.cluster.launchers.slurm import OWN_ALLOCATION, SlurmLauncher
from ncdiag.cluster.mpi import MpiProgram
from ncdiag.cluster.mpi.slurm import SlurmStarter
from ncdiag.cluster.slurm_step import inside_allocation
from ncdiag.model.errors import UsageError
from ncdiag.model.host import Host

OPTIONS = LauncherOptions(python="/usr/bin/python3")
JOB = RemoteJob(module="ncdiag.x", stdin=b"job\n")
HOSTS = [Host(name=name, address=name) for name in ("h3", "h1", "h2")]
Slurm = Callable[..., None]


@pytest.fixture
def slurm(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Slurm:
    """Stand in an allocation of ``nodes``, of which Slurm says ``states``."""

    def stand(nodes: str, states: str = "") -> None:
        programs = tmp_path / "bin"
        programs.mkdir(exist_ok=True)
        (tmp_path / "states").write_text(states)
        for name, script in (("srun", "exit 0"), ("scontrol", f'cat "{tmp_path}/states"')):
            (programs / name).write_text(f"#!/bin/sh\n{script}\n")
            (programs / name).chmod(0o755)
        monkeypatch.setenv("PATH", f"{programs}:{os.environ['PATH']}")
        monkeypatch.setenv("SLURM_JOB_ID", "5")
        monkeypatch.setenv("SLURM_JOB_NODELIST", nodes)

    monkeypatch.delenv(OWN_ALLOCATION, raising=False)
    return stand


def test_all_hosts_are_one_step_in_the_order_given(slurm: Slurm) -> None:
    slurm("h[1-4]", "NodeName=h1 State=MIXED\n")

    [launch] = SlurmLauncher(OPTIONS).launches(HOSTS, JOB)

    assert launch.hosts == ("h3", "h1", "h2")
    assert {"--nodes=3", "--nodelist=h3,h1,h2", "--distribution=arbitrary"} < set(launch.argv)
    assert {"--no-kill", "--kill-on-bad-exit=0", "--overlap", "--wait=0"} < set(launch.argv)
    assert launch.argv[-2:] == ("--host-from", "SLURMD_NODENAME")


def test_a_node_that_is_down_is_left_out_and_tells_why(slurm: Slurm) -> None:
    slurm("h[1-3]", "NodeName=h1 State=DOWN Reason=$(reboot) [root@now]\n")

    down, step = SlurmLauncher(OPTIONS).launches(HOSTS, JOB)

    assert (down.hosts, step.hosts) == (("h1",), ("h3", "h2"))
    said = subprocess.run(down.argv, capture_output=True, text=True, check=False)
    assert said.stderr == "Slurm says it is down: $(reboot)\n"
    assert said.returncode == 1


def test_hosts_outside_the_allocation_are_named(slurm: Slurm) -> None:
    slurm("h[1,3]", "NodeName=h2 State=IDLE\n")
    with pytest.raises(UsageError, match=r"allocation 5 \(h\[1,3\]\): h2; make one that has"):
        SlurmLauncher(OPTIONS).launches(HOSTS, JOB)


def test_a_drained_host_outside_the_allocation_is_unreachable(slurm: Slurm) -> None:
    slurm("h[1,3]", "NodeName=h2 State=IDLE+DRAIN Reason=fan\n")
    drained, step = SlurmLauncher(OPTIONS).launches(HOSTS, JOB)
    assert (drained.argv[-1], step.hosts) == ("Slurm says it is idle+drain: fan", ("h3", "h1"))


def test_in_an_allocation_of_our_own_whatever_is_not_given_is_unreachable(
    slurm: Slurm, monkeypatch: pytest.MonkeyPatch
) -> None:
    slurm("h[1,3]", "NodeName=h2 State=IDLE\n")
    monkeypatch.setenv(OWN_ALLOCATION, "1")
    missed, step = SlurmLauncher(OPTIONS).launches(HOSTS, JOB)
    assert missed.argv[-1] == "not allocated; Slurm says it is idle"
    assert step.hosts == ("h3", "h1")


@pytest.mark.parametrize("argument", ["", "-", "--", "gres=gpu:8", "true"])
def test_what_srun_would_take_for_the_program_is_refused(argument: str) -> None:
    options = LauncherOptions(python="x", slurm=SlurmOptions(srun_arguments=(argument,)))
    with pytest.raises(UsageError, match="not an option of srun"):
        SlurmLauncher(options)


def test_without_srun_neither_can_be_used(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/nowhere")
    monkeypatch.setenv("SLURM_JOB_ID", "5")
    assert not inside_allocation()
    for one in (SlurmLauncher(OPTIONS), SlurmStarter(OPTIONS)):
        assert "srun is not installed" in str(one.unavailable())


def test_an_mpi_program_needs_an_allocation(slurm: Slurm, monkeypatch: pytest.MonkeyPatch) -> None:
    slurm("h[1-3]")
    assert SlurmStarter(OPTIONS).unavailable() is None
    monkeypatch.delenv("SLURM_JOB_ID")
    assert "not inside a Slurm allocation" in str(SlurmStarter(OPTIONS).unavailable())


def test_without_a_pmi_no_mpi_program_is_started(
    slurm: Slurm, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("SLURM_MPI_TYPE", raising=False)
    slurm("h[1-3]", "MpiDefault              = none\n")
    assert "--srun-arg=--mpi=pmix" in str(SlurmStarter(OPTIONS).unavailable())
    told = LauncherOptions(python="x", slurm=SlurmOptions(srun_arguments=("--mpi=pmi2",)))
    assert SlurmStarter(told).unavailable() is None
    slurm("h[1-3]", "MpiDefault              = pmix\n")
    assert SlurmStarter(OPTIONS).unavailable() is None


def test_variables_of_an_mpi_program_may_hold_commas_and_the_operator_names_the_pmi() -> None:
    options = LauncherOptions(python="x", slurm=SlurmOptions(srun_arguments=("--mpi=pmix",)))
    program = MpiProgram(argv=("prog", "a b"), ranks_per_host=2, variables={"X": "a,b"}, stdin=b"i")

    launch = SlurmStarter(options).launch(HOSTS, program)

    assert launch.environment == {"X": "a,b"}
    assert "--nodelist=h3,h3,h1,h1,h2,h2" in launch.argv
    assert launch.argv[-4:] == ("--mpi=pmix", "--input=0", "prog", "a b")
    assert "--kill-on-bad-exit=1" in launch.argv


def test_more_ranks_than_an_argument_can_hold_are_refused() -> None:
    hosts = [Host(name=f"gpu{number:05}", address="x") for number in range(2000)]
    program = MpiProgram(argv=("prog",), ranks_per_host=8)
    with pytest.raises(UsageError, match="2000 hosts of 8 ranks"):
        SlurmStarter(OPTIONS).launch(hosts, program)
