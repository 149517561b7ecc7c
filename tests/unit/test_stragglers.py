"""Slow ranks are named, and healthy ones as rarely as is said."""

from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from ncdiag.diagnose.stragglers import Settings, find_stragglers
from ncdiag.diagnose.stragglers.chance import tail, threshold
from ncdiag.model.errors import ExitCode
from ncdiag.model.straggler import IterationTable, StragglerVerdict, TimeKind

Floats = npt.NDArray[np.float64]
STEP = 0.05  # the noise of a step


def table(seconds: Floats, groups: dict[int, str] | None = None) -> IterationTable:
    ranks = tuple(range(seconds.shape[1]))
    return IterationTable(
        ranks=ranks,
        seconds=seconds,
        groups=groups or {},
        hosts={rank: f"h{rank // 8}" for rank in ranks},
    )


def steps(seed: int, iterations: int, ranks: int) -> Floats:
    """Independent times of healthy ranks."""
    return 1.0 + STEP * np.random.default_rng(seed).standard_normal((iterations, ranks))


def named(seconds: Floats, kind: TimeKind = TimeKind.COMPUTE) -> list[int]:
    return sorted(one.rank for one in find_stragglers(table(seconds), kind).slow)


def test_the_false_alarms_of_16384_ranks_are_as_many_as_is_said() -> None:
    wanted = 40.0
    seen = stated = 0.0
    for seed in range(2):
        report = find_stragglers(
            table(steps(seed, 50, 16_384)), TimeKind.COMPUTE, Settings(false_alarms=wanted)
        )
        seen += len(report.slow)
        stated += report.expected_false_alarms
    assert stated == pytest.approx(2 * wanted)
    # Four standard deviations of a count of so many.
    assert abs(seen - stated) < 4 * stated**0.5


@pytest.mark.parametrize("ranks", [8, 16, 64, 300])
def test_the_false_alarms_of_few_ranks_are_as_many_as_is_said(ranks: int) -> None:
    tables = 4000
    far = threshold(ranks, 0.2)
    values = np.random.default_rng(5).standard_normal((tables, ranks))
    values -= np.median(values, axis=1, keepdims=True)
    scores = values / (1.4826 * np.median(np.abs(values), axis=1, keepdims=True))
    seen = int((scores > far).sum())
    assert 0.6 * 0.2 * tables < seen < 1.4 * 0.2 * tables


NOISES: dict[str, Callable[[Floats], Floats]] = {
    "normal": lambda normal: 1 + STEP * normal,
    "log-normal": lambda normal: np.exp(0.3 * normal),
    "exponential": lambda normal: 0.8 + 0.01 * np.exp(normal) ** 2,
    "long tails": lambda normal: np.exp(STEP * np.sinh(normal)),
}


@pytest.mark.parametrize("noise", NOISES.values(), ids=NOISES)
def test_false_alarms_are_as_many_as_is_said_in_noise_of_any_shape(
    noise: Callable[[Floats], Floats],
) -> None:
    chance, wanted = np.random.default_rng(3), Settings(false_alarms=0.5, least_slower=0.0)
    reports = [
        find_stragglers(table(noise(chance.standard_normal((25, 64)))), TimeKind.COMPUTE, wanted)
        for _ in range(200)
    ]
    assert 60 < sum(len(report.slow) for report in reports) < 160


def test_ranks_that_differ_by_more_than_noise_raise_what_is_said() -> None:
    differ = np.exp(0.03 * np.random.default_rng(4).standard_t(2, 2000))
    report = find_stragglers(table(differ * steps(12, 50, 2000)), TimeKind.COMPUTE)
    fast = report.expected_false_alarms
    assert fast >= 5
    assert report.notes[0].startswith(f"{fast:.0f} ranks are as far out on the fast side")


def test_many_slow_ranks_are_told_to_be_rather_of_another_kind() -> None:
    seconds = steps(13, 50, 64)
    seconds[:, :20] *= 1.3
    report = find_stragglers(table(seconds), TimeKind.COMPUTE)
    assert [one.rank for one in report.slow] != []
    assert "20 of 64 ranks are slow" in report.notes[-1]


def test_a_rank_that_is_slow_in_a_third_of_its_iterations_is_told_of_and_not_named() -> None:
    seconds = steps(14, 50, 64)
    seconds[::3, 3] *= 1.5
    report = find_stragglers(table(seconds), TimeKind.COMPUTE)
    assert report.verdict is StragglerVerdict.NONE
    assert report.notes == ("rank 3 on h0 is slow in 34 % of its iterations, and named by no rule",)
    assert find_stragglers(table(steps(14, 50, 64)), TimeKind.COMPUTE).notes == ()


@pytest.mark.parametrize("slow", [[5], [3, 9, 40], list(range(16, 24))], ids=["1", "3", "a host"])
@pytest.mark.parametrize("kind", [TimeKind.COMPUTE, TimeKind.COLLECTIVE])
def test_slow_ranks_are_all_found_and_no_others(kind: TimeKind, slow: list[int]) -> None:
    seconds = steps(15, 50, 64)
    seconds[:, slow] *= 1.2 if kind is TimeKind.COMPUTE else 1 / 1.2
    assert named(seconds, kind) == slow


def test_ranks_a_fifth_slower_are_found_among_16384_in_50_iterations() -> None:
    seconds = steps(1, 50, 16_384)
    slow = [7, 4711, 8000, 16_383]
    seconds[:, slow] *= 1.2
    assert named(seconds) == slow


def test_a_rank_that_is_slow_now_and_then_is_none() -> None:
    seconds = steps(2, 50, 64)
    seconds[::5, 3] *= 10
    assert named(seconds) == []


def test_slow_steps_of_the_whole_job_accuse_nobody() -> None:
    seconds = steps(11, 50, 64)
    assert named(seconds) == []
    assert named(seconds * np.linspace(1, 9, 50)[:, None]) == []


def test_in_collectives_the_late_rank_shows_the_shortest() -> None:
    seconds = steps(4, 50, 64)
    seconds[:, 5] *= 0.7
    seconds[:, 6] *= 1.4
    assert named(seconds, TimeKind.COLLECTIVE) == [5]
    assert named(seconds) == [6]


def test_whole_iterations_that_end_together_cannot_tell() -> None:
    together = steps(5, 50, 1).repeat(64, axis=1)
    report = find_stragglers(table(together), TimeKind.ITERATION)
    assert report.verdict is StragglerVerdict.UNDECIDED
    assert report.verdict.exit_code is ExitCode.UNDECIDED
    assert report.reason
    assert "--kind compute" in report.reason
    # And with the jitter of a clock: far less than iterations differ.
    jitter = together * (1 + 0.004 * np.random.default_rng(1).standard_normal((50, 64)))
    assert find_stragglers(table(jitter), TimeKind.ITERATION).verdict is StragglerVerdict.UNDECIDED


def test_iterations_of_ranks_that_do_not_wait_are_judged() -> None:
    seconds = steps(6, 50, 64)
    seconds[:, 9] *= 1.3
    assert named(seconds, TimeKind.ITERATION) == [9]
    assert named(steps(6, 50, 64), TimeKind.ITERATION) == []


def test_ranks_are_compared_within_their_group() -> None:
    seconds = steps(7, 50, 64)
    seconds[:, 32:] *= 3  # another pipeline stage
    seconds[:, 40] *= 1.2
    groups = {rank: f"stage{rank // 32}" for rank in range(64)}
    report = find_stragglers(table(seconds, groups), TimeKind.COMPUTE)
    assert [(one.rank, one.group, one.host) for one in report.slow] == [(40, "stage1", "h5")]
    assert report.groups == 2
    assert report.slow_hosts == ("h5",)


def test_an_iteration_that_a_group_lacks_is_left_out_without_a_warning() -> None:
    seconds = steps(7, 50, 64)
    seconds[:, 9] *= 1.3
    seconds[7, :32] = np.nan
    groups = {rank: f"stage{rank // 32}" for rank in range(64)}
    report = find_stragglers(table(seconds, groups), TimeKind.ITERATION)
    assert [one.rank for one in report.slow] == [9]
    seconds[:, 9] /= 1.3
    assert not find_stragglers(table(seconds, groups), TimeKind.ITERATION).slow


def test_both_rules_say_which_of_them_named_a_rank() -> None:
    seconds = steps(8, 50, 64)
    seconds[:, 1] *= 1.3
    seconds[:, 2] *= 1.8
    report = find_stragglers(table(seconds), TimeKind.COMPUTE)
    assert [(one.rank, one.rules) for one in report.slow] == [
        (2, ("median", "robust")),
        (1, ("robust",)),
    ]
    assert report.slow[0].ratio == pytest.approx(1.8, rel=0.03)
    assert (report.slow[0].windows, report.slow[0].windows_total) == (5, 5)


def test_the_median_rule_alone_needs_no_more_than_three_ranks_and_one_iteration() -> None:
    report = find_stragglers(table(np.array([[1.0, 1.0, 2.0]])), TimeKind.COMPUTE)
    assert [(one.rank, one.rules) for one in report.slow] == [(2, ("median",))]
    assert report.expected_false_alarms == 0.0


@pytest.mark.parametrize(
    "seconds",
    [
        np.zeros((0, 0)),
        np.zeros((0, 8)),
        np.ones((50, 2)),
        np.full((50, 8), np.nan),
        np.ones((3, 8)),
        np.zeros((50, 8)),
    ],
    ids=["nothing", "no iteration", "two ranks", "no times", "three iterations", "all zero"],
)
def test_too_little_is_never_called_healthy(seconds: Floats) -> None:
    report = find_stragglers(table(seconds), TimeKind.COMPUTE)
    assert report.verdict is StragglerVerdict.UNDECIDED
    assert report.reason


def test_a_rank_without_times_is_told_of_and_hides_nobody() -> None:
    seconds = steps(9, 50, 64)
    seconds[:, 3] = np.nan
    seconds[:, 4] *= 1.3
    seconds[10:, 5] = np.nan
    report = find_stragglers(table(seconds), TimeKind.COMPUTE)
    assert [one.rank for one in report.slow] == [4]
    assert "1 of 64 ranks were not judged" in report.notes[0]


def test_ranks_that_are_slower_by_little_are_not_worth_a_look() -> None:
    seconds = 1 + 1e-4 * np.random.default_rng(1).standard_normal((50, 64))
    seconds[:, 3] *= 1.015
    assert named(seconds) == []


def test_a_score_means_less_among_fewer_ranks() -> None:
    chances = [tail(ranks, 5.0) for ranks in (6, 16, 64, 1000)]
    assert chances == sorted(chances, reverse=True)
    assert threshold(16_384, 0.05) == pytest.approx(4.53, abs=0.02)


@given(
    arrays.arrays(
        np.float64,
        st.tuples(st.integers(0, 12), st.integers(0, 12)),
        elements=st.floats(allow_nan=True, allow_infinity=True),
    ),
    st.sampled_from(list(TimeKind)),
)
@settings(max_examples=60, deadline=None)
@pytest.mark.filterwarnings("ignore:overflow", "ignore:All-NaN", "ignore:Mean of empty")
def test_any_table_gets_a_report(seconds: Floats, kind: TimeKind) -> None:
    report = find_stragglers(table(seconds), kind)
    assert (report.verdict is StragglerVerdict.FOUND) == bool(report.slow)


@pytest.mark.parametrize("order", [[0, 1, 2, 3, 4, 5, 6, 7], [7, 3, 1, 0, 6, 5, 2, 4]])
def test_the_order_of_ranks_does_not_matter(order: Sequence[int]) -> None:
    seconds = steps(10, 50, 8)
    seconds[:, 6] *= 1.5
    shuffled = replace(table(seconds), ranks=tuple(order), seconds=seconds[:, order])
    report = find_stragglers(shuffled, TimeKind.COMPUTE)
    assert [one.rank for one in report.slow] == [6]
