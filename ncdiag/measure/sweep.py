"""Runs a sweep: reach the hosts, measure the rounds, measure suspects again in quiet."""

import time
from collections.abc import Callable, Iterable, Sequence
from contextlib import closing
from dataclasses import dataclass, field, replace
from statistics import median
from typing import Protocol

from ncdiag.diagnose.suspects import suspects
from ncdiag.measure.engines.base import Endpoint, Engine, PairOrder
from ncdiag.measure.journal import HostState, Journal, Line, RunEnd
from ncdiag.measure.plan import TOGETHER, plan_size, planned_rounds
from ncdiag.measure.plausible import check_plausible
from ncdiag.measure.record import SweepRecord
from ncdiag.measure.schedule import Round
from ncdiag.model.errors import UsageError
from ncdiag.model.measurement import LinkKey, Measurement, PairKey, Purpose

# What a round costs above the measuring itself, as a first guess: 0.05 to 0.3 s were measured
# for eight hosts on two cores. The sweep's own rounds take its place as soon as there are some.
ROUND_OVERHEAD_S = 0.3
# The part of a budget kept back to measure suspects again: without that nobody can be accused.
QUIET_SHARE = 0.4


@dataclass(frozen=True, slots=True)
class Progress:
    """How far a sweep has come: steps of a stage, pairs and suspects so far, seconds left."""

    stage: str
    done: int
    total: int
    pairs: int
    suspects: int
    left_s: float


class Watcher(Protocol):
    """Whoever shows an operator what goes on."""

    def host(self, name: str, text: str) -> None:
        """Something became known about reaching a host."""

    def progress(self, progress: Progress) -> None:
        """Another step of the sweep is done."""


@dataclass(slots=True)
class Sweep:
    """One run over a record that is empty, or that was read from the journal of an earlier run.

    ``budget_s`` bounds the run, start-up included. ``clock`` counts seconds. ``is_stopped`` says
    that an interrupt was asked for, should ``KeyboardInterrupt`` itself have been lost.
    """

    record: SweepRecord
    engine: Engine
    journal: Journal
    watcher: Watcher
    budget_s: float | None = None
    clock: Callable[[], float] = time.monotonic
    is_stopped: Callable[[], bool] = lambda: False
    over_budget: bool = False
    _began: float = 0.0
    _round: int = 0
    _round_s: float = 0.0
    _measured: set[LinkKey] = field(default_factory=set)
    _suspects: set[PairKey] = field(default_factory=set)

    def run(self) -> None:
        """Measure what is planned and not measured yet; everything learnt is in the record.

        ``KeyboardInterrupt`` and errors pass through; the journal is complete up to then.
        """
        self._began = self.clock()
        self._round_s = self._pair_s
        for result in self.record.measurements:
            self._count(result)
        finished = False
        try:
            with closing(self.engine):
                self._reach_hosts()
                plan, rails = self.record.plan, self.record.rails
                total, _ = plan_size(plan, rails)
                self._measure_rounds("rounds", planned_rounds(plan, rails), total)
                opinions = self.record.second_opinions()
                self._measure_rounds("second opinions", opinions, len(opinions))
                self._measure_suspects()
            finished = True
        finally:
            self._note([RunEnd(seconds=self._spent_s(), interrupted=not finished)])
            self.journal.sync()

    def _reach_hosts(self) -> None:
        facts = self.engine.start(self.watcher.host)
        self._note([HostState(name=name, facts=fact) for name, fact in facts.items()])
        self._note_lost_hosts()
        self.journal.sync()
        self._check_rails()

    def _check_rails(self) -> None:
        """Refuse to measure rails together where a host has one measuring process for all."""
        able = getattr(self.engine, "rails_together", False)
        if self.record.plan.rails == TOGETHER and max(self.record.rails) > 0 and not able:
            raise UsageError(
                f"the engine {self.engine.name} measures one rail of a host at a time here: "
                "leave out --rails together"
            )

    def _note_lost_hosts(self) -> None:
        known = self.record.unreachable
        lost = {name: why for name, why in self.engine.unreachable.items() if name not in known}
        self._note([HostState(name=name, unreachable=why) for name, why in lost.items()])

    def _measure_rounds(self, stage: str, rounds: Iterable[Round], total: int) -> None:
        """Measure what is still to be measured of ``rounds``, until the budget ends."""
        for done, planned in enumerate(rounds):
            pairs = [pair for pair in planned.pairs if self._is_open(pair)]
            if not pairs:
                continue
            self._tell(stage, done, total, (total - done) * self._round_s + self._quiet_s())
            if not self._has_time(self._quiet_s()):
                return
            began = self.clock()
            self._measure(pairs, planned.number, Purpose.ROUND)
            self._round_s = self.clock() - began

    def _is_open(self, pair: PairKey) -> bool:
        """Whether both hosts can be measured on this rail, and one direction was not yet."""
        nics, lost = self.record.nics, self.record.unreachable
        reachable = all(
            host not in lost and pair.rail in nics.get(host, {})
            for host in (pair.first, pair.second)
        )
        return reachable and not self._measured.issuperset(pair.directions)

    def _measure_suspects(self) -> None:
        """Measure each suspect pair again, alone, so that contention accuses nobody."""
        while pairs := suspects(self.record.evidence(), self.record.thresholds):
            before = len(self.record.measurements)
            for done, pair in enumerate(pairs):
                left_s = (len(pairs) - done) * self._pair_s
                self._tell("suspects again, one by one", done, len(pairs), left_s)
                if not self._has_time(0):
                    return
                if not {pair.first, pair.second} & self.record.unreachable.keys():
                    self._measure([pair], self._round + 1, Purpose.QUIET)
            if len(self.record.measurements) == before:
                return

    def _measure(self, pairs: Sequence[PairKey], number: int, purpose: Purpose) -> None:
        """Measure ``pairs`` at the same time; the results are on disk when this returns."""
        if self.is_stopped():
            raise KeyboardInterrupt
        self._round = max(self._round, number)
        results: list[Measurement] = []
        orders = [self._order(pair, number, purpose) for pair in pairs]
        for result in map(_believed, self.engine.measure(orders)):
            if purpose is Purpose.ROUND and result.link in self._measured:
                continue  # the other direction of a pair that an earlier run left half measured
            self._note([result])
            self._count(result)
            results.append(result)
        self._note_suspects(results)
        self._note_lost_hosts()
        self.journal.sync()

    def _order(self, pair: PairKey, number: int, purpose: Purpose) -> PairOrder:
        first, second = (
            Endpoint(host, self.record.nics[host][pair.rail]) for host in (pair.first, pair.second)
        )
        return PairOrder(first=first, second=second, rail=pair.rail, round=number, purpose=purpose)

    def _note(self, lines: Sequence[Line]) -> None:
        if lines:
            self.journal.append(lines)
        for line in lines:
            self.record.apply(line)

    def _count(self, result: Measurement) -> None:
        self._round = max(self._round, result.round)
        if result.purpose is Purpose.ROUND:
            self._measured.add(result.link)

    def _note_suspects(self, results: Sequence[Measurement]) -> None:
        """Count who looks bad, for the operator and the budget; the verdict is not made here."""
        figures = [one.measured_gbit_per_s for one in results if one.measured_gbit_per_s]
        usual = median(figures) if figures else 0.0
        for one in results:
            expected = self.record.expectation(one.link)
            yardstick = expected.gbit_per_s if expected else usual
            first, second = sorted((one.source, one.target))
            pair = PairKey(first, second, one.rail)
            figure = one.measured_gbit_per_s
            if figure is None or figure < self.record.plan.faulty_below * yardstick:
                self._suspects.add(pair)

    @property
    def _pair_s(self) -> float:
        return self.record.plan.timing.pair_s + ROUND_OVERHEAD_S

    def _quiet_s(self) -> float:
        """Seconds to keep for measuring the suspects so far again."""
        needed = len(self._suspects) * self._pair_s
        return needed if self.budget_s is None else min(needed, QUIET_SHARE * self.budget_s)

    def _spent_s(self) -> float:
        return self.clock() - self._began

    def _has_time(self, reserve_s: float) -> bool:
        if self.budget_s is None:
            return True
        if self._spent_s() + max(self._round_s, self._pair_s) + reserve_s > self.budget_s:
            self.over_budget = True
        return not self.over_budget

    def _tell(self, stage: str, done: int, total: int, left_s: float) -> None:
        pairs, suspected = len(self._measured) // 2, len(self._suspects)
        self.watcher.progress(Progress(stage, done, total, pairs, suspected, left_s))


def _believed(result: Measurement) -> Measurement:
    """The result, or an error in place of a figure that cannot be.

    Programs of others are read; and a journal that holds such a figure could not be read again.
    """
    try:
        check_plausible(result)
    except UsageError as error:
        return replace(
            result,
            bytes=0,
            seconds=0.0,
            measured_gbit_per_s=None,
            min_gbit_per_s=None,
            idle=None,
            error=f"no figure that can be: {error}",
        )
    return result
