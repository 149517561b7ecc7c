"""A sweep's findings in words, the same in every format."""

from collections import Counter, defaultdict
from collections.abc import Sequence

from ncdiag.model.nodes import fold
from ncdiag.model.units import format_count, format_duration, format_rate, format_share
from ncdiag.model.verdict import (
    Contention,
    Culprit,
    CulpritKind,
    Direction,
    HostStatus,
    LinkStatus,
    LinkVerdict,
    SweepReport,
    Verdict,
)

_HOST = "host"
_DIRECTIONS = {
    Direction.SEND: "sending",
    Direction.RECEIVE: "receiving",
    Direction.BOTH: "both directions",
}


def verdict(report: SweepReport) -> str:
    """One line: what was found, and how many hosts to leave out."""
    diagnosis = report.diagnosis
    if diagnosis.verdict is Verdict.HEALTHY:
        found = "nothing is wrong with the links that were measured"
    elif diagnosis.verdict is Verdict.FAULTY:
        found = format_count(len(diagnosis.culprits), "culprit")
        if report.plan.endpoint == _HOST:  # what is inside of one cannot be isolated
            hosts = format_count(report.plan.hosts, _HOST)
            found += f", isolate {len(diagnosis.isolate)} of {hosts}"
    else:
        found = ", ".join(_unknowns(report)) or "too little was measured to decide"
    stopped = " (interrupted: as known so far)" if report.interrupted else ""
    return found + stopped


def _unknowns(report: SweepReport) -> list[str]:
    hosts = Counter(host.status for host in report.diagnosis.hosts)
    links = Counter(link.status for link in report.diagnosis.links)
    unreachable, undecided = hosts[HostStatus.UNREACHABLE], hosts[HostStatus.INCONCLUSIVE]
    failed, unclear = links[LinkStatus.ERROR], links[LinkStatus.INCONCLUSIVE]
    end = report.plan.endpoint
    return [
        text
        for number, text in (
            (unreachable, f"{format_count(unreachable, end)} unreachable"),
            (undecided, f"{format_count(undecided, end)} undecided"),
            (failed, f"{format_count(failed, 'measurement')} failed"),
            (unclear, f"{format_count(unclear, 'link')} inconclusive"),
        )
        if number
    ]


def measured(report: SweepReport) -> str:
    """One line: when, how long, and what was planned."""
    plan, end = report.plan, report.plan.endpoint
    when = report.started.replace("T", " ").removesuffix("Z")
    return (
        f"{when} UTC, {format_duration(report.seconds)}; {format_count(plan.hosts, end)}, "
        f"{format_count(plan.pairs, 'pair')} in {format_count(plan.rounds, 'round')} "
        f"({plan.mode}, {plan.engine}, {plan.launcher})"
    )


def yardstick(report: SweepReport) -> str:
    """One line: what the links were compared with, both yardsticks where there are both."""
    links = [link for link in report.diagnosis.links if link.measured_gbit_per_s is not None]
    medians = sorted({link.fleet_gbit_per_s for link in links if link.fleet_gbit_per_s is not None})
    fleet = f"fleet median {_span(medians)}" if medians else ""
    derived = expectations(links)
    if not derived:
        return f"{fleet} (nothing is known that says what a link should reach)" if fleet else "none"
    rates = sorted({gbit_per_s for gbit_per_s, _, _ in derived})
    expected = f"expected {_span(rates)}, from {derived[0][1]}"
    if len(derived) > 1:
        expected += f", +{len(derived) - 1} more"
    return f"{expected}; {fleet}" if fleet else expected


def _span(rates: Sequence[float]) -> str:
    low, high = format_rate(rates[0]), format_rate(rates[-1])
    return low if low == high else f"{low} to {high}"


def expectations(links: Sequence[LinkVerdict]) -> list[tuple[float, str, int]]:
    """Each expectation in Gbit/s with its derivation and how many links it is for, most first."""
    counts = Counter(
        (link.expected_gbit_per_s, link.expected_from or "no derivation given")
        for link in links
        if link.expected_gbit_per_s is not None
    )
    return [(rate, why, number) for (rate, why), number in counts.most_common()]


def hosts_by_reason(report: SweepReport, status: HostStatus) -> list[tuple[str, str]]:
    """Folded hosts of one status and the reason they share, the most frequent reason first."""
    groups: defaultdict[str, list[str]] = defaultdict(list)
    for host in report.diagnosis.hosts:
        if host.status == status:
            # The name makes equal reasons differ: "connect to host h8 port 22: refused".
            groups[host.reason.replace(host.name, "HOST")].append(host.name)
    reasons = {host.name: host.reason for host in report.diagnosis.hosts}
    ordered = sorted(groups.items(), key=lambda item: -len(item[1]))
    return [
        (fold(names), reasons[names[0]] if len(names) == 1 else reason) for reason, names in ordered
    ]


def culprit(one: Culprit, endpoint: str = _HOST) -> str:
    """``host h3 (sending)``: what is blamed, and for which direction."""
    plain = one.name == one.kind or (one.kind is CulpritKind.HOST and endpoint != _HOST)  # gpu2
    name = one.name if plain else f"{one.kind} {one.name}"
    one_way = one.kind == "link" and one.direction is not Direction.BOTH
    return name if one_way else f"{name} ({_DIRECTIONS[one.direction]})"


def reaches(one: Culprit) -> str:
    """``12 %`` of what it should carry, or that what it carries arrives wrong."""
    return "wrong data" if one.damaged else percent(one.efficiency)


def contention(one: Contention) -> str:
    """One line: what is slow only while others send."""
    return (
        f"{one.name}: {format_rate(one.alone_gbit_per_s)} alone, "
        f"{format_rate(one.together_gbit_per_s)} together ({format_count(one.pairs, 'pair')}); "
        "no fault"
    )


def share(link: LinkVerdict) -> float | None:
    """Measured over expected; over the fleet's median where nothing is expected."""
    return link.fleet_ratio if link.efficiency is None else link.efficiency


def untested(report: SweepReport) -> str:
    """One line on planned pairs without a result; empty where there are none."""
    diagnosis = report.diagnosis
    pairs = max(diagnosis.untested_pairs, len(diagnosis.untested))
    return f"{format_count(pairs, 'planned pair')} not tested" if pairs else ""


def percent(share: float | None) -> str:
    """``98 %``, or ``-`` where there is no figure; whole only where that says enough."""
    if share is None:
        return "-"
    return format_share(share)
