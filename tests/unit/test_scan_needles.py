import pytest
from ordinary_lines import ORDINARY

from ncdiag.read.log_reader import LogReader


@pytest.mark.parametrize("line", ORDINARY)
def test_no_needle_lies_in_what_jobs_print_all_the_time(line: str) -> None:
    assert [needle for needle in LogReader("log").needles if needle in line.encode()] == []


def test_needles_are_long_enough_to_be_worth_a_look() -> None:
    reader = LogReader("log")
    short = sorted(needle for needle in reader.needles if len(needle.strip()) < 3)
    assert short == [b".c:", b".h:"] or not short
