import pytest
from hypothesis import given
from hypothesis import strategies as st

from ncdiag.profiles.matching import MAX_ENTRIES, ListProblem, parse, select

HCAS = tuple(f"mlx5_{number}" for number in range(12))
FACES = ("lo", "eth0", "eth1", "eth10", "docker0", "ib0")


@pytest.mark.parametrize(
    ("value", "numbers"),
    [
        ("mlx5", range(12)),
        ("", range(12)),
        ("=", range(12)),
        ("mlx5_1", (1, 10, 11)),
        ("=mlx5_1", (1,)),
        ("=mlx5", ()),
        ("=mlx5_0,mlx5_1", (0, 1)),
        ("=mlx5_0,=mlx5_1", (0,)),
        ("^mlx5_1", (0, 2, 3, 4, 5, 6, 7, 8, 9)),
        ("^=mlx5_1,mlx5_4", (0, 2, 3, 5, 6, 7, 8, 9, 10, 11)),
        ("=^mlx5_1", ()),
        ("mlx5_0,^mlx5_1", (0,)),
        ("^", ()),
        ("^=", ()),
        ("mlx5_0, mlx5_1", (0,)),
        ("mlx5_2,,mlx5_3,", (2, 3)),
        ("MLX5_0", ()),
        ("mlx5_0:1", (0,)),
        ("mlx5_0:abc", ()),
        ("mlx5_0:0", ()),
        ("mlx5_0:1:2:3", (0,)),
    ],
)
def test_hcas_that_are_selected(value: str, numbers: tuple[int, ...]) -> None:
    assert select(value, HCAS) == tuple(f"mlx5_{number}" for number in numbers)


def test_ports_are_compared_where_they_are_known() -> None:
    ports = ("mlx5_0:1", "mlx5_0:2", "mlx5_1:1")
    assert select("mlx5_0:2", ports) == ("mlx5_0:2",)
    assert select("mlx5_0", ports) == ("mlx5_0:1", "mlx5_0:2")
    assert select("^mlx5_0:2", ports) == ("mlx5_0:1", "mlx5_1:1")
    assert select("mlx5_0:-1", ports) == ("mlx5_0:1", "mlx5_0:2")


@pytest.mark.parametrize(
    ("value", "chosen"),
    [
        ("eth0", ("eth0",)),
        ("eth1", ("eth1", "eth10")),
        ("^lo,docker", ("eth0", "eth1", "eth10", "ib0")),
        ("^", FACES),
        ("e", FACES),
        ("^=", ()),
    ],
)
def test_interfaces_that_are_selected(value: str, chosen: tuple[str, ...]) -> None:
    assert select(value, FACES, sockets=True) == chosen


def test_what_stands_behind_32_entries_is_not_read() -> None:
    value = ",".join(f"none{number}" for number in range(MAX_ENTRIES)) + ",mlx5_0"
    assert select(value, HCAS) == ()
    assert parse(value).problems == ((ListProblem.TOO_MANY, "33"),)


@pytest.mark.parametrize(
    ("value", "problem"),
    [
        ("mlx5_0, mlx5_1", ListProblem.BLANK),
        ("mlx5_0,^mlx5_1", ListProblem.INNER_CARET),
        ("=mlx5_0,=mlx5_1", ListProblem.INNER_EQUALS),
        ("=^mlx5_0", ListProblem.WRONG_ORDER),
        ("mlx5_0:one", ListProblem.BAD_PORT),
        ("^", ListProblem.EXCLUDES_ALL),
    ],
)
def test_problems_of_a_list(value: str, problem: ListProblem) -> None:
    assert [found for found, _ in parse(value).problems] == [problem]


@pytest.mark.parametrize("value", ["", "mlx5", "=mlx5_0,mlx5_1", "^=mlx5_0", "mlx5_0:1,mlx5_1:2"])
def test_a_list_without_problems(value: str) -> None:
    assert parse(value).problems == ()


@given(value=st.text(max_size=60), sockets=st.booleans())
def test_any_text_selects_some_of_the_devices_in_order(value: str, *, sockets: bool) -> None:
    chosen = select(value, HCAS, sockets=sockets)
    assert list(chosen) == [device for device in HCAS if device in chosen]


@given(st.text(alphabet="mlx5_01,:", max_size=20))
def test_a_caret_selects_what_was_left_out(value: str) -> None:
    without = set(select(value, HCAS))
    assert set(select(f"^{value}", HCAS)) == set(HCAS) - without
