"""Runs a burn-in: stage after stage over one fleet, each within its share of the budget."""

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from ncdiag.cluster.launchers import Launcher
from ncdiag.measure.burn_in.plan import SHARES, BurnInPlan, allot, measuring_s
from ncdiag.measure.burn_in.result import BurnInResult, StageOutcome
from ncdiag.measure.burn_in.stages.collective import collective
from ncdiag.measure.burn_in.stages.health import Health
from ncdiag.measure.burn_in.stages.load import load
from ncdiag.measure.burn_in.stages.local import local
from ncdiag.measure.burn_in.stages.pairs import Pairs
from ncdiag.measure.burn_in.stages.reach import reach
from ncdiag.measure.burn_in.testbed import Deadline, Testbed
from ncdiag.measure.burn_in.worst import keep_worst
from ncdiag.measure.sweep import Watcher
from ncdiag.model.burn_in import Outcome, Stage, StageFinding, StageRun, StageState
from ncdiag.model.errors import NcdiagError, UsageError
from ncdiag.model.text import visible
from ncdiag.model.units import format_duration

StageFunction = Callable[[Testbed, Deadline, int], StageOutcome]

_NOBODY: Final = "no host is left to measure"
_INTERRUPTED: Final = "it was interrupted"


@dataclass(slots=True)
class BurnIn:
    """One run, whose journals of pairs go to ``directory``.

    ``is_stopped`` says that an interrupt was asked for, should ``KeyboardInterrupt`` itself have
    been lost. ``health``, ``stages`` and ``testbed`` are what tests put others in the place of.
    """

    plan: BurnInPlan
    launcher: Launcher
    directory: Path
    watcher: Watcher
    is_stopped: Callable[[], bool] = lambda: False
    driver_address: str | None = None
    clock: Callable[[], float] = time.monotonic
    health: Health = field(default_factory=Health)
    stages: Mapping[Stage, StageFunction] | None = None
    testbed: Callable[..., Testbed] = Testbed
    _runs: list[StageRun] = field(default_factory=list)
    _notes: dict[str, None] = field(default_factory=dict)
    _passes: int = 0
    _lost: set[str] = field(default_factory=set)
    _names: dict[tuple[str, ...], tuple[str, ...]] = field(default_factory=dict)
    """Lists of hosts, each once: over a day, most passes have the same ones."""

    def run(self) -> BurnInResult:
        """Go through all stages, and again until the duration is over; always a result.

        Errors of use pass through (:class:`UsageError`) before anything is measured; later a stage
        that ends in an error has failed. An interrupt ends in what is known so far.
        """
        began_s = self.clock()
        pairs = Pairs(self.directory)
        bed = self.testbed(
            self.plan, self.launcher, self.watcher, self.is_stopped, self.driver_address
        )
        interrupted = False
        try:
            self._all_passes(bed, self.stages or self._stages(pairs), began_s)
        except KeyboardInterrupt:
            interrupted = True
        finally:
            unreachable = dict(bed.unreachable)
            bed.close()
        return BurnInResult(
            started=self.plan.started,
            seconds=self.clock() - began_s,
            stages=tuple(self._runs),
            sweep=pairs.report,
            health=self.health.report,
            passes=self._passes,
            interrupted=interrupted,
            notes=tuple(self._notes),
            unreachable=unreachable,
            versions={**self.plan.versions, **bed.bench.versions},
        )

    def _stages(self, pairs: Pairs) -> Mapping[Stage, StageFunction]:
        return {
            Stage.REACH: reach,
            Stage.HEALTH: self.health,
            Stage.LOCAL: local,
            Stage.PAIRS: pairs,
            Stage.COLLECTIVE: collective,
            Stage.LOAD: load,
        }

    def _all_passes(
        self, bed: Testbed, stages: Mapping[Stage, StageFunction], began_s: float
    ) -> None:
        duration_s = self.plan.duration_s or 0.0
        while True:
            self._passes += 1
            now_s = self.clock()
            budget_s = self.plan.budget_s
            if self._passes > 1:  # the last pass ends with the duration
                budget_s = min(budget_s, duration_s - (now_s - began_s))
            self._one_pass(bed, stages, Deadline(now_s + measuring_s(budget_s), self.clock))
            self._runs = keep_worst(self._runs)
            took_s = self.clock() - now_s
            left_s = duration_s - (self.clock() - began_s)
            # A pass without the time it needs would only leave hosts undecided.
            if left_s < max(took_s, _least_pass_s(self.plan)) or not bed.fit:
                return

    def _one_pass(self, bed: Testbed, stages: Mapping[Stage, StageFunction], end: Deadline) -> None:
        order = list(stages)
        bed.end = end
        for number, stage in enumerate(order):
            self._run_stage(bed, stage, stages[stage], order[number + 1 :], end)
        if Stage.HEALTH in stages and end.left_s >= SHARES[self.plan.level][Stage.HEALTH].least_s:
            self._run_stage(bed, Stage.HEALTH, stages[Stage.HEALTH], [], end)

    def _run_stage(
        self,
        bed: Testbed,
        stage: Stage,
        function: StageFunction,
        to_come: Sequence[Stage],
        end: Deadline,
    ) -> None:
        budget_s = allot(self.plan.level, stage, to_come, end.left_s)
        if budget_s is None:
            self._runs.append(self._cut(stage, end.left_s))
            return
        if not (bed.fleet.up if stage is Stage.HEALTH else bed.fit) and stage is not Stage.REACH:
            nobody = StageOutcome(hosts=0, state=StageState.SKIPPED, reason=_NOBODY)
            self._note(stage, nobody, 0.0, budget_s)
            return
        bed.count_ranks()
        began_s = self.clock()
        try:
            outcome = self._try(bed, stage, function, Deadline(began_s + budget_s, self.clock))
        except KeyboardInterrupt:
            outcome = StageOutcome(hosts=0, state=StageState.CUT, reason=_INTERRUPTED)
            self._note(stage, outcome, self.clock() - began_s, budget_s)
            raise
        bed.doubtful |= outcome.doubtful
        self._take_lost(bed, stage, outcome)
        self._note(stage, outcome, self.clock() - began_s, budget_s)

    def _try(
        self, bed: Testbed, stage: Stage, function: StageFunction, deadline: Deadline
    ) -> StageOutcome:
        """What the stage found; where it ends in an error, nobody has a result of it."""
        hosts = len(bed.fit)
        try:
            return function(bed, deadline, self._passes)
        except (NcdiagError, OSError) as error:
            first = stage is Stage.REACH and self._passes == 1
            if first and isinstance(error, UsageError):
                raise
            return StageOutcome(
                hosts=hosts or len(bed.plan.hosts),
                state=StageState.FAILED,
                reason=visible(str(error)),
            )

    def _cut(self, stage: Stage, left_s: float) -> StageRun:
        needed_s = SHARES[self.plan.level][stage].least_s
        return StageRun(
            stage=stage,
            state=StageState.CUT,
            hosts=0,
            seconds=0.0,
            budget_s=0.0,
            reason=f"it needs {format_duration(needed_s)} at least, and "
            f"{format_duration(left_s)} of the budget were left",
            pass_number=self._passes,
        )

    def _take_lost(self, bed: Testbed, stage: Stage, outcome: StageOutcome) -> None:
        """Nothing is known any more of a host that was lost meanwhile."""
        told = {one.host for one in outcome.findings if one.outcome is not Outcome.GOOD}
        lost = {name: why for name, why in bed.unreachable.items() if name in bed.facts}
        for name, why in lost.items():
            if name in self._lost:
                continue
            self._lost.add(name)
            if name not in told:
                outcome.findings.append(_lost(name, why, stage, self._passes))
        outcome.passed = tuple(name for name in outcome.passed if name not in lost)

    def _note(self, stage: Stage, outcome: StageOutcome, seconds: float, budget_s: float) -> None:
        self._notes |= dict.fromkeys(outcome.notes)
        self._runs.append(
            StageRun(
                stage=stage,
                state=outcome.state,
                hosts=outcome.hosts,
                seconds=seconds,
                budget_s=budget_s,
                reason=outcome.reason,
                findings=tuple(outcome.findings),
                figures=tuple(outcome.figures),
                pass_number=self._passes,
                passed=self._names.setdefault(outcome.passed, outcome.passed),
            )
        )


def _lost(name: str, why: str, stage: Stage, pass_number: int) -> StageFinding:
    return StageFinding(
        host=name,
        stage=Stage.LOCAL if stage is Stage.REACH else stage,
        outcome=Outcome.UNDECIDED,
        reason=why,
        confidence=0.0,
        next="look at the host's power, network and kernel log",
        pass_number=pass_number,
    )


def _least_pass_s(plan: BurnInPlan) -> float:
    return sum(share.least_s for share in SHARES[plan.level].values())
