"""Reads policy files: strictly, over the shipped one, and within ceilings."""

import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final, NoReturn, TypeVar

import msgspec

from ncdiag.isolate.policy import (
    MAX_PER_CENT,
    MIN_BANDWIDTH_PARTNERS,
    SHIPPED,
    Budget,
    LemonRule,
    Policy,
    Rule,
)
from ncdiag.isolate.words import KNOWN_CLASSES, OPERATOR, SLOW_HOST, SLOW_NIC, health_checks
from ncdiag.model.errors import UsageError
from ncdiag.model.isolation import Action, EvidenceKind
from ncdiag.model.text import did_you_mean, visible
from ncdiag.model.units import format_duration, parse_duration_s
from ncdiag.profiles.toml_bounds import excess
from ncdiag.store.evidence_rows import KEPT_CLEAN_RUNS
from ncdiag.store.evidence_table import MAX_PARTNERS

_MAX_BYTES: Final = 256 * 1024
_DAY_S: Final = 86400.0
_MAX_HOSTS: Final = 100_000
_KINDS: Final = tuple(kind.value for kind in EvidenceKind)
_OUT: Final = "out"
_OF_BANDWIDTH: Final = (f"class.{SLOW_HOST}", f"class.{SLOW_NIC}")
_OF_OPERATORS: Final = (f"kind.{EvidenceKind.OPERATOR}", f"class.{OPERATOR}")
_Table = Mapping[str, Any]


class _BudgetTable(msgspec.Struct, forbid_unknown_fields=True, frozen=True):
    hosts: int
    per_cent: float
    per_leaf: int


class _LemonTable(msgspec.Struct, forbid_unknown_fields=True, frozen=True):
    action: str
    threshold: float
    half_life: str
    days: int
    weights: dict[str, float]


class _RuleTable(msgspec.Struct, forbid_unknown_fields=True, frozen=True):
    isolates: bool
    confirmations: int
    of: int
    within: str
    partners: int
    confidence: float
    grace: str
    counts_for: str
    cleared_by_clean_runs: bool
    cleared_by_boot: bool
    sticky: bool


_Struct = TypeVar("_Struct", bound=msgspec.Struct)


def read(path: Path | None) -> Policy:
    """The policy of the file at ``path`` over the shipped one."""
    shipped = tomllib.loads(SHIPPED.read_text(encoding="utf-8"))
    if path is None:
        return _Reader("policy").policy(shipped, {})
    return _Reader(f"policy {visible(str(path))}").policy(shipped, _tables(path))


def _tables(path: Path) -> dict[str, Any]:
    shown = visible(str(path))
    try:
        if not path.is_file():
            raise UsageError(f"policy {shown}: there is no such file")
        with path.open("rb") as file:
            data = file.read(_MAX_BYTES + 1)
    except OSError as error:
        raise UsageError(f"policy {shown}: cannot be read: {error.strerror}") from error
    if len(data) > _MAX_BYTES:
        raise UsageError(f"policy {shown}: this is no policy, it is larger than 256 KiB")
    try:
        text = data.decode()
        if too_much := excess(text):
            line, what = too_much
            raise UsageError(f"policy {shown}:{line}: no policy needs {what}")
        return tomllib.loads(text)
    except UnicodeDecodeError as error:
        raise UsageError(f"policy {shown}: this is no UTF-8; a policy is TOML") from error
    except (tomllib.TOMLDecodeError, ValueError, RecursionError) as error:
        message = visible(f"{error}")[:300]
        raise UsageError(f"policy {shown}: this is no TOML: {message}") from error


class _Reader:
    """Makes one policy; every complaint names the file and the key."""

    def __init__(self, what: str) -> None:
        self._what = what

    def policy(self, shipped: _Table, own: _Table) -> Policy:
        self._known("table", own, ("budget", "lemon", "every", "kind", "class"))
        kinds = self._merged_tables("kind", shipped, own)
        classes = self._merged_tables("class", shipped, own)
        self._known("kind", kinds, _KINDS)
        self._known("class", classes, (*KNOWN_CLASSES, *health_checks()))
        every = self._merged("every", shipped, own)
        self._rule("every", every, EvidenceKind.HEALTH)
        rules, class_rules = {}, {}
        for kind in EvidenceKind:
            base = {**every, **kinds.get(kind.value, {})}
            where = f"kind.{kind.value}" if kind.value in kinds else "every"
            rules[kind] = self._rule(where, base, kind)
            for name, table in classes.items():
                rule = self._rule(f"class.{visible(name)}", {**base, **table}, kind)
                class_rules[kind, name] = rule
        return Policy(
            budget=self._budget(self._merged("budget", shipped, own)),
            lemon=self._lemon(self._merged("lemon", shipped, own)),
            rules=rules,
            classes=class_rules,
        )

    def _budget(self, table: _Table) -> Budget:
        found = self._struct("budget", table, _BudgetTable)
        self._within("budget.hosts", found.hosts, 0, _MAX_HOSTS)
        self._within("budget.per_leaf", found.per_leaf, 1, _MAX_HOSTS)
        if not 0 < found.per_cent <= MAX_PER_CENT:
            self._refuse(
                "budget.per_cent",
                f"{found.per_cent:g} is not above 0 and {MAX_PER_CENT:g} at most: more would let "
                "one mistake take out the fleet",
            )
        return Budget(hosts=found.hosts, per_cent=found.per_cent, per_leaf=found.per_leaf)

    def _lemon(self, table: _Table) -> LemonRule:
        found = self._struct("lemon", table, _LemonTable)
        self._known("lemon.weights", found.weights, (*_KINDS, _OUT, *KNOWN_CLASSES))
        for name, weight in found.weights.items():
            self._within(f"lemon.weights.{visible(name)}", weight, 0, 100)
        if found.action not in (Action.WATCH, Action.ISOLATE):
            near = did_you_mean(found.action, ("watch", "isolate"))
            self._refuse("lemon.action", f"{visible(found.action)} is not watch or isolate{near}")
        self._within("lemon.days", found.days, 2, 365)
        heaviest = max(found.weights.values(), default=0.0)
        if not heaviest < found.threshold <= 1e6:
            self._refuse(
                "lemon.threshold",
                f"{found.threshold:g} is not above the heaviest weight ({heaviest:g}): a single "
                "event would make a lemon",
            )
        return LemonRule(
            action=Action(found.action),
            threshold=found.threshold,
            half_life_s=self._duration("lemon.half_life", found.half_life, _DAY_S, 365 * _DAY_S),
            days=found.days,
            weights=found.weights,
        )

    def _rule(self, where: str, table: _Table, kind: EvidenceKind) -> Rule:
        found = self._struct(where, table, _RuleTable)
        self._within(f"{where}.of", found.of, 1, KEPT_CLEAN_RUNS)
        if not 1 <= found.confirmations <= found.of:
            self._refuse(
                f"{where}.confirmations",
                f"{found.confirmations} is not from 1 to of ({found.of}): "
                + ("it would isolate everybody" if found.confirmations < 1 else "never reached"),
            )
        if where in _OF_OPERATORS and kind is EvidenceKind.OPERATOR and found.confirmations > 1:
            self._refuse(
                f"{where}.confirmations",
                f"{found.confirmations} is not 1: an operator says it once",
            )
        if not 0.5 <= found.confidence <= 1.0:
            self._refuse(
                f"{where}.confidence",
                f"{found.confidence:g} is not from 0.5 to 1: it would isolate on what is more "
                "likely wrong than right",
            )
        least = MIN_BANDWIDTH_PARTNERS if kind is EvidenceKind.BANDWIDTH and found.isolates else 0
        if where.startswith("class.") and where not in _OF_BANDWIDTH:
            found = msgspec.structs.replace(found, partners=max(found.partners, least))
        self._within(f"{where}.partners", found.partners, least, MAX_PARTNERS)
        return Rule(
            isolates=found.isolates,
            confirmations=found.confirmations,
            of=found.of,
            within_s=self._duration(f"{where}.within", found.within, 60.0, 365 * _DAY_S),
            partners=found.partners,
            confidence=found.confidence,
            grace_s=self._duration(f"{where}.grace", found.grace, 0.0, _DAY_S),
            counts_for_s=self._duration(
                f"{where}.counts_for", found.counts_for, 60.0, 365 * _DAY_S
            ),
            cleared_by_clean_runs=found.cleared_by_clean_runs,
            cleared_by_boot=found.cleared_by_boot,
            sticky=found.sticky,
        )

    def _struct(self, where: str, table: _Table, kind: type[_Struct]) -> _Struct:
        self._known(where, table, kind.__struct_fields__)
        try:
            return msgspec.convert(dict(table), kind)
        except msgspec.ValidationError as error:
            message, _, path = f"{error}".partition(" - at `$.")
            key = path.rstrip("`")
            self._refuse(f"{where}.{key}" if key else where, message)

    def _merged(self, name: str, shipped: _Table, own: _Table) -> dict[str, Any]:
        merged = {**shipped[name], **self._table(name, own.get(name, {}))}
        if name == "lemon":
            weights = self._table("lemon.weights", merged["weights"])
            merged["weights"] = {**shipped[name]["weights"], **weights}
        return merged

    def _merged_tables(self, name: str, shipped: _Table, own: _Table) -> dict[str, dict[str, Any]]:
        merged = {key: dict(table) for key, table in shipped[name].items()}
        for key, table in self._table(name, own.get(name, {})).items():
            mine = self._table(f"{name}.{visible(key)}", table)
            merged[key] = {**merged.get(key, {}), **mine}
        return merged

    def _table(self, where: str, value: object) -> dict[str, Any]:
        if not isinstance(value, dict):
            self._refuse(where, "a table is wanted here")
        return value

    def _known(self, where: str, table: _Table, known: tuple[str, ...]) -> None:
        for name in table:
            if name not in known:
                shown = visible(name[:80])
                self._refuse(where, f"{shown} is not known here{did_you_mean(name[:80], known)}")

    def _within(self, where: str, value: float, least: float, most: float) -> None:
        if not least <= value <= most:
            self._refuse(where, f"{value:g} is not from {least:g} to {most:g}")

    def _duration(self, where: str, text: str, least_s: float, most_s: float) -> float:
        try:
            seconds = parse_duration_s(text)
        except UsageError as error:
            self._refuse(where, visible(f"{error}"))
        if not least_s <= seconds <= most_s:
            bounds = f"{format_duration(least_s)} to {format_duration(most_s)}"
            self._refuse(where, f"{visible(text)} is not from {bounds}")
        return seconds

    def _refuse(self, where: str, why: str) -> NoReturn:
        raise UsageError(f"{self._what}: {where}: {why}")
