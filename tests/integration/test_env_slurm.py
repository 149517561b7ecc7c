"""A profile exported for Slurm, run by a real srun, and proved by the log: Slurm on this machine.

munged, slurmctld and two slurmd of their own, on ports and in a folder of their own.
"""

import json
import os
import secrets
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

import pytest
from slurm_lab import ON_ONE_MACHINE

FAKE = Path(__file__).parents[1] / "data/env/fake_nccl.py"
PROGRAMS = ("munged", "munge", "slurmctld", "slurmd", "srun", "sbatch", "sinfo")
START_S = 60.0
CONFIGURATION = (
    """
ClusterName=test
SlurmctldHost={host}(127.0.0.1)
SlurmctldPort={ports[0]}
"""
    + ON_ONE_MACHINE
    + """
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU
NodeName=n[1-2] NodeHostname={host} NodeAddr=127.0.0.1 Port=[{ports[1]}-{ports[2]}] CPUs=1
PartitionName=all Nodes=n[1-2] Default=YES OverSubscribe=FORCE:4
"""
)


def free_ports() -> list[int]:
    """Three ports, the last two one after the other."""
    while True:
        with socket.socket() as one, socket.socket() as two, socket.socket() as three:
            one.bind(("127.0.0.1", 0))
            two.bind(("127.0.0.1", 0))
            number = two.getsockname()[1]
            with suppress(OSError, OverflowError):
                three.bind(("127.0.0.1", number + 1))
                return [one.getsockname()[1], number, number + 1]


def wait_for(what: str, done: Callable[[], bool], parts: list[subprocess.Popen[bytes]]) -> None:
    end = time.monotonic() + START_S
    while not done():
        ended = [part.args for part in parts if part.poll() is not None]
        assert not ended, f"{ended} ended before {what}"
        assert time.monotonic() < end, f"no {what} within {START_S:g} s"
        time.sleep(0.1)


@pytest.fixture(scope="module")
def slurm() -> Iterator[dict[str, str]]:
    """The environment in which srun finds a cluster of two nodes."""
    path = f"{os.environ['PATH']}:/usr/local/sbin:/usr/sbin:/sbin"
    missing = [program for program in PROGRAMS if not shutil.which(program, path=path)]
    if missing:
        pytest.skip(
            f"{', '.join(missing)} missing (packages slurmd, slurmctld, slurm-client, munge)"
        )
    if os.geteuid() != 0:
        pytest.skip("not root: slurmd and munged cannot be started")
    folder = Path(tempfile.mkdtemp(prefix="slurm-"))
    environment = {**os.environ, "PATH": path, "SLURM_CONF": str(folder / "slurm.conf")}
    parts: list[subprocess.Popen[bytes]] = []

    def start(*argv: str) -> None:
        with (folder / f"{len(parts)}.out").open("wb") as log:
            parts.append(
                subprocess.Popen(
                    argv, env=environment, stdin=subprocess.DEVNULL, stdout=log, stderr=log
                )
            )

    def answers() -> bool:
        told = subprocess.run(
            ("sinfo", "-h", "-t", "idle", "-o", "%D"),
            env=environment,
            capture_output=True,
            text=True,
            check=False,
            timeout=30,
        )
        return told.stdout.strip() == "2"

    try:
        set_up(folder)
        files = [f"--{kind}={folder}/munge.{kind}" for kind in ("socket", "pid-file", "log-file")]
        start("munged", "--foreground", "--force", f"--key-file={folder}/munge.key", *files)
        wait_for("munge", (folder / "munge.socket").exists, parts)
        start("slurmctld", "-D")
        start("slurmd", "-D", "-N", "n1")
        start("slurmd", "-D", "-N", "n2")
        wait_for("idle node", answers, parts)
        yield environment
    finally:
        for part in reversed(parts):
            part.terminate()
        for part in reversed(parts):
            with suppress(subprocess.TimeoutExpired):
                part.wait(10)
            part.kill()
        shutil.rmtree(folder, ignore_errors=True)


def set_up(folder: Path) -> None:
    folder.chmod(0o755)
    for name in ("state", "n1", "n2"):
        (folder / name).mkdir()
    key = folder / "munge.key"
    key.touch(mode=0o600)
    key.write_bytes(secrets.token_bytes(64))
    text = CONFIGURATION.format(host=socket.gethostname(), folder=folder, ports=free_ports())
    (folder / "slurm.conf").write_text(text)


def ncdiag(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        (sys.executable, "-m", "ncdiag", "env", *arguments),
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )


@pytest.mark.root
@pytest.mark.parametrize("export", ["ALL", "NONE"])
def test_a_profile_reaches_every_task_and_the_log_proves_it(
    slurm: dict[str, str], tmp_path: Path, export: str
) -> None:
    hosts = tmp_path / "hosts.txt"
    hosts.write_text("n[1-2] nic=eth0,mlx5_0,mlx5_1\n")
    exported = ncdiag("export", "ib-ndr", "--to", "slurm", "--nodes", str(hosts))
    script = tmp_path / "job.sh"
    script.write_text(
        f"#!/bin/sh\n{exported.stdout}export NCCL_DEBUG=INFO\n"
        f"exec srun -N2 -n2 {sys.executable} {FAKE}\n"
    )
    log = tmp_path / "job.log"
    batch = ("sbatch", "--wait", "-N2", "-n2", f"--export={export}", "-o", str(log), str(script))

    subprocess.run(batch, env=slurm, check=True, capture_output=True, timeout=120)

    audited = ncdiag("audit", "--profile", "ib-ndr", str(log), "--format", "json")
    document = json.loads(audited.stdout)
    assert (audited.returncode, document["findings"]) == (0, []), log.read_text()
    assert (document["processes"], document["ranks"]) == (2, 2)
