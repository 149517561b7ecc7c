"""What the fake programs print as rank 0 of two, with a secret in their environment."""

import os
import subprocess
from pathlib import Path

PLANTED = "hunter2-do-not-keep"
_FOREIGN = ("PMI", "OMPI", "SLURM", "FAKE_NCCL_TESTS", "NCCL", "RANK", "WORLD")


def play(programs: Path, name: str, *arguments: str, **faults: str) -> bytes:
    """Standard output of rank 0 of two, on oak1 and oak2 unless ``HOSTS`` says otherwise."""
    ended = subprocess.run(
        [programs / name, *arguments],
        env={
            **{k: v for k, v in os.environ.items() if not k.startswith(_FOREIGN)},
            "PMI_RANK": "0",
            "PMI_SIZE": "2",
            "FAKE_NCCL_TESTS_HOSTS": "oak1,oak2",
            "DATABASE_PASSWORD": PLANTED,
            **{f"FAKE_NCCL_TESTS_{k}": v for k, v in faults.items()},
        },
        capture_output=True,
        timeout=60,
        check=False,
    )
    assert ended.stdout, ended.stderr
    return ended.stdout
