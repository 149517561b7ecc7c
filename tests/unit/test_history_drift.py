"""Trends: what drifts, what flaps, and above all what does not."""

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ncdiag.diagnose.drift import (
    MAX_RUNS,
    MIN_RUNS,
    Sample,
    Standing,
    count_flaps,
    find_drift,
    over_time,
)


def sample(
    number: int,
    figure: float | None = 100.0,
    status: str = "healthy",
    *,
    engine: str = "torch",
    fleet: float | None = 1.0,
    window: float | None = 0.95,
) -> Sample:
    return Sample(
        started=f"2026-01-{number + 1:02}T00:00:00Z",
        engine=engine,
        status=status,
        figure=figure,
        fleet_ratio=fleet,
        worst_window=window,
    )


def samples(*figures: float, alike: bool = False) -> list[Sample]:
    """Runs with these figures, in a fleet that stays at 100, or that does the same."""
    return [
        sample(number, figure, fleet=1.0 if alike else figure / 100)
        for number, figure in enumerate(figures)
    ]


def noisy(count: int, fall: float, seed: int, noise: float = 0.02) -> list[Sample]:
    """Runs that fall by ``fall`` from the first to the last, with some per cent of noise."""
    rng = random.Random(seed)
    return samples(
        *(
            100 * (1 - fall * n / (count - 1)) * rng.uniform(1 - noise, 1 + noise)
            for n in range(count)
        )
    )


@pytest.mark.parametrize("seed", range(20))
def test_a_slow_fall_is_found_through_noise(seed: int) -> None:
    judged = over_time(noisy(30, 0.15, seed))
    assert judged.standing is Standing.DRIFTING
    assert judged.drift is not None
    assert judged.drift.change == pytest.approx(-0.15, abs=0.04)
    assert judged.drift.stepped is None


@pytest.mark.parametrize("seed", range(50))
def test_noise_alone_is_steady(seed: int) -> None:
    assert over_time(noisy(30, 0.0, seed, noise=0.04)).standing is Standing.STEADY


def test_a_small_fall_is_steady_however_certain() -> None:
    assert over_time(samples(*(100 - 0.1 * n for n in range(30)))).standing is Standing.STEADY


def test_a_step_is_dated() -> None:
    judged = over_time(samples(*[100, 101] * 6, *[85, 86] * 6))
    assert judged.standing is Standing.DRIFTING
    assert judged.drift is not None
    assert judged.drift.stepped == "2026-01-13T00:00:00Z"
    assert judged.drift.before == pytest.approx(100.5)
    assert judged.drift.after == pytest.approx(85.5)


def test_a_step_of_late_is_found_after_four_runs_and_not_before() -> None:
    before = [100.0, 101, 99, 100, 102, 98, 100, 101, 99, 100, 100, 101, 99, 100, 100, 101]
    assert over_time(samples(*before, 85, 86, 84)).drift is None
    judged = over_time(samples(*before, 85, 86, 84, 85))
    assert judged.standing is Standing.DRIFTING
    assert judged.drift is not None
    assert judged.drift.stepped == "2026-01-17T00:00:00Z"


def test_what_the_whole_fleet_does_is_nobodys_fault() -> None:
    falling = [100.0 - 2 * n for n in range(15)]
    judged = over_time(samples(*falling, alike=True))
    assert judged.standing is Standing.CHANGED
    assert judged.drift is not None
    assert judged.drift.fleet_alike
    assert over_time(samples(*falling)).standing is Standing.DRIFTING


def test_getting_faster_is_no_fault() -> None:
    judged = over_time(samples(*(100.0 + 3 * n for n in range(15))))
    assert judged.standing is Standing.CHANGED
    assert not judged.standing.is_wrong


def test_too_few_runs_tell_nothing() -> None:
    falling = [100.0 - 10 * n for n in range(MIN_RUNS - 1)]
    assert over_time(samples(*falling)).standing is Standing.TOO_FEW
    assert over_time(samples(*falling, 40)).standing is Standing.DRIFTING


@pytest.mark.parametrize("status", ["inconclusive", "untested", "error", "unreachable"])
def test_what_could_not_be_measured_is_neither_a_fall_nor_healthy(status: str) -> None:
    runs = samples(*[100.0] * 10)
    runs.append(sample(10, 10.0, status))
    judged = over_time(runs)
    assert judged.standing is Standing.UNDECIDED
    assert judged.drift is None
    assert judged.runs == 10


@pytest.mark.parametrize("status", ["faulty", "degraded"])
def test_what_is_slow_now_is_said_first(status: str) -> None:
    judged = over_time([*samples(*[100.0] * 3), sample(3, 30.0, status)])
    assert judged.standing == status
    assert judged.standing.is_wrong


def test_a_fault_and_its_repair_are_no_flapping() -> None:
    runs = [
        sample(n, 30.0 if n == 4 else 100.0, "faulty" if n == 4 else "healthy") for n in range(9)
    ]
    assert count_flaps(runs) == 2
    assert over_time(runs).standing is Standing.STEADY


def test_coming_and_going_is_flapping() -> None:
    runs = [
        sample(n, 30.0 if n in (2, 5) else 100.0, "faulty" if n in (2, 5) else "healthy")
        for n in range(9)
    ]
    assert count_flaps(runs) == 4
    assert over_time(runs).standing is Standing.FLAPPING


def test_a_figure_at_the_line_does_not_flap() -> None:
    runs = [
        sample(n, 91.0 if n % 2 else 93.0, "degraded" if n % 2 else "healthy") for n in range(9)
    ]
    assert count_flaps(runs) == 0
    assert over_time(runs).standing is Standing.STEADY


def test_a_host_that_is_now_and_then_away_flaps() -> None:
    runs = [
        sample(n, None if n in (2, 5) else 100.0, "unreachable" if n in (2, 5) else "healthy")
        for n in range(9)
    ]
    assert over_time(runs).standing is Standing.FLAPPING


def test_what_could_not_be_told_is_no_change_of_status() -> None:
    runs = [sample(n, 100.0, "inconclusive" if n % 2 else "healthy") for n in range(9)]
    assert count_flaps(runs) == 0


def test_bad_windows_are_said_and_accuse_nobody() -> None:
    runs = [sample(n, window=0.3 if n % 2 else 0.95) for n in range(8)]
    judged = over_time(runs)
    assert judged.unsteady_runs == 4
    assert judged.standing is Standing.STEADY
    assert over_time([sample(n, window=0.3 if n < 3 else 0.9) for n in range(8)]).unsteady_runs == 0


def test_engines_do_not_compare() -> None:
    runs = [sample(n, 400.0, engine="nccl-tests") for n in range(8)]
    runs += [sample(8 + n, 100.0) for n in range(8)]
    judged = over_time(runs)
    assert judged.standing is Standing.STEADY
    assert (judged.runs, judged.others) == (8, 8)


def test_only_the_newest_runs_are_judged() -> None:
    runs = [sample(0, 200.0)] * 100 + [sample(1, 100.0)] * MAX_RUNS
    assert over_time(runs).standing is Standing.STEADY


@given(
    st.lists(
        st.builds(
            sample,
            st.integers(0, 27),
            st.none() | st.floats(0, 1e6),
            st.sampled_from(
                [
                    "healthy",
                    "faulty",
                    "degraded",
                    "inconclusive",
                    "error",
                    "untested",
                    "unreachable",
                ]
            ),
            fleet=st.none() | st.floats(0, 100),
            window=st.none() | st.floats(0, 1),
        ),
        min_size=1,
        max_size=30,
    )
)
def test_any_history_has_a_standing(runs: list[Sample]) -> None:
    judged = over_time(runs)
    assert judged.runs + judged.others <= len(runs)
    if runs[-1].status not in ("healthy", "faulty", "degraded"):
        assert judged.standing in (Standing.UNDECIDED, Standing.FLAPPING)


@given(st.lists(st.floats(1, 1e6), min_size=MIN_RUNS, max_size=20))
def test_no_trend_is_a_fall_and_a_rise(figures: list[float]) -> None:
    there = find_drift(samples(*figures))
    assert there is None or (there.change < 0) == (there.after < there.before)
