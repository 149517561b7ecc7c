"""The program that plays nccl-tests: what it prints is what the reader of the real ones reads."""

import json
import os
import subprocess
from collections.abc import Mapping
from pathlib import Path

import pytest
from nccl_tests_programs import NAMES, install
from scanned import scanned

from ncdiag.model.benchmark import Benchmark
from ncdiag.read.nccl_tests.table import TableReader

OLD = ("2.0.0", "2.9.0", "2.11.0")
VERSIONS = (
    *OLD, "2.13.0", "2.13.4", "2.14.1", "2.16.7", "2.16.8", "2.17.3", "2.17.4", "2.17.6", "2.17.7",
    "2.18.2", "2.19.2", "2.19.6", "rccl-2024-09",
)  # fmt: skip
SIZES = ("-b", "1M", "-e", "8M", "-f", "2", "-g", "2")


@pytest.fixture(scope="session")
def programs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return install(tmp_path_factory.mktemp("nccl-tests"))


def run(
    programs: Path, name: str, *arguments: str, **settings: str
) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(
        [programs / name, *arguments],
        env={**without_mpi(), **settings},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


def without_mpi() -> Mapping[str, str]:
    foreign = ("PMI", "OMPI", "SLURM", "FAKE_NCCL_TESTS", "NCCL")
    return {name: value for name, value in os.environ.items() if not name.startswith(foreign)}


def play(programs: Path, name: str, *arguments: str, **faults: str) -> Benchmark:
    settings = {f"FAKE_NCCL_TESTS_{fault}": value for fault, value in faults.items()}
    ended = run(programs, name, *arguments, **settings)
    assert ended.returncode == 0, ended.stderr
    (benchmark,) = scanned(TableReader(), ended.stdout.encode()).benchmarks
    return benchmark


@pytest.mark.parametrize("version", VERSIONS)
def test_every_layout_is_read(programs: Path, version: str) -> None:
    run_ = play(programs, "all_reduce_perf", *SIZES, VERSION=version, PLATEAU="50")
    assert [row.size for row in run_.rows] == [1 << 20, 2 << 20, 4 << 20, 8 << 20]
    # 8 MiB at 50 GB/s take 168 us, and 20 us of latency.
    assert run_.rows[-1].out_of_place_busbw == pytest.approx(44.7, abs=0.1)
    assert run_.complete
    assert len(run_.ranks) == 2
    if version not in OLD:
        assert run_.rows[0].in_place_wrong == 0


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("name", NAMES)
def test_every_program_of_every_version_is_read(programs: Path, name: str, version: str) -> None:
    run_ = play(programs, name, *SIZES, VERSION=version)
    assert len(run_.rows) == 4
    assert all(row.out_of_place_busbw for row in run_.rows)


def test_an_option_a_version_does_not_know_ends_it_with_a_code_of_zero(programs: Path) -> None:
    ended = run(programs, "all_reduce_perf", "-I", "1", FAKE_NCCL_TESTS_VERSION="2.19.0")
    assert ended.returncode == 0
    assert ended.stdout.startswith("invalid option '?'\nUSAGE: all_reduce_perf")
    assert "-I,--per_iter_timing" not in ended.stdout
    assert ended.stderr == "all_reduce_perf: invalid option -- 'I'\n"


@pytest.mark.parametrize(
    ("version", "fault", "code"),
    [
        ("2.19.6", {"WRONG": "2M:5"}, 7),
        ("2.16.7", {"WRONG": "2M:5"}, 1),
        ("rccl-2024-09", {"WRONG": "2M:5"}, 1),
        ("2.19.6", {"CRASH": "cuda:1"}, 2),
        ("2.19.6", {"CRASH": "nccl:1"}, 3),
        ("2.19.6", {"GPUS": "1"}, 5),
        ("2.16.7", {"GPUS": "1"}, 1),
        ("2.19.6", {"NO_LIBRARY": "libcudart.so.12"}, 127),
        ("2.19.6", {"DIE": "1"}, -9),
    ],
)
def test_each_fault_ends_with_its_code(
    programs: Path, version: str, fault: dict[str, str], code: int
) -> None:
    settings = {f"FAKE_NCCL_TESTS_{name}": value for name, value in fault.items()}
    ended = run(programs, "all_reduce_perf", *SIZES, FAKE_NCCL_TESTS_VERSION=version, **settings)
    assert ended.returncode == code


def test_a_hang_is_ended_by_the_time_out(programs: Path) -> None:
    ended = run(programs, "all_reduce_perf", *SIZES, "-T", "1", FAKE_NCCL_TESTS_HANG="2")
    assert ended.returncode == 4
    assert "Test timeout (1s)" in ended.stdout


@pytest.mark.parametrize(("version", "number"), [("2.17.3", 1), ("2.19.2", 2), ("2.19.6", 3)])
def test_reports_never_overwrite_one_another(
    programs: Path, tmp_path: Path, version: str, number: int
) -> None:
    path = tmp_path / "report.json"
    arguments = (*SIZES, "-J", str(path))
    for _ in range(3):
        assert (
            run(programs, "all_gather_perf", *arguments, FAKE_NCCL_TESTS_VERSION=version).returncode
            == 0
        )
    names = sorted(one.name for one in tmp_path.iterdir())
    assert names == ["report.json", "report.json.0", "report.json.1"]
    report = json.loads((tmp_path / "report.json.1").read_text())
    assert report["version"] == number
    assert report["results"][0]["root"] == "    -1"
    assert report["out_of_bounds"]["okay"] == "true"
    assert ("average_bus_bandwidith" in report) == (number == 1)
    assert any(pair.startswith("PATH=") for pair in report["env"])


def test_only_rank_0_prints_unless_it_was_built_without_mpi(programs: Path) -> None:
    for rank in "01":
        job = {"PMI_RANK": rank, "PMI_SIZE": "2"}
        joined = run(programs, "sendrecv_perf", *SIZES, **job)
        assert bool(joined.stdout) == (rank == "0")
        alone = run(programs, "sendrecv_perf", *SIZES, **job, FAKE_NCCL_TESTS_NO_MPI="1")
        assert "Rank  0" in alone.stdout
        assert "Rank  2" not in alone.stdout


def test_a_slow_rank_shows_in_the_iterations(programs: Path, tmp_path: Path) -> None:
    path = tmp_path / "slow.json"
    ended = run(
        programs, "all_reduce_perf", "-b", "64M", "-e", "64M", "-I", "1", "-J", str(path),
        PMI_RANK="0", PMI_SIZE="4", FAKE_NCCL_TESTS_SLOW_RANK="2:0.5",
    )  # fmt: skip
    assert ended.returncode == 0
    half = json.loads(path.read_text())["results"][0]["out_of_place_per_iter"]
    slowest = [max(times) for times in half["per_process_max_times_us"]]
    assert slowest.index(max(slowest)) == 2
    assert slowest[2] == pytest.approx(2 * slowest[0])
