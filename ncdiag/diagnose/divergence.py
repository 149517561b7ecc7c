"""Where ranks of one process group parted, as their flight recorders tell it."""

from dataclasses import dataclass
from enum import StrEnum

from ncdiag.model.place import Place


class DivergenceKind(StrEnum):
    """How ranks differ, or do not.

    ``behind`` and ``ahead`` name the smaller side of one and the same picture; ranks that are as
    many as the others are named as ``behind``.
    """

    BEHIND = "behind"  # these did not enqueue what the others wait in
    AHEAD = "ahead"  # these, the fewer, wait in what the others did not enqueue
    ODD = "odd"  # same number, another operation, size or type
    UNFINISHED = "unfinished"  # all enqueued it, these did not complete it
    STUCK = "stuck"  # all enqueued the same and nobody completed it: the data path
    UNMATCHED = "unmatched"  # these did not post the other end of a transfer
    NO_DUMP = "no_dump"  # these are members, and left no dump while others wait


@dataclass(frozen=True, slots=True, kw_only=True)
class Divergence:
    """One group in which ranks parted, or stand still together.

    ``group`` is the group's name and ``description`` what the program calls it. ``ranks`` are those
    that the records point at, global numbers; ``others`` are those they are compared with, the ones
    that wait. For ``stuck``, and where no side is larger, all stand in ``ranks``, nobody in
    ``others``, and nobody is accused. ``seq`` is the number of the first collective that is not
    common to all, ``op`` what those who wait called there, as ``all_reduce``; ``odd_op`` what
    ``ranks`` called instead. ``waiting_in`` is the group in which ``ranks`` themselves are blocked,
    so that the cause lies there and this is its echo. ``confidence`` is between 0 and 1.
    ``places`` are the dumps of ``ranks``, then of others.
    """

    group: str
    kind: DivergenceKind
    ranks: tuple[int, ...]
    others: tuple[int, ...]
    explanation: str
    confidence: float
    description: str = ""
    seq: int | None = None
    op: str | None = None
    odd_op: str | None = None
    timeout_ms: int | None = None
    waiting_in: str | None = None
    at: str | None = None
    places: tuple[Place, ...] = ()

    @property
    def accuses(self) -> bool:
        """Whether ``ranks`` are suspects, rather than merely concerned."""
        return bool(self.others) and self.waiting_in is None
