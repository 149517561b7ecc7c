"""Refuses figures that no sweep writes: a damaged or hand-made journal can still be proper JSON.

The limits are far beyond any fleet; within them nothing that reads a journal can overflow, divide
by zero or fill the memory.
"""

from dataclasses import fields, is_dataclass
from functools import cache
from typing import Any, Final

from ncdiag.model.errors import UsageError
from ncdiag.model.units import (
    MAX_DURATION_S,
    MAX_RATE_GBIT_PER_S,
    MAX_SIZE_BYTES,
    MIN_RATE_GBIT_PER_S,
)

MAX_RAILS: Final = 256
MAX_SEED: Final = 2**63 - 1
# RFC 1035, 2.3.4: no host has a longer name; other texts by which things are told apart neither.
MAX_NAME_CHARS: Final = 255

_DURATION = (0, MAX_DURATION_S)
_MEASURED = (0, MAX_RATE_GBIT_PER_S)
_SIZE = (0, MAX_SIZE_BYTES)
# By the name of the field, which carries the unit.
_LIMITS: Final[dict[str, tuple[float, float]]] = {
    "seed": (0, MAX_SEED),
    "faulty_below": (1e-6, 1),
    "warmup_s": _DURATION,
    "window_s": (1e-6, MAX_DURATION_S),
    "measure_s": _DURATION,
    "max_bytes": _SIZE,
    "port": (1, 65535),
    "rate_gbit_per_s": (MIN_RATE_GBIT_PER_S, MAX_RATE_GBIT_PER_S),
    "uplink_gbit_per_s": (MIN_RATE_GBIT_PER_S, MAX_RATE_GBIT_PER_S),
    "speed_gbit_per_s": _MEASURED,
    "gigatransfers_per_s": (0.1, 1e4),
    "lanes": (1, 1024),
    "mtu": (0, 2**20),
    "rail": (0, MAX_RAILS - 1),
    "round": (0, 10**9),
    "bytes": _SIZE,
    "seconds": _DURATION,
    "measured_gbit_per_s": _MEASURED,
    "min_gbit_per_s": _MEASURED,
    "idle": (0, 1),
}
# fmt: off
_NAMES: Final = frozenset((
    "name", "address", "user", "leaf", "rack", "interface",
    "source", "target", "engine", "launcher", "started",
))
# fmt: on
_NESTED: Final = frozenset(["hosts", "timing", "facts", "nics", "pcie", "dumps"])


def check_plausible(record: Any) -> None:
    """Raise :class:`UsageError` for a field of ``record``, or of what it holds, beyond its limits.

    ``record`` is a dataclass; NICs and hosts inside it are looked at as well.
    """
    limited, names, nested = _fields(record.__class__)
    for name in limited:
        value = getattr(record, name)
        low, high = _LIMITS[name]
        if value is not None and not low <= value <= high:
            raise UsageError(f"{name} must be {low:g} to {high:g}")
    for name in names:
        if len(getattr(record, name) or "") > MAX_NAME_CHARS:
            raise UsageError(f"{name} is longer than {MAX_NAME_CHARS} characters")
    for name in nested:
        value = getattr(record, name)
        items = value if isinstance(value, tuple) else (value,)
        if name == "nics" and len(items) > MAX_RAILS:
            raise UsageError(f"more than {MAX_RAILS} NICs")
        for item in items:
            if is_dataclass(item):
                check_plausible(item)


@cache
def _fields(record_type: type) -> tuple[tuple[str, ...], tuple[str, ...], tuple[str, ...]]:
    """Names of the fields that hold limited figures, short names, and further records."""
    names = [field.name for field in fields(record_type)]
    return (
        tuple(name for name in names if name in _LIMITS),
        tuple(name for name in names if name in _NAMES),
        tuple(name for name in names if name in _NESTED),
    )
