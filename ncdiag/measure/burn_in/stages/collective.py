"""Collective: all hosts reduce together, data checked; who makes it fail is found by halves."""

from collections.abc import Sequence
from dataclasses import replace

from ncdiag.measure.burn_in.narrow import Narrowed, Trial, narrow
from ncdiag.measure.burn_in.result import StageOutcome
from ncdiag.measure.burn_in.testbed import Deadline, Testbed
from ncdiag.model.bench import BenchRun
from ncdiag.model.burn_in import Outcome, Stage, StageFinding, StageState
from ncdiag.model.isolation import DAMAGED_DATA
from ncdiag.model.nodes import fold
from ncdiag.model.text import visible
from ncdiag.model.units import format_bytes, format_count

# The part of the stage that one run may take: a hang must leave time to find out who hangs.
_FIRST_SHARE = 0.6
_TRIAL_SHARE = 0.25
_LEAST_S = 2.0
# After a failure processes are new, and import torch first; GPUs are to be woken as well.
_TRIAL_S = {True: 30.0, False: 10.0}
_NEXT = "run ncdiag sweep over it and healthy hosts, and look into its kernel log"


def collective(bed: Testbed, deadline: Deadline, pass_number: int) -> StageOutcome:
    """Reduce over every host that is fit; where that fails, find out with whom."""
    hosts = bed.fit
    if len(hosts) < 2:
        why = "there are no two hosts left to measure"
        return StageOutcome(hosts=0, state=StageState.SKIPPED, reason=why)
    bed.tell("collective", 0, 1, deadline.left_s)
    run = bed.all_reduce(hosts, max(_LEAST_S, _FIRST_SHARE * deadline.left_s))
    error = failure(run)
    if error is None:
        return StageOutcome(hosts=len(hosts), passed=tuple(hosts), notes=[_words(run)])
    lost = [host for host in hosts if host not in set(bed.fleet.up)]
    rest = [host for host in hosts if host not in lost]
    outcome = StageOutcome(hosts=len(hosts))
    outcome.findings += [_finding(host, "was lost", pass_number) for host in lost]
    outcome.notes.append(f"collective: all_reduce over {format_count(len(hosts), 'host')}: {error}")
    _look_for_culprits(bed, deadline, outcome, rest, pass_number)
    if wrong_numbers(run):
        up = set(bed.fleet.up)
        outcome.findings = [
            replace(one, class_=DAMAGED_DATA) if one.host in up else one for one in outcome.findings
        ]
    return outcome


def failure(run: BenchRun) -> str | None:
    """Why a run did not work; damaged data is told even of a run that ended."""
    if wrong := wrong_numbers(run):
        return f"{format_count(wrong, 'number')} arrived wrong"
    return visible(run.error) if run.error else None


def wrong_numbers(run: BenchRun) -> int:
    """How many numbers arrived wrong."""
    rows = run.benchmark.rows if run.benchmark else []
    return int(sum(row.out_of_place_wrong or 0 for row in rows))


def _look_for_culprits(
    bed: Testbed, deadline: Deadline, outcome: StageOutcome, hosts: Sequence[str], pass_number: int
) -> None:
    limit_s = max(_TRIAL_S[bed.on_gpus], _TRIAL_SHARE * deadline.left_s)
    # Nothing can follow before it is known who is to be left out: the time of all is theirs.
    end = bed.end or deadline

    def works(part: Sequence[str]) -> bool | None:
        bed.tell("collective, with parts of the hosts", 0, 1, end.left_s)
        up = set(bed.fleet.up)
        if len(part) < 2 or any(host not in up for host in part):
            return None if len(part) < 2 else False
        if end.left_s < limit_s:
            return None
        return failure(bed.all_reduce(part, limit_s)) is None

    repeated = works(hosts)
    if repeated:
        outcome.notes.append("collective: it worked when it was repeated")
        outcome.passed = tuple(hosts)
        return
    found = Narrowed(undecided=list(hosts)) if repeated is None else narrow(hosts, works)
    _tell(bed, outcome, found, hosts, works, pass_number=pass_number)


def _tell(
    bed: Testbed,
    outcome: StageOutcome,
    found: Narrowed,
    hosts: Sequence[str],
    works: Trial,
    *,
    pass_number: int,
) -> None:
    """Add what the trials say of each host."""
    gone = [host for host in found.blamed if host not in set(bed.fleet.up)]
    outcome.findings += [_finding(host, "was lost", pass_number) for host in gone]
    blamed = set(found.blamed)
    rest = [host for host in hosts if host not in blamed and host not in set(found.undecided)]
    # Each of them worked in some part; without time for all of them together that has to do.
    spoilt = bool(found.together) or works(rest) is False
    if found.together:
        outcome.notes.extend(
            f"collective: {fold(group)} fail together, and work in halves"
            for group in found.together
        )
    outcome.findings += [
        _finding(name, "makes every collective fail", pass_number, partners=partners)
        for name, partners in found.blamed.items()
        if name not in gone
    ]
    unsure = [host for host in hosts if host not in blamed] if spoilt else found.undecided
    outcome.findings += [
        _finding(name, "the collective fails, and it was not found out with whom", pass_number)
        for name in unsure
    ]
    outcome.passed = tuple(host for host in hosts if host not in blamed | set(unsure))
    outcome.doubtful = set(unsure)
    bed.rejected |= blamed - set(gone)
    if not outcome.passed:
        outcome.state = StageState.FAILED
        outcome.reason = "no collective worked"


def _finding(
    host: str, reason: str, pass_number: int, partners: tuple[str, ...] = ()
) -> StageFinding:
    """Whoever failed with two partners that work with each other is to blame."""
    blamed = bool(partners)
    return StageFinding(
        host=host,
        stage=Stage.COLLECTIVE,
        outcome=Outcome.REJECTED if blamed else Outcome.UNDECIDED,
        reason=reason,
        confidence=0.95 if blamed else 0.0,
        confirmed=blamed,
        isolates=blamed,
        partners=partners,
        next=_NEXT,
        pass_number=pass_number,
    )


def _words(run: BenchRun) -> str:
    """What the largest size reached, for the reader: there is no yardstick to judge it by here."""
    rows = run.benchmark.rows if run.benchmark else []
    if not rows:
        return "collective: nothing was measured"
    last = rows[-1]
    busbw = last.out_of_place_busbw or 0.0
    ranks = len(run.hosts) * run.ranks_per_host
    return (
        f"collective: all_reduce of {format_bytes(last.size)} over {format_count(ranks, 'rank')}: "
        f"busbw {busbw:.3g} GB/s, all data right"
    )
