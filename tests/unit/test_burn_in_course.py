"""The course of a burn-in: budgets, passes, interrupts, and hosts that are lost on the way."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from burn_in_bed import NAMES, Clock, FakeBed, Silent, plan

from ncdiag.diagnose.burn_in import conclude
from ncdiag.measure.burn_in.burn_in import BurnIn, StageFunction
from ncdiag.measure.burn_in.result import BurnInResult, StageOutcome
from ncdiag.measure.burn_in.testbed import Deadline
from ncdiag.measure.burn_in.worst import keep_worst
from ncdiag.model.burn_in import Figure, Outcome, Stage, StageRun, StageState
from ncdiag.model.errors import UndecidedError, UsageError
from ncdiag.model.host import Host

SIX = list(Stage)


def stage(took_s: float = 1.0, share: float = 0.0) -> StageFunction:
    """A stage that passes everybody, and takes so long or a share of what it may."""

    def run(bed: Any, deadline: Deadline, _pass_number: int) -> StageOutcome:
        bed.clock.now_s += max(took_s, share * deadline.left_s)
        return StageOutcome(hosts=len(bed.fit), passed=tuple(bed.fit))

    return run


def run(
    bed: FakeBed, stages: Mapping[Stage, StageFunction] | None = None, **more: Any
) -> BurnInResult:
    stages = dict.fromkeys(SIX, stage()) | dict(stages or {})
    bed.plan = plan(**more)
    burn_in = BurnIn(
        bed.plan,
        launcher=None,  # type: ignore[arg-type] - nothing is launched
        directory=Path(),
        watcher=Silent(),
        clock=bed.clock,
        stages=stages,
        testbed=lambda *_: bed,  # type: ignore[arg-type,return-value] - stands for one
    )
    found = burn_in.run()
    assert bed.closed == 1
    return found


def test_all_stages_run_in_their_order_and_health_again_at_the_end() -> None:
    found = run(FakeBed())
    assert [one.stage for one in found.stages] == [*SIX, Stage.HEALTH]
    assert {one.state for one in found.stages} == {StageState.DONE}
    assert all(one.passed == tuple(NAMES) for one in found.stages)
    assert (found.passes, found.interrupted, found.seconds) == (1, False, 7.0)
    assert found.versions == {"torch": "2"}


def test_stages_that_use_all_they_may_stay_within_the_budget() -> None:
    found = run(FakeBed(), dict.fromkeys(SIX, stage(share=1.0)), budget_s=180.0)
    assert found.seconds <= 180.0
    assert [one.stage for one in found.stages if one.state is StageState.DONE] == SIX
    for one in found.stages:
        assert one.budget_s is not None
        assert one.seconds <= one.budget_s + 1e-6


def test_what_does_not_fit_is_cut_with_the_reason() -> None:
    found = run(FakeBed(), {Stage.PAIRS: stage(took_s=161.0)}, budget_s=180.0)
    cut = [one for one in found.stages if one.state is StageState.CUT]
    assert [one.stage for one in cut] == [Stage.LOAD]
    assert "it needs 8.0 s at least" in str(cut[0].reason)
    assert cut[0].hosts == 0


def test_a_budget_too_short_to_begin_measures_nobody() -> None:
    found = run(FakeBed(), budget_s=2.0)
    assert {one.state for one in found.stages} == {StageState.CUT}


def test_passes_repeat_until_the_duration_is_over() -> None:
    found = run(FakeBed(), dict.fromkeys(SIX, stage(share=0.5)), budget_s=60.0, duration_s=300.0)
    assert found.passes > 3
    assert found.seconds <= 300.0
    assert {one.state for one in found.stages} == {StageState.DONE}, "no pass is cut short"
    assert {one.pass_number for one in found.stages} == set(range(1, found.passes + 1))
    assert len({id(one.passed) for one in found.stages}) == 1, "a list that many share is kept once"


def test_an_interrupt_ends_in_what_is_known_so_far() -> None:
    def interrupted(*_: object) -> StageOutcome:
        raise KeyboardInterrupt

    found = run(FakeBed(), {Stage.PAIRS: interrupted})
    assert found.interrupted
    assert [one.stage for one in found.stages] == SIX[: SIX.index(Stage.PAIRS) + 1]
    assert found.stages[-1].state is StageState.CUT
    assert found.stages[-1].reason == "it was interrupted"


def test_an_error_of_use_passes_through_and_the_fleet_is_closed() -> None:
    def refused(*_: object) -> StageOutcome:
        raise UsageError("no such launcher")

    bed = FakeBed()
    with pytest.raises(UsageError, match="no such launcher"):
        run(bed, {Stage.REACH: refused})
    assert bed.closed == 1


@pytest.mark.parametrize(
    "error",
    [
        UndecidedError("cannot write journal.jsonl: No space left on device"),
        UsageError("journal.jsonl is damaged"),
        OSError(28, "No space left on device"),
    ],
)
@pytest.mark.parametrize("stage_that_fails", SIX)
def test_an_error_of_a_stage_is_its_failure_and_nothing_else_is_lost(
    error: Exception, stage_that_fails: Stage
) -> None:
    def failing(bed: Any, _deadline: Deadline, pass_number: int) -> StageOutcome:
        if pass_number == 2:
            raise error
        return stage()(bed, _deadline, pass_number)

    found = run(FakeBed(), {stage_that_fails: failing}, budget_s=60.0, duration_s=180.0)
    failed = [one for one in found.stages if one.state is StageState.FAILED]
    assert {(one.stage, one.pass_number) for one in failed} == {(stage_that_fails, 2)}
    assert all((one.hosts, one.passed) == (8, ()) for one in failed)
    assert all(one.reason and one.reason in str(error) for one in failed)
    assert found.passes > 2
    hosts = [Host(name=name, address=name) for name in NAMES]
    outcomes = {one.outcome for one in conclude(hosts, found.stages, None, need=6, spares=1).hosts}
    assert outcomes == {Outcome.UNDECIDED}, "who could not be measured is not good"


def test_a_host_lost_on_the_way_is_undecided_once_and_passes_nothing_more() -> None:
    def losing(bed: Any, _deadline: Deadline, _pass_number: int) -> StageOutcome:
        bed.fleet.up = tuple(name for name in NAMES if name != "h5")
        bed.unreachable = {"h5": "lost: its connection ended", "h99": "never came up"}
        return StageOutcome(hosts=8, passed=tuple(NAMES))

    found = run(FakeBed(), {Stage.COLLECTIVE: losing})
    findings = [one for stage in found.stages for one in stage.findings]
    assert [(one.host, one.stage, one.outcome) for one in findings] == [
        ("h5", Stage.COLLECTIVE, Outcome.UNDECIDED)
    ]
    assert found.unreachable == {"h5": "lost: its connection ended", "h99": "never came up"}
    after = found.stages[SIX.index(Stage.COLLECTIVE) :]
    assert not any("h5" in one.passed for one in after)


def test_hosts_that_could_not_be_measured_are_left_out_of_what_comes() -> None:
    def doubting(bed: Any, _deadline: Deadline, _pass_number: int) -> StageOutcome:
        return StageOutcome(hosts=8, passed=tuple(bed.fit[1:]), doubtful={"h1"})

    found = run(FakeBed(), {Stage.LOCAL: doubting})
    by_stage = {one.stage: one for one in found.stages}
    assert by_stage[Stage.PAIRS].hosts == 7


def test_with_nobody_left_stages_are_skipped() -> None:
    bed = FakeBed(rejected=set(NAMES))
    found = run(bed)
    assert [one.stage for one in found.stages if one.state is StageState.SKIPPED] == [
        Stage.LOCAL,
        Stage.PAIRS,
        Stage.COLLECTIVE,
        Stage.LOAD,
    ]


def figure(value: float, pass_number: int, *, lower_is_worse: bool = True) -> StageRun:
    one = Figure(
        host="h1",
        stage=Stage.LOAD,
        name="x",
        value=value,
        lower_is_worse=lower_is_worse,
        pass_number=pass_number,
    )
    return StageRun(
        stage=Stage.LOAD,
        state=StageState.DONE,
        hosts=1,
        seconds=1.0,
        figures=(one,),
        pass_number=pass_number,
    )


@pytest.mark.parametrize(("lower_is_worse", "worst"), [(True, [2]), (False, [3])])
def test_of_all_passes_the_worst_figure_is_kept(*, lower_is_worse: bool, worst: list[int]) -> None:
    runs = [
        figure(value, number, lower_is_worse=lower_is_worse)
        for number, value in enumerate((5.0, 4.0, 6.0), start=1)
    ]
    kept = keep_worst(runs)
    assert [one.pass_number for run in kept for one in run.figures] == worst
    assert keep_worst(kept) == kept


def test_time_passes_only_when_something_is_done() -> None:
    clock = Clock()
    deadline = clock.deadline(2.0)
    assert deadline.left_s == 2.0
    clock.now_s += 5
    assert deadline.left_s == 0.0
