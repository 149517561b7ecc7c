"""A command to start, for what runs it as for what makes it."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

_SAY: Final = ("sh", "-c", 'printf "%s\\n" "$1" >&2; exit 1', "sh")


@dataclass(frozen=True, slots=True, kw_only=True)
class Launch:
    """One command to start: the hosts it covers, and everything it needs.

    ``stdin`` is written first and the pipe then stays open; secrets travel there only.
    ``environment`` is added to our own for the command; what of it reaches the hosts is the
    command's affair. ``label`` is a pattern of what the command puts before each line that a host
    says: its group ``index`` counts ``hosts`` from 0.
    """

    argv: tuple[str, ...]
    hosts: tuple[str, ...]
    stdin: bytes = b""
    environment: Mapping[str, str] = field(default_factory=dict)
    label: str | None = None


def telling(host: str, reason: str) -> Launch:
    """A command that ends as one would on ``host``, which cannot be asked, and says why."""
    return Launch(argv=(*_SAY, reason), hosts=(host,))
