"""Makes what came from outside safe to print, once, before any format renders it."""

from dataclasses import fields, is_dataclass, replace
from enum import Enum
from typing import Any

from ncdiag.model.burn_in import BurnInReport
from ncdiag.model.text import visible
from ncdiag.report.presentable import presentable as presentable_sweep


def presentable(report: BurnInReport) -> BurnInReport:
    """``report`` with control characters visible in every text.

    The health of hosts is left as it is: what is printed of it stands in the stage's findings.
    """
    sweep, health = report.sweep, report.health
    shown: BurnInReport = _shown(replace(report, sweep=None, health=None))
    return replace(shown, sweep=None if sweep is None else presentable_sweep(sweep), health=health)


def _shown(value: Any) -> Any:
    if isinstance(value, Enum):
        return value
    if isinstance(value, str):
        return visible(value)
    if isinstance(value, tuple):
        return tuple(map(_shown, value))
    if isinstance(value, dict):
        return {visible(key): _shown(item) for key, item in value.items()}
    if is_dataclass(value) and not isinstance(value, type):
        return replace(
            value, **{one.name: _shown(getattr(value, one.name)) for one in fields(value)}
        )
    return value
