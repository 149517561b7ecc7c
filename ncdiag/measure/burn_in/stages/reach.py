"""Reach: every host is started once, for all stages; the processes that measure start with it."""

from ncdiag.measure.burn_in.result import StageOutcome
from ncdiag.measure.burn_in.testbed import Deadline, Testbed
from ncdiag.model.burn_in import Outcome, Stage, StageFinding, StageState

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
    out = {one.host for one in findings}
    passed = tuple(name for name in bed.facts if name not in out)
    return StageOutcome(
        hosts=len(bed.plan.hosts),
        state=StageState.DONE if passed else StageState.FAILED,
        reason=None if passed else "no host can be measured",
        findings=findings,
        passed=passed,
    )


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
