"""Makes a post-mortem fit to print, once, before any format renders it."""

from collections.abc import Collection, Mapping
from dataclasses import fields, is_dataclass, replace
from enum import Enum
from typing import Any

from ncdiag.model.finding import Finding, Postmortem
from ncdiag.model.text import visible
from ncdiag.report.postmortem import describe


def presentable(postmortem: Postmortem) -> Postmortem:
    """Return ``postmortem`` with control characters visible in every text, names in its commands.

    Each format still escapes what has a meaning in that format.
    """
    shown: Postmortem = _shown(postmortem)
    return replace(shown, findings=[_with_names(one, shown.job.hosts) for one in shown.findings])


def _with_names(finding: Finding, hosts: Collection[str]) -> Finding:
    actions = [describe.filled(action, finding, hosts) for action in finding.actions]
    return replace(finding, actions=actions)


def _shown(value: Any) -> Any:
    if isinstance(value, str):
        return value if isinstance(value, Enum) else visible(value)
    if is_dataclass(value) and not isinstance(value, type):
        return replace(
            value, **{one.name: _shown(getattr(value, one.name)) for one in fields(value)}
        )
    if isinstance(value, Mapping):
        return {_shown(key): _shown(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return tuple(_shown(item) for item in value)
    return value
