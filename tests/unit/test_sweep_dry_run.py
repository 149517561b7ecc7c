"""What ``sweep --dry-run`` says an engine would start."""

from pathlib import Path

import pytest

from ncdiag.cli import main
from ncdiag.cli.run_sweep import begin
from ncdiag.cli.way import Way
from ncdiag.cluster.mpi import MpiProgram
from ncdiag.measure.engines import ENGINES
from ncdiag.measure.engines.base import Timing
from ncdiag.model.host import Host

HOSTS = "127.0.0.[2-4]"


def planned(capsys: pytest.CaptureFixture[str], *options: str) -> list[str]:
    assert main.run(["sweep", "--nodes", HOSTS, "--dry-run", *options]) == 0
    return capsys.readouterr().out.splitlines()


@pytest.mark.parametrize(
    ("engine", "module"),
    [
        ("torch", "ncdiag.cluster.fleet.worker"),
        ("perftest", "ncdiag.cluster.fleet.worker"),
        ("nccl-tests", "ncdiag.health.self_report"),
    ],
)
def test_the_commands_of_the_engine_are_shown(
    capsys: pytest.CaptureFixture[str], engine: str, module: str
) -> None:
    lines = planned(capsys, "--engine", engine)
    commands = [line for line in lines if line.startswith("  ")]
    assert len(commands) == 3
    assert all(f"-m {module} " in command for command in commands)


@pytest.mark.parametrize(
    ("options", "then"),
    [
        (("--engine", "perftest", "--perftest", "ib_read_bw"), "ib_read_bw over its two hosts"),
        (("--engine", "nccl-tests", "--at-a-time", "1"), "sendrecv_perf over its two hosts, at"),
        (("--engine", "nccl-tests", "--at-a-time", "1"), "at most 1 pair at a time"),
    ],
)
def test_programs_that_are_started_for_each_pair_are_named(
    capsys: pytest.CaptureFixture[str], options: tuple[str, ...], then: str
) -> None:
    assert then in planned(capsys, *options)[-1]


def test_the_one_mpi_job_is_shown_with_the_nics_that_are_known(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    class Starter:
        name, rank_variable = "fake", "FAKE_RANK"

        def launch(self, hosts: list[Host], program: MpiProgram) -> object:
            argv = ("mpiexec", *(host.name for host in hosts), *program.argv)
            return type("Launch", (), {"argv": argv})

    monkeypatch.setattr("ncdiag.cluster.mpi.choose_starter", lambda _: Starter())
    *_, then, job = planned(capsys, "--engine", "mpi")
    assert then.startswith("then      one MPI job for each rail")
    assert job.startswith("  mpiexec 127.0.0.2 127.0.0.3 127.0.0.4 ")
    assert job.endswith("-m ncdiag.measure.engines.mpi.rank FAKE_RANK '3*NIC'")
    file = tmp_path / "hosts.txt"
    file.write_text("127.0.0.2 nic=eth1,eth2\n127.0.0.3 nic=eth1,eth2\n")
    assert main.run(["sweep", "--nodes", str(file), "--dry-run", "--engine", "mpi"]) == 0
    assert capsys.readouterr().out.rstrip().endswith("FAKE_RANK '2*eth1'")


@pytest.mark.parametrize("engine", ENGINES)
def test_versions_are_those_of_what_measures(engine: str) -> None:
    record = begin(
        [Host(name=name, address=name) for name in ("127.0.0.2", "127.0.0.3")],
        Way(launcher="local"),
        mode="full",
        engine=engine,
        profile=None,
        variables={},
        seed=0,
        faulty_below=0.8,
        timing=Timing(),
        budget_s=None,
    )
    assert {"python", "system", "ncdiag", "msgspec"} <= record.plan.versions.keys()
    others = record.plan.versions.keys() & {"torch", "mpi4py", "distributed"}
    assert others <= set(ENGINES[engine].packages)
