"""One GPU: two ranks on it that take each other for different hosts, through the same engines as
on many, and what programs of nccl-tests really print.
"""

import os
import subprocess
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import msgspec
import pytest

from ncdiag.cluster.fleet.companion import Companions
from ncdiag.cluster.launchers import choose
from ncdiag.measure.engines.base import Endpoint, EngineOptions, EngineSettings, PairOrder, Timing
from ncdiag.measure.engines.halves import Half
from ncdiag.measure.engines.merge import merge
from ncdiag.measure.engines.nccl_tests.engine import NcclTestsEngine
from ncdiag.measure.engines.nccl_tests.look import LookFor, look
from ncdiag.measure.engines.nccl_tests.programs import find, why_ended
from ncdiag.measure.engines.torch import task
from ncdiag.measure.engines.torch.messages import (
    MeasurePair,
    MeasureTask,
    OpenStore,
    PrepareTask,
    StoreOpened,
)
from ncdiag.measure.engines.torch.processes import nccl_settings
from ncdiag.model.host import Host, Nic, NicKind
from ncdiag.model.measurement import Purpose
from ncdiag.read.nccl_tests import read_report

pytestmark = pytest.mark.gpu

# CUDA, the GPU's context and NCCL's first communicator take seconds each.
START_S = 120
PAIR_S = 60
LO = Nic(name="lo", kind=NicKind.ETHERNET, interface="lo", address="127.0.0.1")


@pytest.fixture
def own_companions(monkeypatch: pytest.MonkeyPatch) -> Iterator[Companions]:
    torch = pytest.importorskip("torch", reason="torch is not installed")
    if not torch.cuda.is_available():
        pytest.skip("torch finds no CUDA GPU here")
    companions = Companions()
    monkeypatch.setattr(task, "companions", lambda: companions)
    yield companions
    companions.close()


@pytest.mark.usefixtures("own_companions")
def test_two_ranks_on_one_gpu_measure_one_another_over_nccl() -> None:
    ports = [prepare(host) for host in ("a", "b")]
    for number in range(2):
        order = PairOrder(
            first=Endpoint("a", LO),
            second=Endpoint("b", LO),
            rail=0,
            round=number,
            purpose=Purpose.ROUND,
        )
        with ThreadPoolExecutor(2) as pool:
            halves = pool.map(
                lambda host, number=number: measure(host, ports[0], f"round {number}"), "ab"
            )
            results = merge(order, *halves, "torch")
        for result in results:
            assert result.error is None
            assert result.measured_gbit_per_s is not None
            assert result.measured_gbit_per_s > 0


def prepare(host: str) -> int:
    question = PrepareTask(
        process=host,
        open=OpenStore(address="127.0.0.1"),
        timeout_s=START_S,
        # NCCL refuses two ranks of one host on one GPU, and would not use the network for them.
        settings=(*nccl_settings(LO, 0, None), f"NCCL_HOSTID={host}"),
    )
    answer = msgspec.json.decode(task.prepare(msgspec.json.encode(question)), type=StoreOpened)
    assert answer.error is None
    return answer.port


def measure(host: str, port: int, meeting: str) -> Half:
    request = MeasurePair(
        first=host == "a",
        nic=LO,
        store_address="127.0.0.1",
        store_port=port,
        meeting=meeting,
        timing=Timing(),
    )
    question = MeasureTask(process=host, request=request, deadline_s=PAIR_S)
    return msgspec.json.decode(task.measure(msgspec.json.encode(question)), type=Half)


def program(name: str) -> str:
    if subprocess.run(["nvidia-smi", "-L"], capture_output=True, check=False).returncode:
        pytest.skip("nvidia-smi finds no GPU here")
    path, looked = find(name, None, os.environ)
    if path is None:
        pytest.skip(f"{name} of nccl-tests is missing: looked in {looked}")
    return path


def run(*argv: str) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(
        argv, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=120, check=False
    )


@pytest.fixture
def all_reduce() -> str:
    try:
        return program("all_reduce_perf")
    except FileNotFoundError:
        pytest.skip("nvidia-smi is missing")


def test_what_a_real_program_prints_is_read(all_reduce: str) -> None:
    ended = run(all_reduce, "-b", "1M", "-e", "64M", "-f", "2", "-g", "1")
    said = [*ended.stdout.splitlines(), *ended.stderr.splitlines()]
    assert why_ended(ended.returncode, said) is None, ended.stdout + ended.stderr
    (benchmark,) = read_report(ended.stdout.encode(), "")
    assert benchmark.complete
    assert len(benchmark.ranks) == 1
    assert [row.size for row in benchmark.rows] == [1 << power for power in range(20, 27)]
    for row in benchmark.rows:
        assert row.out_of_place_time_us
        assert row.out_of_place_wrong == 0


def test_the_report_of_a_real_program_says_what_its_table_says(
    all_reduce: str, tmp_path: Path
) -> None:
    if "J" not in look("here", LookFor("all_reduce_perf")).options:
        pytest.skip(f"{all_reduce} is older than 2.17.3: it has no -J")
    path = tmp_path / "report.json"
    ended = run(all_reduce, "-b", "8M", "-e", "32M", "-f", "2", "-g", "1", "-J", str(path))
    assert ended.returncode == 0, ended.stdout + ended.stderr
    (table,) = read_report(ended.stdout.encode(), "")
    (report,) = read_report(path.read_bytes(), str(path))
    assert [row.size for row in report.rows] == [row.size for row in table.rows]
    for one, other in zip(report.rows, table.rows, strict=True):
        assert one.out_of_place_time_us == pytest.approx(other.out_of_place_time_us, rel=0.01)


def test_an_option_that_a_real_program_does_not_know_is_noticed(all_reduce: str) -> None:
    ended = run(all_reduce, "--no-such-option")
    said = [*ended.stdout.splitlines(), *ended.stderr.splitlines()]
    assert why_ended(ended.returncode, said) == "it does not know an option that it was given"


def test_two_ranks_on_one_gpu_measure_one_another_with_a_real_program(
    all_reduce: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    del all_reduce
    real = program("sendrecv_perf")
    # NCCL refuses two ranks of one host on one GPU, and nccl-tests would take the second GPU.
    script = tmp_path / "sendrecv_perf"
    script.write_text(
        "#!/bin/sh\nexport NCCL_TESTS_DEVICE=0\n"
        f'NCCL_HOSTID="rank${{PMI_RANK:-$OMPI_COMM_WORLD_RANK}}" exec {real} "$@"\n'
    )
    script.chmod(0o755)
    monkeypatch.setenv("OMPI_ALLOW_RUN_AS_ROOT", "1")
    monkeypatch.setenv("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1")
    hosts = [Host(name=f"h{n}", address=f"127.0.0.{n}", nics=("lo",)) for n in (1, 2)]
    settings = EngineSettings(nccl_tests_dir=str(tmp_path))
    engine = NcclTestsEngine(hosts, choose("local", hosts), EngineOptions(settings=settings))
    try:
        facts = engine.start(lambda *_: None)
        assert set(facts) == {"h1", "h2"}, engine.unreachable
        first, second = (Endpoint(name, facts[name].nics[0]) for name in ("h1", "h2"))
        order = PairOrder(first=first, second=second, rail=0, round=0, purpose=Purpose.ROUND)
        results = list(engine.measure([order]))
    finally:
        engine.close()
    for result in results:
        if result.error and "built without MPI" in result.error:
            pytest.skip(result.error)
        assert result.error is None
        assert result.measured_gbit_per_s is not None
        assert result.measured_gbit_per_s > 0
