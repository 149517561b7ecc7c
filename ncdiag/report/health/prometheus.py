"""Metrics of the health of hosts: ``ncdiag_health_*``, for node_exporter's textfile collector."""

from collections import Counter
from collections.abc import Iterable, Iterator

from ncdiag.model.health import HealthReport, HostFitness, HostHealth, SourceState
from ncdiag.model.text import visible
from ncdiag.report.exposition import Sample, finished, gauge


def render_health_metrics(report: HealthReport) -> str:
    """State and findings of each host; a finding that is gone has no sample any more."""
    return "".join(
        line
        for name, text, samples in _families(report)
        for line in gauge(f"ncdiag_health_{name}", text, samples)
    )


def _families(report: HealthReport) -> Iterator[tuple[str, str, Iterable[Sample]]]:
    hosts = report.hosts
    fitness = Counter(host.fitness for host in hosts)
    yield "hosts", "Hosts by fitness.", [({"fitness": one}, fitness[one]) for one in HostFitness]
    yield (
        "host_fitness",
        "The fitness of a host: 1 on the one that holds.",
        [
            ({"host": visible(host.host), "fitness": one}, float(host.fitness is one))
            for host in hosts
            for one in HostFitness
        ],
    )
    yield "findings", "Findings of a check on a host.", _findings(hosts)
    yield "checks", "Checks of a host by what came of them.", _checks(hosts)
    yield "source_read", "1 if a source that is there could be read.", _sources(hosts)
    yield "source_duration_seconds", "How long reading a source took.", _source_seconds(hosts)
    yield (
        "facts_timestamp_seconds",
        "When a host told its facts, by its own clock, in seconds since 1970.",
        [({"host": visible(host.host)}, host.facts.taken_s) for host in hosts if host.facts],
    )
    yield "duration_seconds", "How long asking and judging took.", [({}, report.seconds)]
    yield "interval_seconds", "Time between the two readings compared.", _interval(report)
    yield (
        "finished_timestamp_seconds",
        "When hosts were last judged, in seconds since 1970.",
        finished(report.started, report.seconds),
    )


def _findings(hosts: Iterable[HostHealth]) -> Iterator[Sample]:
    for host in hosts:
        single = dict.fromkeys(
            (one.check, one.severity, one.device or one.text) for one in host.findings
        )
        counted = Counter((check, severity) for check, severity, _ in single)
        for (check, severity), number in counted.items():
            labels = {"host": visible(host.host), "check": check, "severity": severity}
            yield labels, float(number)


def _checks(hosts: Iterable[HostHealth]) -> Iterator[Sample]:
    for host in hosts:
        results = {
            "passed": len(host.passed),
            "tripped": len({one.check for one in host.findings}),
            "not_known": len(host.not_known),
        }
        for result, number in results.items():
            yield {"host": visible(host.host), "result": result}, float(number)


def _sources(hosts: Iterable[HostHealth]) -> Iterator[Sample]:
    for host in hosts:
        for one in host.facts.sources if host.facts else ():
            if one.state is not SourceState.ABSENT:
                labels = {"host": visible(host.host), "source": one.source}
                yield labels, float(one.state is SourceState.READ)


def _source_seconds(hosts: Iterable[HostHealth]) -> Iterator[Sample]:
    for host in hosts:
        for one in host.facts.sources if host.facts else ():
            if one.state is not SourceState.ABSENT:
                yield {"host": visible(host.host), "source": one.source}, one.seconds


def _interval(report: HealthReport) -> list[Sample]:
    return [] if report.interval_s is None else [({}, report.interval_s)]
