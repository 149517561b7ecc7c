"""``--sizes 8:8G:2``: the message sizes of a benchmark."""

from dataclasses import dataclass

from ncdiag.model.errors import UsageError
from ncdiag.model.text import visible
from ncdiag.model.units import format_bytes, parse_size_bytes

# No GPU has a buffer of more.
_MOST_BYTES = 1 << 40


@dataclass(frozen=True, slots=True)
class Sizes:
    """From ``least_bytes`` to ``most_bytes``, each ``factor`` times the one before."""

    least_bytes: int
    most_bytes: int
    factor: int = 2

    def each(self) -> tuple[int, ...]:
        """All of them, the smallest first."""
        found = [self.least_bytes]
        while found[-1] * self.factor <= self.most_bytes:
            found.append(found[-1] * self.factor)
        return tuple(found)

    def __str__(self) -> str:
        return (
            f"{format_bytes(self.least_bytes)} to {format_bytes(self.most_bytes)}, x{self.factor}"
        )


def parse_sizes(text: str) -> Sizes:
    """``LEAST:MOST[:FACTOR]``, or one size alone; raises :class:`UsageError`."""
    parts = text.split(":")
    if not 1 <= len(parts) <= 3:
        raise _refusal(text)
    least = parse_size_bytes(parts[0])
    most = parse_size_bytes(parts[1]) if len(parts) > 1 else least
    factor = parts[2] if len(parts) > 2 else "2"
    if not (factor.isascii() and factor.isdigit() and len(factor) < 5 and int(factor) > 1):
        raise _refusal(text)
    if least <= 0:
        raise UsageError(f"a size must be above zero: {visible(text[:80])!r}")
    if most > _MOST_BYTES:
        raise UsageError(
            f"a size can be {format_bytes(_MOST_BYTES)} at most: {visible(text[:80])!r}"
        )
    if least > most:
        raise UsageError(f"the first size must not exceed the last: {visible(text[:80])!r}")
    return Sizes(least, most, int(factor))


def _refusal(text: str) -> UsageError:
    return UsageError(
        f"sizes are LEAST:MOST:FACTOR with a whole factor above 1, as 8:8G:2; "
        f"not {visible(text[:80])!r}"
    )
