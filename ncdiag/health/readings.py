"""What was read of hosts, before anybody judges it."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from ncdiag.model.health import HealthFacts


@dataclass(frozen=True, slots=True, kw_only=True)
class Readings:
    """The facts of hosts, of a reading before if there was one, and why others gave none."""

    facts: Mapping[str, HealthFacts]
    before: Mapping[str, HealthFacts] = field(default_factory=dict)
    errors: Mapping[str, str] = field(default_factory=dict)
