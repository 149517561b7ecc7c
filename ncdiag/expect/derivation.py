"""How a bandwidth was worked out, as lines a person can check with a pocket calculator."""
# ruff: noqa: RUF001 (a derivation is written with the multiplication sign operators read)

from collections.abc import Iterable
from dataclasses import dataclass


def figure(value: float) -> str:
    """Four significant digits: ``370.8``, ``0.9937``, ``8``."""
    return f"{value:.4g}"


@dataclass(frozen=True, slots=True)
class Term:
    """One number of a formula, with what it is; ``inverse`` divides."""

    value: float
    name: str = ""
    inverse: bool = False

    def __str__(self) -> str:
        return f"{figure(self.value)} {self.name}".rstrip()


@dataclass(frozen=True, slots=True)
class Line:
    """``what: formula = gb_per_s GB/s``; the numbers of ``formula`` multiply out to the result."""

    what: str
    formula: str
    gb_per_s: float
    why: str = ""

    def __str__(self) -> str:
        return f"{self.what}: {self.formula} = {figure(self.gb_per_s)} GB/s"


def counted(number: int, thing: str) -> Term:
    """``18 links``, ``1 link``."""
    return Term(number, thing if number == 1 else f"{thing}s")


def product(what: str, *terms: Term, why: str = "") -> Line:
    """The line that multiplies ``terms``, the first of them a rate in GB/s or the like."""
    result = 1.0
    formula = ""
    for term in terms:
        result = result / term.value if term.inverse else result * term.value
        sign = "" if not formula else " / " if term.inverse else " × "
        formula += f"{sign}{term}"
    return Line(what, formula, result, why)


@dataclass(frozen=True, slots=True)
class Limit:
    """What one resource allows, and the lines that say why."""

    resource: str
    gb_per_s: float
    lines: tuple[Line, ...]

    def then(self, what: str, *terms: Term, why: str = "", resource: str | None = None) -> "Limit":
        """This limit, multiplied by ``terms``."""
        line = product(what, Term(self.gb_per_s, "GB/s"), *terms, why=why)
        return Limit(resource or self.resource, line.gb_per_s, (*self.lines, line))


def of_line(resource: str, line: Line) -> Limit:
    """The limit that one line states."""
    return Limit(resource, line.gb_per_s, (line,))


def least(limits: Iterable[Limit]) -> Limit:
    """The smallest of ``limits``, with the lines of all of them."""
    every = list(limits)
    smallest = min(every, key=lambda limit: limit.gb_per_s)
    lines = tuple(dict.fromkeys(line for limit in every for line in limit.lines))
    return Limit(smallest.resource, smallest.gb_per_s, lines)
