import re

import pytest

from ncdiag.cluster.fleet.reasons import LOST, NOT_STARTED, Reason, why_lost, why_not_started

ROWS = pytest.mark.parametrize("row", [*NOT_STARTED, *LOST], ids=lambda row: row.told[:30])


@ROWS
def test_each_row_matches_its_sample_and_not_its_near_miss(row: Reason) -> None:
    assert re.search(row.pattern, row.sample)
    assert not re.search(row.pattern, row.near_miss)


@pytest.mark.parametrize("row", NOT_STARTED, ids=lambda row: row.told[:30])
def test_each_sample_gives_the_reason_of_its_own_row(row: Reason) -> None:
    constant = row.told.partition("{")[0]
    assert why_not_started(255, ["Warning: something", row.sample, "noise"]).startswith(constant)


@pytest.mark.parametrize("row", LOST, ids=lambda row: row.told[:30])
def test_each_sample_of_a_loss_gives_its_own_reason(row: Reason) -> None:
    assert why_lost(255, [row.sample]).startswith(row.told.partition("{")[0])


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ("bash: line 1: /opt/py/bin/python3: No such file or directory", "no python there: /opt"),
        ("bash: line 1: exec: python3.11: not found", "no python there: python3.11 cannot be run"),
        (
            "bash: line 1: exec: /nowhere/python: cannot execute: No such file or directory",
            "no python there: /nowhere/python cannot be run",
        ),
        (
            "sh: 1: exec: /nowhere/python: not found",
            "no python there: /nowhere/python cannot be run",
        ),
        ("bash: line 1: ./setup.sh: No such file or directory", "no such file there: ./setup.sh"),
        ("sh: 1: .: cannot open /x/setup.sh: No such file", "no such file there: /x/setup.sh"),
        ("ssh: connect to host ::1 port 22: Network is unreachable", "no route"),
    ],
)
def test_shells_say_the_same_in_different_words(line: str, reason: str) -> None:
    assert why_not_started(127, [line]).startswith(reason)


def test_what_no_row_knows_is_told_by_its_last_line_without_the_noise() -> None:
    lines = ["Traceback (most recent call last):", "ValueError: x", "Connection to a closed.", ""]
    assert why_not_started(1, lines) == "ValueError: x"


def test_what_srun_says_of_an_end_stands_back_behind_what_the_task_says() -> None:
    lines = [
        "srun: cluster configuration lacks support for cpu binding",
        "ValueError: x",
        "srun: error: h3: task 2: Exited with exit code 1",
    ]
    assert why_not_started(1, lines) == "ValueError: x"
    assert why_not_started(1, [lines[0], lines[2]]) == "worker ended (Exited with exit code 1)"


def test_silence_is_told_by_how_it_ended() -> None:
    assert why_not_started(3, []) == "its start ended with exit code 3 and said nothing"
    assert why_not_started(-9, [""]) == "its start ended by signal 9 and said nothing"


def test_a_loss_without_words_is_told_by_how_it_ended() -> None:
    assert why_lost(-9, ["whatever"]) == "worker ended (by signal 9)"
    assert why_lost(None, []) == "worker ended"


@pytest.mark.parametrize("line", ["\x1b[2J", "x" * 10_000, "exec: \x1b[2Jpython: not found"])
def test_a_reason_is_short_and_its_controls_are_visible(line: str) -> None:
    reason = why_not_started(255, [line])
    assert reason.isprintable()
    assert len(reason) <= 300


@pytest.mark.parametrize("character", "e1.[,/")
def test_no_row_takes_the_square_of_a_lines_length(character: str) -> None:
    """Each row gets a line that the square of would take minutes for."""
    garbage = character * 1_000_000
    for row in (*NOT_STARTED, *LOST):
        assert re.search(row.pattern, garbage) is None


def test_of_a_line_without_end_the_beginning_is_looked_at() -> None:
    line = "ssh: connect to host a port 22: No route to host" + " x" * 100_000
    assert why_not_started(255, [line]) == why_not_started(255, [line[:60]])
