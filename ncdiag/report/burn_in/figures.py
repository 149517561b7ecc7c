"""What hosts reached, beside the median of their peers."""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from ncdiag.model.burn_in import BurnInReport, Figure, Stage

_UNITS: Final = (
    ("_tflop_per_s", "TFLOP/s"),
    ("_gbit_per_s", "Gbit/s"),
    ("_gb_per_s", "GB/s"),
    ("_bytes", "B"),
    ("_us", "µs"),
    ("_ms", "ms"),
    ("_s", "s"),
)


@dataclass(frozen=True, slots=True)
class FigureGroup:
    """All figures of one kind, the worst first, each the worst of its host over all passes.

    ``shares`` are what each reaches of the median of its peers, in the same order; a time twice as
    long is a half. ``median`` is that of the worst.
    """

    stage: Stage
    name: str
    unit: str
    figures: tuple[Figure, ...]
    shares: tuple[float, ...]

    @property
    def worst(self) -> Figure:
        """The one that is furthest behind."""
        return self.figures[0]


def share(figure: Figure) -> float | None:
    """What the figure reaches of its peers' median; ``None`` where there is none."""
    if figure.median is None or figure.median <= 0 or figure.value < 0:
        return None
    if figure.lower_is_worse:
        return figure.value / figure.median
    return figure.median / figure.value if figure.value > 0 else None


def grouped(report: BurnInReport) -> list[FigureGroup]:
    """The figures by stage and name, where they can be compared."""
    worst: dict[tuple[Stage, str], dict[str, tuple[float, Figure]]] = defaultdict(dict)
    for run in report.stages:
        for one in run.figures:
            reached = share(one)
            of_kind = worst[one.stage, one.name]
            if reached is not None and reached < of_kind.get(one.host, (float("inf"),))[0]:
                of_kind[one.host] = reached, one
    order = list(Stage)
    found = [_group(stage, name, list(of.values())) for (stage, name), of in worst.items() if of]
    return sorted(found, key=lambda group: order.index(group.stage))


def _group(stage: Stage, name: str, reached: Sequence[tuple[float, Figure]]) -> FigureGroup:
    ordered = sorted(reached, key=lambda item: (item[0], item[1].host))
    plain, unit = next(
        ((name.removesuffix(end), unit) for end, unit in _UNITS if name.endswith(end)), (name, "")
    )
    return FigureGroup(
        stage=stage,
        name=plain.replace("_", " "),
        unit=unit,
        figures=tuple(one for _, one in ordered),
        shares=tuple(share_ for share_, _ in ordered),
    )
