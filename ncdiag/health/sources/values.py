"""Single values as the kernel writes them into its small files."""

import re
from typing import Final

from ncdiag.health.sources.place import HostRoot

# Counters of 64 bits have 20 digits; beyond 63 bits JSON of other programs loses them.
_MOST: Final = (1 << 63) - 1
# No folder of counters holds more: mlx5 has some 70 for hardware.
_MOST_COUNTERS: Final = 256


def whole_number(text: str | None) -> int | None:
    """A number that is not negative; ``None`` for anything else."""
    if text is None or not re.fullmatch(r"\d{1,20}", text, re.ASCII):
        return None
    return min(int(text), _MOST)


def hexadecimal(text: str | None) -> int | None:
    """``0x030200`` as a number."""
    return int(text, 16) if text and re.fullmatch(r"0x[0-9a-fA-F]{1,8}", text) else None


def counters(root: HostRoot, folder: str) -> dict[str, int]:
    """The counters of a folder by the names of their files."""
    found: dict[str, int] = {}
    for name in root.names(folder)[:_MOST_COUNTERS]:
        if (value := whole_number(root.text(f"{folder}/{name}"))) is not None:
            found[name] = value
    return found
