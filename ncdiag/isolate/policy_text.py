"""A policy as it is in force, in the words of a policy file."""

from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

from ncdiag.isolate.policy import Policy, Rule
from ncdiag.model.isolation import EvidenceKind


def as_document(policy: Policy) -> dict[str, Any]:
    """The policy as JSON has it; of classes, those whose rule is not that of their kind."""
    return {
        "budget": asdict(policy.budget),
        "lemon": {**asdict(policy.lemon), "action": policy.lemon.action.value},
        "kinds": {kind.value: asdict(rule) for kind, rule in policy.rules.items()},
        "classes": [
            {"kind": kind.value, "class": class_, **asdict(rule)}
            for (kind, class_), rule in sorted(policy.classes.items())
            if rule != policy.rules[kind]
        ],
    }


def as_text(policy: Policy) -> str:
    """The policy as a policy file that says all of it."""
    budget, lemon = policy.budget, policy.lemon
    parts = [
        _table("budget", {"hosts": budget.hosts, "per_cent": budget.per_cent}),
        f"per_leaf = {budget.per_leaf}",
        "",
        _table(
            "lemon",
            {
                "action": lemon.action.value,
                "threshold": lemon.threshold,
                "half_life": _duration(lemon.half_life_s),
                "days": lemon.days,
            },
        ),
        "",
        _table("lemon.weights", dict(lemon.weights)),
    ]
    for kind in EvidenceKind:
        parts += ["", _table(f"kind.{kind.value}", _rule(policy.rules[kind]))]
    for class_ in sorted({class_ for _, class_ in policy.classes}):
        parts += ["", _table(f"class.{class_}", _own(policy, class_))]
    return "\n".join(parts) + "\n"


def _own(policy: Policy, class_: str) -> dict[str, Any]:
    """What the rule of a class changes, whatever kind of evidence it is seen by."""
    pairs = [
        (_rule(policy.classes[kind, class_]), _rule(policy.rules[kind])) for kind in EvidenceKind
    ]
    first, _ = pairs[0]
    return {
        key: value
        for key, value in first.items()
        if all(own[key] == value for own, _ in pairs)
        and any(of_kind[key] != value for _, of_kind in pairs)
    }


def _rule(rule: Rule) -> dict[str, Any]:
    return {
        "isolates": rule.isolates,
        "confirmations": rule.confirmations,
        "of": rule.of,
        "within": _duration(rule.within_s),
        "partners": rule.partners,
        "confidence": rule.confidence,
        "grace": _duration(rule.grace_s),
        "counts_for": _duration(rule.counts_for_s),
        "cleared_by_clean_runs": rule.cleared_by_clean_runs,
        "cleared_by_boot": rule.cleared_by_boot,
        "sticky": rule.sticky,
    }


def _table(name: str, values: Mapping[str, Any]) -> str:
    return "\n".join((f"[{name}]", *(f"{key} = {_value(one)}" for key, one in values.items())))


def _value(value: object) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    return f'"{value}"' if isinstance(value, str) else f"{value:g}"


def _duration(seconds: float) -> str:
    """In the largest unit that it is a whole number of, as a policy file has it."""
    for unit, size_s in (("d", 86400.0), ("h", 3600.0), ("m", 60.0)):
        if seconds and seconds % size_s == 0:
            return f"{seconds / size_s:.0f}{unit}"
    return f"{seconds:g}s"
