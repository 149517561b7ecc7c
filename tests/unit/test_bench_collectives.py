"""That each rank looks at what arrived: with a group of torch that loses everything."""

from typing import Any

import pytest

torch = pytest.importorskip("torch", reason="torch is not installed: pip install 'ncdiag[torch]'")

from ncdiag.expect.traffic import Collective  # noqa: E402 - torch may be missing
from ncdiag.measure.bench.collectives import OPERATIONS, Operation  # noqa: E402 - needs torch

RANKS = 4
PARTED = {
    Collective.ALL_GATHER,
    Collective.REDUCE_SCATTER,
    Collective.ALLTOALL,
    Collective.GATHER,
    Collective.SCATTER,
}


class Losing:
    """A group whose every method does nothing."""

    def __getattr__(self, name: str) -> Any:
        return lambda *_: None


def operation(collective: Collective, rank: int, size_bytes: int = 4096) -> Operation:
    made = OPERATIONS[collective](Losing(), rank, RANKS, size_bytes, torch.device("cpu"))
    made.fill()
    return made


@pytest.mark.parametrize("collective", list(Collective))
def test_what_did_not_arrive_is_wrong(collective: Collective) -> None:
    lost = 0
    for rank in range(RANKS):
        one = operation(collective, rank)
        one.begin()
        lost += one.wrong()
    assert lost > 0


@pytest.mark.parametrize("collective", list(Collective))
def test_sizes_are_counted_in_total_where_ranks_have_parts(collective: Collective) -> None:
    one = operation(collective, 0, 4100)
    assert one.parted is (collective in PARTED)
    assert one.size_bytes == (4096 if one.parted else 4100)
    assert one.part == (256 if one.parted else 1025)


@pytest.mark.parametrize("collective", list(Collective))
def test_the_smallest_size_still_has_an_element(collective: Collective) -> None:
    assert operation(collective, 0, 1).size_bytes == (4 * RANKS if collective in PARTED else 4)


def test_numbers_say_where_they_are_from() -> None:
    one = operation(Collective.ALL_REDUCE, 1)
    assert one.numbers(3, 0, 250).tolist() == [250, 0, 1]
    assert one.numbers(2, 7).tolist() == [7, 8]
    assert one.sums(2, 1).tolist() == [RANKS + 6, 2 * RANKS + 6]
