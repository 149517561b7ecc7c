"""The driver's side of the mpi engine, over jobs that answer from a script."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

import pytest

from ncdiag.cluster.launchers import Launch, LauncherOptions
from ncdiag.cluster.mpi import MpiProgram
from ncdiag.health.self_report import SelfReport
from ncdiag.measure.engines import ENGINES
from ncdiag.measure.engines.base import Endpoint, EngineOptions, PairOrder
from ncdiag.measure.engines.halves import Blame, Failure, Half, Received, Sent
from ncdiag.measure.engines.mpi import engine as engine_module
from ncdiag.measure.engines.mpi import starting
from ncdiag.measure.engines.mpi.engine import MpiEngine
from ncdiag.measure.engines.mpi.job import Heard, JobEnded
from ncdiag.measure.engines.mpi.messages import Done, Here, Orders, Passed, Ready, Told
from ncdiag.measure.engines.probe import Probed
from ncdiag.model.errors import UndecidedError
from ncdiag.model.host import Host, HostFacts, Nic, NicKind
from ncdiag.model.measurement import Measurement, Purpose

GOOD = Half(
    sent=Sent(payload_bytes=1_000_000, idle=0.7),
    received=Received(
        payload_bytes=1_000_000,
        bytes=800_000,
        seconds=0.4,
        windows=4,
        median_gbit_per_s=0.478,
        worst_gbit_per_s=0.470,
        idle=0.6,
    ),
    tx_bytes=1_050_000,
    rx_bytes=1_050_000,
)
KILLED = JobEnded(9, ("=   PID 4711 RUNNING AT b", "=   EXIT CODE: 9"))


@dataclass
class World:
    """What the hosts and the MPI on them do; ``halves`` by rail and host, ``None`` for silence."""

    hosts: tuple[str, ...] = ("a", "b", "c", "d")
    rails: int = 1
    errors: dict[str, str] = field(default_factory=dict)
    halves: dict[tuple[int, str], Half | JobEnded | None] = field(default_factory=dict)
    deaf: bool = False
    lost: tuple[str, ...] = ()
    launched: list[tuple[str, ...]] = field(default_factory=list)
    programs: list[MpiProgram] = field(default_factory=list)
    told: list[tuple[int, Orders]] = field(default_factory=list)
    closed: list[tuple[int, bool]] = field(default_factory=list)

    def report(self, name: str) -> SelfReport:
        nics = tuple(
            Nic(name=f"eth{rail}", kind=NicKind.ETHERNET, interface=f"eth{rail}")
            for rail in range(self.rails)
        )
        return SelfReport(host=name, facts=HostFacts(hostname=name, nics=nics))


class FakeJob:
    """A job whose ranks answer at once."""

    world: World

    def __init__(self, launch: Launch, rail: int, heard: Heard) -> None:
        self.hosts, self.rail, self.heard = launch.hosts, rail, heard
        self.world.launched.append(launch.hosts)
        for rank, name in enumerate(launch.hosts):
            error = self.world.errors.get(name)
            self.say(Here(rank=rank, hostname=name, error=error))
        if set(self.world.lost) & set(launch.hosts):
            self.say(JobEnded(255, ("it did not start",)))
        elif not self.world.errors.keys() & set(launch.hosts):
            for rank in range(len(launch.hosts)):
                self.say(Ready(rank=rank, ranks=len(launch.hosts), library="MPICH 5.0.2"))

    def say(self, said: object) -> None:
        self.heard.put((self.rail, said))

    def tell(self, told: Told) -> None:
        assert isinstance(told, Orders)
        self.world.told.append((self.rail, told))
        if self.world.deaf:
            return
        self.say(Passed(number=told.number))
        for rank in told.parts:
            half = self.world.halves.get((self.rail, self.hosts[rank]), GOOD)
            if isinstance(half, JobEnded):
                self.say(half)
            elif half is not None:
                self.say(Done(rank=rank, number=told.number, half=half))

    def finish(self) -> None:
        pass

    def close(self, *, kill: bool = False) -> None:
        self.world.closed.append((self.rail, kill))


class FakeStarter:
    name, rank_variable = "fake", "FAKE_RANK"

    def __init__(self, world: World) -> None:
        self.world = world

    def unavailable(self) -> None:
        return None

    def launch(self, hosts: list[Host], program: MpiProgram) -> Launch:
        self.world.programs.append(program)
        return Launch(argv=("mpiexec",), hosts=tuple(host.name for host in hosts))


class FakeLauncher:
    options = LauncherOptions(python="/opt/python")


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch):  # noqa: ANN201 - a function of this module
    """Make and start an engine in a world."""

    def start(world: World, **options: object) -> tuple[MpiEngine, Mapping[str, HostFacts]]:
        def probe(hosts: list[Host], *_: object, **__: object) -> Probed:
            names = [host.name for host in hosts]
            up = set(world.hosts) - (set(world.lost) if world.launched else set())
            found = {name: world.report(name) for name in names if name in up}
            return Probed(found, {name: "no route" for name in names if name not in found})

        monkeypatch.setattr(engine_module, "probe", probe)
        monkeypatch.setattr(starting, "Job", type("Job", (FakeJob,), {"world": world}))
        monkeypatch.setattr(engine_module, "_SLACK_S", -0.9)
        monkeypatch.setattr(engine_module, "_ANSWER_S", 0.0)
        hosts = [Host(name=name, address=name) for name in ("a", "b", "c", "d")]
        made = MpiEngine(hosts, FakeLauncher(), FakeStarter(world), EngineOptions(**options))
        return made, made.start(lambda _host, _text: None)

    return start


def order(facts: Mapping[str, HostFacts], first: str, second: str, rail: int = 0) -> PairOrder:
    ends = [Endpoint(host, facts[host].nics[rail]) for host in (first, second)]
    return PairOrder(first=ends[0], second=ends[1], rail=rail, round=2, purpose=Purpose.ROUND)


def errors(results: list[Measurement]) -> dict[tuple[str, str], str | None]:
    return {(one.source, one.target): one.error for one in results}


def test_one_job_measures_all_pairs_and_tells_each_rank_its_part(run) -> None:  # noqa: ANN001
    world = World()
    made, facts = run(world, variables={"UCX_TCP_CM_REUSEADDR": "y"})

    results = list(made.measure([order(facts, "a", "b"), order(facts, "d", "c")]))

    assert world.launched == [("a", "b", "c", "d")]
    assert world.programs[0].argv[-2:] == ("FAKE_RANK", "4*eth0")
    assert world.programs[0].variables == {"UCX_TCP_CM_REUSEADDR": "y"}
    [(_, told)] = world.told
    assert {rank: (part.peer, part.first) for rank, part in told.parts.items()} == {
        0: (1, True),
        1: (0, False),
        3: (2, True),
        2: (3, False),
    }
    assert errors(results) == dict.fromkeys([("a", "b"), ("b", "a"), ("d", "c"), ("c", "d")])
    assert {one.measured_gbit_per_s for one in results} == {0.478}
    assert {one.engine for one in results} == {"mpi"}
    assert facts["a"].versions["mpi"] == "MPICH 5.0.2, host memory"


def test_no_number_is_used_twice_so_that_stale_messages_match_nothing(run) -> None:  # noqa: ANN001
    world = World()
    made, facts = run(world)
    for _ in range(3):
        list(made.measure([order(facts, "a", "b")]))
    numbers = [told.number for _, told in world.told]
    assert len(set(numbers)) == 3
    assert [part.number for _, told in world.told for part in told.parts.values()] == [
        number for number in numbers for _ in range(2)
    ]


def test_hosts_that_do_not_answer_are_left_out_before_the_launch(run) -> None:  # noqa: ANN001
    world = World(hosts=("a", "c", "d"))
    made, facts = run(world)
    assert world.launched == [("a", "c", "d")]
    assert made.unreachable == {"b": "no route"}
    assert list(facts) == ["a", "c", "d"]


def test_a_host_that_cannot_take_part_costs_a_start_and_itself(run) -> None:  # noqa: ANN001
    world = World(errors={"c": "mpi4py is not installed there"})
    made, facts = run(world)
    assert world.launched == [("a", "b", "c", "d"), ("a", "b", "d")]
    assert world.closed == [(0, True)]
    assert made.unreachable == {"c": "mpi4py is not installed there"}
    assert list(facts) == ["a", "b", "d"]


def test_a_host_that_is_lost_while_mpi_starts_costs_itself(run) -> None:  # noqa: ANN001
    world = World(lost=("c",))
    made, facts = run(world)
    assert world.launched == [("a", "b", "c", "d"), ("a", "b", "d")]
    assert made.unreachable == {"c": "no route"}
    assert list(facts) == ["a", "b", "d"]


def test_of_one_host_no_job_is_started(run) -> None:  # noqa: ANN001
    world = World(hosts=("a",))
    made, facts = run(world)
    assert (world.launched, list(facts)) == ([], ["a"])
    made.close()


def test_each_rail_has_a_job_of_its_own(run) -> None:  # noqa: ANN001
    world = World(rails=2)
    made, facts = run(world)

    results = list(made.measure([order(facts, "a", "b"), order(facts, "a", "b", rail=1)]))

    assert [program.argv[-1] for program in world.programs] == ["4*eth0", "4*eth1"]
    assert [rail for rail, _ in world.told] == [0, 1]
    assert sorted((one.source, one.rail) for one in results) == [
        ("a", 0),
        ("a", 1),
        ("b", 0),
        ("b", 1),
    ]


def test_one_rank_that_fails_costs_its_pair_alone(run) -> None:  # noqa: ANN001
    failed = Half(failure=Failure(Blame.STALLED, "nothing moved for 3 s"))
    made, facts = run(World(halves={(0, "b"): failed}))

    results = list(made.measure([order(facts, "a", "b"), order(facts, "c", "d")]))

    assert errors(results) == {
        ("a", "b"): "b: nothing moved for 3 s",
        ("b", "a"): "b: nothing moved for 3 s",
        ("c", "d"): None,
        ("d", "c"): None,
    }
    assert made.unreachable == {}


def test_payload_that_the_nic_did_not_carry_is_no_result(run) -> None:  # noqa: ANN001
    through_memory = replace_tx(GOOD, 0)
    made, facts = run(World(halves={(0, "a"): through_memory}))
    results = errors(list(made.measure([order(facts, "a", "b")])))
    assert "did not cross eth0 of a" in str(results["a", "b"])
    assert results["b", "a"] is None


def replace_tx(half: Half, tx_bytes: int) -> Half:
    return Half(half.sent, half.received, tx_bytes, half.rx_bytes)


def test_a_rank_that_dies_ends_the_job_and_names_its_host(run) -> None:  # noqa: ANN001
    world = World(halves={(0, "b"): KILLED})
    made, facts = run(world)

    results = errors(list(made.measure([order(facts, "c", "d"), order(facts, "a", "b")])))

    assert results["c", "d"] is None, "what was measured before stands"
    assert results["a", "b"] == "the MPI job ended: the process of b died"
    assert "its process died" in made.unreachable["b"]
    assert "the process of b died" in made.unreachable["a"]
    assert all("--resume" in why for why in made.unreachable.values())
    assert list(made.unreachable) == ["b", "a", "c", "d"]
    again = errors(list(made.measure([order(facts, "c", "d")])))
    assert set(again.values()) == {"the MPI job is not running"}


def test_a_rank_that_crashed_is_not_said_to_have_died_by_itself(run) -> None:  # noqa: ANN001
    crashed = JobEnded(9, ("=   PID 4711 RUNNING AT b", "=   EXIT CODE: 11"))
    made, facts = run(World(halves={(0, "b"): crashed}))

    results = errors(list(made.measure([order(facts, "a", "b")])))

    assert "process of b crashed, perhaps as another's had died" in str(results["a", "b"])
    assert "crashed, perhaps as another's had died" in made.unreachable["b"]


def test_a_rank_that_hangs_loses_its_host_and_the_rest_goes_on(run) -> None:  # noqa: ANN001
    stalled = Half(failure=Failure(Blame.STALLED, "nothing moved for 3 s"))
    world = World(halves={(0, "b"): None, (0, "a"): stalled})
    made, facts = run(world)

    results = errors(list(made.measure([order(facts, "a", "b"), order(facts, "c", "d")])))

    assert "b: its process did not answer" in str(results["a", "b"])
    assert results["c", "d"] is None
    assert made.unreachable == {}, "it may be late for once"
    list(made.measure([order(facts, "c", "b")]))
    assert list(made.unreachable) == ["b"]
    world.halves.clear()
    assert set(errors(list(made.measure([order(facts, "a", "c")]))).values()) == {None}


def test_a_rank_that_is_late_now_and_then_is_not_lost(run) -> None:  # noqa: ANN001
    world = World()
    made, facts = run(world)
    for answer in (None, GOOD, None, GOOD):
        world.halves[0, "b"] = answer
        list(made.measure([order(facts, "a", "b")]))
    assert made.unreachable == {}
    world.halves[0, "b"] = None
    list(made.measure([order(facts, "a", "b")]))
    assert made.unreachable == {}


def test_a_first_rank_that_hangs_is_named_and_nobody_else(run) -> None:  # noqa: ANN001
    world = World(deaf=True)
    made, facts = run(world)
    silent = "its process did not answer within 0.1 s"

    results = errors(list(made.measure([order(facts, "c", "d")])))
    assert set(results.values()) == {f"a: {silent}"}
    assert (made.unreachable, world.closed) == ({}, [])

    list(made.measure([order(facts, "c", "d")]))
    assert made.unreachable["a"] == f"{silent}, twice in a row"
    assert "the process of a did not answer" in made.unreachable["c"]
    assert world.closed == [(0, True)]


def test_a_rank_on_another_host_stops_everything(run) -> None:  # noqa: ANN001
    world = World()
    world.report = lambda name: replace_hostname(World().report(name), name)  # type: ignore[method-assign]
    with pytest.raises(UndecidedError, match="measured under wrong names"):
        run(world)


def replace_hostname(report: SelfReport, name: str) -> SelfReport:
    facts = replace(report.facts, hostname=f"not-{name}")
    return SelfReport(host=report.host, facts=facts)


def test_it_is_an_engine_by_name_and_keeps_profiles_from_its_variables() -> None:
    assert {"UCX_TLS", "UCX_NET_DEVICES"} <= ENGINES["mpi"].own_variables()
