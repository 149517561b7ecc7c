"""Counts lines by their shape: what is left of a line without all that differs between alike ones.

In a flood most lines have a shape of which nothing more is kept. One in a hundred of these is
looked at, and the others are counted on what it was.
"""

import re
from collections.abc import Iterator, Sequence

from ncdiag.model.log import Event
from ncdiag.read.scan import HitLine

_MOST_KNOWN = 50_000
_MOST_HEARD = 20_000
# How many lines of a shape come between two that are looked at.
MOST_SKIPPED = 127
_MUTED_AFTER = 25
# What differs between lines that say alike: numbers, and the letters of pointers and addresses.
_VARIABLE = b"0123456789abcdef"
_LARGE = re.compile(rb"[0-9a-f][0-9a-f.]{3,}")
# The library begins its lines with host:pid:thread.
_PREFIX_COLONS = 2


class Tally:
    """How often a known event came again, and where last."""

    __slots__ = ("count", "event", "number", "raw")

    def __init__(self, event: Event) -> None:
        self.event = event
        self.count = 0
        self.number = 0
        self.raw = b""

    def add(self, raw: bytes, number: int) -> None:
        """Count line ``number``."""
        self.count += 1
        self.number, self.raw = number, raw


class Shape:
    """Lines of one shape.

    ``skipped`` counts those not looked at since the last one that was, whose ``tallies`` they are.
    ``voices`` have been heard: where others than signatures read such lines, each process may say
    there where it is. Where lines of one shape may differ by a number that matters, ``finer``
    shapes decide.
    """

    __slots__ = ("fine", "finer", "may_skip", "muted", "seen", "skipped", "tallies", "voices")

    def __init__(self, *, fine: bool) -> None:
        self.fine = fine
        self.finer: dict[bytes, Shape] | None = None
        self.muted = False
        self.seen = 0
        self.skipped = 0
        self.may_skip = MOST_SKIPPED
        self.tallies: Sequence[Tally] = ()
        self.voices: set[bytes] | None = None

    def note(self, tallies: Sequence[Tally], voices: set[bytes] | None) -> None:
        """Take a line that was looked at: it stands for those before it, and for those to come."""
        self.settle(tallies)
        self.tallies, self.voices = tallies, voices
        self._decide()
        self.seen += 1

    def settle(self, tallies: Sequence[Tally]) -> None:
        """Count the lines that were skipped."""
        for tally in tallies:
            tally.count += self.skipped
        self.skipped = 0

    def mute(self, *, finer: bool) -> None:
        """Let few lines be looked at from now on, or few of each ``finer`` shape."""
        self.muted = True
        self.finer = {} if finer else None
        self._decide()

    def _decide(self) -> None:
        """How many lines may be skipped by their shape alone, not told apart any further."""
        self.may_skip = MOST_SKIPPED if self.finer is None and self.voices is None else 0

    def skips(self, raw: bytes) -> bool:
        """Whether the line need not be looked at, after a closer look at it; it is counted then."""
        if self.finer is not None:
            finer = self.finer.get(_fine(raw))
            return finer is not None and finer.muted and finer.skips(raw)
        if self.skipped >= MOST_SKIPPED:
            return False
        if self.voices is not None and not was_heard(raw, self.voices):
            return False
        self.skipped += 1
        return True

    @property
    def due(self) -> bool:
        """Whether it is time to decide if such lines need be looked at."""
        return not self.muted and (self.fine or self.seen % _MUTED_AFTER == 0)


class Shapes:
    """The shapes of one input's lines."""

    def __init__(self) -> None:
        self._shapes: dict[bytes, Shape] = {}
        self._muted: dict[bytes, Shape] = {}
        self._count = 0
        # What lines begin with, which is a host's name where the library wrote them.
        self._heard: set[bytes] = set()

    def of(self, raw: bytes) -> Shape | None:
        """The shape of a line; ``None`` where there are too many."""
        shape = self._known(self._shapes, raw.translate(None, _VARIABLE), fine=False)
        if shape is None or shape.finer is None:
            return shape
        return self._known(shape.finer, _fine(raw), fine=True)

    def _known(self, shapes: dict[bytes, Shape], key: bytes, *, fine: bool) -> Shape | None:
        shape = shapes.get(key)
        if shape is None and self._count < _MOST_KNOWN:
            shape = shapes[key] = Shape(fine=fine)
            self._count += 1
        return shape

    def mute(self, raw: bytes, shape: Shape, *, finer: bool) -> None:
        """Look at few lines of this shape from now on, or at few of each ``finer`` one."""
        shape.mute(finer=finer)
        if not shape.fine:
            self._muted[raw.translate(None, _VARIABLE)] = shape

    def unmuted(self, block: bytearray, lines: Sequence[HitLine]) -> Iterator[HitLine]:
        """The lines of ``block`` that need be looked at, each host's first among them.

        The others are counted.
        """
        if not self._muted:
            yield from lines
            return
        joined = b"\n".join([block[start:end] for start, end, _ in lines])
        raws = joined.split(b"\n")
        keys = joined.translate(None, _VARIABLE).split(b"\n")
        strange = self._strange(raws)
        for at, shape in enumerate(map(self._muted.get, keys[: len(lines)])):
            if shape is None or (strange and not self._was_heard(raws[at])):
                yield lines[at]
            elif shape.skipped < shape.may_skip:
                shape.skipped += 1
            elif not shape.skips(raws[at]):
                yield lines[at]

    def _strange(self, raws: Sequence[bytes]) -> bool:
        """Whether one of the lines begins as none before."""
        return not self._heard.issuperset({raw.partition(b":")[0] for raw in raws})

    def _was_heard(self, raw: bytes) -> bool:
        """Whether a line before began so; of too many beginnings nobody can tell."""
        return raw.partition(b":")[0] in self._heard or len(self._heard) >= _MOST_HEARD

    def hear(self, raw: bytes) -> None:
        """Note who speaks in a line that is looked at."""
        if len(self._heard) < _MOST_HEARD:
            self._heard.add(raw.partition(b":")[0])

    def finish(self) -> None:
        """Count what was skipped last."""
        for shape in self._shapes.values():
            for one in (shape, *(shape.finer or {}).values()):
                one.settle(one.tallies)


def _fine(raw: bytes) -> bytes:
    """A message without addresses, pointers and large numbers: ports and pids go, codes stay."""
    start = raw.find(b" NCCL ")
    return _LARGE.sub(b"", raw[start:] if start >= 0 else raw.partition(b" ")[2])


def speaker_of(raw: bytes) -> bytes:
    """What tells whose line it is: its process or rank where it begins with one, else all of it."""
    first, _, _ = raw.partition(b" ")
    return first if first.startswith(b"[rank") or first.count(b":") == _PREFIX_COLONS else raw


def was_heard(raw: bytes, speakers: set[bytes]) -> bool:
    """Whether the line's speaker is one of ``speakers``."""
    return raw.partition(b" ")[0] in speakers or raw in speakers
