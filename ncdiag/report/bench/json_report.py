"""``bench.json`` for programs: schema ``ncdiag/bench/1``."""

from dataclasses import asdict, fields
from typing import Any, Final

from ncdiag.model.bench import BenchReport
from ncdiag.report.json_document import layout

SCHEMA: Final = "ncdiag/bench/1"
_DIGITS = 6


def render(report: BenchReport) -> bytes:
    """The whole report; its fields are those of :class:`BenchReport`."""
    values = asdict(report)
    ordered = {one.name: values[one.name] for one in fields(report)}
    verdict = ordered.pop("verdict")
    return layout({"schema": SCHEMA, "verdict": verdict, **_rounded(ordered)})


def _rounded(value: Any) -> Any:
    """Figures without the noise of floating point."""
    if isinstance(value, float):
        return float(f"{value:.{_DIGITS}g}")
    if isinstance(value, dict):
        return {key: _rounded(one) for key, one in value.items()}
    if isinstance(value, (list, tuple)):
        return [_rounded(one) for one in value]
    return value
