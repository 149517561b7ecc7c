"""``report.json``: everything a sweep concluded, schema ``ncdiag/sweep/1``."""

from collections.abc import Iterator, Sequence
from dataclasses import fields
from operator import attrgetter
from typing import Any

from ncdiag.model.verdict import SweepReport
from ncdiag.report.json_document import layout

SCHEMA = "ncdiag/sweep/1"
# Of a Gbit/s that is 1 kbit/s, finer than any link can be measured.
DECIMALS = 6


def render(report: SweepReport) -> bytes:
    """The whole report as JSON: a key a line, in lists an item a line, so that it can be diffed.

    A figure that is not a finite number becomes ``null``.
    """
    return layout(_document(report))


def _document(report: SweepReport) -> dict[str, Any]:
    diagnosis = report.diagnosis
    return {
        "schema": SCHEMA,
        "verdict": diagnosis.verdict,
        "started": report.started,
        "seconds": round(report.seconds, 3),
        "interrupted": report.interrupted,
        "plan": report.plan,
        "hosts": _rounded(diagnosis.hosts),
        "links": _rounded(diagnosis.links),
        "culprits": _rounded(diagnosis.culprits),
        "contention": _rounded(diagnosis.contention),
        "untested": diagnosis.untested,
        "untested_pairs": diagnosis.untested_pairs,
        "isolate": diagnosis.isolate,
        "good": diagnosis.good,
        "notes": diagnosis.notes,
        "settings": report.settings,
        "versions": report.versions,
    }


def _rounded(records: Sequence[Any]) -> Iterator[dict[str, Any]]:
    """The records' fields, floats cut to the digits that mean something."""
    if not records:
        return
    names = [field.name for field in fields(records[0])]
    floats = [field.name for field in fields(records[0]) if "float" in str(field.type)]
    values = attrgetter(*names)
    for record in records:
        item = dict(zip(names, values(record), strict=True))
        for name in floats:
            if item[name] is not None:
                item[name] = round(item[name], DECIMALS)
        yield item
