"""bin/build-nccl-tests: what it asks make for, and what it says is missing."""

import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

BUILD = Path(__file__).parents[2] / "bin/build-nccl-tests"
Build = Callable[..., "subprocess.CompletedProcess[str]"]
MAKE = """#!/bin/sh
printf '%s\\n' "$@" >"$0.arguments"
[ ! -e "$0.fails" ] || exit 2
mkdir -p "$2/build" && printf '#!/bin/sh\\n' >"$2/build/all_reduce_perf_mpi"
chmod +x "$2/build/all_reduce_perf_mpi"
"""


@pytest.fixture
def there(tmp_path: Path) -> Path:
    """A source, CUDA with NCCL in it, MPI, and a make that only writes down what it was asked."""
    for name in ("source/src/common.cu", "cuda/include/nccl.h", "mpi/include/mpi.h"):
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch()
    for name, text in (("cuda/bin/nvcc", "#!/bin/sh\n"), ("bin/make", MAKE)):
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        path.chmod(0o755)
    return tmp_path


@pytest.fixture
def build(there: Path) -> Build:
    def run(*arguments: str) -> "subprocess.CompletedProcess[str]":
        return subprocess.run(
            [BUILD, *arguments],
            env={"PATH": f"{there}/bin:/usr/bin:/bin", "HOME": str(there)},
            capture_output=True,
            text=True,
            timeout=30,
            check=False,
        )

    return run


def test_it_builds_with_mpi_and_says_how_to_use_it(build: Build, there: Path) -> None:
    ended = build(f"{there}/source", "--mpi", f"{there}/mpi", "--cuda", f"{there}/cuda")
    assert ended.returncode == 0, ended.stderr
    assert ended.stdout == f"export NCCL_TESTS_HOME={there}/source/build\n"
    asked = (there / "bin/make.arguments").read_text().split()
    assert f"CUDA_HOME={there}/cuda" in asked
    assert f"NCCL_HOME={there}/cuda" in asked
    assert ["MPI=1", f"MPI_HOME={there}/mpi", "NAME_SUFFIX=_mpi"] == asked[-3:]


def test_it_builds_without_mpi_where_that_is_asked_for(build: Build, there: Path) -> None:
    ended = build("--no-mpi", "--cuda", f"{there}/cuda", f"{there}/source")
    assert ended.returncode == 0, ended.stderr
    assert "MPI=1" not in (there / "bin/make.arguments").read_text()


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        ([], "SOURCE is missing"),
        (["{0}"], "{0} is no source of nccl-tests"),
        (["{0}/source", "--cuda", "{0}/mpi"], "no nvcc in {0}/mpi/bin"),
        (["{0}/source", "--cuda", "{0}/cuda", "--nccl", "{0}/mpi"], "no nccl.h in {0}/mpi"),
        (["{0}/source", "--cuda", "{0}/cuda", "--mpi", "{0}/cuda"], "no include/mpi.h"),
        (["{0}/source", "--mpi"], "--mpi needs a path"),
        (["--jobs"], "unknown option --jobs"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_what_is_missing_is_said_in_one_line(
    build: Build, there: Path, arguments: list[str], told: str
) -> None:
    ended = build(*(one.format(there) for one in arguments))
    assert ended.returncode == 2
    assert ended.stdout == ""
    assert ended.stderr.startswith(f"build-nccl-tests: {told.format(there)}")
    assert ended.stderr.count("\n") == 1
    assert not (there / "bin/make.arguments").exists()


def test_a_build_that_fails_fails(build: Build, there: Path) -> None:
    (there / "bin/make.fails").touch()
    ended = build(f"{there}/source", "--no-mpi", "--cuda", f"{there}/cuda")
    assert ended.returncode == 2
    assert "make failed" in ended.stderr
