"""What stands behind an option is parsed here, so that a complaint names the option."""

from collections.abc import Callable
from typing import TypeVar

import typer

from ncdiag.model.errors import UsageError
from ncdiag.model.units import parse_duration_s, parse_size_bytes

Number = TypeVar("Number", int, float)


def as_parameter(parse: Callable[[str], Number]) -> Callable[[str | Number], Number]:
    """A parser for typer, whose complaint names the option; a default is a number already."""

    def parser(value: str | Number) -> Number:
        if not isinstance(value, str):
            return value
        try:
            return parse(value)
        except UsageError as error:
            raise typer.BadParameter(f"{error}") from None

    return parser


def parse_duration_above_zero_s(text: str) -> float:
    """Seconds of ``90s`` or ``10m``, above zero; raises :class:`UsageError`."""
    seconds = parse_duration_s(text)
    if seconds <= 0:
        raise UsageError(f"a duration must be above zero: {text!r}")
    return seconds


def parse_size_above_zero_bytes(text: str) -> int:
    """Bytes of ``8M`` or ``1G``, above zero; raises :class:`UsageError`."""
    size = parse_size_bytes(text)
    if size <= 0:
        raise UsageError(f"a size must be above zero: {text!r}")
    return size


def parse_share(text: str) -> float:
    """A share above 0 and up to 1; raises :class:`UsageError`."""
    try:
        share = float(text)
    except ValueError:
        share = 0.0
    if not 0 < share <= 1:
        raise UsageError(f"{text!r} is no share of what is expected; above 0 and up to 1, as 0.8")
    return share
