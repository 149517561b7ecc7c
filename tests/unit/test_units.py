from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ncdiag.model.errors import UsageError
from ncdiag.model.units import (
    format_duration,
    format_rate,
    format_share,
    parse_duration_s,
    parse_rate_gbit_per_s,
    parse_size_bytes,
)


@pytest.mark.parametrize(
    ("text", "seconds"),
    [("90s", 90), ("10m", 600), ("2h", 7200), ("1d", 86400), ("500ms", 0.5), ("1.5h", 5400)],
)
def test_durations_are_seconds(text: str, seconds: float) -> None:
    assert parse_duration_s(text) == pytest.approx(seconds)


@pytest.mark.parametrize(
    ("text", "size"),
    [
        ("512", 512),
        ("8K", 8192),
        ("8M", 8388608),
        ("1G", 1073741824),
        ("8MB", 8388608),
        ("8MiB", 8388608),
        ("8B", 8),
    ],
)
def test_sizes_are_powers_of_1024(text: str, size: int) -> None:
    assert parse_size_bytes(text) == size
    assert parse_size_bytes(text.lower()) == size


@pytest.mark.parametrize(
    ("text", "gbit_per_s"),
    [
        ("400gbit", 400),
        ("400Gb/s", 400),
        ("400Gbps", 400),
        ("50GB/s", 400),
        ("500mbit", 0.5),
        ("0.5gbit", 0.5),
        ("1tbit", 1000),
        ("125MB/s", 1),
        ("1000kbit/s", 0.001),
    ],
)
def test_rates_are_powers_of_1000_and_tell_bits_from_bytes(text: str, gbit_per_s: float) -> None:
    assert parse_rate_gbit_per_s(text) == pytest.approx(gbit_per_s)


@pytest.mark.parametrize("text", ["5", " 90 ", "1.5"])
def test_a_duration_without_its_unit_is_refused_with_the_unit_that_is_meant(text: str) -> None:
    with pytest.raises(UsageError, match=rf"not a duration: .*; did you mean {text.strip()}s\?$"):
        parse_duration_s(text)


@pytest.mark.parametrize("parse", [parse_duration_s, parse_size_bytes, parse_rate_gbit_per_s])
@pytest.mark.parametrize(
    "text", ["", "x", "-1s", "1", "1 0s", "1e3s", "nan", "inf", "1s\n1", "٣s", "9" * 400 + "s"]
)
def test_what_is_no_quantity_is_refused_with_examples(parse, text: str) -> None:  # noqa: ANN001 - one of three
    if parse is parse_size_bytes and text == "1":
        assert parse(text) == 1
        return
    with pytest.raises(UsageError, match=r"not a (duration|size|rate): .*examples"):
        parse(text)


@pytest.mark.parametrize("text", ["abc", "8GiBs", "8iB", "8gibb"])
def test_a_size_is_refused_as_it_was_typed(text: str) -> None:
    with pytest.raises(UsageError, match=f"not a size: '{text}'"):
        parse_size_bytes(text)


def test_a_rate_of_nothing_is_refused() -> None:
    with pytest.raises(UsageError, match="above zero"):
        parse_rate_gbit_per_s("0gbit")


@given(st.text(max_size=20))
def test_any_text_is_a_quantity_or_refused(text: str) -> None:
    outcomes = []
    for parse in (parse_duration_s, parse_size_bytes, parse_rate_gbit_per_s):
        try:
            outcomes.append(parse(text) >= 0)
        except UsageError:
            outcomes.append(True)
    assert all(outcomes)


@pytest.mark.parametrize(
    ("gbit_per_s", "shown"),
    [
        (None, "-"),
        (0.478, "478 Mbit/s"),
        (0.0478, "47.8 Mbit/s"),
        (0.00478, "4.78 Mbit/s"),
        (1, "1.00 Gbit/s"),
        (95.55, "95.5 Gbit/s"),
        (392.4, "392 Gbit/s"),
    ],
)
def test_rates_are_shown_with_three_digits(gbit_per_s: float | None, shown: str) -> None:
    assert format_rate(gbit_per_s) == shown


@pytest.mark.parametrize(
    ("seconds", "shown"),
    [
        (0.04, "0.0 s"),
        (9.94, "9.9 s"),
        (42, "42 s"),
        (185, "3 min 05 s"),
        (7800, "2 h 10 min"),
        (float("nan"), "? s"),
        (float("inf"), "? s"),
    ],
)
def test_durations_are_shown_in_two_units(seconds: float, shown: str) -> None:
    assert format_duration(seconds) == shown


@pytest.mark.parametrize(
    ("parse", "text"),
    [
        (parse_duration_s, "367d"),
        (parse_size_bytes, "1048577T"),
        (parse_rate_gbit_per_s, "0.9kbit"),
        (parse_rate_gbit_per_s, "1001tbit"),
    ],
)
def test_what_no_link_and_no_sweep_can_be_is_refused(
    parse: Callable[[str], float], text: str
) -> None:
    with pytest.raises(UsageError, match="can be"):
        parse(text)


@pytest.mark.parametrize(
    ("share", "shown"),
    [(0.98, "98 %"), (1.0, "100 %"), (0.0991, "9.9 %"), (0.0996, "10 %"), (0.0, "0 %")],
)
def test_shares_are_whole_where_that_says_enough(share: float, shown: str) -> None:
    assert format_share(share) == shown
