import subprocess
import sys
from pathlib import Path

import pytest

from ncdiag.cli import keeping, main
from ncdiag.measure.bench.sizes import Sizes, parse_sizes
from ncdiag.model.errors import UsageError

HOSTS = "127.0.0.[2-4]"
HEAVY = {"torch", "pandas", "matplotlib", "distributed", "numpy", "mpi4py", "dask"}


def complaint(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    """The one line that a wrong call ends with."""
    assert main.run(["bench", *arguments]) == 2
    lines = capsys.readouterr().err.splitlines()
    assert len(lines) == 1
    return lines[0]


@pytest.mark.parametrize(
    ("text", "sizes"),
    [
        ("8:8G:2", Sizes(8, 8 << 30, 2)),
        ("1M:64M", Sizes(1 << 20, 64 << 20, 2)),
        ("1G", Sizes(1 << 30, 1 << 30, 2)),
        ("1K:1M:4", Sizes(1 << 10, 1 << 20, 4)),
    ],
)
def test_sizes_are_read(text: str, sizes: Sizes) -> None:
    assert parse_sizes(text) == sizes


def test_each_size_is_a_factor_more_than_the_one_before() -> None:
    assert parse_sizes("1K:20K:4").each() == (1024, 4096, 16384)
    assert parse_sizes("1G").each() == (1 << 30,)


@pytest.mark.parametrize("text", ["", "8:", "x", "8G:8:2", "8:8G:1", "8:8G:x", "0:8", "1:2:3:4"])
def test_sizes_that_make_no_sense_are_refused(text: str) -> None:
    with pytest.raises(UsageError):
        parse_sizes(text)


@pytest.mark.parametrize(
    ("arguments", "part"),
    [
        (["all_redcue", "--nodes", HOSTS], "did you mean all_reduce"),
        (["all_reduce", "--nodes", HOSTS, "--sizes", "8G:8:2"], "must not exceed"),
        (["all_reduce", "--nodes", HOSTS, "--scaling", "2,x"], "as 2,4,8"),
        (["all_reduce", "--nodes", HOSTS, "--scaling", "2,8"], "at least 8 needed"),
        (
            ["all_reduce", "--nodes", HOSTS, "--machine", "h100-8x40g"],
            "and --topology takes a dump",
        ),
        (["all_reduce", "--nodes", HOSTS, "--machine", "a", "--topology", "b"], "not both"),
        (["all_reduce", "--nodes", HOSTS, "--engine", "gloo"], "nccl-tests, torch"),
        (["all_reduce", "--nodes", HOSTS, "--repeat", "0"], "1 or more"),
        (["all_reduce", "--nodes", HOSTS, "--timeout", "0s"], "above zero"),
        (["all_reduce", "--nodes", HOSTS, "--faulty-below", "2"], "up to 1"),
        (["all_reduce", "--nodes", HOSTS, "--topology", "/nowhere.xml"], "/nowhere.xml"),
        (
            ["all_reduce", "--nodes", HOSTS, "--machine", "h100-8x400g", "--gpus-per-node", "9"],
            "has 8 GPUs",
        ),
        (["all_reduce", "--nodes", HOSTS, "--store", "x.sqlite"], "--record"),
    ],
)
def test_what_is_asked_for_wrongly_is_told_in_one_line_before_anything_starts(
    arguments: list[str],
    part: str,
    capsys: pytest.CaptureFixture[str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    assert part in complaint(capsys, *arguments)
    assert list(tmp_path.iterdir()) == []


def test_names_of_collectives_may_be_written_in_any_way(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert "2,4,8" in complaint(capsys, "AllReduce", "--nodes", HOSTS, "--scaling", "x")


def test_a_directory_that_is_not_empty_is_not_written_into(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    (tmp_path / "mine").touch()
    arguments = ("all_reduce", "--nodes", HOSTS, "--engine", "torch", "--output", str(tmp_path))
    assert "is not empty" in complaint(capsys, *arguments)


def test_a_store_is_read_without_recording_and_has_to_be_there(tmp_path: Path) -> None:
    there, missing = tmp_path / "there.sqlite", tmp_path / "missing.sqlite"
    keeping.check_history(there, record=True)
    keeping.check_history(there, record=False)
    keeping.check_history(None, record=False)
    with pytest.raises(UsageError, match="there is no store"):
        keeping.check_history(missing, record=False)
    assert not missing.exists()


def test_a_dry_run_shows_what_would_run_and_starts_nothing(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    arguments = ["--nodes", HOSTS, "--engine", "torch", "--scaling", "2,3", "--repeat", "2"]
    assert main.run(["bench", "all_reduce", *arguments, "--sizes", "1M:64M:4", "--dry-run"]) == 0
    shown = capsys.readouterr().out.splitlines()
    assert shown[0] == "hosts     3: 127.0.0.[2-4]"
    assert shown[1].endswith("one for each GPU of a host")
    assert shown[2] == "sizes     1 MiB to 64 MiB, x4 (4 sizes); 20 iterations each"
    assert shown[3] == "measured  all_reduce by torch, 2 times over 2 and 3 hosts"
    assert shown[4].startswith("starts    3 commands by the launcher local")
    assert len(shown) == 8
    assert list(tmp_path.iterdir()) == []


def test_a_dry_run_shows_the_mpi_job(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    hydra = tmp_path / "mpiexec.hydra"
    hydra.write_text("#!/bin/sh\necho HYDRA build details: Version: 4.2\n")
    hydra.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=":")
    arguments = ["--nodes", HOSTS, "--gpus-per-node", "2", "--dry-run"]
    assert main.run(["bench", "all_gather", *arguments]) == 0
    *_, then, command = capsys.readouterr().out.splitlines()
    assert then == "then      an MPI job over those that answer, as for 3 hosts:"
    assert "-hosts 127.0.0.2,127.0.0.3,127.0.0.4 -ppn 2 -n 6" in command
    assert "all_gather_perf" in command


def test_its_help_needs_nothing_heavy() -> None:
    code = (
        "import sys\nfrom ncdiag.cli.main import run\nrun(['bench', '--help'])\n"
        "print('loaded:', *sys.modules)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60
    )
    loaded = set(done.stdout.splitlines()[-1].split())
    assert loaded & HEAVY == set()
