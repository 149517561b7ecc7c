"""A comparison as JSON, schema ``ncdiag/comparison/1``."""

from collections.abc import Iterable, Iterator
from dataclasses import asdict
from typing import Any

from ncdiag.diagnose.comparison import Comparison
from ncdiag.report.json_document import layout

SCHEMA = "ncdiag/comparison/1"
_DECIMALS = 6


def render_json(comparison: Comparison) -> bytes:
    """Everything that changed; what is the same is only counted."""
    return layout(
        {
            "schema": SCHEMA,
            "change": comparison.change,
            "before": asdict(comparison.before),
            "after": asdict(comparison.after),
            "compared": comparison.compared,
            "fleet_ratio": _rounded(comparison.fleet_ratio),
            "counts": {str(change): count for change, count in comparison.counts.items()},
            "culprits": _items(comparison.culprits),
            "hosts": _items(comparison.hosts),
            "links": _items(comparison.links),
            "notes": list(comparison.notes),
        }
    )


def _items(records: Iterable[Any]) -> Iterator[dict[str, Any]]:
    for record in records:
        yield {name: _rounded(value) for name, value in asdict(record).items()}


def _rounded(value: Any) -> Any:
    return round(value, _DECIMALS) if isinstance(value, float) else value
