"""``metrics.prom``: a Prometheus textfile, as node_exporter's textfile collector reads it."""

from collections import Counter
from collections.abc import Iterable, Iterator

from ncdiag.model.burn_in import BurnInReport, GateVerdict, Outcome
from ncdiag.report.exposition import Sample, finished, gauge


def render(report: BurnInReport) -> str:
    """Verdict, counts, stages, and what was decided of each host."""
    return "".join(
        line
        for name, text, samples in _families(report)
        for line in gauge(f"ncdiag_burn_in_{name}", text, samples)
    )


def _families(report: BurnInReport) -> Iterator[tuple[str, str, Iterable[Sample]]]:
    outcomes = Counter(one.outcome for one in report.hosts)
    isolate = set(report.isolate)
    yield (
        "verdict",
        "The verdict of the last burn-in: 1 on the one that holds.",
        [({"verdict": one}, float(one is report.verdict)) for one in GateVerdict],
    )
    yield "confidence_ratio", "How sure that verdict is.", [({}, report.confidence)]
    yield (
        "finished_timestamp_seconds",
        "When it ended, since 1970.",
        finished(report.started, report.seconds),
    )
    yield "duration_seconds", "How long it took.", [({}, report.seconds)]
    yield "passes", "How often all stages were begun.", [({}, report.passes)]
    yield "interrupted", "1 if it was stopped.", [({}, float(report.interrupted))]
    yield "hosts", "Hosts by outcome.", [({"outcome": one}, outcomes[one]) for one in Outcome]
    yield "hosts_needed", "Hosts the launch needs.", [({}, report.need)]
    yield "hosts_chosen", "Hosts chosen for it.", [({}, len(report.chosen))]
    yield "spares_wanted", "Spares wanted beside them.", [({}, report.spares_wanted)]
    yield "spares", "Spares found.", [({}, len(report.spares))]
    last = {run.stage: run for run in report.stages}
    yield (
        "stage_duration_seconds",
        "How long each stage took in the last pass.",
        [({"stage": one}, run.seconds) for one, run in last.items()],
    )
    yield (
        "stage_complete",
        "1 if the stage of the last pass came to its end.",
        [({"stage": one}, float(run.state == "done")) for one, run in last.items()],
    )
    yield (
        "host_good",
        "1 if the host may start.",
        [({"host": one.name}, float(one.outcome is Outcome.GOOD)) for one in report.hosts],
    )
    yield (
        "host_isolate",
        "1 if the host itself is to blame and should be left out of jobs.",
        [({"host": one.name}, float(one.name in isolate)) for one in report.hosts],
    )
