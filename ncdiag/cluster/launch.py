"""A command to start, for what runs it as for what makes it."""

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True, kw_only=True)
class Launch:
    """One command to start: the hosts it covers, and everything it needs.

    ``stdin`` is written first and the pipe then stays open; secrets travel there only. ``forward``
    names the environment variables that must reach the hosts; they are already in our own, or in
    ``environment``, which is added to our own for the command. ``label`` is a pattern of what the
    command puts before each line that a host says: its group ``index`` counts ``hosts`` from 0.
    """

    argv: tuple[str, ...]
    hosts: tuple[str, ...]
    stdin: bytes = b""
    forward: tuple[str, ...] = ()
    environment: Mapping[str, str] = field(default_factory=dict)
    label: str | None = None
