"""Local: what each host can do by itself, all at once; suspects again with the rest quiet."""

from collections import defaultdict
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial

from msgspec.structs import replace

from ncdiag.measure.burn_in.messages import LocalFigure, LocalFigures
from ncdiag.measure.burn_in.odd import (
    LEAST_HOSTS,
    ON_CPUS,
    ON_GPUS,
    FarOff,
    far_off,
    references,
    usual,
)
from ncdiag.measure.burn_in.plan import LOCAL_S
from ncdiag.measure.burn_in.result import StageOutcome
from ncdiag.measure.burn_in.testbed import Deadline, Rank, Testbed
from ncdiag.model.burn_in import Figure, Outcome, Stage, StageFinding, StageState
from ncdiag.model.isolation import BURN_IN, DAMAGED_DATA, SLOW_NIC, SLOW_RANK
from ncdiag.model.nodes import fold
from ncdiag.model.text import visible
from ncdiag.model.units import format_share

# Figures of one rank: arithmetic, memory, two ways to the host, all peers, and time to wake up.
_FIGURES_ON_GPU = 6
_FIGURES_ON_CPU = 2
# What a test takes besides: waking a GPU, and beside others on the same cores.
_SLACK_S = 20.0
_QUIET_S = 0.5
_LEAST_S = 2.0
# A test that hangs leaves time to repeat it.
_FIRST_SHARE = 0.6
_LOOPBACK = "loopback_gbit_per_s"
_NEXT = "look at clocks, throttling and what else runs there: ncdiag health, nvidia-smi -q"

Name = tuple[str, str | None, str]
"""What compares: the name of a figure, of what without the number of the GPU, and the model."""

_MakesFinding = Callable[..., StageFinding]


@dataclass(slots=True)
class _Found:
    """The figures of the first round, and what became of suspects."""

    figures: dict[Rank, LocalFigures]
    failed: dict[Rank, str]
    again: dict[Rank, LocalFigures] = field(default_factory=dict)
    failed_again: dict[Rank, str] = field(default_factory=dict)


def local(bed: Testbed, deadline: Deadline, pass_number: int) -> StageOutcome:
    """Measure every host that is fit at the same time, then judge and repeat."""
    hosts = bed.fit
    ranks = bed.bench.ranks(hosts)
    each_s = _each_s(bed, deadline)
    bed.tell("local", 0, 1, deadline.left_s)
    found = _Found(*bed.test(ranks, each_s, max(_LEAST_S, _FIRST_SHARE * deadline.left_s)))
    bed.models |= {rank: one.device for rank, one in found.figures.items()}
    notes = _loop_back(bed, deadline, hosts, found.figures) + _not_compared(found.figures)
    rule = ON_GPUS if bed.on_gpus else ON_CPUS
    suspects = _suspects(found, rule)
    _repeat(bed, deadline, found, suspects)
    findings = [
        one for rank, odd in suspects.items() for one in _judge(rank, odd, found, rule, pass_number)
    ]
    told = {one.host for one in findings if one.outcome is not Outcome.GOOD}
    bed.rejected |= {one.host for one in findings if one.outcome is Outcome.REJECTED}
    failing = {rank[0] for rank in found.failed if rank not in found.again}
    measured = {host for host, _ in found.figures} | {host for host, _ in found.again}
    return StageOutcome(
        hosts=len(hosts),
        state=StageState.DONE if measured else StageState.FAILED,
        reason=None if measured else "no host gave a figure",
        findings=findings,
        figures=_figures(found, pass_number),
        passed=tuple(host for host in hosts if host in measured - told),
        notes=notes,
        doubtful=failing,
    )


def _loop_back(
    bed: Testbed, deadline: Deadline, hosts: Sequence[str], figures: dict[Rank, LocalFigures]
) -> list[str]:
    """Add each host's RDMA ports to its figures; returns lines on those that have none."""
    notes: dict[str, list[str]] = {}
    limit_s = max(_LEAST_S, deadline.left_s / 2)
    for host, answer in bed.loopback(hosts, limit_s).items():
        whys = [answer.skipped] if answer.skipped else [*answer.problems]
        for why in whys:
            notes.setdefault(visible(why), []).append(host)
        own = figures.get((host, 0))
        if answer.figures and own:  # a host that failed the test is to be repeated as failed
            figures[host, 0] = replace(own, figures=(*own.figures, *answer.figures))
    return [f"loopback RDMA: {why}: {fold(names)}" for why, names in notes.items()]


def _each_s(bed: Testbed, deadline: Deadline) -> float:
    """How long each figure is measured: at most half of the time, the rest is for suspects."""
    count = _FIGURES_ON_GPU if bed.on_gpus else _FIGURES_ON_CPU
    return min(LOCAL_S[bed.plan.level], deadline.left_s / 2 / count)


def _by_name(figures: Mapping[Rank, LocalFigures]) -> dict[Name, dict[Rank, float]]:
    """Figures that compare with each other: of one name, whatever GPU of a host they are of."""
    found: defaultdict[Name, dict[Rank, float]] = defaultdict(dict)
    for rank, one in figures.items():
        for figure in one.figures:
            found[_name_of(figure, one.device)][rank] = figure.value
    return dict(found)


def _name_of(figure: LocalFigure, device: str) -> Name:
    """Ports are compared with those of their name: one may be slower than another by design."""
    component = figure.component
    if figure.name == _LOOPBACK:
        return figure.name, component, ""
    return figure.name, component if component and "->" in component else None, device


def _not_compared(figures: Mapping[Rank, LocalFigures]) -> list[str]:
    """A line where so few are of a model that none of them can be told from the others."""
    ranks: defaultdict[str, list[Rank]] = defaultdict(list)
    for rank, one in figures.items():
        ranks[one.device].append(rank)
    few = {device: alike for device, alike in ranks.items() if len(alike) < LEAST_HOSTS}
    return [
        f"local: {fold(dict.fromkeys(host for host, _ in alike))}: "
        f"too few are alike to tell a slow one{f' ({visible(device)})' if device else ''}"
        for device, alike in few.items()
    ]


def _suspects(found: _Found, rule: FarOff) -> dict[Rank, list[Name]]:
    """Ranks to measure again, with the figures in which they are far off; none for failures."""
    suspects: dict[Rank, list[Name]] = {rank: [] for rank in found.failed}
    suspects |= {rank: [] for rank, one in found.figures.items() if one.wrong}
    for name, values in _by_name(found.figures).items():
        for rank in far_off(values, rule):
            suspects.setdefault(rank, []).append(name)
    return suspects


def _repeat(
    bed: Testbed, deadline: Deadline, found: _Found, suspects: Mapping[Rank, Sequence[Name]]
) -> None:
    """Measure suspects one by one with all others quiet, and two usual ranks like that first."""
    if not suspects:
        return
    queue = [*_beside(found, suspects), *suspects]
    for number, rank in enumerate(queue):
        bed.tell("local, suspects again alone", number, len(queue), deadline.left_s)
        if deadline.left_s < 2 * _QUIET_S:
            return
        again, failed = bed.test([rank], _QUIET_S, min(deadline.left_s, _SLACK_S))
        if any(name[0] == _LOOPBACK for odd in suspects.values() for name in odd):
            _loop_back(bed, deadline, [rank[0]], again)
        found.again |= again
        found.failed_again |= failed


def _beside(found: _Found, suspects: Collection[Rank]) -> list[Rank]:
    """Two usual ranks of each model that a suspect is of: what it may be compared with."""
    models = {found.figures[rank].device for rank in suspects if rank in found.figures}
    first: dict[str, Mapping[Rank, float]] = {}
    for (_, _, model), values in _by_name(found.figures).items():
        if model in models:
            first.setdefault(model, values)
    return [rank for values in first.values() for rank in references(values, suspects)]


def _judge(
    rank: Rank, odd: Sequence[Name], found: _Found, rule: FarOff, pass_number: int
) -> list[StageFinding]:
    host, gpu = rank
    first, again = found.figures.get(rank), found.again.get(rank)
    own = f"gpu{gpu}" if rule is ON_GPUS else None

    finding = partial(_finding, host, pass_number, component=own)
    if first is None:
        why = visible(found.failed_again.get(rank) or found.failed[rank])
        if again is None:
            return [finding(Outcome.UNDECIDED, f"gave no figure: {why}")]
        if not again.wrong:
            return [finding(Outcome.GOOD, f"failed once, and not when repeated: {why}")]
    if (first and first.wrong) or (again and again.wrong):
        if first and again and first.wrong and again.wrong:
            reason = "computes wrong numbers, also when repeated"
            return [finding(Outcome.REJECTED, reason, 0.99, class_=DAMAGED_DATA)]
        return [finding(Outcome.UNDECIDED, "computed wrong numbers once", class_=DAMAGED_DATA)]
    return [
        _judge_figure(rank, name, found, rule, partial(finding, class_=_class_of(name)))
        for name in odd
    ]


def _finding(
    host: str,
    pass_number: int,
    outcome: Outcome,
    reason: str,
    confidence: float = 0.0,
    *,
    component: str | None,
    isolates: bool = True,
    class_: str = BURN_IN,
) -> StageFinding:
    return StageFinding(
        host=host,
        stage=Stage.LOCAL,
        outcome=outcome,
        reason=reason,
        confidence=confidence,
        confirmed=outcome is Outcome.REJECTED,
        isolates=isolates and outcome is Outcome.REJECTED,
        component=component,
        class_=class_,
        next=_NEXT,
        pass_number=pass_number,
    )


def _class_of(name: Name) -> str:
    """Which word a figure is kept under: a port by itself is a NIC, all else is computing."""
    return SLOW_NIC if name[0] == _LOOPBACK else SLOW_RANK


def _judge_figure(
    rank: Rank, name: Name, found: _Found, rule: FarOff, finding: _MakesFinding
) -> StageFinding:
    """Whether a figure is far off alone as well, beside usual ranks that were alone too.

    A CPU that is slow is out, and not isolated: whatever else runs there may take its time.
    """
    together = _by_name(found.figures)[name]
    alone = _by_name(found.again).get(name, {})
    middle = usual(together)
    text = f"{_words(name)} {together[rank]:.3g}, most {middle:.3g}"
    component = name[1] or (f"gpu{rank[1]}" if rule is ON_GPUS else None)
    if rank not in alone:
        reason = f"{text}; no time was left to repeat it alone"
        return finding(Outcome.UNDECIDED, reason, component=component)
    others = {one: value for one, value in alone.items() if one != rank}
    yardstick = usual(others) or middle or 0.0
    if not rule.beyond(alone[rank], yardstick):
        reason = f"{text}; alone {alone[rank]:.3g}, which is as it should be"
        return finding(Outcome.GOOD, reason, component=component)
    share = format_share(alone[rank] / yardstick)
    return finding(
        Outcome.REJECTED,
        f"{_words(name)} {alone[rank]:.3g}, {share} of what others reach, alone as well",
        0.95,
        component=component,
        isolates=rule is ON_GPUS or name[0] == _LOOPBACK,
    )


def _words(name: Name) -> str:
    between = f" {name[1]}" if name[1] else ""
    return (
        name[0]
        .replace("_tflop_per_s", " (TFLOP/s)")
        .replace("_gb_per_s", " (GB/s)")
        .replace("_gbit_per_s", " (Gbit/s)")
        .replace("_", " ")
        + between
    )


def _figures(found: _Found, pass_number: int) -> list[Figure]:
    """Every figure of the first round, with the median of its like."""
    medians = {name: usual(values) for name, values in _by_name(found.figures).items()}
    return [
        Figure(
            host=host,
            stage=Stage.LOCAL,
            name=figure.name,
            value=figure.value,
            median=medians[_name_of(figure, one.device)],
            component=figure.component,
            pass_number=pass_number,
        )
        for (host, _), one in found.figures.items()
        for figure in one.figures
    ]
