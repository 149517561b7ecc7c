"""Load: a training-like loop over all hosts; who computes slowly there is repeated alone."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from statistics import median

import numpy as np

from ncdiag.diagnose.stragglers import find_stragglers
from ncdiag.measure.burn_in.messages import StepTimes, TrainSteps
from ncdiag.measure.burn_in.odd import ON_GPUS, FarOff, references, usual
from ncdiag.measure.burn_in.plan import LOAD_S
from ncdiag.measure.burn_in.result import StageOutcome
from ncdiag.measure.burn_in.testbed import Deadline, Rank, Testbed
from ncdiag.model.burn_in import Figure, Outcome, Stage, StageFinding, StageState
from ncdiag.model.isolation import BURN_IN, DAMAGED_DATA, SLOW_RANK
from ncdiag.model.straggler import IterationTable, SlowRank, TimeKind
from ncdiag.model.text import visible
from ncdiag.model.units import format_count, format_share

# What one step does: some ten milliseconds of computing, then gradients of a usual bucket.
_ON_GPUS = TrainSteps(steps=3, matrix=8192, multiplications=20, size_bytes=256 << 20)
_ON_CPUS = TrainSteps(steps=3, matrix=256, multiplications=8, size_bytes=256 << 10)
# A time is far off from this ratio on; alike GPUs differ by some per cent, shared CPUs by far more.
_SLOW_ON_GPUS = FarOff(share=1 / 1.1, lower_is_worse=False)
_SLOW_ON_CPUS = FarOff(share=0.5, lower_is_worse=False)
# GPUs of one model, each within what its maker allows, may differ by more than a tenth: whoever is
# that slow would hold up a job, and is only isolated where a GPU alone would be called slow.
_BROKEN_ON_GPUS = FarOff(share=ON_GPUS.share, lower_is_worse=False)
_LEAST_STEPS = 5
_MOST_STEPS = 2000
# Steps are asked for in pieces, so that a deadline and an interrupt are kept.
_PIECE_S = 10.0
# What a piece may take beside the plan: the first steps are quick, later ones meet others' traffic.
_SLACK = 4.0
_SLACK_S = 5.0
_MEET_SHARE = 0.3
_ALONE_STEPS = 20
# So many stretches of the load tell of heat or power rather than of a moment.
_LEAST_WINDOWS = 2
_NEXT = "look at clocks and throttling under load: nvidia-smi -q -d PERFORMANCE,CLOCK"


@dataclass(slots=True)
class _Course:
    """The steps taken so far; ``error`` is what ended them."""

    compute_s: dict[Rank, list[float]] = field(default_factory=dict)
    reduce_s: dict[Rank, list[float]] = field(default_factory=dict)
    wrong: dict[Rank, int] = field(default_factory=dict)
    error: str | None = None

    def add(self, answers: Mapping[Rank, StepTimes]) -> None:
        """Take the times of a piece."""
        for rank, one in answers.items():
            self.compute_s.setdefault(rank, []).extend(one.compute_s)
            self.reduce_s.setdefault(rank, []).extend(one.reduce_s)
            self.wrong[rank] = self.wrong.get(rank, 0) + one.wrong

    @property
    def steps(self) -> int:
        """How many steps every rank took."""
        return min((len(times) for times in self.compute_s.values()), default=0)


def load(bed: Testbed, deadline: Deadline, pass_number: int) -> StageOutcome:
    """Train within the time; once more where it failed, without the hosts that were lost."""
    hosts = bed.fit
    if len(hosts) < 2:
        why = "there are no two hosts left to train together"
        return StageOutcome(hosts=0, state=StageState.SKIPPED, reason=why)
    outcome = StageOutcome(hosts=len(hosts))
    course = _train(bed, deadline, hosts)
    if course.error:
        bed.bench.renew()
        outcome.notes.append(
            f"load: it failed after {format_count(course.steps, 'step')}: {course.error}"
        )
        up = set(bed.fleet.up)
        outcome.findings += [
            _finding(host, Outcome.UNDECIDED, "was lost under load", pass_number, class_=BURN_IN)
            for host in hosts
            if host not in up
        ]
        hosts = [host for host in hosts if host in up]
        if course.steps < _LEAST_STEPS and len(hosts) > 1:
            course = _train(bed, deadline, hosts)
    if course.steps < _LEAST_STEPS:
        bed.bench.renew()
        outcome.state = StageState.FAILED
        outcome.reason = course.error or "too few steps were taken"
        return outcome
    _conclude(bed, deadline, outcome, course, pass_number)
    return outcome


def _train(bed: Testbed, deadline: Deadline, hosts: Sequence[str]) -> _Course:
    """Meet, take a few steps to learn how long they are, then as many as there is time for."""
    course, ranks = _Course(), bed.bench.ranks(hosts)
    most_s = min(LOAD_S[bed.plan.level], deadline.left_s * 0.7)
    end = Deadline.after(most_s, deadline.clock)
    bed.tell("load", 0, 1, deadline.left_s)
    course.error = bed.bench.meet(ranks, max(2.0, _MEET_SHARE * deadline.left_s))
    steps, taken = _ON_GPUS if bed.on_gpus else _ON_CPUS, 0
    limit_s = max(1.0, deadline.left_s / 2)
    while course.error is None:
        began_s = deadline.clock()
        answers, failed = bed.train(ranks, steps, min(limit_s, max(1.0, deadline.left_s)))
        if failed:
            (host, _), why = next(iter(failed.items()))
            course.error = visible(f"{host}: {why}")
            break
        step_s = max(1e-4, (deadline.clock() - began_s) / (steps.steps + steps.warmup))
        if taken:  # the first steps find out how long one takes, and are not typical
            course.add(answers)
        taken += steps.steps
        count = min(int(min(_PIECE_S, end.left_s) / step_s), _MOST_STEPS)
        if count < _LEAST_STEPS and course.steps:
            break
        steps = _with_steps(steps, max(count, _LEAST_STEPS))
        limit_s = _SLACK_S + _SLACK * steps.steps * step_s
        bed.tell("load", taken, taken + count, deadline.left_s)
    return course


def _with_steps(steps: TrainSteps, count: int, *, alone: bool = False) -> TrainSteps:
    return TrainSteps(
        steps=count,
        matrix=steps.matrix,
        multiplications=steps.multiplications,
        size_bytes=steps.size_bytes,
        alone=alone,
    )


def _conclude(
    bed: Testbed, deadline: Deadline, outcome: StageOutcome, course: _Course, pass_number: int
) -> None:
    rule = _SLOW_ON_GPUS if bed.on_gpus else _SLOW_ON_CPUS
    medians = {rank: median(times) for rank, times in course.compute_s.items()}
    slow = {
        _rank(one, course): one
        for one in find_stragglers(table(course.compute_s, bed.models), TimeKind.COMPUTE).slow
        if one.ratio * rule.share > 1
    }
    alone = _alone(bed, deadline, slow, medians)
    outcome.findings += [
        _judge(rank, one, _like(rank, alone, bed.models), rule, pass_number)
        for rank, one in slow.items()
    ]
    outcome.findings += _wrong(course, pass_number)
    middle = usual(medians)
    outcome.figures += [
        Figure(
            host=host,
            stage=Stage.LOAD,
            name="load_compute_s",
            value=value,
            median=middle,
            component=f"gpu{gpu}" if bed.on_gpus else None,
            lower_is_worse=False,
            pass_number=pass_number,
        )
        for (host, gpu), value in medians.items()
    ]
    told = {one.host for one in outcome.findings if one.outcome is not Outcome.GOOD}
    measured = {host for host, _ in medians} - told
    outcome.passed = tuple(host for host in bed.facts if host in measured)
    bed.rejected |= {one.host for one in outcome.findings if one.outcome is Outcome.REJECTED}
    outcome.notes.append(
        f"load: {format_count(course.steps, 'step')} of {_ms(middle or 0.0)}, reducing beside it"
    )


def table(
    compute_s: Mapping[Rank, Sequence[float]], models: Mapping[Rank, str] | None = None
) -> IterationTable:
    """The times of all ranks, as slow ranks are looked for in: among those of their model."""
    steps = min(len(times) for times in compute_s.values())
    return IterationTable(
        ranks=tuple(range(len(compute_s))),
        seconds=np.array([times[:steps] for times in compute_s.values()]).T,
        iterations=tuple(range(steps)),
        hosts={number: host for number, (host, _) in enumerate(compute_s)},
        groups={number: (models or {}).get(rank, "") for number, rank in enumerate(compute_s)},
    )


def _rank(one: SlowRank, course: _Course) -> Rank:
    return list(course.compute_s)[one.rank]


def _alone(
    bed: Testbed, deadline: Deadline, slow: Mapping[Rank, SlowRank], medians: Mapping[Rank, float]
) -> dict[Rank, float]:
    """How long a step's computing takes each suspect, and two usual ranks of each model of theirs.

    Each is alone meanwhile, with all others idle.
    """
    found: dict[Rank, float] = {}
    steps = _with_steps(_ON_GPUS if bed.on_gpus else _ON_CPUS, _ALONE_STEPS, alone=True)
    of_model = {bed.models.get(rank, ""): rank for rank in slow}
    beside = [
        one
        for rank in of_model.values()
        for one in references(_like(rank, medians, bed.models), slow)
    ]
    queue = [*beside, *slow]
    for number, rank in enumerate(queue):
        bed.tell("load, suspects again alone", number, len(queue), deadline.left_s)
        if deadline.left_s < 1.0:
            break
        answers, _ = bed.train([rank], steps, min(deadline.left_s, 2 * _PIECE_S))
        found |= {one: median(times.compute_s) for one, times in answers.items()}
    return found


def _like(rank: Rank, times: Mapping[Rank, float], models: Mapping[Rank, str]) -> dict[Rank, float]:
    """Those of ``times`` that are of ranks of the same model."""
    own = models.get(rank, "")
    return {other: value for other, value in times.items() if models.get(other, "") == own}


def _judge(
    rank: Rank, one: SlowRank, alone: Mapping[Rank, float], rule: FarOff, pass_number: int
) -> StageFinding:
    """A GPU that is slow in all of the load is out, and isolated if it is far too slow alone too.

    A CPU is not isolated: whatever else runs there may take its time.
    """
    host, gpu = rank
    text = f"a step of computing takes {format_share(one.ratio)} of the usual time"
    others = {other: value for other, value in alone.items() if other != rank}
    component = f"gpu{gpu}" if rule is _SLOW_ON_GPUS else None
    yardstick = usual(others)
    if rank not in alone or yardstick is None:
        reason = f"{text}; no time was left to repeat it alone"
        return _finding(host, Outcome.UNDECIDED, reason, pass_number, component)
    if not rule.beyond(alone[rank], yardstick):
        reason = f"{text} under load; alone {_ms(alone[rank])}, which is as it should be"
        always = one.windows == one.windows_total >= _LEAST_WINDOWS
        if always and component:
            reason = f"{text} in all of the load; alone {_ms(alone[rank])}: heat or power"
            return _finding(host, Outcome.REJECTED, reason, pass_number, component)
        return _finding(host, Outcome.GOOD, reason, pass_number, component)
    reason = f"{text}; alone {_ms(alone[rank])}, others {_ms(yardstick)}"
    found = _finding(host, Outcome.REJECTED, reason, pass_number, component)
    broken = _BROKEN_ON_GPUS.beyond(alone[rank], yardstick)
    return replace(found, isolates=broken and component is not None)


def _wrong(course: _Course, pass_number: int) -> list[StageFinding]:
    """What is reduced is of everybody: wrong numbers name nobody."""
    wrong = [host for (host, _), count in course.wrong.items() if count]
    reason = "numbers were wrong under load"
    return [
        _finding(host, Outcome.UNDECIDED, reason, pass_number, class_=DAMAGED_DATA)
        for host in dict.fromkeys(wrong)
    ]


def _finding(
    host: str,
    outcome: Outcome,
    reason: str,
    pass_number: int,
    component: str | None = None,
    *,
    class_: str = SLOW_RANK,
) -> StageFinding:
    rejected = outcome is Outcome.REJECTED
    return StageFinding(
        host=host,
        stage=Stage.LOAD,
        outcome=outcome,
        reason=reason,
        confidence=0.9 if rejected else 0.0,
        confirmed=rejected,
        component=component,
        class_=class_,
        next=_NEXT,
        pass_number=pass_number,
    )


def _ms(seconds: float) -> str:
    return f"{seconds * 1e3:.3g} ms"
