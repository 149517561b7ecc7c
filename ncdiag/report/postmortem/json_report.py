"""A post-mortem for programs: schema ``ncdiag/postmortem/1``."""

from dataclasses import fields
from typing import Any, Final

from ncdiag.model.finding import BenchmarkSummary, Finding, Isolation, Postmortem
from ncdiag.report.json_document import layout
from ncdiag.report.postmortem.presentable import presentable

SCHEMA: Final = "ncdiag/postmortem/1"
# Of a share that is a per mille, finer than anybody can be sure.
_SHARE_DECIMALS = 3
_RATE_DECIMALS = 6


def render(postmortem: Postmortem) -> bytes:
    """The whole answer; what the input does not tell is ``null``."""
    shown = presentable(postmortem)
    return layout(
        {
            "schema": SCHEMA,
            "verdict": shown.verdict,
            "inputs": shown.inputs,
            "library": shown.library,
            "job": shown.job,
            "network": shown.network,
            "benchmarks": [_rounded(one, _RATE_DECIMALS) for one in shown.benchmarks],
            "findings": [_finding(one) for one in shown.findings],
            "isolate": [_isolation(one) for one in shown.isolate],
        }
    )


def _finding(finding: Finding) -> dict[str, Any]:
    """The fields under their public names: Python has a use of its own for ``class``."""
    values = _rounded(finding, _SHARE_DECIMALS)
    return {"class": values.pop("class_"), **values}


def _isolation(entry: Isolation) -> dict[str, Any]:
    """The surest reason; the findings tell the others."""
    return {name: one for name, one in _rounded(entry, _SHARE_DECIMALS).items() if name != "also"}


def _rounded(record: Finding | Isolation | BenchmarkSummary, decimals: int) -> dict[str, Any]:
    values = {one.name: getattr(record, one.name) for one in fields(record)}
    return {
        name: round(value, decimals) if isinstance(value, float) else value
        for name, value in values.items()
    }
