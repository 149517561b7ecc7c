"""``bin/quickstart``: its steps with a pretended Python, and once whole as an ordinary user."""

import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
NOBODY = 65534

# Pretends to be Python: makes virtual environments that pretend to be one, and notes what pip and
# ncdiag are called with.
PYTHON = """#!/bin/bash
case "$1 $2" in
    "-c import sys; "*) exit "${TOO_OLD:-0}" ;;
    "--version ") echo "Python ${VERSION:-3.12.1}" ;;
    "-m venv")
        [ -z "${NO_VENV:-}" ] || { echo "ensurepip is not available"; exit 1; }
        mkdir -p "$4/bin" && cp "$0" "$4/bin/python"
        echo "venv" >>"$NOTES" ;;
    "-m pip")
        [ "$3" = --version ] && exit
        [ -z "${NO_NETWORK:-}" ] || { echo "no route"; exit 1; }
        echo "pip ${*: -1}" >>"$NOTES"
        printf '#!/bin/sh\\necho "ncdiag in $PWD:" "$@" >>"$NOTES"\\nexit "${VERDICT:-0}"\\n' \
            >"${0%/*}/ncdiag"
        chmod +x "${0%/*}/ncdiag" ;;
    "-m compileall") ;;
    *) echo "unknown: $*" >&2; exit 99 ;;
esac
"""


class Clone:
    """A copy of what quickstart needs, and a machine whose only Python is pretended."""

    def __init__(self, folder: Path) -> None:
        self.root = folder / "a clone"
        self.home = folder / "home"
        self.notes = folder / "notes"
        programs = folder / "programs"
        for part in ("bin", "env_profiles", "examples", "ncdiag"):
            shutil.copytree(ROOT / part, self.root / part, symlinks=True)
        for name in ("pyproject.toml", "constraints.txt", "README.md", "LICENSE"):
            shutil.copy(ROOT / name, self.root)
        programs.mkdir()
        (programs / "python3").write_text(PYTHON)
        (programs / "python3").chmod(0o755)
        self.home.mkdir()
        self.environment = {
            "PATH": f"{programs}:/usr/bin:/bin",
            "HOME": str(self.home),
            "NOTES": str(self.notes),
        }

    def quickstart(self, *arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [self.root / "bin" / "quickstart", *arguments],
            env=self.environment | environment,
            cwd="/",
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )

    def taken_notes(self) -> list[str]:
        notes = self.notes.read_text().splitlines() if self.notes.exists() else []
        self.notes.unlink(missing_ok=True)
        return notes


@pytest.fixture
def clone(tmp_path: Path) -> Clone:
    return Clone(tmp_path)


def test_it_installs_once_and_sweeps_each_time(clone: Clone) -> None:
    swept = f"ncdiag in {clone.root}: sweep --nodes {clone.root}/examples/loopback.txt"
    assert clone.quickstart().returncode == 0
    assert clone.taken_notes() == ["venv", f"pip {clone.root}[torch]", swept]
    assert clone.quickstart("--mode", "quick").returncode == 0
    assert clone.taken_notes() == [f"{swept} --mode quick"]


@pytest.mark.parametrize("changed", ["pyproject.toml", "constraints.txt"])
def test_it_installs_again_when_the_requirements_change(clone: Clone, changed: str) -> None:
    clone.quickstart()
    clone.taken_notes()
    with (clone.root / changed).open("a") as file:
        file.write("# another\n")
    clone.quickstart()
    assert clone.taken_notes()[0].startswith("pip ")


def test_it_ends_as_the_sweep_ends(clone: Clone) -> None:
    done = clone.quickstart(VERDICT="3")
    assert done.returncode == 3
    assert done.stderr.endswith(f"ncdiag is {clone.root}/.venv/bin/ncdiag\n")


def test_a_failed_installation_is_said_and_tried_again(clone: Clone) -> None:
    done = clone.quickstart(NO_NETWORK="1")
    assert done.returncode == 2
    assert "quickstart: the installation failed" in done.stderr
    clone.quickstart()
    assert any(note.startswith("ncdiag in") for note in clone.taken_notes())


def test_an_old_python_is_said(clone: Clone) -> None:
    for name in ("python3.11", "python3.12", "python3.13", "python3.14"):
        shutil.copy(
            clone.root.parent / "programs" / "python3", clone.root.parent / "programs" / name
        )
    done = clone.quickstart(TOO_OLD="1", VERSION="3.9.2")
    assert done.returncode == 2
    assert done.stderr == (
        "quickstart: Python 3.11 or later is needed, and this is: Python 3.9.2\n"
    )


def test_a_python_without_venv_is_said(clone: Clone) -> None:
    done = clone.quickstart(NO_VENV="1")
    assert done.returncode == 2
    assert "apt-get install python3-venv" in done.stderr.splitlines()[-1]


@pytest.fixture
def open_folder() -> Iterator[Path]:
    """A folder that another user can reach, which pytest's own are not."""
    with tempfile.TemporaryDirectory(prefix="ncdiag-quickstart-") as name:
        Path(name).chmod(0o755)
        yield Path(name)


def as_user(folder: Path) -> dict[str, int]:
    """Arguments of subprocess.run to be an ordinary user, who owns ``folder``."""
    if os.geteuid() != 0:
        return {}
    for path in (folder, *folder.rglob("*")):
        os.chown(path, NOBODY, NOBODY, follow_symlinks=False)
    return {"user": NOBODY, "group": NOBODY, "extra_groups": []}  # type: ignore[dict-item]


@pytest.mark.skipif(
    os.geteuid() != 0, reason="needs root, to make a clone that a user cannot write to"
)
def test_a_clone_that_cannot_be_written_to_is_left_alone(open_folder: Path) -> None:
    clone = Clone(open_folder)
    clone.notes.touch()
    before = sorted(clone.root.rglob("*"))
    identity = as_user(clone.home)
    os.chown(clone.notes, NOBODY, NOBODY)
    done = subprocess.run(
        [clone.root / "bin" / "quickstart"],
        env=clone.environment,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
        **identity,
    )
    assert done.returncode == 0, done.stderr
    assert sorted(clone.root.rglob("*")) == before
    data = clone.home / ".local" / "share" / "ncdiag"
    _, installed, swept = clone.notes.read_text().splitlines()
    assert re.fullmatch(r"pip /tmp/\S+\[torch\]", installed)
    assert swept == f"ncdiag in {data}: sweep --nodes {clone.root}/examples/loopback.txt"


@pytest.mark.alone
@pytest.mark.timeout(900)
def test_an_ordinary_user_gets_a_healthy_verdict_in_a_fresh_clone(open_folder: Path) -> None:
    clone = open_folder / "clone"
    tracked = subprocess.run(
        ["git", "-c", f"safe.directory={ROOT}", "-C", ROOT, "ls-files", "-z"],
        capture_output=True,
        text=True,
        check=True,
    )
    for name in filter(None, tracked.stdout.split("\0")):
        (clone / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / name, clone / name, follow_symlinks=False)
    (open_folder / "home").mkdir()
    # Not the Python of the environment that the tests run in.
    path = [entry for entry in os.environ["PATH"].split(os.pathsep) if ".venv" not in entry]
    done = subprocess.run(
        [clone / "bin" / "quickstart"],
        env={**os.environ, "HOME": str(open_folder / "home"), "PATH": os.pathsep.join(path)},
        cwd="/",
        capture_output=True,
        text=True,
        timeout=840,
        check=False,
        **as_user(open_folder),
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "HEALTHY" in done.stdout
    (report,) = clone.glob("reports/*/report.html")
    assert str(report.relative_to(clone)) in done.stdout
