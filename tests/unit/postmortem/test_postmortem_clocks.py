"""Time stamps of different kinds, compared as far as that goes."""

from typing import Any

from ncdiag.diagnose.postmortem.clocks import Scale, common_scale, seconds_between
from ncdiag.model.place import Clock, Moment, Place

NOON = 1_760_097_600.0  # 2025-10-10 12:00:00
YEARLESS = 282 * 86_400.0 + 43_200.0  # the same without its year


def place(text: str, seconds: float, clock: Clock = Clock.WALL, path: str = "a.log") -> Place:
    return Place(path, 1, Moment(text, seconds, clock))


def test_stamps_of_one_kind_are_compared_to_the_second() -> None:
    one = place("2025-10-10 12:00:00", NOON)
    assert seconds_between(one, place("2025-10-10 12:00:07", NOON + 7)) == 7


def test_a_stamp_without_a_year_is_compared_within_the_year() -> None:
    one = place("2025-10-10 12:00:00", NOON)
    other = place("1010 12:00:09", YEARLESS + 9)
    assert seconds_between(one, other) == 9
    assert common_scale([one, other]) is Scale.YEARLESS


def test_a_stamp_without_a_date_is_compared_within_half_a_day() -> None:
    one = place("2025-10-10 12:00:00", NOON)
    assert seconds_between(one, place("12:00:30", 43_230.0, Clock.DAY)) == 30
    late = place("2025-10-10 23:59:50", NOON + 43_190)
    assert seconds_between(late, place("00:00:10", 10.0, Clock.DAY)) == 20


def test_a_stamp_with_a_zone_is_not_compared_with_one_without() -> None:
    one = place("2025-10-10T12:00:00+00:00", NOON)
    other = place("2025-10-10 12:00:00", NOON)
    assert seconds_between(one, other) is None
    assert common_scale([one, other]) is None


def test_uptimes_are_compared_within_one_input_only() -> None:
    one = place("100.5", 100.5, Clock.UPTIME)
    assert seconds_between(one, place("103.5", 103.5, Clock.UPTIME)) == 3
    assert seconds_between(one, place("103.5", 103.5, Clock.UPTIME, path="b.log")) is None
    assert seconds_between(one, place("2025-10-10 12:00:00", NOON)) is None


def test_a_log_without_dates_that_passes_midnight_is_ordered_as_read() -> None:
    day = [Place("a.log", n, Moment("t", s, Clock.DAY)) for n, s in enumerate((86_000.0, 60.0))]
    assert common_scale(day) is None
    assert common_scale(day[:1]) is Scale.DAY


def test_one_place_without_a_time_leaves_the_order_to_the_lines() -> None:
    assert common_scale([place("2025-10-10 12:00:00", NOON), Place("a.log", 2)]) is None


def test_a_line_without_a_time_has_that_of_the_line_before_it(bench: Any, post: Any) -> None:
    late = bench.event("cuda_out_of_memory", "a", pid="1", at=100, path="a.log")
    early = bench.event("shm_no_space", "b", pid="1", at=50, path="b.log")
    untimed = bench.event("resource_limit", "b", pid="1", path="b.log")
    answer = post(late, early, untimed)
    found = [str(finding.class_) for finding in answer.findings]
    assert found == ["shm_no_space", "resource_limit", "cuda_out_of_memory"]


def test_the_order_of_inputs_means_nothing(bench: Any, post: Any) -> None:
    one = bench.event("cuda_out_of_memory", "a", pid="1", path="a.log")
    other = bench.event("shm_no_space", "b", pid="1", path="b.log")
    assert post(one, other).findings == post(other, one).findings
