"""Collectives by torch over real workers on loopback addresses."""

import os
import signal
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent / "importable"))

from processes import wait_until

from ncdiag.cluster.launchers import choose
from ncdiag.expect.traffic import Collective, bus_factor
from ncdiag.measure.bench.base import BenchPlan
from ncdiag.measure.bench.sizes import Sizes
from ncdiag.measure.bench.torch_engine import TorchBench
from ncdiag.model.host import Host

pytest.importorskip("torch", reason="torch is not installed: pip install 'ncdiag[torch]'")

HOSTS = [Host(name=f"h{n}", address=f"127.0.0.{n}") for n in (2, 3, 4)]
NAMES = [host.name for host in HOSTS]
PLAN = BenchPlan(collective=Collective.ALL_REDUCE, sizes=Sizes(4 << 10, 256 << 10, 8), iterations=5)


@pytest.fixture(scope="module")
def engine() -> Iterator[TorchBench]:
    """An engine whose hosts are up."""
    made = TorchBench(HOSTS, choose("local", HOSTS), PLAN)
    try:
        assert set(made.start(lambda _host, _text: None)) == set(NAMES), made.unreachable
        yield made
    finally:
        made.close()


def processes() -> set[int]:
    """The processes of ranks on this machine that are ours."""
    found = set()
    for folder in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            words = (folder / "cmdline").read_bytes().split(b"\0")
            if b"ncdiag.measure.bench.torch_child" in words and _ours(int(folder.name)):
                found.add(int(folder.name))
    return found


def sent_bytes() -> int:
    """What this machine has sent to itself: ranks that exchange data do."""
    return int(Path("/sys/class/net/lo/statistics/tx_bytes").read_text())


def _ours(pid: int) -> bool:
    while pid > 1:
        if pid == os.getpid():
            return True
        pid = int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])
    return False


@pytest.mark.parametrize("collective", list(Collective))
def test_every_collective_moves_what_it_should(engine: TorchBench, collective: Collective) -> None:
    engine._plan = replace(PLAN, collective=collective)
    run = engine.run(NAMES)
    assert run.error is None
    assert run.benchmark
    # As nccl-tests counts: in total where ranks have parts, so a multiple of their number.
    wanted = [4 << 10, 32 << 10, 256 << 10]
    assert [row.size for row in run.benchmark.rows] in (wanted, [s // 12 * 12 for s in wanted])
    for row in run.benchmark.rows:
        assert row.out_of_place_wrong == 0
        assert row.out_of_place_algbw
        assert row.out_of_place_busbw == pytest.approx(
            row.out_of_place_algbw * bus_factor(collective, 3)
        )
        assert row.out_of_place_iterations
        assert len(row.out_of_place_iterations.times_us) == 5


def test_two_ranks_on_each_of_two_hosts(engine: TorchBench) -> None:
    engine._plan, engine.ranks_per_host = PLAN, 2
    try:
        run = engine.run(NAMES[:2])
    finally:
        engine.ranks_per_host = 1
    assert run.error is None
    assert (run.hosts, run.ranks_per_host) == (("h2", "h3"), 2)


def test_a_rank_that_dies_ends_its_run_and_no_other(engine: TorchBench) -> None:
    engine._plan = PLAN
    assert engine.run(NAMES).error is None
    engine._plan = replace(PLAN, sizes=Sizes(64 << 20, 64 << 20, 2), iterations=1000)
    with ThreadPoolExecutor(1) as pool:
        before = sent_bytes()
        running = pool.submit(engine.run, NAMES)
        # One that is killed before it is asked is replaced in time, and the run lives.
        wait_until(lambda: sent_bytes() > before + (64 << 20))
        os.kill(min(processes()), signal.SIGKILL)
        run = running.result(timeout=120)
    assert run.error is not None
    engine._plan = PLAN
    again = engine.run(NAMES)
    assert again.error is None


def test_a_run_that_takes_too_long_is_cut(engine: TorchBench) -> None:
    engine._plan = replace(PLAN, sizes=Sizes(1 << 20, 64 << 20, 2), timeout_s=0.05)
    run = engine.run(NAMES)
    assert run.error
    engine._plan = PLAN
    assert engine.run(NAMES).error is None
