"""Makes what came from outside safe to print, once, before any format renders it."""

from collections.abc import Iterable
from dataclasses import replace

from ncdiag.model.bench import BenchCurve, BenchFinding, BenchReport
from ncdiag.model.text import visible


def presentable(report: BenchReport) -> BenchReport:
    """``report`` with control characters visible in every name, reason and error."""
    return replace(
        report,
        started=visible(report.started),
        collective=visible(report.collective),
        engine=visible(report.engine),
        launcher=visible(report.launcher),
        curves=tuple(_curve(one) for one in report.curves),
        findings=tuple(_finding(one) for one in report.findings),
        unreachable=_mapping(report.unreachable),
        settings=_mapping(report.settings),
        versions=_mapping(report.versions),
        notes=_texts(report.notes),
    )


def _curve(curve: BenchCurve) -> BenchCurve:
    return replace(
        curve,
        hosts=_texts(curve.hosts),
        expected_from=_texts(curve.expected_from),
        error=_text(curve.error),
    )


def _finding(one: BenchFinding) -> BenchFinding:
    return replace(one, text=visible(one.text), next=visible(one.next), host=_text(one.host))


def _text(text: str | None) -> str | None:
    return text and visible(text)


def _texts(texts: Iterable[str]) -> tuple[str, ...]:
    return tuple(visible(text) for text in texts)


def _mapping(texts: dict[str, str]) -> dict[str, str]:
    return {visible(key): visible(value) for key, value in texts.items()}
