"""Two ranks on one GPU that take each other for different hosts, through the same engine."""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import msgspec
import pytest

from ncdiag.cluster.fleet.companion import Companions
from ncdiag.measure.engines.base import Endpoint, PairOrder, Timing
from ncdiag.measure.engines.halves import Half
from ncdiag.measure.engines.merge import merge
from ncdiag.measure.engines.torch import task
from ncdiag.measure.engines.torch.messages import (
    MeasurePair,
    MeasureTask,
    OpenStore,
    PrepareTask,
    StoreOpened,
)
from ncdiag.measure.engines.torch.processes import nccl_settings
from ncdiag.model.host import Nic, NicKind
from ncdiag.model.measurement import Purpose

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
