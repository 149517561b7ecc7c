"""The sweep's course over a fabric that exists only in numbers."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import combinations
from pathlib import Path

import pytest

from ncdiag.measure.engines.base import PairOrder, Timing
from ncdiag.measure.journal import Journal, Plan, drop_torn_line, read_journal
from ncdiag.measure.record import SweepRecord
from ncdiag.measure.sweep import Progress, Sweep
from ncdiag.model.errors import UsageError
from ncdiag.model.host import Host, HostFacts, Nic, NicKind
from ncdiag.model.measurement import Measurement, Purpose
from ncdiag.model.verdict import CulpritKind, HostStatus, SweepReport, Verdict

RATE = 0.478
Fabric = Callable[[PairOrder, str, str, int], float | str]


def healthy(_order: PairOrder, _source: str, _target: str, _together: int) -> float | str:
    return RATE


@dataclass
class FakeEngine:
    """Measures what ``fabric`` says: a rate in Gbit/s, or the text of an error."""

    hosts: Sequence[str]
    fabric: Fabric = healthy
    nics: int = 1
    name: str = "fake"
    rails_together: bool = False
    down: dict[str, str] = field(default_factory=dict)
    lost_in_round: dict[str, int] = field(default_factory=dict)
    interrupt_in_round: int | None = None
    orders: list[PairOrder] = field(default_factory=list)
    closed: int = 0
    now_s: float = 0.0

    def start(self, _on_change: Callable[[str, str], None]) -> Mapping[str, HostFacts]:
        self.now_s += 5
        nics = tuple(Nic(name=f"eth{i}", kind=NicKind.ETHERNET) for i in range(self.nics))
        return {
            host: HostFacts(hostname=host, nics=nics)
            for host in self.hosts
            if host not in self.down
        }

    @property
    def unreachable(self) -> Mapping[str, str]:
        return self.down

    def measure(self, orders: Sequence[PairOrder]) -> Iterator[Measurement]:
        self.now_s += 1
        self.orders += orders
        for order in orders:
            for source, target in (
                (order.first.host, order.second.host),
                (order.second.host, order.first.host),
            ):
                yield self._result(order, source, target, len(orders))
            if order.round == self.interrupt_in_round:
                raise KeyboardInterrupt

    def _result(self, order: PairOrder, source: str, target: str, together: int) -> Measurement:
        for host, number in self.lost_in_round.items():
            if order.round >= number and host in (source, target):
                self.down[host] = "lost"
        lost = {source, target} & self.down.keys()
        figure = f"{lost} lost" if lost else self.fabric(order, source, target, together)
        common = {"source": source, "target": target, "rail": order.rail, "round": order.round}
        if isinstance(figure, str):
            return Measurement(**common, purpose=order.purpose, engine=self.name, error=figure)
        return Measurement(
            **common,
            purpose=order.purpose,
            engine=self.name,
            bytes=1000,
            seconds=0.4,
            measured_gbit_per_s=figure,
            min_gbit_per_s=figure,
            idle=0.9,
        )

    def close(self) -> None:
        self.closed += 1


class Silent:
    """Watches, and keeps what it was told."""

    def __init__(self) -> None:
        self.told: list[Progress] = []

    def host(self, name: str, text: str) -> None:
        raise AssertionError(f"nobody was to hear about {name}: {text}")

    def progress(self, progress: Progress) -> None:
        self.told.append(progress)


def new_record(
    count: int, *, mode: str = "full", leaf: Callable[[int], str | None], rails: str = "turn"
) -> SweepRecord:
    hosts = tuple(
        Host(name=f"h{i}", address=f"h{i}", rate_gbit_per_s=0.5, leaf=leaf(i))
        for i in range(1, count + 1)
    )
    plan = Plan(
        started="2026-01-02T03:04:05Z",
        hosts=hosts,
        mode=mode,
        engine="fake",
        launcher="local",
        seed=1,
        faulty_below=0.8,
        timing=Timing(),
        rails=rails,
    )
    return SweepRecord.of([plan])


def run(
    directory: Path, record: SweepRecord, engine: FakeEngine, budget_s: float | None = None
) -> SweepReport:
    fresh = not record.facts
    with Journal(directory) as journal:
        if fresh:
            journal.append([record.plan])
        watcher = Silent()
        Sweep(record, engine, journal, watcher, budget_s, clock=lambda: engine.now_s).run()
    return record.report()


def names(count: int) -> list[str]:
    return [f"h{i}" for i in range(1, count + 1)]


def two_leaves(number: int) -> str:
    return "leaf1" if number <= 4 else "leaf2"


def test_a_full_sweep_measures_every_pair_once_in_disjoint_rounds(tmp_path: Path) -> None:
    engine = FakeEngine(names(8))

    report = run(tmp_path, new_record(8, leaf=two_leaves), engine)

    met = [frozenset((order.first.host, order.second.host)) for order in engine.orders]
    assert sorted(map(sorted, met)) == [list(pair) for pair in combinations(names(8), 2)]
    assert (report.plan.rounds, report.plan.pairs) == (7, 28)
    assert report.diagnosis.verdict is Verdict.HEALTHY
    assert report.diagnosis.good == tuple(names(8))
    assert engine.closed == 1


def test_a_slow_sender_is_measured_again_in_quiet_and_named(tmp_path: Path) -> None:
    def fabric(_order: PairOrder, source: str, _target: str, _together: int) -> float:
        return RATE / 5 if source == "h3" else RATE

    engine = FakeEngine(names(8), fabric)

    report = run(tmp_path, new_record(8, leaf=two_leaves), engine)

    quiet = [order for order in engine.orders if order.purpose is Purpose.QUIET]
    assert {order.first.host for order in quiet} | {order.second.host for order in quiet} == set(
        names(8)
    )
    assert len(quiet) == 7
    assert [(one.kind, one.name) for one in report.diagnosis.culprits] == [(CulpritKind.HOST, "h3")]
    assert report.diagnosis.isolate == ("h3",)


def test_what_is_slow_only_together_is_contention(tmp_path: Path) -> None:
    def fabric(order: PairOrder, _source: str, _target: str, together: int) -> float:
        leaves = {two_leaves(int(end.host[1:])) for end in (order.first, order.second)}
        return RATE / 3 if together > 1 and len(leaves) > 1 else RATE

    report = run(tmp_path, new_record(8, leaf=two_leaves), FakeEngine(names(8), fabric))

    assert report.diagnosis.verdict is Verdict.HEALTHY
    assert report.diagnosis.contention
    assert not report.diagnosis.isolate


def test_each_rail_meets_only_itself(tmp_path: Path) -> None:
    engine = FakeEngine(names(4), nics=2)

    report = run(tmp_path, new_record(4, leaf=two_leaves), engine)

    assert report.plan.rounds == 6
    assert {
        (order.rail, order.first.nic.name, order.second.nic.name) for order in engine.orders
    } == {
        (0, "eth0", "eth0"),
        (1, "eth1", "eth1"),
    }


@pytest.mark.parametrize("mode", ["full", "quick"])
def test_rails_are_measured_together_where_the_engine_can(tmp_path: Path, mode: str) -> None:
    engine = FakeEngine(names(4), nics=2, rails_together=True)

    report = run(tmp_path, new_record(4, leaf=two_leaves, rails="together", mode=mode), engine)

    assert report.plan.rounds == (3 if mode == "full" else 1)
    assert report.plan.pairs == (12 if mode == "full" else 4)
    in_round = [order for order in engine.orders if order.round == 0]
    assert sorted(order.rail for order in in_round) == [0, 0, 1, 1]
    assert report.diagnosis.verdict is Verdict.HEALTHY


def test_rails_together_are_refused_where_a_host_has_one_process_for_all(tmp_path: Path) -> None:
    engine = FakeEngine(names(4), nics=2)

    with pytest.raises(UsageError, match="leave out --rails together"):
        run(tmp_path, new_record(4, leaf=two_leaves, rails="together"), engine)

    assert engine.closed == 1
    assert not engine.orders


def test_one_rail_is_the_same_together_as_in_turn(tmp_path: Path) -> None:
    report = run(tmp_path, new_record(4, leaf=two_leaves, rails="together"), FakeEngine(names(4)))
    assert report.diagnosis.verdict is Verdict.HEALTHY


@pytest.mark.parametrize("slow", [{"h3"}, {"h3", "h7"}])
def test_slow_hosts_are_named_where_both_directions_have_one_figure(
    tmp_path: Path, slow: set[str]
) -> None:
    def fabric(_order: PairOrder, source: str, target: str, _together: int) -> float:
        return RATE / 5 if slow & {source, target} else RATE

    report = run(tmp_path, new_record(8, leaf=two_leaves), FakeEngine(names(8), fabric))

    assert {(one.kind, one.name) for one in report.diagnosis.culprits} == {
        (CulpritKind.HOST, host) for host in slow
    }
    assert set(report.diagnosis.isolate) == slow


def test_a_host_that_is_down_costs_only_its_own_pairs(tmp_path: Path) -> None:
    engine = FakeEngine(names(8), down={"h8": "refused"})

    report = run(tmp_path, new_record(8, leaf=two_leaves), engine)

    hosts = {host.name: host for host in report.diagnosis.hosts}
    assert hosts["h8"].status is HostStatus.UNREACHABLE
    assert hosts["h8"].reason == "refused"
    assert len(engine.orders) == 21
    assert report.diagnosis.good == tuple(names(7))
    assert report.diagnosis.verdict is Verdict.INCONCLUSIVE


@pytest.mark.parametrize("figure", [-1.0, 4e9, float("nan"), float("inf")])
def test_a_figure_that_cannot_be_is_none_and_the_journal_can_be_read_again(
    tmp_path: Path, figure: float
) -> None:
    def impossible(_order: PairOrder, source: str, target: str, _together: int) -> float:
        return figure if "h2" in (source, target) else RATE

    report = run(tmp_path, new_record(4, leaf=two_leaves), FakeEngine(names(4), impossible))

    for link in report.diagnosis.links:
        told = "no figure that can be: measured_gbit_per_s" in (link.error or "")
        assert told is ("h2" in (link.source, link.target))
    assert report.diagnosis.culprits == ()
    assert report.diagnosis.isolate == ()
    assert report.diagnosis.verdict is Verdict.INCONCLUSIVE
    assert len(SweepRecord.of(read_journal(tmp_path)).measurements) >= 12


def test_a_host_lost_on_the_way_is_neither_good_nor_isolated(tmp_path: Path) -> None:
    engine = FakeEngine(names(8), lost_in_round={"h2": 3})

    report = run(tmp_path, new_record(8, leaf=two_leaves), engine)

    assert "h2" not in report.diagnosis.good
    assert not report.diagnosis.isolate
    assert set(report.diagnosis.good) == set(names(8)) - {"h2"}


def test_quick_gives_a_suspect_two_proven_partners(tmp_path: Path) -> None:
    def fabric(_order: PairOrder, source: str, _target: str, _together: int) -> float:
        return RATE / 5 if source == "h3" else RATE

    engine = FakeEngine(names(8), fabric)

    report = run(tmp_path, new_record(8, mode="quick", leaf=two_leaves), engine)

    partners = {
        host
        for order in engine.orders
        for host in (order.first.host, order.second.host)
        if "h3" in (order.first.host, order.second.host)
    } - {"h3"}
    assert len(partners) == 3
    assert [(one.kind, one.name) for one in report.diagnosis.culprits] == [(CulpritKind.HOST, "h3")]
    assert report.diagnosis.isolate == ("h3",)


def test_quick_lets_the_odd_host_meet_a_partner(tmp_path: Path) -> None:
    engine = FakeEngine(names(7))

    report = run(tmp_path, new_record(7, mode="quick", leaf=two_leaves), engine)

    assert report.diagnosis.verdict is Verdict.HEALTHY
    assert report.diagnosis.good == tuple(names(7))


def test_a_budget_ends_the_sweep_in_time_and_says_what_is_missing(tmp_path: Path) -> None:
    engine = FakeEngine(names(8))

    report = run(tmp_path, new_record(8, leaf=two_leaves), engine, budget_s=10)

    assert engine.now_s <= 10
    assert report.diagnosis.untested_pairs == 28 - len(engine.orders) > 0
    assert report.diagnosis.verdict is Verdict.HEALTHY


def test_an_interrupted_sweep_resumes_without_measuring_anything_twice(tmp_path: Path) -> None:
    first = FakeEngine(names(8), interrupt_in_round=3)
    with pytest.raises(KeyboardInterrupt):
        run(tmp_path, new_record(8, leaf=two_leaves), first)
    assert first.closed == 1
    half = SweepRecord.of(read_journal(tmp_path))
    assert half.interrupted
    assert half.report().interrupted

    drop_torn_line(tmp_path)
    run(tmp_path, half, FakeEngine(names(8)))

    record = SweepRecord.of(read_journal(tmp_path))
    links = [one.link for one in record.measurements]
    assert len(links) == len(set(links)) == 56
    assert not record.interrupted
    assert record.report().diagnosis.verdict is Verdict.HEALTHY


def test_a_pair_that_was_journaled_by_half_is_completed_once(tmp_path: Path) -> None:
    with pytest.raises(KeyboardInterrupt):
        run(tmp_path, new_record(4, leaf=two_leaves), FakeEngine(names(4), interrupt_in_round=1))
    path = tmp_path / "journal.jsonl"
    lines = path.read_bytes().splitlines(keepends=True)
    directions = [line for line in lines if b'"direction"' in line]
    path.write_bytes(b"".join(line for line in lines if line != directions[-1]))

    run(tmp_path, SweepRecord.of(read_journal(tmp_path)), FakeEngine(names(4)))

    links = [one.link for one in SweepRecord.of(read_journal(tmp_path)).measurements]
    assert len(links) == len(set(links)) == 12


def test_progress_counts_suspects_and_the_time_left(tmp_path: Path) -> None:
    def fabric(_order: PairOrder, source: str, _target: str, _together: int) -> float:
        return RATE / 5 if source == "h3" else RATE

    engine, record, watcher = FakeEngine(names(8), fabric), new_record(8, leaf=two_leaves), Silent()
    with Journal(tmp_path) as journal:
        Sweep(record, engine, journal, watcher, clock=lambda: engine.now_s).run()

    rounds = [one for one in watcher.told if one.stage == "rounds"]
    assert [one.done for one in rounds] == list(range(7))
    assert [one.suspects for one in rounds] == list(range(7))
    assert watcher.told[-1].stage != "rounds"
    assert watcher.told[-1].pairs == 28


def test_an_interrupt_that_python_dropped_still_ends_the_sweep(tmp_path: Path) -> None:
    engine, record = FakeEngine(names(8)), new_record(8, leaf=two_leaves)
    with Journal(tmp_path) as journal, pytest.raises(KeyboardInterrupt):
        Sweep(record, engine, journal, Silent(), is_stopped=lambda: len(engine.orders) > 8).run()

    assert 8 < len(engine.orders) < 28
    assert record.interrupted
    assert engine.closed == 1


def test_time_is_kept_for_pairs_without_a_figure_where_nobody_says_how_fast_they_are(
    tmp_path: Path,
) -> None:
    record = new_record(4, leaf=two_leaves)
    hosts = tuple(replace(host, rate_gbit_per_s=None) for host in record.plan.hosts)
    record = SweepRecord.of([replace(record.plan, hosts=hosts)])
    engine = FakeEngine(names(4), fabric=lambda *_: "h1: payload arrived damaged")
    watcher = Silent()
    with Journal(tmp_path) as journal:
        journal.append([record.plan])
        Sweep(record, engine, journal, watcher, clock=lambda: engine.now_s).run()
    assert [one.suspects for one in watcher.told if one.stage == "rounds"] == [0, 2, 4]
