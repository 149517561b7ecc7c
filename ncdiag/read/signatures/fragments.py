"""What rows share: pieces of patterns, refinements of what was captured, a short way to write one.

Every repetition has an upper bound or cannot meet itself, so that a pattern takes time in
proportion to the line, whatever the line holds.
"""

import re
from collections.abc import Callable, Mapping
from functools import partial

from ncdiag.model.finding import FindingClass, Role, Severity
from ncdiag.read.line import Line
from ncdiag.read.signatures.row import Pattern, Signature

Refine = Callable[[dict[str, str], Line], dict[str, str] | None]

# A warning of the library, or the same words quoted without its prefix ("Last error:").
SPOKEN = frozenset({"WARN", None})
# Also where it was written as information.
TOLD = frozenset({"WARN", "INFO", None})
ONLY_WARN = frozenset({"WARN"})

# "10.0.0.1<4242>", "fe80::1%ib0<4242>", "node7<4242>": the port is no part of the name.
PEER = r"(?P<peer>[^\s<>]{1,256})(?:<\d{1,5}>)?"
# A C library's error text, up to a quote, a bracket, a comma, its number or the end.
ERROR = r"(?P<error>[^\s:,(\[\"'][^,(\[\"']{0,119}?)(?=\s{0,8}(?:[,(\[\"']|errno \d|\.?\s{0,8}$))"
# "(28)" after such a text.
ERRNO = r"(?: ?\((?P<errno>\d{1,4})\))?"
POINTER = r"(?:0x)?[0-9a-fA-F]{1,16}"

_RETRYING = re.compile(r"\bretrying\b")


def signature(
    name: str,
    class_: FindingClass,
    needle: str,
    pattern: str,
    *,
    sample: str,
    near_miss: str,
    source: str,
    versions: str = "all",
    levels: frozenset[str | None] = SPOKEN,
    role: Role | None = None,
    severity: Severity | None = None,
    location: str | None = None,
    further: tuple[str, ...] = (),
    constants: Mapping[str, str] | None = None,
    refine: Refine | None = None,
) -> Signature:
    """A row; ``pattern`` and ``location`` as text."""
    return Signature(
        name=name,
        class_=class_,
        needle=needle,
        pattern=Pattern(pattern),
        sample=sample,
        near_miss=near_miss,
        source=source,
        versions=versions,
        levels=levels,
        role=role,
        severity=severity,
        location=re.compile(location) if location else None,
        further=further,
        constants=constants or {},
        refine=refine,
    )


# A row for what only echoes a fault.
echo = partial(signature, role=Role.CONSEQUENCE, severity=Severity.INFO)
# A row for what the job lives with.
caution = partial(signature, role=Role.WARNING, severity=Severity.DEGRADED)


def chain(*steps: Refine) -> Refine:
    """One refinement of several; the first that refuses ends it."""

    def refined(values: dict[str, str], line: Line) -> dict[str, str] | None:
        for step in steps:
            answer = step(values, line)
            if answer is None:
                return None
            values = answer
        return values

    return refined


def final(values: dict[str, str], line: Line) -> dict[str, str] | None:
    """Refuse an attempt that is tried again."""
    return None if _RETRYING.search(line.text) else values


def either(name: str) -> Refine:
    """Fold the two places where a value may stand: groups ``name`` and ``name_``."""

    def refined(values: dict[str, str], line: Line) -> dict[str, str]:
        del line
        if value := values.pop(f"{name}_", None):
            values[name] = value
        return values

    return refined


def without(pattern: str) -> Refine:
    """Refuse a line that contains ``pattern``."""
    unwanted = re.compile(pattern)

    def refined(values: dict[str, str], line: Line) -> dict[str, str] | None:
        return None if unwanted.search(line.text) else values

    return refined


def elsewhere(location: str) -> Refine:
    """Refuse a line printed from a source file that matches ``location``."""
    unwanted = re.compile(location)

    def refined(values: dict[str, str], line: Line) -> dict[str, str] | None:
        return None if line.location and unwanted.search(line.location) else values

    return refined


def renamed(**names: str) -> Refine:
    """Give captured values other names."""

    def refined(values: dict[str, str], _line: Line) -> dict[str, str] | None:
        return {names.get(name, name): value for name, value in values.items()}

    return refined
