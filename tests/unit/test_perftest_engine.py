"""The perftest engine over a fleet that answers from a script, and its programs' command lines."""

import socket
import threading
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import Future
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import msgspec
import pytest

from ncdiag.cluster.fleet import Call, HostLost
from ncdiag.cluster.launchers import Launch
from ncdiag.cluster.processes import Ended
from ncdiag.health.self_report import SelfReport
from ncdiag.measure.engines.base import Endpoint, EngineOptions, EngineSettings, PairOrder, Timing
from ncdiag.measure.engines.perftest import task
from ncdiag.measure.engines.perftest.commands import side_argv
from ncdiag.measure.engines.perftest.engine import PerftestEngine
from ncdiag.measure.engines.perftest.listening import child_listens, free_port
from ncdiag.measure.engines.perftest.messages import (
    Build,
    ConnectTask,
    Figures,
    FinishTask,
    Prepared,
    Served,
    ServeTask,
    Side,
)
from ncdiag.measure.engines.perftest.outcome import judge
from ncdiag.measure.engines.perftest.programs import UnusableError, find_build, missing_here
from ncdiag.model.host import Gpu, Host, HostFacts, Nic, NicKind
from ncdiag.model.measurement import Measurement, Purpose

PORT = Nic(
    name="mlx5_0",
    kind=NicKind.ETHERNET,
    interface="eth0",
    address="10.0.0.1",
    hca="mlx5_0",
    hca_port=1,
)
ETH0 = Nic(name="eth0", kind=NicKind.ETHERNET, interface="eth0", address="10.0.0.1")
BUILD = Build(path="/usr/bin/ib_write_bw", version="6.06")
FIGURES = Figures(gbit_per_s=390.0, payload_bytes=1_000_000)
SENT = Side(tx_bytes=1_050_000, rx_bytes=900, idle=0.9)
ARRIVED = Side(tx_bytes=900, rx_bytes=1_050_000, idle=0.7)


def prepared(host: str, *nics: Nic, ports: tuple[Nic, ...] = (PORT,), **more: Any) -> Prepared:
    facts = HostFacts(hostname=host, nics=nics or (PORT,), gpus=more.pop("gpus", ()))
    report = SelfReport(host=host, facts=facts, own_address="10.0.0.1")
    return Prepared(report=report, rdma_ports=ports, build=more.pop("build", BUILD), **more)


@dataclass
class FakeFleet:
    """Hosts that say what they are told to; by default all goes well, and a sends to b."""

    hosts: tuple[str, ...] = ("a", "b")
    answers: dict[tuple[str, Any], Any] = field(default_factory=dict)
    asked: list[tuple[str, Any]] = field(default_factory=list)
    unreachable: dict[str, str] = field(default_factory=dict)
    closed: bool = False

    @property
    def up(self) -> tuple[str, ...]:
        return self.hosts

    def start(self, on_change: Callable[[str, str], None]) -> None:
        for host in self.hosts:
            on_change(host, "up")

    def call(
        self, host: str, function: Callable[[bytes], bytes], payload: bytes, *, timeout_s: float
    ) -> Call:
        kinds = {task.serve: ServeTask, task.connect: ConnectTask, task.finish: FinishTask}
        if function in kinds:
            self.asked.append((host, msgspec.json.decode(payload, type=kinds[function])))
        usual = {
            task.prepare: prepared(host),
            task.serve: Served(port=7000),
            task.connect: msgspec.structs.replace(SENT, figures=FIGURES),
            task.finish: ARRIVED,
        }
        answer = self.answers.get((host, function), usual[function])
        future: Future[bytes] = Future()
        if isinstance(answer, Exception):
            future.set_exception(answer)
        else:
            future.set_result(msgspec.json.encode(answer))
        return Call(host, timeout_s, future)

    def as_completed(self, calls: list[Call]) -> Iterator[Call]:
        yield from reversed(calls)

    def close(self) -> None:
        self.closed = True


def started(fleet: FakeFleet, **options: Any) -> tuple[PerftestEngine, Mapping[str, HostFacts]]:
    hosts = [Host(name=name, address=name) for name in fleet.hosts]
    engine = PerftestEngine(hosts, fleet, EngineOptions(**options))  # type: ignore[arg-type]
    return engine, engine.start(lambda _host, _text: None)


def measured(fleet: FakeFleet, **options: Any) -> list[Measurement]:
    """One pair, a with b."""
    engine, facts = started(fleet, **options)
    ends = [Endpoint(host, facts[host].nics[0]) for host in ("a", "b")]
    order = PairOrder(first=ends[0], second=ends[1], rail=0, round=3, purpose=Purpose.ROUND)
    try:
        return list(engine.measure([order]))
    finally:
        engine.close()


def test_each_direction_has_its_own_two_programs() -> None:
    fleet = FakeFleet()
    there, back = measured(fleet)
    assert (there.source, there.target, back.source, back.target) == ("a", "b", "b", "a")
    assert (there.measured_gbit_per_s, there.bytes, there.idle) == (390.0, 1_000_000, 0.7)
    assert (there.error, there.min_gbit_per_s, there.engine) == (None, None, "perftest")
    kinds = [(host, type(asked)) for host, asked in fleet.asked]
    one = [("b", ServeTask), ("a", ConnectTask), ("b", FinishTask)]
    assert kinds == one + [("a" if host == "b" else "b", kind) for host, kind in one]
    assert fleet.closed


def test_where_payload_is_read_the_source_is_the_side_that_waits() -> None:
    fleet = FakeFleet()
    fleet.answers = {
        (host, function): side
        for host in fleet.hosts
        for function, side in (
            (task.connect, msgspec.structs.replace(ARRIVED, figures=FIGURES)),
            (task.finish, SENT),
        )
    }
    there, _ = measured(fleet, settings=EngineSettings(perftest="ib_read_bw"))
    assert (there.source, there.measured_gbit_per_s, there.error) == ("a", 390.0, None)
    assert [host for host, asked in fleet.asked if isinstance(asked, ServeTask)] == ["a", "b"]


def test_payload_that_the_ports_counters_do_not_show_is_no_figure() -> None:
    fleet = FakeFleet(answers={("b", task.finish): msgspec.structs.replace(ARRIVED, rx_bytes=9)})
    there, back = measured(fleet)
    assert there.measured_gbit_per_s is None
    assert "did not cross mlx5_0 of b" in (there.error or "")
    assert back.error is None
    unread = msgspec.structs.replace(ARRIVED, rx_bytes=None)
    there, _ = measured(FakeFleet(answers={("b", task.finish): unread}))
    assert there.error == "b: the counters of mlx5_0 cannot be read"


def test_of_two_failures_the_cause_is_told() -> None:
    waiting = Side(problem="ib_write_bw ended with 1: state is Down")
    left = Side(problem="ib_write_bw ended with 1: Couldn't connect to 10.0.0.1:7000")
    killed = Side(problem="ib_write_bw was killed after 2 s", by_itself=False)
    fleet = FakeFleet(answers={("a", task.connect): left, ("b", task.finish): waiting})
    assert measured(fleet)[0].error == "b: ib_write_bw ended with 1: state is Down"
    failed = Side(problem="ib_write_bw ended with 1: Completion with error")
    fleet = FakeFleet(answers={("a", task.connect): failed, ("b", task.finish): killed})
    assert measured(fleet)[0].error == "a: ib_write_bw ended with 1: Completion with error"


def test_a_lost_host_costs_its_own_pairs() -> None:
    lost = HostLost("lost: its worker ended")
    there, back = measured(FakeFleet(answers={("b", task.serve): lost, ("b", task.connect): lost}))
    assert there.error == "b was lost: its worker ended"
    assert back.error == "b was lost: its worker ended"


def test_a_side_that_never_listens_is_not_connected_to() -> None:
    fleet = FakeFleet(answers={("b", task.serve): Served(problem="IB device not found")})
    assert measured(fleet)[0].error == "b: IB device not found"
    assert [host for host, asked in fleet.asked if isinstance(asked, ConnectTask)] == ["b"]


def test_hosts_without_rdma_or_program_are_unreachable_with_one_reason() -> None:
    fleet = FakeFleet(("a", "b", "c", "d"))
    fleet.answers = {
        ("a", task.prepare): prepared("a", ETH0, ports=()),
        ("b", task.prepare): prepared("b", build=None, problem="ib_write_bw is not in PATH"),
        ("c", task.prepare): HostLost("lost: gone"),
    }
    engine, facts = started(fleet)
    assert list(facts) == ["d"]
    assert engine.unreachable == {
        "a": "no RDMA port: eth0: it is no RDMA port, and perftest measures RDMA alone",
        "b": "ib_write_bw is not in PATH",
        "c": "lost: gone",
    }
    assert facts["d"].versions["perftest"] == "6.06"
    engine.close()


def test_an_interface_stands_for_the_port_that_carries_it() -> None:
    fleet = FakeFleet(answers={("a", task.prepare): prepared("a", ETH0)})
    engine, facts = started(fleet)
    assert facts["a"].nics == (replace(PORT, name="eth0"),)
    engine.close()


def test_a_port_at_which_nobody_can_be_met_is_missing_and_the_others_are_measured() -> None:
    nowhere = replace(PORT, name="mlx5_1", hca="mlx5_1", interface="ib1", address=None)
    report = SelfReport(host="a", facts=HostFacts(hostname="a", nics=(PORT, nowhere)))
    answer = Prepared(report=report, rdma_ports=(PORT, nowhere), build=BUILD)
    engine, facts = started(FakeFleet(answers={("a", task.prepare): answer}))
    assert facts["a"].nics == (PORT,)
    assert list(facts["a"].missing_nics) == ["mlx5_1"]
    assert "no IP address" in facts["a"].missing_nics["mlx5_1"]
    engine.close()


GPU = (Gpu(index=0, name="H200"),)


@pytest.mark.parametrize(
    ("one", "other", "options"),
    [
        ({"peer_memory": True}, {"peer_memory": True}, ["--use_cuda=0"]),
        ({"open_driver": True}, {"open_driver": True}, ["--use_cuda=0", "--use_cuda_dmabuf"]),
        ({"peer_memory": True}, {}, []),
        ({"peer_memory": True, "gpus": ()}, {"peer_memory": True}, []),
    ],
    ids=["peer memory", "open driver", "not on all hosts", "no GPU"],
)
def test_gpu_memory_is_used_where_all_hosts_can(
    one: dict[str, Any], other: dict[str, Any], options: list[str]
) -> None:
    build = msgspec.structs.replace(BUILD, cuda=True, cuda_dmabuf=True)
    hosts = {"a": {"gpus": GPU} | one, "b": {"gpus": GPU} | other}
    fleet = FakeFleet()
    for host, more in hosts.items():
        fleet.answers[host, task.prepare] = prepared(host, build=build, **more)
    measured(fleet)
    _, asked = fleet.asked[0]
    assert [word for word in asked.argv if "cuda" in word] == options
    assert ("CUDA_VISIBLE_DEVICES" in asked.variables) is bool(options)


@pytest.mark.parametrize(
    ("timing", "length"),
    [
        (Timing(), "-D 1 -f 0"),
        (Timing(measure_s=4.5, warmup_s=0.9), "-D 5 -f 0"),
        (Timing(measure_s=3, warmup_s=1.5), "-D 7 -f 2"),
        (Timing(max_bytes=64 << 20), "-n 1024 -N"),
        (Timing(max_bytes=1), "-n 5 -N"),
    ],
    ids=["default", "rounded up", "margins", "bytes", "few bytes"],
)
def test_times_are_whole_seconds(timing: Timing, length: str) -> None:
    argv = side_argv(BUILD, PORT, timing, {}, gpu_memory=False)
    assert " ".join(argv) == (
        f"/usr/bin/ib_write_bw -d mlx5_0 -i 1 -s 65536 {length} -F --report_gbits"
    )


def test_a_profile_chooses_the_way_through_the_fabric() -> None:
    variables = {"NCCL_IB_GID_INDEX": "3", "NCCL_IB_TC": "106", "NCCL_IB_SL": "x; rm"}
    argv = side_argv(BUILD, PORT, Timing(), variables, gpu_memory=False)
    assert argv[-3:] == ("-x", "3", "--tclass=106")


def ended(stdout: str = "", said: tuple[str, ...] = (), code: int = 0, **more: Any) -> Ended:
    launch = Launch(argv=("/usr/bin/ib_write_bw",), hosts=())
    return Ended(launch=launch, code=code, stdout=stdout.encode(), said=said, **more)


TABLE = """ #bytes     #iterations    BW peak[Gb/sec]    BW average[Gb/sec]   MsgRate[Mpps]
 65536      7000           0.00               390.10             0.744
"""


def test_the_end_of_a_program_is_a_figure_or_one_line() -> None:
    found = judge(ended(TABLE), reports=True)
    assert found.figures == Figures(gbit_per_s=390.10, payload_bytes=65536 * 7000)
    failed = judge(ended(TABLE, (" Failed status 12: syndrom 0x81",), 1), reports=True)
    assert failed.figures is None
    assert failed.problem == "ib_write_bw ended with 1: Failed status 12: syndrom 0x81"
    assert judge(ended(code=-11), reports=True).problem == "ib_write_bw ended by signal 11"
    assert judge(ended(), reports=True).problem == "ib_write_bw gave no figure: it printed nothing"
    assert judge(ended(), reports=False) == Side()
    killed = judge(ended(code=-9, timed_out=True, seconds=11.4), reports=True)
    assert (killed.problem, killed.by_itself) == ("ib_write_bw was killed after 11 s", False)
    zero = TABLE.replace("390.10", "0.00")
    assert judge(ended(zero), reports=True).figures is None


def test_a_program_is_looked_for_and_asked_what_it_can_do(tmp_path: Path) -> None:
    with pytest.raises(UnusableError, match=r"ib_write_bw is not in PATH \(.*\): install"):
        find_build("ib_write_bw", {"PATH": str(tmp_path)})
    program = tmp_path / "ib_write_bw"
    help_text = "Options:\n --use_cuda=<id>\n"
    program.write_text(f"#!/bin/sh\necho 'Version: 6.20'; printf '{help_text}'; exit 1\n")
    program.chmod(0o755)
    build = find_build("ib_write_bw", {"PATH": str(tmp_path)})
    assert build == Build(path=str(program), version="6.20", cuda=True)
    program.write_text("#!/bin/sh\necho 'error while loading libibverbs.so.1' >&2; exit 127\n")
    with pytest.raises(UnusableError, match=r"does not run: error while loading libibverbs"):
        find_build("ib_write_bw", {"PATH": str(tmp_path)})


def test_what_this_host_lacks_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    assert "apt-get install perftest" in (missing_here("ib_write_bw", tmp_path) or "")
    program = tmp_path / "ib_write_bw"
    program.touch(mode=0o755)
    assert "no RDMA device" in (missing_here("ib_write_bw", tmp_path) or "")
    (tmp_path / "sys/class/infiniband/mlx5_0").mkdir(parents=True)
    assert missing_here("ib_write_bw", tmp_path) is None


def test_only_a_child_that_listens_counts() -> None:
    port = free_port()
    with socket.create_server(("127.0.0.1", port)):
        assert not child_listens(port)
    assert not child_listens(port)


SERVER = """#!/usr/bin/env python3
import socket, sys
server = socket.create_server(("", int(sys.argv[-1])))
server.accept()
"""


def serve_task(path: Path, **more: Any) -> ServeTask:
    return ServeTask(
        run_id="t",
        nic=replace(PORT, hca=None, hca_port=None, interface="lo"),
        argv=(str(path),),
        variables={},
        start_s=20.0,
        lifetime_s=60.0,
        **more,
    )


def test_a_server_is_known_to_listen_and_is_ended(tmp_path: Path) -> None:
    program = tmp_path / "ib_write_bw"
    program.write_text(SERVER)
    program.chmod(0o755)
    before = threading.active_count()
    question = msgspec.json.encode(serve_task(program))
    served = msgspec.json.decode(task.serve(question), type=Served)
    assert served.problem is None
    assert child_listens(served.port)
    socket.create_connection(("127.0.0.1", served.port)).close()
    end = msgspec.json.encode(FinishTask(run_id="t", grace_s=20.0))
    side = msgspec.json.decode(task.finish(end), type=Side)
    assert (side.problem, side.by_itself) == (None, True)
    assert side.rx_bytes is not None
    assert threading.active_count() == before
    served = msgspec.json.decode(task.serve(question), type=Served)
    end = msgspec.json.encode(FinishTask(run_id="t", grace_s=0.0))
    side = msgspec.json.decode(task.finish(end), type=Side)
    assert (side.by_itself, child_listens(served.port)) == (False, False)


def test_a_port_lost_to_another_program_is_replaced(tmp_path: Path) -> None:
    program = tmp_path / "ib_write_bw"
    mark = tmp_path / "tried"
    refuse = f'[ -e {mark} ] || {{ touch {mark}; echo "Couldn\'t listen to port $2" >&2; exit 1; }}'
    python = tmp_path / "server.py"
    python.write_text(SERVER)
    program.write_text(f'#!/bin/sh\n{refuse}\nexec python3 {python} "$@"\n')
    program.chmod(0o755)
    served = msgspec.json.decode(task.serve(msgspec.json.encode(serve_task(program))), type=Served)
    assert (served.problem, mark.exists()) == (None, True)
    task.finish(msgspec.json.encode(FinishTask(run_id="t", grace_s=0.0)))
    program.write_text("#!/bin/sh\necho ' IB device mlx5_9 not found' >&2; exit 1\n")
    served = msgspec.json.decode(task.serve(msgspec.json.encode(serve_task(program))), type=Served)
    assert served.problem == "ib_write_bw ended with 1: IB device mlx5_9 not found"
