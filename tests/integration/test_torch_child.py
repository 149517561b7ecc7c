"""Two real measuring processes that measure one another over loopback, and what may befall them."""

import os
import signal
import socket
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace

import msgspec
import pytest

from ncdiag.cluster.fleet.companion import Companions
from ncdiag.health.counters import read_counters
from ncdiag.measure.engines.base import Endpoint, PairOrder, Timing
from ncdiag.measure.engines.halves import Blame, Half
from ncdiag.measure.engines.merge import merge
from ncdiag.measure.engines.torch import task
from ncdiag.measure.engines.torch.messages import (
    MeasurePair,
    MeasureTask,
    OpenStore,
    PrepareTask,
    Ready,
    StoreOpened,
)
from ncdiag.measure.engines.torch.processes import SHARED_PROCESS, shared_process
from ncdiag.model.host import Nic, NicKind
from ncdiag.model.measurement import Measurement, Purpose

pytest.importorskip("torch", reason="torch is not installed: pip install 'ncdiag[torch]'")

READY_S = 60
TIMING = Timing()
DEADLINE_S = TIMING.pair_s + 5
LONG = Timing(measure_s=30)
ENOUGH_BYTES = 20_000_000


@dataclass
class Side:
    """A host as its worker sees it: companions of its own, and an address."""

    name: str
    companions: Companions
    nic: Nic
    port: int = 0

    def use(self, function: Callable[[bytes], bytes], question: msgspec.Struct) -> bytes:
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(task, "companions", lambda: self.companions)
            return function(msgspec.json.encode(question))

    def listen(self) -> int:
        assert self.nic.address
        question = PrepareTask(
            process=SHARED_PROCESS,
            open=OpenStore(address=self.nic.address, port=self.port),
            timeout_s=READY_S,
        )
        answer = msgspec.json.decode(self.use(task.prepare, question), type=StoreOpened)
        assert answer.error is None
        return answer.port

    def ask(self, request: MeasurePair, deadline_s: float) -> Half:
        # Not through use(): two sides in one process cannot both stand for the worker's own.
        question = MeasureTask(process=SHARED_PROCESS, request=request, deadline_s=deadline_s)
        return measure_half(self.companions, question)

    def ready(self) -> Ready:
        return msgspec.json.decode(self.companions.ready(SHARED_PROCESS, READY_S), type=Ready)

    def process_id(self) -> int:
        return self.companions._slots[SHARED_PROCESS].child.result().pid


def measure_half(companions: Companions, question: MeasureTask) -> Half:
    return msgspec.json.decode(task.measure_with(companions, question), type=Half)


@pytest.fixture(scope="module")
def sides() -> Iterator[tuple[Side, Side]]:
    both = []
    for name, address in (("a", "127.0.0.2"), ("b", "127.0.0.3")):
        nic = Nic(name="lo", kind=NicKind.ETHERNET, interface="lo", address=address)
        side = Side(name, Companions(), nic)
        side.companions.ensure(shared_process({}))
        both.append(side)
    for side in both:
        side.port = side.listen()
    yield both[0], both[1]
    for side in both:
        side.companions.close()


def begin(
    pool: ThreadPoolExecutor,
    sides: tuple[Side, Side],
    meeting: str,
    timing: Timing = TIMING,
    deadline_s: float = DEADLINE_S,
    **altered: object,
) -> Callable[[], tuple[Half, Half]]:
    def half(side: Side) -> Half:
        request = MeasurePair(
            first=side is sides[0],
            nic=replace(side.nic, **altered),
            store_address=sides[0].nic.address or "",
            store_port=sides[0].port,
            meeting=meeting,
            timing=timing,
        )
        return side.ask(request, deadline_s)

    futures = [pool.submit(half, side) for side in sides]
    return lambda: (futures[0].result(), futures[1].result())


def measured(sides: tuple[Side, Side], halves: tuple[Half, Half]) -> tuple[Measurement, ...]:
    order = PairOrder(
        first=Endpoint("a", sides[0].nic),
        second=Endpoint("b", sides[1].nic),
        rail=0,
        round=0,
        purpose=Purpose.ROUND,
    )
    return merge(order, *halves, "torch")


def measure(sides: tuple[Side, Side], meeting: str, **altered: object) -> tuple[Measurement, ...]:
    with ThreadPoolExecutor(2) as pool:
        return measured(sides, begin(pool, sides, meeting, **altered)())


def wait_for_transfer(nic: Nic) -> None:
    """Return once payload is under way."""
    before = read_counters(nic)
    end = time.monotonic() + 20
    while read_counters(nic).since(before).tx_bytes < ENOUGH_BYTES:
        assert time.monotonic() < end, "no transfer began"
        time.sleep(0.01)


def assert_good(results: tuple[Measurement, ...]) -> None:
    for result in results:
        assert result.error is None
        assert result.measured_gbit_per_s is not None
        assert result.min_gbit_per_s is not None
        assert 0 < result.min_gbit_per_s <= result.measured_gbit_per_s
        assert result.bytes > 0
        assert result.seconds > 0
        assert result.idle is not None


def test_the_same_processes_measure_pair_after_pair(sides: tuple[Side, Side]) -> None:
    before = [side.process_id() for side in sides]
    for number in range(3):
        assert_good(measure(sides, f"again-{number}"))
    assert_good(measure((sides[0], sides[1]), "once more"))
    assert [side.process_id() for side in sides] == before


def test_a_process_says_what_torch_it_has(sides: tuple[Side, Side]) -> None:
    ready = sides[0].ready()
    assert ready.torch
    assert ready.error is None


def test_a_store_listens_on_its_own_address_only(sides: tuple[Side, Side]) -> None:
    with socket.create_connection(("127.0.0.2", sides[0].port), timeout=5):
        pass
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection(("127.0.0.1", sides[0].port), timeout=5)


def test_payload_that_crosses_another_interface_is_no_result(sides: tuple[Side, Side]) -> None:
    others = [name for _, name in socket.if_nameindex() if name != "lo"]
    if not others:
        pytest.skip("this host has no interface besides lo")
    for result in measure(sides, "elsewhere", interface=others[0]):
        assert result.error is not None
        assert result.error.startswith("did not cross lo of")


def test_an_interface_without_counters_is_an_error_of_its_own_host(
    sides: tuple[Side, Side],
) -> None:
    for result in measure(sides, "nowhere", interface="none9"):
        assert result.error is not None
        assert "the counters of lo cannot be read" in result.error


def test_an_address_of_another_host_is_an_error_and_both_processes_live_on(
    sides: tuple[Side, Side],
) -> None:
    # A block for documentation (RFC 5737), which nobody carries.
    foreign = (sides[0], replace_side(sides[1], address="192.0.2.77"))
    began = time.monotonic()
    assert all(result.error for result in measure(foreign, "foreign"))
    assert time.monotonic() - began < DEADLINE_S + 1
    assert_good(measure(sides, "after foreign"))


def replace_side(side: Side, **altered: object) -> Side:
    return Side(side.name, side.companions, replace(side.nic, **altered), side.port)


@pytest.mark.parametrize("victim", [0, 1])
def test_a_killed_process_costs_its_pair_and_is_replaced(
    sides: tuple[Side, Side], victim: int
) -> None:
    with ThreadPoolExecutor(2) as pool:
        halves = begin(pool, sides, f"killed-{victim}", LONG, deadline_s=LONG.pair_s)
        wait_for_transfer(sides[0].nic)
        os.kill(sides[victim].process_id(), signal.SIGKILL)
        ended = halves()
    name = sides[victim].name
    for result in measured(sides, ended):
        assert result.error == f"{name}: measuring process was killed"
    survivor = ended[1 - victim].failure
    assert survivor is not None
    assert survivor.blame in {Blame.PEER, Blame.STALLED}
    # Without a word to the driver: the one that took its place opens the same port at need.
    assert sides[victim].ready().torch
    assert_good(measure(sides, f"after-killed-{victim}"))


def test_a_stopped_process_is_ended_at_the_deadline_and_replaced(
    sides: tuple[Side, Side],
) -> None:
    with ThreadPoolExecutor(2) as pool:
        halves = begin(pool, sides, "stopped", LONG, deadline_s=8)
        wait_for_transfer(sides[0].nic)
        stopped = sides[1].process_id()
        os.kill(stopped, signal.SIGSTOP)
        ended = halves()
    for result in measured(sides, ended):
        assert result.error == "b: measuring process gave no answer within 8 s"
    assert ended[0].failure is not None
    assert ended[0].failure.text == "nothing moved for 3 s"
    assert sides[1].ready().torch
    assert sides[1].process_id() != stopped
    assert_good(measure(sides, "after-stopped"))


def test_a_peer_that_never_comes_costs_no_process(sides: tuple[Side, Side]) -> None:
    before = sides[1].process_id()
    nobody = socket.create_server(("127.0.0.9", 0))
    port = nobody.getsockname()[1]
    nobody.close()
    request = MeasurePair(
        first=False,
        nic=sides[1].nic,
        store_address="127.0.0.9",
        store_port=port,
        meeting="alone",
        timing=TIMING,
    )
    half = sides[1].ask(request, DEADLINE_S)
    assert half.failure is not None
    assert half.failure.blame is Blame.PEER
    assert "no way to 127.0.0.9" in half.failure.text
    assert sides[1].process_id() == before
    assert_good(measure(sides, "after-alone"))
