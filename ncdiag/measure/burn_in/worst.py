"""Of passes that repeat, the worst of each figure; pure."""

from collections.abc import Iterable, Sequence
from dataclasses import replace

from ncdiag.model.burn_in import Figure, Stage, StageRun

_Key = tuple[str, Stage, str, str | None]


def keep_worst(runs: Sequence[StageRun]) -> list[StageRun]:
    """The runs, each with only those of its figures that no other pass has a worse one of.

    So the figures of a day of passes take the memory of one pass, or a few. What was found against
    hosts is kept of every pass, and who went through it as a list that passes share while the same
    hosts do.
    """
    worst: dict[_Key, Figure] = {}
    for figure in _figures(runs):
        known = worst.setdefault(_key(figure), figure)
        if _is_worse(figure, known):
            worst[_key(figure)] = figure
    return [
        replace(run, figures=tuple(one for one in run.figures if worst[_key(one)] is one))
        for run in runs
    ]


def _figures(runs: Iterable[StageRun]) -> Iterable[Figure]:
    return (figure for run in runs for figure in run.figures)


def _key(figure: Figure) -> _Key:
    return figure.host, figure.stage, figure.name, figure.component


def _is_worse(one: Figure, other: Figure) -> bool:
    return one.value < other.value if one.lower_is_worse else one.value > other.value
