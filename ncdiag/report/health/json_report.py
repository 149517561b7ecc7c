"""The health of hosts for programs: schema ``ncdiag/health/1``."""

from typing import Any, Final

import msgspec

from ncdiag.model.health import HealthReport
from ncdiag.report.health import describe
from ncdiag.report.json_document import layout

SCHEMA: Final = "ncdiag/health/1"
_DECIMALS: Final = 6


def render_health_json(report: HealthReport) -> bytes:
    """Everything, with the facts; what is not known is ``null``, never left out."""
    return layout(
        {
            "schema": SCHEMA,
            "verdict": describe.verdict(report),
            "started": report.started,
            "seconds": round(report.seconds, 3),
            "interval_s": report.interval_s,
            "hosts": [_public(msgspec.to_builtins(host)) for host in report.hosts],
            "differences": report.differences,
            "notes": report.notes,
        }
    )


def _public(value: Any) -> Any:
    """Under public names: Python has a use of its own for ``class``."""
    if isinstance(value, dict):
        return {"class" if key == "class_" else key: _public(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_public(item) for item in value]
    return round(value, _DECIMALS) if isinstance(value, float) else value
