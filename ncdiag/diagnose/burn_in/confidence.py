"""How sure a burn-in is of a host, and of its verdict: simple rules, not probabilities."""

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from ncdiag.model.burn_in import GateVerdict, Stage

# The share of bad hosts that a stage finds, so far as those who ran such gates tell: bandwidth
# tests miss hosts that fail under load, and health checks those that compute slowly. Judgement,
# not measurement; what counts is that more stages make surer.
FINDS: Final[Mapping[Stage, float]] = {
    Stage.REACH: 0.1,
    Stage.HEALTH: 0.4,
    Stage.LOCAL: 0.5,
    Stage.PAIRS: 0.6,
    Stage.COLLECTIVE: 0.5,
    Stage.LOAD: 0.6,
}
# Of what a stage would find, each repetition finds this share of what the first has missed.
REPEATED: Final = 0.1
# A degraded host is fit, and less surely so.
DEGRADED: Final = 0.8
# Of a faulty host whose culprit says nothing of how sure it is.
FAULTY: Final = 0.9


def of_good(passes: Mapping[Stage, int], *, degraded: bool = False) -> float:
    """What the stages that a host went through would have found, had there been anything."""
    doubt = 1.0
    for stage, times in passes.items():
        if times:
            doubt *= (1 - FINDS[stage]) * (1 - REPEATED * FINDS[stage]) ** (times - 1)
    return (1 - doubt) * (DEGRADED if degraded else 1.0)


def of_verdict(
    verdict: GateVerdict, chosen: Iterable[float], rejected: Sequence[float], *, lacking: int
) -> float:
    """``MET`` is as sure as its least sure host; ``UNDECIDED`` is not sure at all.

    ``SHORT`` is wrong only where the ``lacking`` least sure of the rejected hosts were all fit.
    """
    if verdict is GateVerdict.MET:
        return min(chosen, default=0.0)
    if verdict is GateVerdict.UNDECIDED:
        return 0.0
    least_sure = sorted(rejected)[:lacking]
    return 1 - math.prod(1 - one for one in least_sure) if len(least_sure) == lacking else 1.0
