"""``report.html``: the whole burn-in as one page that asks nobody for anything."""

import base64
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from markupsafe import Markup

from ncdiag.model.burn_in import BurnInReport, GateVerdict, Outcome, StageRun
from ncdiag.model.nodes import fold
from ncdiag.model.units import format_count, format_duration, format_share
from ncdiag.report import heatmap, page
from ncdiag.report.burn_in import describe
from ncdiag.report.burn_in.figures import FigureGroup, grouped
from ncdiag.report.burn_in.text import shown_runs

_STYLES: Final = ("page.css", "burn_in.css")
_MOST_HOSTS: Final = 2000
_MOST_GROUPS: Final = 200
# Of the hosts of a figure so many get a mark of their own: the worst, and some of all the rest.
_MOST_MARKS: Final = 240
_WORST_MARKS: Final = 40
# What the strip of a figure shows at least, in shares of the median.
_STRIP: Final = (0.7, 1.2)
# Whoever reaches this much of the median is not behind.
_BEHIND: Final = 0.995
_TONES: Final = {
    GateVerdict.MET: "healthy",
    GateVerdict.SHORT: "faulty",
    GateVerdict.UNDECIDED: "inconclusive",
}
_SYMBOLS: Final = {GateVerdict.MET: "✓", GateVerdict.SHORT: "!", GateVerdict.UNDECIDED: "?"}
_OUTCOMES: Final = (Outcome.REJECTED, Outcome.UNDECIDED, Outcome.GOOD)


@dataclass(frozen=True, slots=True)
class Bar:
    """A stage on the line of time: where it begins and how long it is, in per cent of all."""

    run: StageRun
    start: float
    length: float


@dataclass(frozen=True, slots=True)
class Strip:
    """The hosts' shares of their median as places from 0 to 100, and where that median is."""

    places: tuple[float, ...]
    median: float


def render(report: BurnInReport) -> str:
    """The page. It needs no script; its content security policy allows its own style only."""
    style = "\n".join(page.read(name) for name in _STYLES)
    hosts = sorted(report.hosts, key=lambda one: _OUTCOMES.index(one.outcome))
    groups = grouped(report)
    return (
        page.environment()
        .get_template("burn_in.html.j2")
        .render(
            report=report,
            describe=describe,
            fold=fold,
            format_count=format_count,
            format_duration=format_duration,
            format_share=format_share,
            tone=_TONES[report.verdict],
            symbol=_SYMBOLS[report.verdict],
            out=describe.by_reasons(describe.hosts_of(report, Outcome.REJECTED))[:_MOST_GROUPS],
            undecided=describe.by_reasons(describe.hosts_of(report, Outcome.UNDECIDED))[
                :_MOST_GROUPS
            ],
            bars=bars(shown_runs(report.stages)),
            figures=[(group, strip(group)) for group in groups],
            hosts=hosts[:_MOST_HOSTS],
            more_hosts=max(0, len(hosts) - _MOST_HOSTS),
            lists=_lists(report),
            worst=_worst(groups),
            outcome_tone={Outcome.REJECTED: "faulty", Outcome.GOOD: "healthy"},
            heatmap=_picture(report),
            style=Markup(style),  # noqa: S704 -- our own files
            style_hash=page.sha256(style),
        )
    )


def bars(runs: Sequence[StageRun]) -> list[Bar]:
    """One stage after the other."""
    total = sum(max(0.0, run.seconds) for run in runs) or 1.0
    found, start = [], 0.0
    for run in runs:
        length = 100 * max(0.0, run.seconds) / total
        found.append(Bar(run, start, length))
        start += length
    return found


def strip(group: FigureGroup) -> Strip:
    """Where each host stands, the slow ones on the left."""
    low, high = min(_STRIP[0], group.shares[0]), max(_STRIP[1], min(group.shares[-1], 2.0))
    worst, rest = group.shares[:_WORST_MARKS], group.shares[_WORST_MARKS:]
    step = -(-len(rest) // (_MOST_MARKS - _WORST_MARKS)) or 1
    shown = (*worst, *rest[::step])
    return Strip(tuple(_place(one, low, high) for one in shown), _place(1.0, low, high))


def _place(share: float, low: float, high: float) -> float:
    return round(100 * (min(share, high) - low) / (high - low), 2)


def _lists(report: BurnInReport) -> dict[str, str]:
    """What becomes of each host, in a word."""
    return {
        **dict.fromkeys(report.left, "left"),
        **dict.fromkeys(report.isolate, "isolate"),
        **dict.fromkeys(report.spares, "spare"),
        **dict.fromkeys(report.chosen, "chosen"),
    }


def _worst(groups: Sequence[FigureGroup]) -> dict[str, str]:
    """For each host what it is furthest behind its peers in."""
    worst: dict[str, tuple[float, str]] = {}
    for group in groups:
        for one, share in zip(group.figures, group.shares, strict=True):
            if share < worst.get(one.host, (_BEHIND,))[0]:
                worst[one.host] = share, f"{format_share(share)} {group.name}"
    return {host: text for host, (_, text) in worst.items()}


def _picture(report: BurnInReport) -> str | None:
    """The sweep's map of hosts by hosts as a PNG within the page."""
    if report.sweep is None or not report.sweep.diagnosis.links:
        return None
    return "data:image/png;base64," + base64.b64encode(heatmap.render(report.sweep)).decode()
