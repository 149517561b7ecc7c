"""The driver's side of the torch engine, over a fleet that answers from a script."""

import os
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import Future
from dataclasses import dataclass, field, replace
from pathlib import Path

import msgspec
import pytest

from ncdiag.cluster.fleet import Call, CallFailed, CallTimeout, HostLost
from ncdiag.health.nearest_gpu import nearest_gpu
from ncdiag.measure.engines import ENGINES, open_engine
from ncdiag.measure.engines.base import Endpoint, PairOrder, Timing
from ncdiag.measure.engines.halves import Blame, Failure, Half, Received, Sent
from ncdiag.measure.engines.torch import task
from ncdiag.measure.engines.torch.child import set_environment
from ncdiag.measure.engines.torch.engine import TorchEngine
from ncdiag.measure.engines.torch.messages import (
    Backend,
    Collected,
    CollectTask,
    MeasureTask,
    PrepareTask,
    Ready,
    StoreOpened,
)
from ncdiag.measure.engines.torch.placement import NO_GPU, choose_backend, place
from ncdiag.measure.engines.torch.processes import nccl_settings
from ncdiag.model.errors import UsageError
from ncdiag.model.host import Gpu, Host, HostFacts, Nic, NicKind
from ncdiag.model.measurement import Measurement, Purpose

ETH0 = Nic(name="eth0", kind=NicKind.ETHERNET, interface="eth0", address="10.0.0.1")
SENT = Sent(payload_bytes=1_000_000, idle=0.7)
RECEIVED = Received(
    payload_bytes=1_000_000,
    bytes=800_000,
    seconds=0.4,
    windows=4,
    median_gbit_per_s=0.478,
    worst_gbit_per_s=0.470,
    idle=0.6,
)
GOOD = Half(sent=SENT, received=RECEIVED, tx_bytes=1_050_000, rx_bytes=1_050_000)


def failed(blame: Blame, text: str) -> Half:
    return Half(failure=Failure(blame, text))


@dataclass
class FakeFleet:
    """Hosts that say what they are told to."""

    hosts: tuple[str, ...]
    collected: dict[str, Collected | Exception] = field(default_factory=dict)
    halves: dict[str, Half | Exception | bytes] = field(default_factory=dict)
    stores: dict[str, StoreOpened] = field(default_factory=dict)
    unreachable: dict[str, str] = field(default_factory=dict)
    prepared: list[PrepareTask] = field(default_factory=list)
    measured: list[tuple[str, MeasureTask]] = field(default_factory=list)
    closed: bool = False

    @property
    def up(self) -> tuple[str, ...]:
        return tuple(host for host in self.hosts if host not in self.unreachable)

    def start(self, on_change: Callable[[str, str], None]) -> None:
        for host in self.hosts:
            on_change(host, "up")

    def call(
        self, host: str, function: Callable[[bytes], bytes], payload: bytes, *, timeout_s: float
    ) -> Call:
        future: Future[bytes] = Future()
        answer = self._answer(host, function, payload)
        if isinstance(answer, Exception):
            future.set_exception(answer)
        else:
            future.set_result(answer if isinstance(answer, bytes) else msgspec.json.encode(answer))
        return Call(host, timeout_s, future)

    def _answer(
        self, host: str, function: Callable[[bytes], bytes], payload: bytes
    ) -> msgspec.Struct | bytes | Exception:
        if function is task.collect:
            asked = msgspec.json.decode(payload, type=CollectTask)
            return self.collected.get(host, answer_of(host, asked.nics))
        if function is task.prepare:
            self.prepared.append(msgspec.json.decode(payload, type=PrepareTask))
            return self.stores.get(host, StoreOpened(port=4711))
        assert function is task.measure
        self.measured.append((host, msgspec.json.decode(payload, type=MeasureTask)))
        return self.halves.get(host, GOOD)

    def as_completed(self, calls: Mapping[Call, object]) -> Iterator[Call]:
        yield from reversed(list(calls))

    def close(self) -> None:
        self.closed = True


def answer_of(host: str, nics: tuple[str, ...] = (), gpus: int = 0) -> Collected:
    found = tuple(replace(ETH0, name=name, interface=name) for name in nics or ("eth0",))
    facts = HostFacts(hostname=host, nics=found)
    return Collected(facts=facts, ready=Ready(torch="2.13.0", gpus=gpus), own_address="10.0.0.1")


def started(fleet: FakeFleet, **attributes: object) -> tuple[TorchEngine, Mapping[str, HostFacts]]:
    hosts = [Host(name=name, address=name, **attributes) for name in fleet.hosts]
    engine = TorchEngine(hosts, fleet, Timing())
    return engine, engine.start(lambda _host, _text: None)


def order(facts: Mapping[str, HostFacts], first: str, second: str) -> PairOrder:
    ends = (Endpoint(host, facts[host].nics[0]) for host in (first, second))
    return PairOrder(first=next(ends), second=next(ends), rail=0, round=3, purpose=Purpose.ROUND)


def measured(fleet: FakeFleet) -> list[Measurement]:
    """One pair, a with b."""
    engine, facts = started(fleet)
    return list(engine.measure([order(facts, "a", "b")]))


def test_a_pair_yields_a_measurement_for_each_direction() -> None:
    there, back = measured(FakeFleet(("a", "b")))
    assert (there.source, there.target) == ("a", "b")
    assert (back.source, back.target) == ("b", "a")
    assert (there.measured_gbit_per_s, there.min_gbit_per_s) == (0.478, 0.470)
    assert (there.bytes, there.seconds, there.idle) == (800_000, 0.4, 0.6)
    assert (there.engine, there.round, there.purpose) == ("torch", 3, Purpose.ROUND)
    assert there.error is None


def test_both_sides_of_a_pair_share_a_token_that_no_other_pair_has() -> None:
    fleet = FakeFleet(("a", "b", "c", "d"))
    engine, facts = started(fleet)
    for _ in range(2):
        list(engine.measure([order(facts, "a", "b"), order(facts, "c", "d")]))
    meetings = [(host, asked.request.meeting) for host, asked in fleet.measured]
    assert [host for host, _ in meetings] == ["a", "b", "c", "d"] * 2
    assert len({meeting for _, meeting in meetings}) == 4
    assert meetings[0][1] == meetings[1][1]
    assert all(len(meeting) >= 32 for _, meeting in meetings)


@pytest.mark.parametrize(
    ("halves", "error"),
    [
        (
            {"b": failed(Blame.PROCESS, "measuring process was killed")},
            "b: measuring process was killed",
        ),
        ({"b": HostLost("lost: its connection ended")}, "b was lost: its connection ended"),
        ({"b": CallTimeout("no answer within 8 s")}, "b: no answer within 8 s"),
        ({"b": CallFailed("ImportError: x")}, "b: ImportError: x"),
        ({"b": b"{"}, "b: its answer makes no sense"),
        ({"b": failed(Blame.LOCAL, "\x1b[2J")}, "b: \\x1b[2J"),
    ],
)
def test_a_failed_side_is_the_error_of_both_directions(
    halves: dict[str, Half | Exception | bytes], error: str
) -> None:
    connection = failed(Blame.PEER, "Connection reset by peer")
    results = measured(FakeFleet(("a", "b"), halves={"a": connection, **halves}))
    assert [(result.error or "")[: len(error)] for result in results] == [error, error]
    assert results[0].measured_gbit_per_s is None


@pytest.mark.parametrize(
    ("telling", "other"),
    [
        (Blame.HOST, Blame.PROCESS),
        (Blame.PROCESS, Blame.STALLED),
        (Blame.PAYLOAD, Blame.PEER),
        (Blame.STALLED, Blame.PEER),
    ],
)
def test_the_more_telling_of_two_failures_is_kept(telling: Blame, other: Blame) -> None:
    for sides in ("ab", "ba"):
        halves = dict(zip(sides, (failed(telling, "cause"), failed(other, "effect")), strict=True))
        result, _ = measured(FakeFleet(("a", "b"), halves=halves))
        assert result.error == f"{sides[0]}: cause"


def test_a_direction_that_was_complete_before_the_failure_stands() -> None:
    stalled = Failure(Blame.STALLED, "nothing moved for 3 s")
    halves = {
        "a": Half(sent=SENT, tx_bytes=1_050_000, rx_bytes=400, failure=stalled),
        "b": Half(received=RECEIVED, tx_bytes=400, rx_bytes=1_050_000, failure=stalled),
    }
    there, back = measured(FakeFleet(("a", "b"), halves=halves))
    assert (there.error, there.measured_gbit_per_s) == (None, 0.478)
    assert back.error == "a: nothing moved for 3 s"


def test_data_that_arrived_wrong_is_damage_of_that_direction_alone() -> None:
    wrong = failed(Blame.PAYLOAD, "payload arrived damaged")
    gone = failed(Blame.PEER, "Connection reset by peer")
    there, back = measured(FakeFleet(("a", "b"), halves={"a": gone, "b": wrong}))
    assert (there.damaged, there.error) == (True, "b: payload arrived damaged")
    assert there.measured_gbit_per_s is None
    assert (back.damaged, back.error) == (False, "b: payload arrived damaged")


def test_the_direction_before_the_damaged_one_stands() -> None:
    wrong = Failure(Blame.PAYLOAD, "payload arrived damaged")
    halves = {
        "a": Half(sent=SENT, tx_bytes=1_050_000, rx_bytes=400, failure=wrong),
        "b": Half(
            received=RECEIVED,
            tx_bytes=400,
            rx_bytes=1_050_000,
            failure=Failure(Blame.PEER, "Connection reset by peer"),
        ),
    }
    there, back = measured(FakeFleet(("a", "b"), halves=halves))
    assert (there.damaged, there.measured_gbit_per_s) == (False, 0.478)
    assert (back.damaged, back.error) == (True, "a: payload arrived damaged")


def test_damage_is_told_though_the_sender_died_of_something_else() -> None:
    halves = {
        "a": failed(Blame.PROCESS, "measuring process was killed"),
        "b": failed(Blame.PAYLOAD, "payload arrived damaged"),
    }
    there, back = measured(FakeFleet(("a", "b"), halves=halves))
    assert (there.damaged, there.error) == (True, "b: payload arrived damaged")
    assert (back.damaged, back.error) == (False, "a: measuring process was killed")


@pytest.mark.parametrize("blame", [one for one in Blame if one is not Blame.PAYLOAD])
def test_no_other_failure_is_damage(blame: Blame) -> None:
    for side in "ab":
        results = measured(FakeFleet(("a", "b"), halves={side: failed(blame, "cause")}))
        assert [one.damaged for one in results] == [False, False]


@pytest.mark.parametrize(
    ("half", "error"),
    [
        ({"tx_bytes": 970_000}, "did not cross eth0 of a: its counters show 97 % of the payload"),
        ({"tx_bytes": 0}, "did not cross eth0 of a: its counters show 0 % of the payload"),
        ({"tx_bytes": None}, "a: the counters of eth0 cannot be read"),
    ],
)
def test_payload_that_the_source_did_not_send_through_its_nic_is_an_error(
    half: dict[str, int | None], error: str
) -> None:
    altered = msgspec.structs.replace(GOOD, **half)
    there, back = measured(FakeFleet(("a", "b"), halves={"a": altered}))
    assert there.error == error
    assert there.measured_gbit_per_s is None
    assert back.error is None


def test_payload_that_did_not_arrive_through_the_nic_is_an_error() -> None:
    altered = msgspec.structs.replace(GOOD, rx_bytes=900_000)
    there, back = measured(FakeFleet(("a", "b"), halves={"a": altered}))
    assert there.error is None
    assert back.error == "did not cross eth0 of a: its counters show 90 % of the payload"


def test_too_few_windows_are_too_little_data() -> None:
    short = msgspec.structs.replace(GOOD, received=msgspec.structs.replace(RECEIVED, windows=2))
    there, _ = measured(FakeFleet(("a", "b"), halves={"b": short}))
    assert there.error == "too little data: 2 whole windows, 3 are needed"


def test_a_failed_process_is_told_to_listen_again_and_its_new_port_is_used() -> None:
    fleet = FakeFleet(("a", "b"))
    engine, facts = started(fleet)
    fleet.halves["a"] = failed(Blame.PROCESS, "measuring process was killed")
    fleet.stores["a"] = StoreOpened(port=5555)
    before = len(fleet.prepared)
    pair = order(facts, "a", "b")
    list(engine.measure([pair]))
    assert [asked.open.port for asked in fleet.prepared[before:]] == [4711]
    list(engine.measure([pair]))
    assert {asked.request.store_port for _, asked in fleet.measured[-2:]} == {5555}


def test_hosts_that_cannot_measure_are_unreachable_with_the_reason() -> None:
    no_torch = "torch is not installed there: pip install 'ncdiag[torch]'"
    fleet = FakeFleet(
        ("a", "b", "c", "d"),
        collected={
            "b": Collected(facts=HostFacts(hostname="b"), ready=Ready(error=no_torch)),
            "c": HostLost("lost: its worker ended"),
        },
        unreachable={"d": "Connection refused"},
    )
    engine, facts = started(fleet)
    assert list(facts) == ["a"]
    assert engine.unreachable == {
        "b": no_torch,
        "c": "lost: its worker ended",
        "d": "Connection refused",
    }


def test_a_nic_whose_process_cannot_listen_is_missing_and_others_are_kept() -> None:
    fleet = FakeFleet(("a",), stores={"a": StoreOpened(error="Cannot assign requested address")})
    engine, facts = started(fleet, nics=("eth0", "eth1"))
    assert facts == {}
    assert "eth0: Cannot assign requested address" in engine.unreachable["a"]
    assert "eth1: " in engine.unreachable["a"]


def test_settings_of_a_job_in_the_environment_do_not_reach_a_measurement(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(os, "environ", {"NCCL_ALGO": "Tree", "GLOO_X": "1", "PATH": "/bin"})
    set_environment(["NCCL_IB_HCA==mlx5_0:1"])
    assert os.environ == {
        "PATH": "/bin",
        "OMP_NUM_THREADS": "1",
        "TORCH_CPP_LOG_LEVEL": "ERROR",
        "NCCL_IB_HCA": "=mlx5_0:1",
    }


def test_closing_ends_the_fleet() -> None:
    fleet = FakeFleet(("a",))
    engine, _ = started(fleet)
    engine.close()
    engine.close()
    assert fleet.closed


def test_an_unknown_engine_is_refused_with_those_there_are() -> None:
    with pytest.raises(UsageError, match=r"unknown engine 'mpj' \(there are: "):
        open_engine("mpj", [], None)
    assert ENGINES["torch"].unavailable() is None or "ncdiag[torch]" in str(
        ENGINES["torch"].unavailable()
    )


def test_gpus_decide_the_backend_of_the_whole_fleet() -> None:
    gpu, none = answer_of("g", gpus=8), answer_of("n")
    assert choose_backend({"a": gpu, "b": gpu}, None) == (Backend.NCCL, {})
    assert choose_backend({"a": gpu, "b": gpu, "c": none}, None) == (Backend.NCCL, {"c": NO_GPU})
    assert choose_backend({"a": gpu, "b": none, "c": none}, None) == (Backend.GLOO, {})
    assert choose_backend({"a": gpu, "b": gpu}, Backend.GLOO) == (Backend.GLOO, {})
    assert choose_backend({}, None) == (Backend.GLOO, {})


HCA = Nic(
    name="mlx5_0",
    kind=NicKind.INFINIBAND,
    interface="ib0",
    address="10.1.0.1",
    hca="mlx5_0",
    hca_port=1,
)
HOST = Host(name="a", address="a")


def test_with_nccl_each_rail_has_a_process_pinned_to_its_nic_and_gpu() -> None:
    facts = HostFacts(hostname="a", nics=(HCA, replace(ETH0, name="eth1", interface="eth1")))
    collected = Collected(
        facts=facts,
        ready=Ready(gpus=8),
        own_address="10.0.0.1",
        routed_nic=ETH0,
        nearest_gpu={"mlx5_0": 5},
    )
    placed, places = place(HOST, collected, Backend.NCCL)
    assert placed == facts
    assert len({where.process for where in places.values()}) == 2
    infiniband, ethernet = (set(places[name].settings) for name in ("mlx5_0", "eth1"))
    assert {
        "NCCL_IB_HCA==mlx5_0:1",
        "NCCL_SOCKET_IFNAME==eth0",
        "NCCL_MNNVL_ENABLE=0",
        "CUDA_VISIBLE_DEVICES=5",
    } <= infiniband
    assert {"NCCL_SOCKET_IFNAME==eth1", "NCCL_IB_DISABLE=1", "NCCL_MNNVL_ENABLE=0"} <= ethernet
    assert not any(setting.startswith("NCCL_IB_HCA") for setting in ethernet)
    assert nccl_settings(HCA, None, None)[1] == "CUDA_VISIBLE_DEVICES=0"


def test_without_gpus_an_rdma_port_is_driven_and_counted_as_its_interface() -> None:
    collected = replace_nics(HCA)
    placed, places = place(HOST, collected, Backend.GLOO)
    (nic,) = placed.nics
    assert (nic.name, nic.interface, nic.hca, nic.kind) == (
        "mlx5_0",
        "ib0",
        None,
        NicKind.ETHERNET,
    )
    assert places["mlx5_0"].address == "10.1.0.1"


def test_without_gpus_and_addresses_the_routed_interface_is_measured() -> None:
    bare = replace(HCA, address=None, interface=None)
    placed, places = place(HOST, replace_nics(bare), Backend.GLOO)
    assert [nic.name for nic in placed.nics] == ["eth0"]
    assert list(placed.missing_nics) == ["mlx5_0"]
    assert list(places) == ["eth0"]
    # What an operator named is never replaced by something else.
    asked = replace(HOST, nics=("mlx5_0",))
    assert place(asked, replace_nics(bare), Backend.GLOO)[1] == {}


def replace_nics(*nics: Nic) -> Collected:
    facts = HostFacts(hostname="a", nics=nics)
    return Collected(facts=facts, ready=Ready(), own_address="10.0.0.1", routed_nic=ETH0)


def test_the_nearest_gpu_shares_most_bridges(tmp_path: Path) -> None:
    ways = {
        "0000:1b:00.0": "pci0000:15/0000:15:01.0/0000:1b:00.0",
        "0000:9a:00.0": "pci0000:97/0000:97:01.0/0000:98:00.0/0000:9a:00.0",
        "0000:9b:00.0": "pci0000:97/0000:97:02.0/0000:9b:00.0",
        "0000:9c:00.0": "pci0000:97/0000:97:01.0/0000:98:00.0/0000:9c:00.0",
    }
    links = tmp_path / "sys/bus/pci/devices"
    links.mkdir(parents=True)
    for address, way in ways.items():
        device = tmp_path / "sys/devices" / way
        device.mkdir(parents=True)
        (links / address).symlink_to(device)
    gpus = tuple(
        Gpu(index=index, name="H100", pci_address=address)
        for index, address in enumerate(("0000:1b:00.0", "0000:9b:00.0", "0000:9a:00.0"))
    )
    nic = replace(HCA, pci_address="0000:9c:00.0")
    assert nearest_gpu(nic, gpus, tmp_path) == 2
    assert nearest_gpu(replace(nic, pci_address=None), gpus, tmp_path) == 0
    assert nearest_gpu(nic, (), tmp_path) == 0
