import random
from collections.abc import Sequence
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ncdiag.diagnose.burn_in import Conclusion, conclude
from ncdiag.model.burn_in import (
    GateVerdict,
    HostOutcome,
    Outcome,
    Stage,
    StageFinding,
    StageRun,
    StageState,
)
from ncdiag.model.host import Host
from ncdiag.model.verdict import (
    Culprit,
    CulpritKind,
    Diagnosis,
    Direction,
    HostStatus,
    HostVerdict,
    LinkStatus,
    LinkVerdict,
    Verdict,
)

NAMES = ("a", "b", "c", "d")


def finding(host: str, stage: Stage, outcome: Outcome = Outcome.REJECTED, **more: object) -> object:
    return StageFinding(
        **{"host": host, "stage": stage, "outcome": outcome, "reason": "why", "confidence": 0.9}
        | more
    )


def run(
    stage: Stage,
    *findings: StageFinding,
    passed: Sequence[str] | None = None,
    state: StageState = StageState.DONE,
    **more: object,
) -> StageRun:
    """A stage over all of NAMES; whom nothing is found against has passed unless told else."""
    against = {one.host for one in findings}
    good = tuple(name for name in NAMES if name not in against) if passed is None else tuple(passed)
    return StageRun(
        **{"stage": stage, "state": state, "hosts": len(NAMES), "seconds": 1.0}
        | {"findings": findings, "passed": good}
        | more
    )


def pairs(**statuses: HostStatus) -> Diagnosis:
    """A sweep of NAMES in which all are healthy but for those given."""
    verdicts = [
        HostVerdict(name=name, status=statuses.get(name, HostStatus.HEALTHY), reason="half speed")
        for name in NAMES
    ]
    return Diagnosis(
        verdict=Verdict.HEALTHY,
        links=(),
        hosts=tuple(verdicts),
        isolate=tuple(one.name for one in verdicts if one.status is HostStatus.FAULTY),
    )


def decide(
    *stages: StageRun, sweep: Diagnosis | None = None, need: int = 4, spares: int = 0
) -> Conclusion:
    return conclude(
        [Host(name=name, address=name) for name in NAMES], stages, sweep, need=need, spares=spares
    )


def of(conclusion: Conclusion, host: str) -> HostOutcome:
    return next(one for one in conclusion.hosts if one.name == host)


HEALTHY = [run(stage) for stage in (Stage.REACH, Stage.HEALTH, Stage.LOCAL)]
REACH, HEALTH, LOCAL, PAIRS, COLLECTIVE, LOAD = Stage
SLOW = finding("b", LOCAL, reason="gemm 80 of 100 TFLOP/s", confirmed=True, isolates=True)


def test_who_went_through_everything_is_good() -> None:
    found = decide(*HEALTHY, sweep=pairs())
    assert found.verdict is GateVerdict.MET
    assert found.chosen == NAMES
    assert of(found, "b").stages == (REACH, HEALTH, LOCAL, PAIRS)
    assert of(found, "b").reasons == ()
    assert 0.8 < of(found, "b").confidence == found.confidence < 1
    assert found.isolate == found.spares == found.left == found.notes == ()


@pytest.mark.parametrize(
    ("stage", "outcome", "isolate", "reason"),
    [
        # Certain or confirmed.
        (run(LOCAL, SLOW), Outcome.REJECTED, ("b",), "local: gemm 80 of 100 TFLOP/s"),
        (
            run(LOCAL, replace(SLOW, isolates=False, component="gpu3")),
            Outcome.REJECTED,
            (),
            "local: gpu3: gemm 80 of 100 TFLOP/s",
        ),
        (
            run(HEALTH, finding("b", HEALTH, reason="Xid 79", isolates=True)),
            Outcome.REJECTED,
            ("b",),
            "health: Xid 79",
        ),
        (
            run(HEALTH, finding("b", HEALTH, reason="ECC is off")),
            Outcome.REJECTED,
            (),
            "health: ECC is off",
        ),
        # Out, and not to blame, whatever is said of it.
        (
            run(REACH, finding("b", REACH, Outcome.UNDECIDED, reason="port 22: refused")),
            Outcome.REJECTED,
            (),
            "reach: port 22: refused",
        ),
        (
            run(REACH, finding("b", REACH, isolates=True, confirmed=True)),
            Outcome.REJECTED,
            (),
            "reach: why",
        ),
        # Suspected, or not measured.
        (
            run(LOAD, finding("b", LOAD, isolates=True)),
            Outcome.UNDECIDED,
            (),
            "load: why (not confirmed)",
        ),
        (
            run(LOAD, finding("b", LOAD, Outcome.UNDECIDED, isolates=True, confirmed=True)),
            Outcome.UNDECIDED,
            (),
            "load: why",
        ),
        (run(LOAD, passed="acd"), Outcome.UNDECIDED, (), "load: gave no result"),
        (
            run(LOAD, passed="acd", state=StageState.CUT, reason="20 s were left"),
            Outcome.UNDECIDED,
            (),
            "load: cut off before its own result: 20 s were left",
        ),
        (
            run(COLLECTIVE, passed="acd", state=StageState.FAILED, reason="rank 1\nhung"),
            Outcome.UNDECIDED,
            (),
            "collective: the stage failed: rank 1 hung",
        ),
        # Nothing against it.
        (run(LOAD, passed="", hosts=0, state=StageState.CUT), Outcome.GOOD, (), None),
        (run(LOAD, passed="", state=StageState.SKIPPED), Outcome.GOOD, (), None),
        (
            run(LOAD, finding("b", LOAD, Outcome.GOOD), passed=NAMES),
            Outcome.GOOD,
            (),
            "load: why",
        ),
    ],
)
def test_what_a_stage_found_decides(
    stage: StageRun, outcome: Outcome, isolate: tuple[str, ...], reason: str | None
) -> None:
    found = decide(*HEALTHY, stage, sweep=pairs())
    one = of(found, "b")
    assert one.outcome is outcome
    assert found.isolate == isolate
    assert one.reasons == (() if reason is None else (reason,))
    assert (stage.stage in one.stages) is ("b" in stage.passed)
    assert {of(found, name).outcome for name in "acd"} == {Outcome.GOOD}


@pytest.mark.parametrize(
    ("status", "outcome", "reason"),
    [
        (HostStatus.HEALTHY, Outcome.GOOD, None),
        (HostStatus.DEGRADED, Outcome.GOOD, "pairs: degraded: half speed"),
        (HostStatus.FAULTY, Outcome.REJECTED, "pairs: half speed"),
        (HostStatus.INCONCLUSIVE, Outcome.UNDECIDED, "pairs: half speed"),
        (HostStatus.UNREACHABLE, Outcome.UNDECIDED, "pairs: half speed"),
    ],
)
def test_what_the_sweep_says_of_a_host_decides(
    status: HostStatus, outcome: Outcome, reason: str | None
) -> None:
    found = decide(*HEALTHY, sweep=pairs(b=status), need=3)
    assert of(found, "b").outcome is outcome
    assert of(found, "b").reasons == (() if reason is None else (reason,))
    assert found.isolate == (("b",) if status is HostStatus.FAULTY else ())
    assert found.chosen == ("a", "b", "c") if status is HostStatus.HEALTHY else ("a", "c", "d")


def test_what_the_stage_of_pairs_tells_already_is_told_once() -> None:
    stage = run(PAIRS, finding("b", PAIRS, reason="sends at 20 %", confirmed=True, isolates=True))
    found = decide(*HEALTHY, stage, sweep=pairs(b=HostStatus.FAULTY))
    assert of(found, "b").reasons == ("pairs: sends at 20 %",)
    assert found.isolate == ("b",)


def test_a_host_that_was_never_reached_is_out_and_no_doubt_of_the_sweep() -> None:
    gone = run(REACH, finding("b", REACH, reason="refused"))
    found = decide(gone, *HEALTHY[1:], sweep=pairs(b=HostStatus.UNREACHABLE), need=4)
    assert of(found, "b").reasons == ("reach: refused",)
    assert found.verdict is GateVerdict.SHORT
    assert found.isolate == ()


def test_faulty_hosts_are_as_sure_as_their_culprit() -> None:
    culprit = Culprit(
        kind=CulpritKind.NIC,
        name="b:eth1",
        direction=Direction.SEND,
        status=LinkStatus.FAULTY,
        confidence=0.73,
        efficiency=0.2,
        explains=3,
        contradicts=0,
        reason="slow",
        next="",
    )
    shared = replace(culprit, kind=CulpritKind.SWITCH, name="leaf1", reason="uplink at 40 %")
    found = decide(
        *HEALTHY, sweep=replace(pairs(b=HostStatus.FAULTY), culprits=(culprit, *[shared] * 7))
    )
    assert of(found, "b").confidence == 0.73
    assert found.notes[0] == "pairs: switch leaf1 is faulty: uplink at 40 %"
    assert found.notes[-1] == "pairs: 2 more such culprits in the report of the pairs"


@pytest.mark.parametrize(
    ("findings", "need", "verdict", "code"),
    [
        ("", 4, GateVerdict.MET, 0),
        ("b", 3, GateVerdict.MET, 0),
        ("b", 4, GateVerdict.SHORT, 1),
        ("?b", 4, GateVerdict.UNDECIDED, 3),
        ("?b", 3, GateVerdict.MET, 0),
        ("a ?b", 3, GateVerdict.UNDECIDED, 3),
        ("a ?b", 4, GateVerdict.SHORT, 1),
    ],
)
def test_the_verdict_counts(findings: str, need: int, verdict: GateVerdict, code: int) -> None:
    told = [
        finding(name.removeprefix("?"), LOAD, confirmed=not name.startswith("?"))
        for name in findings.split()
    ]
    found = decide(*HEALTHY, run(LOAD, *told), need=need)
    assert found.verdict is verdict
    assert found.verdict.exit_code == code


def test_missing_spares_are_a_line_and_no_verdict() -> None:
    found = decide(*HEALTHY, run(LOCAL, SLOW), need=2, spares=2)
    assert found.verdict is GateVerdict.MET
    assert found.spares == ("d",)
    assert found.notes == ("2 spares wanted, 1 found",)


def test_a_stage_that_nobody_came_to_is_told_and_makes_less_sure() -> None:
    cut = run(LOAD, passed="", hosts=0, state=StageState.CUT)
    found = decide(*HEALTHY, cut, sweep=pairs())
    assert found.notes == ("nobody has a result of load",)
    assert found.confidence < decide(*HEALTHY, run(LOAD), sweep=pairs()).confidence


def test_a_link_between_chosen_hosts_that_gave_no_clear_figure_is_told() -> None:
    unclear = [
        LinkVerdict(source=source, target=target, rail=0, status=LinkStatus.INCONCLUSIVE, tests=1)
        for source, target in ("ab", "ac", "ad", "ba", "bc", "bd", "ca")
    ]
    sweep = replace(pairs(), links=tuple(unclear))
    found = decide(*HEALTHY, run(PAIRS), sweep=sweep, need=4)
    assert found.notes == ("pairs: no clear figure of a->b, a->c, a->d, b->a, b->c and 2 more",)
    fewer = decide(*HEALTHY, run(PAIRS), run(LOAD, SLOW), sweep=sweep, need=2)
    assert fewer.notes == ("pairs: no clear figure of a->c, c->a",)


def test_who_was_never_measured_in_pairs_is_not_known() -> None:
    cut = run(PAIRS, passed="", hosts=0, state=StageState.CUT, reason="no time")
    found = decide(*(one for one in HEALTHY if one.stage is not PAIRS), cut)
    assert found.verdict is GateVerdict.UNDECIDED
    assert of(found, "a").reasons == ("pairs: cut off before its own result: no time",)
    later = replace(cut, pass_number=2)
    assert decide(*HEALTHY, later, sweep=pairs()).verdict is GateVerdict.MET


def test_repeated_passes_make_surer_and_keep_the_worst() -> None:
    once, twice = ([replace(one, pass_number=n) for one in HEALTHY] for n in (1, 2))
    assert decide(*once, *twice).confidence > decide(*once).confidence
    bad = replace(run(LOCAL, SLOW), pass_number=1)
    assert of(decide(*once, bad, *twice), "b").outcome is Outcome.REJECTED
    cut = run(LOCAL, passed="", state=StageState.CUT, pass_number=2)
    assert of(decide(*once, cut), "b").outcome is Outcome.GOOD
    cut_pairs = [
        run(PAIRS, pass_number=1),
        run(PAIRS, passed="", state=StageState.CUT, pass_number=2),
    ]
    unclear = pairs(b=HostStatus.INCONCLUSIVE)
    assert of(decide(*once, *cut_pairs, sweep=unclear), "b").outcome is Outcome.GOOD


@pytest.mark.parametrize("stages", [(), HEALTHY[:2]])
def test_nobody_is_good_who_was_not_measured(stages: Sequence[StageRun]) -> None:
    found = decide(*stages)
    assert {one.outcome for one in found.hosts} == {Outcome.UNDECIDED}
    assert of(found, "a").reasons == ("local: nothing of it was measured",)
    assert found.verdict is GateVerdict.UNDECIDED
    assert found.chosen == ()


def test_short_is_as_sure_as_all_those_it_lacks_together() -> None:
    told = [
        finding(name, LOAD, confirmed=True, confidence=sure)
        for name, sure in (("a", 0.5), ("b", 0.8))
    ]
    found = decide(*HEALTHY, run(LOAD, *told), need=4)
    assert found.confidence == pytest.approx(1 - 0.5 * 0.2)
    assert decide(*HEALTHY, run(LOAD, *told), need=3).confidence == pytest.approx(0.5)


FINDINGS = st.builds(
    finding,
    st.sampled_from([*NAMES, "stranger"]),
    st.sampled_from(Stage),
    st.sampled_from(Outcome),
    confirmed=st.booleans(),
    isolates=st.booleans(),
    confidence=st.floats(0, 1),
)
RUNS = st.builds(
    StageRun,
    stage=st.sampled_from(Stage),
    state=st.sampled_from(StageState),
    hosts=st.integers(0, 4),
    seconds=st.just(1.0),
    findings=st.lists(FINDINGS, max_size=3).map(tuple),
    passed=st.lists(st.sampled_from(NAMES), unique=True).map(tuple),
    pass_number=st.integers(1, 2),
)
SWEEPS = st.none() | st.fixed_dictionaries(
    {}, optional={name: st.sampled_from(HostStatus) for name in NAMES}
).map(lambda statuses: pairs(**statuses))


@given(st.lists(RUNS, max_size=6), SWEEPS, st.integers(1, 4), st.integers(0, 2), st.randoms())
def test_whatever_was_found_the_lists_hold_together(
    stages: list[StageRun],
    sweep: Diagnosis | None,
    need: int,
    spares: int,
    chance: random.Random,
) -> None:
    found = decide(*stages, sweep=sweep, need=need, spares=spares)
    lists = {
        outcome: {one.name for one in found.hosts if one.outcome is outcome} for outcome in Outcome
    }
    good = {*found.chosen, *found.spares, *found.left}
    assert good == lists[Outcome.GOOD]
    assert len(found.chosen) == min(need, len(good))
    assert set(found.isolate) <= lists[Outcome.REJECTED]
    assert all(one.reasons for one in found.hosts if one.outcome is not Outcome.GOOD)
    assert 0 <= found.confidence <= 1
    assert (found.verdict is GateVerdict.MET) is (len(good) >= need)
    hosts = [Host(name=name, address=name) for name in NAMES]
    again = conclude(
        chance.sample(hosts, len(hosts)),
        chance.sample(stages, len(stages)),
        sweep,
        need=need,
        spares=spares,
    )
    assert (again.chosen, again.spares, again.left) == (found.chosen, found.spares, found.left)
    assert set(again.isolate) == set(found.isolate)
    assert again.verdict is found.verdict
