"""The hosts of a fleet, as its driver sees them."""

import asyncio
from dataclasses import dataclass, field

from ncdiag.cluster.fleet.running import Running


@dataclass(slots=True, eq=False)
class Member:
    """One host: starting until ``settled``, then up until ``lost``, or never up at all."""

    name: str
    settled: asyncio.Event = field(default_factory=asyncio.Event)
    lost: asyncio.Event = field(default_factory=asyncio.Event)
    connected: asyncio.Event = field(default_factory=asyncio.Event)
    running: Running | None = None
    address: str | None = None
    reason: str | None = None

    @property
    def up(self) -> bool:
        """Whether it can be called."""
        return self.address is not None and self.reason is None

    def begin_again(self) -> None:
        """Forget a start that came to nothing for another host's sake."""
        self.address = self.reason = self.running = None
        for event in (self.settled, self.lost, self.connected):
            event.clear()
