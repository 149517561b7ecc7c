"""The same logs in pieces, shuffled, packed or behind wrappers lead to the same findings."""

import gzip
import random
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import zip_longest
from pathlib import Path

import pytest

from ncdiag.diagnose.postmortem import diagnose
from ncdiag.logs.read_logs import read_logs
from ncdiag.model.finding import Postmortem

Pieces = Mapping[str, Sequence[str]]
Told = tuple[object, ...]

HOSTS = ("gpu-11", "gpu-12", "gpu-13")
RANKS_A_HOST = 2


def process(rank: int) -> tuple[str, int, int]:
    """Host, pid and device of a rank."""
    host = HOSTS[rank // RANKS_A_HOST]
    return host, 4100 + 10 * rank, rank % RANKS_A_HOST


def said(rank: int, *messages: str) -> list[str]:
    host, pid, device = process(rank)
    return [f"{host}:{pid}:{pid + 3} [{device}] NCCL {message}" for message in messages]


def warned(rank: int, place: str, message: str) -> list[str]:
    host, pid, device = process(rank)
    return ["", f"{host}:{pid}:{pid + 3} [{device}] {place} NCCL WARN {message}"]


def address(rank: int) -> str:
    return f"10.44.0.{rank // RANKS_A_HOST + 1}"


def started(rank: int, ranks: int) -> list[str]:
    """A start-up that completes."""
    device = rank % RANKS_A_HOST
    comm = f"comm 0x77{rank:02x}00 rank {rank} nranks {ranks} cudaDev {device} nvmlDev {device}"
    comm += f" busId {device + 1}b000 commId 0x5eed"
    peer = (rank + 1) % ranks
    return said(
        rank,
        f"INFO Bootstrap : Using eth0:{address(rank)}<0>",
        "INFO NCCL version 2.20.5+cuda12.4",
        f"INFO NET/IB : Using [0]mlx5_0:1/IB [1]mlx5_1:1/IB [RO]; OOB eth0:{address(rank)}<0>",
        "INFO Using network IB",
        f"INFO {comm} - Init START",
        f"INFO Channel 00/0 : {rank}[{device}] -> {peer}[{peer % 2}] [send] via NET/IB/0/GDRDMA",
        "INFO Connected all rings",
        f"INFO {comm} - Init COMPLETE",
    )


def completion_storm() -> Pieces:
    """All ranks of two hosts lose the third."""
    pieces = {f"rank{rank}.log": started(rank, 6) for rank in range(6)}
    for rank in range(4):
        pieces[f"rank{rank}.log"] += [
            *warned(
                rank,
                "transport/net_ib.cc:1295",
                f"NET/IB: Got completion from peer 10.44.0.3<{40000 + rank}> with status=12"
                f" opcode=0 len=0 vendor err 129 (Send) localGid fe80::{rank + 1}"
                " remoteGidsfe80::99 hca mlx5_0",
            ),
            *said(
                rank, "INFO transport/net.cc:1134 -> 6", "INFO proxy.cc:694 -> 6 [Progress Thread]"
            ),
        ]
    return pieces


def fallen_gpu() -> Pieces:
    """The kernel of one host loses a GPU; the other hosts see closed connections."""
    pieces = {f"rank{rank}.log": started(rank, 6) for rank in range(6)}
    pieces["kernel.log"] = [
        (
            "Jun  1 01:02:03 gpu-12 kernel: NVRM: Xid (PCI:0000:1b:00): 79, pid=4120, name=python3,"
            " GPU has fallen off the bus."
        ),
    ]
    for rank in (0, 1, 4, 5):
        pieces[f"rank{rank}.log"] += [
            *warned(
                rank,
                "misc/socket.cc:49",
                "socketProgress: Connection closed by remote peer gpu-12<41000>",
            ),
            *said(rank, "INFO misc/socket.cc:749 -> 6", "INFO proxy.cc:694 -> 6 [Progress Thread]"),
        ]
    return pieces


def desync() -> Pieces:
    """One of four ranks is a step behind the others of its group."""
    pieces: dict[str, Sequence[str]] = {}
    for rank in range(4):
        done = 40 if rank == 2 else 41
        operation = "ALLGATHER" if rank == 2 else "ALLREDUCE"
        head = f"[rank{rank}]:[E601 01:02:0{rank}.250000000 ProcessGroupNCCL.cpp"
        group = f"[PG ID 0 PG GUID 0(default_pg) Rank {rank}]"
        pieces[f"rank{rank}.log"] = [
            (
                f"{head}:616] {group} Watchdog caught collective operation timeout:"
                f" WorkNCCL(SeqNum={done}, OpType={operation}, NumelIn=512, NumelOut=512,"
                " Timeout(ms)=600000) ran for 600031 milliseconds before timing out."
            ),
            (
                f"{head}:1785] {group} Exception (either an error or timeout) detected by watchdog"
                f" at work: {done}, last enqueued NCCL work: {done}, last completed NCCL work: 39."
            ),
        ]
    return pieces


def refused() -> Pieces:
    """The root of the rendezvous was never there."""
    pieces: dict[str, Sequence[str]] = {}
    for rank in range(1, 3):
        pieces[f"rank{rank}.log"] = [
            *said(rank, f"INFO Bootstrap : Using eth0:{address(rank)}<0>"),
            *warned(
                rank,
                "misc/socket.cc:484",
                "socketStartConnect: Connect to 10.44.0.1<39999> failed : Connection refused",
            ),
            *said(
                rank,
                "INFO misc/socket.cc:567 -> 2",
                "INFO bootstrap.cc:285 -> 2",
                "INFO init.cc:1501 -> 2",
            ),
        ]
    return pieces


def healthy() -> Pieces:
    """A benchmark over two ranks that ends as it should."""
    rank_rows = [
        f"#  Rank  {rank} Group  0 Pid   {process(rank)[1]} on     gpu-11 device  {rank}"
        f" [0000:{rank + 1}b:00] Some GPU"
        for rank in range(2)
    ]
    table = [
        "#",
        (
            "#                                                              out-of-place"
            "                       in-place          "
        ),
        (
            "#       size         count      type   redop    root     time   algbw   busbw #wrong"
            "     time   algbw   busbw #wrong"
        ),
        (
            "#        (B)    (elements)                               (us)  (GB/s)  (GB/s)"
            "            (us)  (GB/s)  (GB/s)       "
        ),
        (
            "     1048576        262144     float     sum      -1    71.10   14.75   14.75      0"
            "    70.90   14.79   14.79      0"
        ),
        (
            "     2097152        524288     float     sum      -1   101.20   20.72   20.72      0"
            "   101.00   20.76   20.76      0"
        ),
        "# Out of bounds values : 0 OK",
        "# Avg bus bandwidth    : 17.755",
        "#",
    ]
    head = [
        (
            "# nThread 1 nGpus 1 minBytes 1048576 maxBytes 2097152 step: 2(factor) warmup iters: 5"
            " iters: 20 agg iters: 1 validation: 1 graph: 0"
        ),
        "#",
        "# Using devices",
    ]
    first = [*head, *rank_rows, *started(0, 2), *table]
    return {"rank0.log": first, "rank1.log": started(1, 2)}


CASES = {case.__name__: case() for case in (completion_storm, fallen_gpu, desync, refused, healthy)}


def summary(postmortem: Postmortem) -> Told:
    """What an operator acts on."""
    findings = sorted(
        (
            found.class_.value,
            found.role.value,
            tuple(sorted((suspect.kind.value, suspect.name) for suspect in found.suspects)),
        )
        for found in postmortem.findings
    )
    return (
        postmortem.verdict.value,
        tuple(findings),
        tuple(sorted(i.host for i in postmortem.isolate)),
    )


def found_in(paths: Iterable[Path]) -> Told:
    return summary(diagnose(read_logs([str(path) for path in paths], jobs=1)))


def written(folder: Path, pieces: Pieces) -> list[Path]:
    folder.mkdir(parents=True, exist_ok=True)
    paths = []
    for name, lines in pieces.items():
        path = folder / name
        path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
        paths.append(path)
    return paths


@pytest.fixture(params=CASES)
def case(request: pytest.FixtureRequest) -> Pieces:
    return CASES[request.param]


@pytest.fixture
def expected(case: Pieces, tmp_path: Path) -> Told:
    return found_in(written(tmp_path / "plain", case))


EXPECTED = {
    "completion_storm": ("findings", ("ib_completion_error", "root"), ("gpu-13",)),
    "fallen_gpu": ("findings", ("gpu_fell_off_bus", "root"), ("gpu-12",)),
    "desync": ("findings", ("torch_desync", "root"), ()),
    "refused": ("findings", ("bootstrap_connect_failed", "root"), ()),
    "healthy": ("ok", None, ()),
}


@pytest.mark.parametrize("name", CASES)
def test_each_case_is_understood(name: str, tmp_path: Path) -> None:
    verdict, findings, isolated = found_in(written(tmp_path, CASES[name]))
    expected_verdict, root, expected_isolated = EXPECTED[name]
    assert (verdict, isolated) == (expected_verdict, expected_isolated)
    assert isinstance(findings, tuple)
    roots = [found[:2] for found in findings if found[1] == "root"]
    assert roots == ([root] if root else [])


@pytest.mark.parametrize("seed", range(3))
def test_order_of_files_does_not_matter(
    case: Pieces, expected: Told, tmp_path: Path, seed: int
) -> None:
    paths = written(tmp_path / "shuffled", case)
    random.Random(seed).shuffle(paths)
    assert found_in(paths) == expected


def test_one_file_says_what_its_pieces_say(case: Pieces, expected: Told, tmp_path: Path) -> None:
    lines = [line for piece in case.values() for line in piece]
    assert found_in(written(tmp_path / "one", {"all.log": lines})) == expected


def test_interleaved_ranks_say_the_same(case: Pieces, expected: Told, tmp_path: Path) -> None:
    rows = zip_longest(*case.values())
    lines = [line for row in rows for line in row if line is not None]
    assert found_in(written(tmp_path / "mixed", {"all.log": lines})) == expected


def test_packed_files_say_the_same(case: Pieces, expected: Told, tmp_path: Path) -> None:
    packed = []
    for path in written(tmp_path / "packed", case):
        target = path.with_suffix(".log.gz")
        target.write_bytes(gzip.compress(path.read_bytes()))
        packed.append(target)
    assert found_in(packed) == expected


def test_line_ends_of_windows_say_the_same(case: Pieces, expected: Told, tmp_path: Path) -> None:
    lines = {name: [f"{line}\r" for line in piece] for name, piece in case.items()}
    assert found_in(written(tmp_path / "crlf", lines)) == expected


Wrap = Callable[[int, int, str], str]
WRAPPERS: dict[str, Wrap] = {
    "mpirun": lambda rank, _, line: f"[1,{rank}]<stdout>:{line}",
    "prterun": lambda rank, _, line: f"[prterun-gpu-11-77@1,{rank}]<stdout>: {line}",
    "hydra": lambda rank, _, line: f"[{rank}] {line}",
    "srun -l": lambda rank, _, line: f"{rank}: {line}",
    "torchrun": lambda rank, _, line: f"[default{rank}]:{line}",
    "ray": lambda rank, _, line: f"(TrainWorker pid={4100 + 10 * rank}, ip=10.44.0.9) {line}",
    "container": lambda _, number, line: f"2026-06-01T01:02:03.{number:09d}Z stdout F {line}",
    "kubectl": lambda rank, _, line: f"[pod/train-{rank}/pytorch] {line}",
    "compose": lambda rank, _, line: f"bench_{rank}  | {line}",
    "clock": lambda _, number, line: f"[01:02:{number % 60:02d}] {line}",
    "editor": lambda _, number, line: f"{number:6d}\t{line}",
    "numbers": lambda _, number, line: f"[{number}] {line}",
    "quote": lambda _, __, line: f"> {line}",
    "colour": lambda _, __, line: f"\x1b[32m{line}\x1b[0m",
    "maimed colour": lambda _, __, line: f"[0m {line}",
    "progress": lambda _, number, line: f" {number}%\r{line}",
    "nested": lambda rank, _, line: f"2026-06-01T01:02:03Z stdout F [1,{rank}]<stdout>:{line}",
}


@pytest.mark.parametrize("wrapper", WRAPPERS)
def test_wrapped_lines_say_the_same(
    case: Pieces, expected: Told, tmp_path: Path, wrapper: str
) -> None:
    wrap = WRAPPERS[wrapper]
    lines = {
        name: [wrap(rank, number, line) for number, line in enumerate(piece, 1)]
        for rank, (name, piece) in enumerate(case.items())
    }
    assert found_in(written(tmp_path / "wrapped", lines)) == expected
