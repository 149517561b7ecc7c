"""``report.json``: everything a burn-in concluded, schema ``ncdiag/burn-in/1``; and back."""

from dataclasses import fields
from typing import Any, Final

import msgspec

from ncdiag.model.burn_in import BurnInReport
from ncdiag.model.errors import UsageError
from ncdiag.model.verdict import Diagnosis, SweepReport
from ncdiag.report import json_report as sweep_json
from ncdiag.report.health.json_report import render_health_json
from ncdiag.report.json_document import layout

SCHEMA: Final = "ncdiag/burn-in/1"
_DIGITS: Final = 6
_FIRST: Final = ("verdict", "confidence", "started", "seconds", "interrupted", "level")
_WHOLE: Final = ("sweep", "health")


def render(report: BurnInReport) -> bytes:
    """The whole report; its fields are those of :class:`BurnInReport`.

    ``sweep`` is a whole document ``ncdiag/sweep/1``, ``health`` one of ``ncdiag/health/1``.
    """
    names = [one.name for one in fields(report) if one.name not in (*_FIRST, *_WHOLE)]
    document = {name: _public(msgspec.to_builtins(getattr(report, name))) for name in _FIRST}
    document |= {name: _public(msgspec.to_builtins(getattr(report, name))) for name in names}
    sweep, health = report.sweep, report.health
    document["sweep"] = None if sweep is None else msgspec.Raw(sweep_json.render(sweep).strip())
    document["health"] = None if health is None else msgspec.Raw(render_health_json(health).strip())
    return layout({"schema": SCHEMA, **document})


def read(document: bytes, where: str) -> BurnInReport:
    """The report that :func:`render` wrote; raises :class:`UsageError`, naming ``where``."""
    try:
        values = msgspec.json.decode(document)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise UsageError(f"{where} is no JSON: {error}") from error
    schema = values.get("schema") if isinstance(values, dict) else None
    if schema != SCHEMA:
        raise UsageError(f"{where} is no report of a burn-in (schema {SCHEMA}), but {schema!r}")
    try:
        values["sweep"] = _sweep(values.get("sweep"))
        return msgspec.convert(_ours(values), BurnInReport)
    except (msgspec.ValidationError, RecursionError) as error:
        raise UsageError(f"{where} is damaged, or of another version: {error}") from error


def _sweep(document: Any) -> Any:
    """The fields of a sweep's report, of a document that has those of its diagnosis beside it."""
    if not isinstance(document, dict):
        return document
    inner = {one.name for one in fields(Diagnosis)}
    outer = {one.name for one in fields(SweepReport)} - {"diagnosis"}
    return {name: document[name] for name in outer if name in document} | {
        "diagnosis": {name: document[name] for name in inner if name in document}
    }


def _public(value: Any) -> Any:
    """Figures without the noise of floating point, names without what Python needs of them."""
    if isinstance(value, float):
        return float(f"{value:.{_DIGITS}g}")
    if isinstance(value, dict):
        return {"class" if key == "class_" else key: _public(one) for key, one in value.items()}
    if isinstance(value, (list, tuple)):
        return [_public(one) for one in value]
    return value


def _ours(value: Any) -> Any:
    if isinstance(value, dict):
        return {"class_" if key == "class" else key: _ours(one) for key, one in value.items()}
    return [_ours(one) for one in value] if isinstance(value, list) else value
