"""The pairs of a round that are being measured, and what their ranks have said so far: pure."""

from collections.abc import Iterator, Mapping, Sequence

from ncdiag.measure.engines.base import Endpoint, PairOrder
from ncdiag.measure.engines.halves import Half
from ncdiag.measure.engines.mpi.messages import Done


class OpenRound:
    """``orders`` under ``number``; ``hosts`` are those of each rail in the order of their ranks.

    ``passed_on`` are the rails whose first rank has told the others.
    """

    def __init__(
        self, number: int, orders: Sequence[PairOrder], hosts: Mapping[int, Sequence[str]]
    ) -> None:
        self.number = number
        self.passed_on: set[int] = set()
        self._orders = orders
        self._halves: list[dict[Endpoint, Half]] = [{} for _ in orders]
        self._ranks = {
            (rail, host): rank
            for rail in {order.rail for order in orders}
            for rank, host in enumerate(hosts[rail])
        }
        self._places = {
            (order.rail, self._ranks[order.rail, end.host]): (at, end)
            for at, order in enumerate(orders)
            for end in (order.first, order.second)
        }

    @property
    def rails(self) -> tuple[int, ...]:
        """The rails that are measured."""
        return tuple(sorted({order.rail for order in self._orders}))

    @property
    def unfinished(self) -> list[PairOrder]:
        """Pairs of which one of the sides has said nothing."""
        pairs = zip(self._orders, self._halves, strict=True)
        return [order for order, halves in pairs if len(halves) < 2]

    @property
    def is_open(self) -> bool:
        """Whether there is anything to wait for."""
        return any(len(halves) < 2 for halves in self._halves)

    def places_on(self, rail: int) -> Iterator[tuple[int, int, bool, Endpoint]]:
        """For each rank that takes part on a rail: its peer, whether it is first, and its end."""
        for order in self._orders:
            if order.rail == rail:
                first = self._ranks[rail, order.first.host]
                second = self._ranks[rail, order.second.host]
                yield first, second, True, order.first
                yield second, first, False, order.second

    def hosts_of(self, rail: int, done: Done) -> set[str]:
        """The host of the rank that said so; none where it takes no part."""
        place = self._places.get((rail, done.rank))
        return {place[1].host} if place else set()

    def take(self, rail: int, done: Done) -> PairOrder | None:
        """Note what a rank said; return the pair if that completes it."""
        place = self._places.get((rail, done.rank))
        if place is None:
            return None
        at, end = place
        self._halves[at][end] = done.half
        return self._orders[at] if len(self._halves[at]) == 2 else None

    def missing(self, order: PairOrder) -> list[Endpoint]:
        """The sides of a pair that have said nothing."""
        halves = self._halves[self._orders.index(order)]
        return [end for end in (order.first, order.second) if end not in halves]

    def fill(self, order: PairOrder, end: Endpoint, half: Half) -> None:
        """Say it for a side that does not."""
        self._halves[self._orders.index(order)][end] = half

    def halves(self, order: PairOrder) -> tuple[Half, Half]:
        """Both sides of a pair that is complete."""
        halves = self._halves[self._orders.index(order)]
        return halves[order.first], halves[order.second]
