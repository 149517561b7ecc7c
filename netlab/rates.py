"""Rates as an operator and ``tc`` write them: ``500mbit``, ``2.5gbit``."""

import re

from netlab.errors import NetlabError

_BITS = {"kbit": 10**3, "mbit": 10**6, "gbit": 10**9}
# Below this ssh itself gets no further, and above it a virtual link would not carry the rate:
# an unshaped veth pair moves 10 to 15 Gbit/s on two cores.
_SLOWEST_BIT_PER_S = 10**5
_FASTEST_BIT_PER_S = 100 * 10**9


def parse_rate_bit_per_s(text: object, where: str) -> int:
    """Bits a second of ``500mbit``; raises :class:`NetlabError` naming ``where`` it stood."""
    match = isinstance(text, str) and re.fullmatch(
        r"(\d{1,9}(?:\.\d{1,6})?)(kbit|mbit|gbit)", text, re.ASCII
    )
    if not match:
        raise NetlabError(f"{where} is not a rate: {text!r} (examples: 500mbit, 2.5gbit)")
    rate = round(float(match[1]) * _BITS[match[2]])
    if not _SLOWEST_BIT_PER_S <= rate <= _FASTEST_BIT_PER_S:
        raise NetlabError(f"{where} must lie between 100kbit and 100gbit, not {text!r}")
    return rate


def format_rate(bit_per_s: int) -> str:
    """``500mbit``: the largest unit that leaves a whole number."""
    unit = next((u for u in ("gbit", "mbit", "kbit") if bit_per_s % _BITS[u] == 0), None)
    return f"{bit_per_s // _BITS[unit]}{unit}" if unit else f"{bit_per_s}bit"
