"""Who is far off the others: the rule that makes a suspect, before anything is repeated; pure."""

from collections.abc import Collection, Hashable, Mapping
from dataclasses import dataclass
from statistics import median
from typing import Final, TypeVar

Key = TypeVar("Key", bound=Hashable)

# Fewer have no usual figure: of three, the odd one may be the only one that is right.
LEAST_HOSTS: Final = 4
# The median absolute deviation of a normal distribution, as its standard deviation.
_SIGMA_OF_MAD: Final = 1.4826


@dataclass(frozen=True, slots=True)
class FarOff:
    """How far is too far: beyond this share of the median, and so many robust deviations.

    ``share`` is below 1: what a figure may fall to, or how far the inverse of a time may.
    Suspects are measured again alone: a few too many cost seconds, one too few passes for good.
    """

    share: float
    sigmas: float = 4.0
    lower_is_worse: bool = True

    def beyond(self, value: float, usual: float) -> bool:
        """Whether ``value`` is too far from ``usual`` by its share."""
        return value < self.share * usual if self.lower_is_worse else value * self.share > usual


# GPUs of a kind agree within some per cent; what a CPU delivers depends on who else runs there.
ON_GPUS: Final = FarOff(share=0.8)
ON_CPUS: Final = FarOff(share=0.5)


def usual(values: Mapping[Key, float]) -> float | None:
    """The median, ``None`` of nothing."""
    return median(values.values()) if values else None


def far_off(values: Mapping[Key, float], rule: FarOff) -> list[Key]:
    """The keys whose figure is far worse than usual, the worst first."""
    if len(values) < LEAST_HOSTS:
        return []
    middle = median(values.values())
    sigma = _SIGMA_OF_MAD * median(abs(value - middle) for value in values.values())
    sign = 1 if rule.lower_is_worse else -1
    found = [
        name
        for name, value in values.items()
        if rule.beyond(value, middle) and sign * (middle - value) > rule.sigmas * sigma
    ]
    return sorted(found, key=lambda name: sign * values[name])


def references(values: Mapping[Key, float], without: Collection[Key], count: int = 2) -> list[Key]:
    """The keys nearest to the median: whom to repeat beside a suspect."""
    middle = median(values.values()) if values else 0.0
    rest = [name for name in values if name not in without]
    return sorted(rest, key=lambda name: abs(values[name] - middle))[:count]
