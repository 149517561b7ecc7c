"""Four real ranks over gloo, one of which does something else, and the dumps they leave."""

import contextlib
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from ncdiag.diagnose.collectives import Divergence, DivergenceKind, analyse
from ncdiag.model.log import LogEvidence
from ncdiag.read.flight import FlightDocument

torch = pytest.importorskip("torch", reason="torch is not installed: pip install 'ncdiag[torch]'")

RANKS = 4
GUILTY = 2
# Long against what a collective over loopback takes on a busy machine, short for a test.
TIMEOUT_S = 8
DEADLINE_S = 120
CASES = {
    "skips": DivergenceKind.BEHIND,
    "calls another": DivergenceKind.ODD,
    "stops": DivergenceKind.BEHIND,
    "calls one more": DivergenceKind.AHEAD,
}

# One process imports torch and forks every rank of every case. Each rank writes its dump itself
# once its collective timed out, or once it is through; it keeps its connections until all others
# wrote theirs, for a closed one would end their waiting.
PROGRAM = """
import os, sys, traceback
from datetime import timedelta
from pathlib import Path

import torch
import torch.distributed as dist
from torch._C import _distributed_c10d as c10d

ranks, guilty, timeout_s = (int(argument) for argument in sys.argv[1:4])


def train(odd, what, tensor):
    for _ in range(3):
        dist.all_reduce(tensor)
    if not (odd and what == "skips"):
        dist.all_reduce(tensor)
    if odd and what == "stops":
        return
    if odd and what == "calls another":
        dist.broadcast(tensor, guilty)
    else:
        dist.all_reduce(tensor)
    if odd or what != "calls one more":
        dist.all_reduce(tensor)


def run(rank, what, folder):
    store = dist.FileStore(str(folder / "store"), ranks)
    timeout = timedelta(seconds=timeout_s)
    dist.init_process_group("gloo", store=store, rank=rank, world_size=ranks, timeout=timeout)
    try:
        train(rank == guilty, what, torch.ones(16))
    except RuntimeError as error:
        print(what, rank, error, file=sys.stderr)
    (folder / f"comm_lib_trace_rank_{rank}").write_bytes(c10d._dump_fr_trace())
    (folder / f"json_trace_rank_{rank}.json").write_bytes(c10d._dump_fr_trace_json())
    store.set(f"dumped {rank}", "")
    store.wait([f"dumped {rank}" for rank in range(ranks)], timedelta(seconds=60))


children = []
for folder in map(Path, sys.argv[4:]):
    for rank in range(ranks):
        if child := os.fork():
            children.append(child)
            continue
        try:
            run(rank, folder.name, folder)
        except BaseException:
            traceback.print_exc()
            sys.stderr.flush()
            os._exit(1)
        os._exit(0)
sys.exit(any([os.waitpid(child, 0)[1] for child in children]))
"""


@pytest.fixture(scope="module")
def dumps(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folders of all cases, each with the dumps of its ranks; nothing is left running."""
    if not hasattr(torch._C._distributed_c10d, "_dump_fr_trace"):
        pytest.skip(f"torch {torch.__version__} records no flight of gloo")
    root = tmp_path_factory.mktemp("dumps")
    program = root / "program.py"
    program.write_text(PROGRAM)
    folders = [root / what for what in CASES]
    for folder in folders:
        folder.mkdir()
    numbers = [str(number) for number in (RANKS, GUILTY, TIMEOUT_S)]
    environment = {"HOME": str(root), "TORCH_FR_BUFFER_SIZE": "500", "OMP_NUM_THREADS": "1"}
    with subprocess.Popen(
        [sys.executable, str(program), *numbers, *map(str, folders)],
        env=environment,
        stderr=subprocess.PIPE,
        start_new_session=True,
    ) as job:
        try:
            said = job.communicate(timeout=DEADLINE_S)[1].decode(errors="replace")
        finally:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(job.pid, signal.SIGKILL)
    assert job.returncode == 0, said
    return root


def found(folder: Path, pattern: str) -> list[Divergence]:
    evidence = LogEvidence()
    files = sorted(folder.glob(pattern))
    assert len(files) == RANKS
    for file in files:
        data = file.read_bytes()
        assert FlightDocument.recognises(data[:4096])
        document = FlightDocument(str(file))
        document.feed(data)
        document.finish(evidence)
        assert document.error is None
    return analyse(evidence.dumps)


@pytest.mark.parametrize(("what", "kind"), CASES.items())
@pytest.mark.parametrize("pattern", ["comm_lib_trace_rank_*", "json_trace_rank_*.json"])
def test_the_rank_that_differs_is_named(
    dumps: Path, what: str, kind: DivergenceKind, pattern: str
) -> None:
    (divergence,) = found(dumps / what, pattern)
    others = tuple(rank for rank in range(RANKS) if rank != GUILTY)
    assert (divergence.kind, divergence.ranks, divergence.others) == (kind, (GUILTY,), others)
    assert divergence.accuses
    assert divergence.op == "all_reduce"
    assert f"rank {GUILTY}" in divergence.explanation
