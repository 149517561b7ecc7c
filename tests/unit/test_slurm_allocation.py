"""An allocation of our own, asked of small programs that stand for Slurm's."""

import os
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
import typer
from rich.console import Console

from ncdiag.cli.allocation import in_allocation
from ncdiag.cluster.launcher import SlurmOptions
from ncdiag.cluster.launchers.slurm import OWN_ALLOCATION
from ncdiag.model.errors import UndecidedError, UsageError
from ncdiag.model.host import Host

HOSTS = [Host(name=f"h{number}", address="x") for number in range(1, 5)]
HELP = """cat <<EOF
Usage: salloc [OPTIONS(0)...]
  -p, --partition=partition   partition requested
      --gres=list             required generic resources
EOF
"""
SALLOC = (
    'if [ "$1" = --help ]; then %s exit 0; fi\n'
    'for one in "$@"; do echo "$one"; done >"$0.argv"; touch "$%s"; exit %d\n'
)


class Slurm:
    """What stands for Slurm: its nodes, and what its programs answer."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.salloc_ends_with(0)
        self.write("srun", "exit 0")
        self.write("scontrol", "")

    def write(self, name: str, script: str) -> None:
        (self.folder / name).write_text(f"#!/bin/sh\n{script}\n")
        (self.folder / name).chmod(0o755)

    def salloc_ends_with(self, code: int) -> None:
        self.write("salloc", SALLOC % (HELP, OWN_ALLOCATION, code))

    @property
    def argv(self) -> list[str]:
        return (self.folder / "salloc.argv").read_text().splitlines()


@pytest.fixture
def slurm(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Slurm:
    for name in ("SLURM_JOB_ID", OWN_ALLOCATION, "SALLOC_NO_KILL", "SBATCH_NO_KILL"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    monkeypatch.setattr(sys, "orig_argv", ["python", "-m", "ncdiag", "sweep", "a b"])
    return Slurm(tmp_path)


@pytest.fixture
def ask() -> Callable[..., tuple[int, str]]:
    def asking(nodes: str | None = "h[1-4]", **options: object) -> tuple[int, str]:
        console = Console(width=200, record=True, file=open(os.devnull, "w"))  # noqa: SIM115, PTH123
        with console.file, pytest.raises(typer.Exit) as ended:
            in_allocation("slurm", SlurmOptions(**options), nodes, HOSTS, console)  # type: ignore[arg-type]
        return ended.value.exit_code, console.export_text()

    return asking


def test_the_command_is_run_again_inside_and_its_exit_code_is_ours(
    slurm: Slurm, ask: Callable[..., tuple[int, str]]
) -> None:
    slurm.salloc_ends_with(1)
    code, _ = ask(partition="gpu", account="physics", time_limit="30")
    assert code == 1
    assert {"--no-kill", "--nodes=4", "--nodelist=h[1-4]", "--exclusive"} < set(slurm.argv)
    assert {"--partition=gpu", "--account=physics", "--time=30"} < set(slurm.argv)
    assert slurm.argv[-5:] == [sys.executable, "-m", "ncdiag", "sweep", "a b"]


@pytest.mark.parametrize("code", [0, 1])
def test_a_salloc_that_does_not_run_the_command_says_nothing_of_hosts(
    slurm: Slurm, ask: Callable[..., tuple[int, str]], code: int
) -> None:
    slurm.write("salloc", f"exit {code}")
    with pytest.raises(UndecidedError, match=f"exit code {code} and did not run the command"):
        ask()


def test_the_command_inside_tells_that_it_began(
    slurm: Slurm, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    del slurm
    mark = tmp_path / "began"
    monkeypatch.setenv("SLURM_JOB_ID", "7")
    monkeypatch.setenv(OWN_ALLOCATION, str(mark))
    in_allocation("slurm", SlurmOptions(), "h[1-4]", HOSTS, Console(quiet=True))
    assert mark.exists()


def test_salloc_is_told_only_what_it_knows(
    slurm: Slurm, ask: Callable[..., tuple[int, str]]
) -> None:
    ask(srun_arguments=("--gres=gpu:8", "--mpi=pmix", "-pfast", "-u"), container_image="x.sqsh")
    assert {"--gres=gpu:8", "-pfast"} < set(slurm.argv)
    assert not {"--mpi=pmix", "-u", "--container-image=x.sqsh"} & set(slurm.argv)


def test_nodes_that_slurm_keeps_back_are_left_out_and_told(
    slurm: Slurm, ask: Callable[..., tuple[int, str]]
) -> None:
    slurm.write("scontrol", 'echo "NodeName=h2 State=IDLE+DRAIN Reason=fan [root@x]"')
    _, said = ask()
    assert "h2 is left out: Slurm says it is idle+drain: fan" in said
    assert {"--nodes=3", "--nodelist=h[1,3-4]"} < set(slurm.argv)


def test_too_few_nodes_are_undecided(slurm: Slurm) -> None:
    down = "\n".join(f"echo NodeName=h{number} State=DOWN" for number in (1, 2, 3))
    slurm.write("scontrol", down)
    with pytest.raises(UndecidedError, match="can give 1 of 4 hosts"):
        in_allocation("slurm", SlurmOptions(), "h[1-4]", HOSTS, Console(quiet=True))


@pytest.mark.parametrize(
    ("said", "error", "told"),
    [
        (
            (
                "srun: error: invalid partition specified: x\n"
                "allocation failure: Invalid partition name specified"
            ),
            UsageError,
            "refuses the allocation: Invalid partition name specified",
        ),
        (
            (
                "srun: error: Invalid generic resource (gres) specification\n"
                "allocation failure: No error"
            ),
            UsageError,
            "refuses the allocation: Invalid generic resource",
        ),
        (
            (
                "srun: error: Unable to contact slurm controller (connect failure)\n"
                "allocation failure: Unable to contact slurm controller (connect failure)"
            ),
            UndecidedError,
            "Slurm does not answer: Unable to contact",
        ),
        ("", UsageError, "no reason given"),
    ],
)
def test_what_slurm_refuses_is_told_before_anybody_waits(
    slurm: Slurm, said: str, error: type[Exception], told: str
) -> None:
    slurm.write("srun", f"cat >&2 <<'EOF'\n{said}\nEOF\nexit 1")
    with pytest.raises(error, match=told):
        in_allocation("slurm", SlurmOptions(), "h[1-4]", HOSTS, Console(quiet=True))
    assert not (slurm.folder / "salloc.argv").exists()


def test_an_allocation_that_fails_is_no_faulty_host(slurm: Slurm) -> None:
    slurm.write("salloc", 'exit "$SLURM_EXIT_ERROR"')
    with pytest.raises(UndecidedError, match="gave no allocation"):
        in_allocation("slurm", SlurmOptions(), "h[1-4]", HOSTS, Console(quiet=True))


def test_hosts_from_standard_input_cannot_be_read_twice(slurm: Slurm) -> None:
    del slurm
    with pytest.raises(UsageError, match="give a file"):
        in_allocation("slurm", SlurmOptions(), "-", HOSTS, Console(quiet=True))


def test_hosts_outside_the_allocation_are_refused_before_anything_is_written(
    slurm: Slurm, monkeypatch: pytest.MonkeyPatch
) -> None:
    del slurm
    monkeypatch.setenv("SLURM_JOB_ID", "5")
    monkeypatch.setenv("SLURM_JOB_NODELIST", "h[1-3]")
    with pytest.raises(UsageError, match=r"allocation 5 \(h\[1-3\]\): h4; make one that has them"):
        in_allocation("slurm", SlurmOptions(), None, HOSTS, Console(quiet=True))


def test_other_launchers_need_no_allocation(slurm: Slurm) -> None:
    in_allocation("ssh", SlurmOptions(), None, HOSTS, Console(quiet=True))
    assert not (slurm.folder / "salloc.argv").exists()


@pytest.mark.parametrize(
    ("script", "told"),
    [("#SBATCH --no-kill", ""), ("#SBATCH -N4", "may have been made without --no-kill")],
)
def test_inside_an_allocation_a_line_tells_what_a_dead_node_would_do(
    slurm: Slurm, monkeypatch: pytest.MonkeyPatch, script: str, told: str
) -> None:
    monkeypatch.setenv("SLURM_JOB_ID", "5")
    slurm.write("scontrol", f'[ "$1" = write ] && echo "{script}"')
    console = Console(width=200, record=True, file=open(os.devnull, "w"))  # noqa: SIM115, PTH123
    with console.file:
        in_allocation("slurm", SlurmOptions(), None, HOSTS, console)
    assert (told in console.export_text()) if told else console.export_text() == ""
