"""Which MPI a program called mpiexec or mpirun belongs to: every implementation has both names."""

import os
import re
import shutil
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Final

from ncdiag.cluster.processes import ask

HYDRA: Final = "Hydra"
OPEN_MPI: Final = "Open MPI"

# A wheel's mpiexec starts in milliseconds, one on a cold network file system in seconds.
_TIMEOUT_S = 20.0
_MAX_BYTES = 1 << 16
# Hydra tells its build details, Intel's says whose it is; all in the first lines.
_WHOSE: Final = (
    (re.compile(r"HYDRA build details|Intel\(R\) MPI Library"), HYDRA),
    (re.compile(r"\(Open ?MPI\)|\bOpenRTE\b|\bPRRTE\b|prterun"), OPEN_MPI),
)
_VERSION = re.compile(r"Version:?\s+(?P<a>\d+(?:\.\d+)+)|\) (?P<b>\d+(?:\.\d+)+)")


@dataclass(frozen=True, slots=True)
class Found:
    """A starter of MPI programs that is installed: ``version`` is empty where it tells none."""

    path: str
    whose: str
    version: str = ""


def find(whose: str, names: Sequence[str]) -> tuple[Found | None, str]:
    """The first of ``names`` that belongs to ``whose``, else why there is none.

    PATH is looked through, then the folder of our own Python, where a wheel puts its programs.
    """
    others = []
    for path in _candidates(names):
        try:
            modified_ns = Path(path).stat().st_mtime_ns
        except OSError:  # gone meanwhile
            continue
        found = _identify(path, modified_ns)
        if found.whose == whose:
            return found, ""
        others.append(f"{path} is {found.whose}")
    looked = f"no {' or '.join(names)} on PATH or beside {sys.executable}"
    return None, "; ".join(others) or looked


def _candidates(names: Sequence[str]) -> list[str]:
    folders = os.environ.get("PATH", os.defpath).split(os.pathsep)
    folders.append(str(Path(sys.executable).parent))
    found = [shutil.which(name, path=folder) for folder in folders if folder for name in names]
    return list(dict.fromkeys(path for path in found if path))


@lru_cache(maxsize=32)
def _identify(path: str, _modified_ns: int) -> Found:
    done = ask((path, "--version"), timeout_s=_TIMEOUT_S, most_bytes=_MAX_BYTES)
    if done.timed_out:
        return Found(path, f"of nobody's (no answer to --version within {_TIMEOUT_S:g} s)")
    if done.code is None:
        return Found(path, f"not to be started ({done.error})")
    said = "\n".join((done.stdout.decode(errors="replace"), *done.said))
    for pattern, whose in _WHOSE:
        if pattern.search(said):
            version = _VERSION.search(said)
            return Found(path, whose, (version["a"] or version["b"]) if version else "")
    return Found(path, "of another MPI (by what it answers to --version)")
