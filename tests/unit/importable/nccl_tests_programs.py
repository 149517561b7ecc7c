"""Puts the fake programs into a folder, under the names of those they stand for."""

import shutil
import sys
from collections.abc import Sequence
from pathlib import Path

FAKE = Path(__file__).parents[2] / "data/nccl_tests"
NAMES = (
    "all_reduce_perf",
    "all_gather_perf",
    "broadcast_perf",
    "reduce_scatter_perf",
    "reduce_perf",
    "alltoall_perf",
    "alltoallv_perf",
    "scatter_perf",
    "gather_perf",
    "sendrecv_perf",
    "hypercube_perf",
)


def install(
    folder: Path, names: Sequence[str] = NAMES, *, suffix: str = "", **settings: str
) -> Path:
    """Make programs in ``folder``, which is returned; run by this very Python, starting quickly.

    ``settings`` hold on every host: ``SLOW_HOSTS="b=0.5"`` as FAKE_NCCL_TESTS_SLOW_HOSTS.
    """
    set_there = {f"FAKE_NCCL_TESTS_{name}": value for name, value in settings.items()}
    folder.mkdir(parents=True, exist_ok=True)
    for name in names:
        program = folder / f"{name}{suffix}"
        program.write_text(
            f"#!{sys.executable} -SE\n"
            "import sys\n"
            f"sys.path.insert(0, {str(FAKE)!r})\n"
            "import os, signal\n"
            f"os.environ.update({set_there!r})\n"
            "import fake_nccl_tests\n"
            "signal.signal(signal.SIGPIPE, signal.SIG_DFL)\n"
            "code = fake_nccl_tests.main()\n"
            "sys.stdout.flush()\n"
            "os._exit(code)\n"
        )
        program.chmod(0o755)
    return folder


def install_mpiexec(folder: Path) -> Path:
    """Put the fake of Hydra's mpiexec into ``folder``, which is returned; for the front of PATH."""
    folder.mkdir(parents=True, exist_ok=True)
    shutil.copy(FAKE / "mpiexec", folder / "mpiexec.hydra")
    return folder
