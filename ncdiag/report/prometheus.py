"""``metrics.prom``: a Prometheus textfile, as node_exporter's textfile collector reads it."""

from collections import Counter
from collections.abc import Iterable, Iterator

from ncdiag.model.verdict import HostStatus, LinkStatus, LinkVerdict, SweepReport, Verdict
from ncdiag.report import describe
from ncdiag.report.exposition import Sample, finished, gauge

# Every labelled link is a time series of its own: the worst are kept, a fleet that is slow
# everywhere shows in the counts by status.
_MAX_LINKS = 1000


def render(report: SweepReport) -> str:
    """Verdict, counts, the figures of each host, and those of the links that are not healthy."""
    return "".join(
        line
        for name, text, samples in _families(report)
        for line in gauge(f"ncdiag_sweep_{name}", text, samples)
    )


def _families(report: SweepReport) -> Iterator[tuple[str, str, Iterable[Sample]]]:
    diagnosis, plan = report.diagnosis, report.plan
    hosts = Counter(host.status for host in diagnosis.hosts)
    links = Counter(link.status for link in diagnosis.links)
    isolate = set(diagnosis.isolate)
    yield (
        "verdict",
        "The verdict of the last sweep: 1 on the one that holds.",
        [({"verdict": one}, float(one is diagnosis.verdict)) for one in Verdict],
    )
    yield (
        "info",
        "How the last sweep was made.",
        [({"mode": plan.mode, "engine": plan.engine, "launcher": plan.launcher}, 1.0)],
    )
    yield (
        "finished_timestamp_seconds",
        "When the last sweep ended, in seconds since 1970.",
        finished(report.started, report.seconds),
    )
    yield "duration_seconds", "How long the last sweep took.", [({}, report.seconds)]
    yield (
        "interrupted",
        "1 if the last sweep was stopped before its end.",
        [({}, float(report.interrupted))],
    )
    yield "hosts", "Hosts by status.", [({"status": one}, hosts[one]) for one in HostStatus]
    yield (
        "links",
        "Directions of pairs by status.",
        [({"status": one}, links[one]) for one in LinkStatus],
    )
    yield (
        "culprit_confidence_ratio",
        "How sure it is that this component is at fault, from 0 to 1.",
        [
            ({"kind": one.kind, "name": one.name, "direction": one.direction}, one.confidence)
            for one in diagnosis.culprits
        ],
    )
    yield (
        "host_isolate",
        "1 if the host should be left out of jobs.",
        [({"host": host.name}, float(host.name in isolate)) for host in diagnosis.hosts],
    )
    yield (
        "host_efficiency_ratio",
        "Median over a host's links of measured over expected bandwidth.",
        [
            ({"host": host.name}, host.efficiency)
            for host in diagnosis.hosts
            if host.efficiency is not None
        ],
    )
    yield (
        "link_efficiency_ratio",
        f"Measured over expected (or the fleet's) bandwidth of the worst {_MAX_LINKS} links.",
        _slow_links(diagnosis.links),
    )


def _slow_links(links: Iterable[LinkVerdict]) -> list[Sample]:
    slow = [
        (share, link)
        for link in links
        if link.status is not LinkStatus.HEALTHY and (share := describe.share(link)) is not None
    ]
    slow.sort(key=lambda item: item[0])
    return [
        (
            {
                "source": link.source,
                "target": link.target,
                "rail": link.rail,
                "status": link.status,
            },
            share,
        )
        for share, link in slow[:_MAX_LINKS]
    ]
