"""Durations, sizes and rates as an operator types them, and as ncdiag prints them."""

import math
import re

from ncdiag.model.errors import UsageError

# Beyond these stands a typing error or a damaged file, not a link or a sweep.
MIN_RATE_GBIT_PER_S = 1e-6
MAX_RATE_GBIT_PER_S = 1e6
MAX_DURATION_S = 366 * 86400.0
MAX_SIZE_BYTES = 2**60

# Two digits that count: 9.95 % is 10 %.
_WHOLE_FROM = 0.0995

_SECONDS = {"ms": 1e-3, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}
# Powers of 1024, as in nccl-tests (src/common.cu, parsesize).
_BYTES = {
    prefix + unit: scale
    for prefix, scale in {"": 1, "K": 1024, "M": 1024**2, "G": 1024**3, "T": 1024**4}.items()
    for unit in (("", "B", "IB") if prefix else ("", "B"))
}
# Rates are powers of 1000, as on a NIC's data sheet; the unit is in Gbit/s.
# The case of the last letter matters: Gb is bits, GB is bytes.
_PREFIXES = {
    "": 1e-9,
    "k": 1e-6,
    "K": 1e-6,
    "m": 1e-3,
    "M": 1e-3,
    "g": 1.0,
    "G": 1.0,
    "t": 1e3,
    "T": 1e3,
}
_GBIT = {
    prefix + unit: scale * bits
    for prefix, scale in _PREFIXES.items()
    for unit, bits in (("bit", 1), ("bit/s", 1), ("b/s", 1), ("bps", 1), ("B/s", 8))
}
_NUMBER = r"(\d{1,15}(?:\.\d{1,9})?)"


def _parse(text: str, units: dict[str, float] | dict[str, int], what: str, examples: str) -> float:
    alternatives = "|".join(re.escape(unit) for unit in units)
    case = re.IGNORECASE if units is _BYTES else re.NOFLAG
    match = re.fullmatch(f"{_NUMBER}({alternatives})", text.strip(), re.ASCII | case)
    if match is None:
        raise UsageError(f"not a {what}: {text!r} (examples: {examples})")
    return float(match[1]) * units[match[2].upper() if case else match[2]]


_DURATIONS = "90s, 10m, 2h, 1d"
# What is typed of a number that lacks its unit, and is short enough to be shown.
_BARE = re.compile(r"\d{1,9}(?:\.\d{1,9})?", re.ASCII)


def parse_duration_s(text: str) -> float:
    """Seconds of ``90s``, ``10m``, ``2h``, ``1d``; raises :class:`UsageError`."""
    if _BARE.fullmatch(bare := text.strip()):
        raise UsageError(
            f"not a duration: {text!r} (examples: {_DURATIONS}); did you mean {bare}s?"
        )
    seconds = _parse(text, _SECONDS, "duration", _DURATIONS)
    if seconds > MAX_DURATION_S:
        raise UsageError(f"a duration can be {MAX_DURATION_S / 86400:g}d at most: {text!r}")
    return seconds


def parse_size_bytes(text: str) -> int:
    """Bytes of ``8M``, ``8MB`` or ``8MiB`` (all powers of 1024); raises :class:`UsageError`."""
    size = int(_parse(text, _BYTES, "size", "512K, 8M, 1G"))
    if size > MAX_SIZE_BYTES:
        raise UsageError(f"a size can be {MAX_SIZE_BYTES // 1024**4}T at most: {text!r}")
    return size


def parse_rate_gbit_per_s(text: str) -> float:
    """Gbit/s of ``400gbit``, ``500mbit`` or ``50GB/s``; raises :class:`UsageError`."""
    rate = _parse(text, _GBIT, "rate", "400gbit, 500mbit, 50GB/s")
    if rate <= 0:
        raise UsageError(f"a rate must be above zero: {text!r}")
    if not MIN_RATE_GBIT_PER_S <= rate <= MAX_RATE_GBIT_PER_S:
        raise UsageError(f"a rate can be 1kbit to 1000tbit: {text!r}")
    return rate


def format_rate(gbit_per_s: float | None) -> str:
    """``478 Mbit/s`` or ``392 Gbit/s``: three significant digits, ``-`` for nothing."""
    if gbit_per_s is None:
        return "-"
    if gbit_per_s < 1:
        return f"{_three_digits(gbit_per_s * 1000)} Mbit/s"
    return f"{_three_digits(gbit_per_s)} Gbit/s"


def _three_digits(value: float) -> str:
    decimals = 0 if value >= 100 else 1 if value >= 10 else 2
    return f"{value:.{decimals}f}"


def format_duration(seconds: float) -> str:
    """``42 s``, ``3 min 05 s`` or ``2 h 10 min``; ``? s`` of what is no number."""
    if not math.isfinite(seconds):
        return "? s"
    whole = round(seconds)
    if whole < 60:
        return f"{seconds:.1f} s" if seconds < 10 else f"{whole} s"
    if whole < 3600:
        return f"{whole // 60} min {whole % 60:02d} s"
    return f"{whole // 3600} h {whole % 3600 // 60:02d} min"


def format_share(share: float) -> str:
    """``98 %`` or ``9.9 %`` of a share such as 0.98: whole only where that says enough."""
    decimals = 1 if 0 < share < _WHOLE_FROM else 0
    return f"{share * 100:.{decimals}f} %"


def format_count(number: int, thing: str) -> str:
    """``1 host``, ``2 hosts``, ``1,024 hosts``, ``3 processes``."""
    if number == 1:
        return f"1 {thing}"
    return f"{number:,} {thing}{'es' if thing.endswith(('s', 'ch', 'sh')) else 's'}"


def format_bytes(size_bytes: float) -> str:
    """``8 B``, ``64 MiB``, ``1.5 GiB``: powers of 1024, as sizes are typed."""
    units = ("B", "KiB", "MiB", "GiB", "TiB", "PiB")
    value = float(size_bytes)
    for unit in units:
        if value < 1024 or unit == units[-1]:
            break
        value /= 1024
    return f"{value:.4g} {unit}"
