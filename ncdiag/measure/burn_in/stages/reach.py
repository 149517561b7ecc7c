"""Reach: every host is started once, for all stages; the processes that measure start with it."""

from collections import Counter
from collections.abc import Mapping

from ncdiag.measure.burn_in.result import StageOutcome
from ncdiag.measure.burn_in.testbed import Deadline, Testbed
from ncdiag.model.burn_in import Outcome, Stage, StageFinding, StageState
from ncdiag.model.units import format_count

_NOT_REACHED = "look at the host's power, network and sshd; then give it another try"
_NOT_MEASURED = "put right what the reason names; then give it another try"


def reach(bed: Testbed, _deadline: Deadline, pass_number: int) -> StageOutcome:
    """Start the fleet; in later passes, see who is still there."""
    if pass_number == 1:
        bed.start()
    else:
        bed.engine.listen_again()
    came_up = set(bed.fleet.up) | bed.fleet.versions.keys()
    findings = [
        _finding(name, why, reached=name in came_up, pass_number=pass_number)
        for name, why in bed.unreachable.items()
    ]
    findings += _lacking_gpus(bed, pass_number)
    bed.rejected |= {one.host for one in findings if one.outcome is Outcome.REJECTED}
    out = {one.host for one in findings}
    passed = tuple(name for name in bed.facts if name not in out)
    return StageOutcome(
        hosts=len(bed.plan.hosts),
        state=StageState.DONE if passed else StageState.FAILED,
        reason=None if passed else "no host can be measured",
        findings=findings,
        passed=passed,
    )


def _lacking_gpus(bed: Testbed, pass_number: int) -> list[StageFinding]:
    """Hosts on which torch sees fewer GPUs than on most hosts, unless the hosts file says so.

    With one of them all others would be measured with as few GPUs, and so would a job.
    """
    if not bed.on_gpus:
        return []
    usual = usual_count(bed.gpus)
    wanted = {host.name: min(usual, host.gpus or usual) for host in bed.plan.hosts}
    return [
        StageFinding(
            host=name,
            stage=Stage.HEALTH,
            outcome=Outcome.REJECTED,
            reason=f"torch sees {format_count(count, 'GPU')}, and it should be {wanted[name]}",
            confidence=0.95,
            confirmed=True,
            next=f"run ncdiag health on {name}; a smaller host is told by gpus= in the hosts file",
            pass_number=pass_number,
        )
        for name, count in bed.gpus.items()
        if count < wanted[name]
    ]


def usual_count(gpus: Mapping[str, int]) -> int:
    """How many GPUs most hosts have; 0 where no number is that of more than half, or of two."""
    [(count, hosts)] = Counter(gpus.values()).most_common(1) or [(0, 0)]
    return count if hosts > 1 and 2 * hosts > len(gpus) else 0


def _finding(name: str, why: str, *, reached: bool, pass_number: int) -> StageFinding:
    """A host that came up and cannot be measured is not unreachable: nothing is known of it."""
    return StageFinding(
        host=name,
        stage=Stage.LOCAL if reached else Stage.REACH,
        outcome=Outcome.UNDECIDED,
        reason=f"cannot be measured: {why}" if reached else why,
        confidence=0.0,
        next=_NOT_MEASURED if reached else _NOT_REACHED,
        pass_number=pass_number,
    )
