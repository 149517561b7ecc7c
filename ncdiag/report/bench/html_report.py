"""``bench.html``: the benchmark as one page that asks nobody for anything."""

from markupsafe import Markup

from ncdiag.model.bench import BenchReport, BenchSeverity
from ncdiag.model.nodes import fold
from ncdiag.model.units import format_bytes, format_count
from ncdiag.model.verdict import Verdict
from ncdiag.report import page
from ncdiag.report.bench import describe
from ncdiag.report.bench.chart import hosts_chart, sizes_chart

_STYLES = ("page.css", "bench.css")
_MOST_FINDINGS = 200


def render(report: BenchReport) -> str:
    """The page. It needs no script; its content security policy allows its own style only."""
    style = "\n".join(page.read(name) for name in _STYLES)
    curve = describe.largest(report)
    others = [one for one in report.curves if one is not curve and one.points]
    return (
        page.environment()
        .get_template("bench.html.j2")
        .render(
            report=report,
            curve=curve,
            describe=describe,
            fold=fold,
            format_bytes=format_bytes,
            format_count=format_count,
            symbol={Verdict.HEALTHY: "✓", Verdict.FAULTY: "!", Verdict.INCONCLUSIVE: "?"},
            tone={BenchSeverity.FAULT: "faulty", BenchSeverity.NOTE: "degraded"},
            findings=report.findings[:_MOST_FINDINGS],
            more_findings=max(0, len(report.findings) - _MOST_FINDINGS),
            sizes_chart=None if curve is None else sizes_chart(curve, others),
            hosts_chart=hosts_chart(report.curves),
            style=Markup(style),  # noqa: S704 -- our own files
            style_hash=page.sha256(style),
        )
    )
