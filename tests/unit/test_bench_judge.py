import pytest
from bench_cases import SIZES, rising, run

from ncdiag.diagnose.bench import Judgement, judge
from ncdiag.diagnose.bench.plateau import find_plateau
from ncdiag.expect.collective import CollectiveExpectation, expect_collective
from ncdiag.expect.hardware import find_machine
from ncdiag.expect.traffic import Collective
from ncdiag.model.bench import (
    BenchFinding,
    BenchFindingKind,
    BenchPoint,
    BenchRun,
    BenchSeverity,
)
from ncdiag.model.verdict import Verdict

MIB = 2**20
ALL_REDUCE = Collective.ALL_REDUCE
H100 = find_machine("h100-8x400g")


def expect_h100(hosts: int, ranks_per_host: int) -> CollectiveExpectation:
    return expect_collective(H100, ALL_REDUCE, hosts, gpus_per_node=ranks_per_host)


def reaching(share: float, hosts: int = 2) -> list[BenchRun]:
    """Two repeats at a share of what hosts with eight H100 should reach."""
    expected = expect_h100(hosts, 8)
    return [
        run(hosts, rate=lambda size: share * expected.at(size).busbw_gb_per_s, seed=seed)
        for seed in (1, 2)
    ]


def found(judged: Judgement, kind: BenchFindingKind) -> BenchFinding:
    return next(one for one in judged.findings if one.kind is kind)


def kinds(judged: Judgement) -> set[BenchFindingKind]:
    return {one.kind for one in judged.findings}


def plateau_of(*rates: float) -> float | None:
    """The plateau of rates at sizes that double."""
    curve = [
        BenchPoint(size_bytes=MIB << number, time_us=None, algbw_gb_per_s=None, busbw_gb_per_s=rate)
        for number, rate in enumerate(rates)
    ]
    level = find_plateau(curve)
    return level and level.busbw_gb_per_s


@pytest.mark.parametrize(
    ("rates", "level"),
    [
        ((10, 20, 40, 70, 90, 98, 100, 101), 99),
        ((10, 20, 40, 70, 98, 40, 100, 101), 99),  # a cliff on it
        ((10, 20, 40, 70, 98, 99, 100, 40), 98.5),  # a cliff at its end
        ((10, 20, 99, 100, 100, 180), 100),  # one figure too good to be true
        ((10, 20, 99, 100, 98, 80, 60), 98),  # it falls in the end
    ],
)
def test_the_plateau_is_the_median_of_the_level(rates: tuple[float, ...], level: float) -> None:
    assert plateau_of(*rates) == level


@pytest.mark.parametrize(
    "rates",
    [
        (10, 20, 40, 80),
        (10, 20, 40, 70, 40),  # a cliff while it rises
        (50, 70, 85, 100),
        (100, 100),  # too few sizes
        (100,),
        (0.0, 0.0, 0.0, 0.0),
        (),
    ],
)
def test_a_curve_that_still_rises_has_no_plateau(rates: tuple[float, ...]) -> None:
    assert plateau_of(*rates) is None


def test_what_reaches_its_expectation_is_healthy() -> None:
    judged = judge(reaching(0.95), ALL_REDUCE, expect=expect_h100)
    assert judged.verdict is Verdict.HEALTHY
    assert judged.findings == ()
    curve = judged.curves[0]
    assert curve.efficiency == pytest.approx(0.95, abs=0.02)
    assert curve.points[0].expected_busbw_gb_per_s == expect_h100(2, 8).at(8).busbw_gb_per_s


def test_the_mean_of_all_sizes_is_never_looked_at() -> None:
    runs = reaching(0.95)
    for one in runs:
        assert one.benchmark
        one.benchmark.avg_busbw = 0.1
    assert judge(runs, ALL_REDUCE, expect=expect_h100).verdict is Verdict.HEALTHY


def test_a_plateau_below_its_expectation_is_a_fault() -> None:
    judged = judge(reaching(0.6), ALL_REDUCE, expect=expect_h100)
    assert judged.verdict is Verdict.FAULTY
    assert "60 % of" in found(judged, BenchFindingKind.BELOW_EXPECTATION).text
    assert judge(reaching(0.6), ALL_REDUCE, expect=expect_h100, faulty_below=0.5).verdict is (
        Verdict.HEALTHY
    )


def test_where_published_runs_miss_the_expectation_a_shortfall_is_a_note() -> None:
    machine = find_machine("gb200-nvl72")

    def expect(hosts: int, ranks_per_host: int) -> CollectiveExpectation:
        return expect_collective(machine, ALL_REDUCE, hosts, gpus_per_node=ranks_per_host)

    runs = [
        run(
            18,
            ranks_per_host=4,
            rate=lambda size: 0.7 * expect(18, 4).at(size).busbw_gb_per_s,
            seed=seed,
        )
        for seed in (1, 2)
    ]
    judged = judge(runs, ALL_REDUCE, expect=expect)
    assert judged.verdict is Verdict.HEALTHY
    assert found(judged, BenchFindingKind.BELOW_EXPECTATION).severity is BenchSeverity.NOTE
    assert any("do not judge by it" in note for note in judged.notes)


def test_that_theory_is_off_for_middle_sizes_is_noted_where_they_miss_it() -> None:
    note = "published runs of 4 to 64 MiB reach 40 to 90 % of theory there"
    assert note not in judge(reaching(0.95), ALL_REDUCE, expect=expect_h100).notes
    expected = expect_h100(2, 8)
    slow = {32 * MIB: 0.5, 16 * MIB: 0.5, 8 * MIB: 0.5}
    runs = [run(2, rate=lambda size: expected.at(size).busbw_gb_per_s, shares=slow)]
    assert note in judge(runs, ALL_REDUCE, expect=expect_h100).notes


def test_a_machine_that_it_cannot_be_is_noted() -> None:
    judged = judge(reaching(1.5), ALL_REDUCE, expect=expect_h100)
    assert judged.verdict is Verdict.HEALTHY
    assert any("more than theory allows" in note for note in judged.notes)


def test_a_sweep_that_ends_before_the_plateau_is_not_judged() -> None:
    runs = [run(sizes=SIZES[:16], seed=seed) for seed in (1, 2)]
    judged = judge(runs, ALL_REDUCE, expect=expect_h100)
    assert judged.verdict is Verdict.INCONCLUSIVE
    assert judged.curves[0].efficiency is None
    assert any("--sizes" in note for note in judged.notes)


def test_nothing_measured_is_not_healthy() -> None:
    assert judge([], ALL_REDUCE).verdict is Verdict.INCONCLUSIVE


def test_without_an_expectation_consistency_decides() -> None:
    judged = judge([run(seed=seed) for seed in (1, 2)], ALL_REDUCE)
    assert judged.verdict is Verdict.HEALTHY
    assert any("--machine" in note for note in judged.notes)


@pytest.mark.parametrize("size", [16 * MIB, 256 * MIB])
def test_a_cliff_at_one_size_is_found(size: int) -> None:
    judged = judge([run(shares={size: 0.4}, seed=seed) for seed in (1, 2)], ALL_REDUCE)
    assert judged.verdict is Verdict.FAULTY
    assert [one.size_bytes for one in judged.findings] == [size]
    assert [point.size_bytes for point in judged.curves[0].points if point.cliff] == [size]


def test_two_sizes_side_by_side_are_two_cliffs() -> None:
    shares = {128 * MIB: 0.4, 256 * MIB: 0.5}
    judged = judge([run(shares=shares)], ALL_REDUCE)
    assert [one.size_bytes for one in judged.findings] == list(shares)


def test_a_dip_where_protocols_change_is_no_cliff() -> None:
    judged = judge([run(shares={256 * MIB: 0.8, 8 * MIB: 0.75})], ALL_REDUCE)
    assert judged.findings == ()


def test_a_size_that_was_slow_once_is_a_note() -> None:
    runs = [run(in_place=False), run(in_place=False, shares={256 * MIB: 0.3}, seed=2)]
    judged = judge(runs, ALL_REDUCE)
    assert judged.verdict is Verdict.HEALTHY
    # Of two repeats the median is their mean.
    assert found(judged, BenchFindingKind.CLIFF).severity is BenchSeverity.NOTE
    assert found(judged, BenchFindingKind.NOISE).size_bytes == 256 * MIB
    alone = judge(runs[1:], ALL_REDUCE)
    assert "--repeat" in found(alone, BenchFindingKind.CLIFF).next


def test_a_slow_small_size_is_a_note() -> None:
    judged = judge([run(shares={1024: 0.3}, seed=seed) for seed in (1, 2)], ALL_REDUCE)
    assert judged.verdict is Verdict.HEALTHY
    assert found(judged, BenchFindingKind.CLIFF).severity is BenchSeverity.NOTE


def test_a_largest_size_that_falls_is_a_note() -> None:
    judged = judge([run(shares={SIZES[-1]: 0.4})], ALL_REDUCE)
    assert judged.verdict is Verdict.HEALTHY
    assert found(judged, BenchFindingKind.CLIFF).size_bytes == SIZES[-1]


def test_repeats_that_differ_are_noise_and_no_fault() -> None:
    runs = [run(shares={2**33: 0.7}), run(seed=2), run(seed=3)]
    judged = judge(runs, ALL_REDUCE)
    assert kinds(judged) == {BenchFindingKind.NOISE}
    assert judged.verdict is Verdict.HEALTHY


def test_wrong_data_is_the_worst() -> None:
    judged = judge([run(wrong={MIB: 7}, shares={256 * MIB: 0.4})], ALL_REDUCE)
    assert judged.verdict is Verdict.FAULTY
    first = judged.findings[0]
    assert (first.kind, first.size_bytes) == (BenchFindingKind.WRONG_DATA, MIB)
    assert "7 elements" in first.text


def test_wrong_data_that_only_the_footer_tells_is_found() -> None:
    one = run()
    assert one.benchmark
    one.benchmark.out_of_bounds = 3
    assert kinds(judge([one], ALL_REDUCE)) == {BenchFindingKind.WRONG_DATA}


@pytest.mark.parametrize(("rank", "host", "gpu"), [(11, "n02", 3), (0, "n01", 0)])
def test_a_rank_that_is_always_slower_is_named(rank: int, host: str, gpu: int) -> None:
    judged = judge([run(slow_process=rank)], ALL_REDUCE)
    slow = found(judged, BenchFindingKind.SLOW_RANK)
    assert (slow.rank, slow.host, slow.severity) == (rank, host, BenchSeverity.FAULT)
    assert f"its GPU {gpu}" in slow.text


def test_of_two_ranks_nobody_is_the_odd_one() -> None:
    judged = judge([run(2, ranks_per_host=1, slow_process=1)], ALL_REDUCE)
    assert judged.findings == ()


def test_ranks_that_differ_by_a_little_are_not_accused() -> None:
    assert judge([run(slow_process=3, slow_by=1.04)], ALL_REDUCE).findings == ()


def test_a_root_is_not_slow_but_a_root() -> None:
    runs = [run(slow_process=0, collective=Collective.BROADCAST)]
    assert judge(runs, Collective.BROADCAST).findings == ()


def test_the_number_of_hosts_at_which_bandwidth_breaks_is_found() -> None:
    runs = [one for hosts in (2, 4, 8) for one in reaching(0.95, hosts)] + reaching(0.5, 16)
    judged = judge(runs[::-1], ALL_REDUCE, expect=expect_h100, faulty_below=0.3)
    assert [len(curve.hosts) for curve in judged.curves] == [2, 4, 8, 16]
    broken = found(judged, BenchFindingKind.SCALING_BREAK)
    assert broken.severity is BenchSeverity.FAULT
    assert broken.text.startswith("bandwidth breaks at 16 hosts")


def test_what_theory_takes_from_more_hosts_is_no_break() -> None:
    runs = [one for hosts in (1, 2, 4, 8) for one in reaching(0.95, hosts)]
    assert judge(runs, ALL_REDUCE, expect=expect_h100).findings == ()


@pytest.mark.parametrize(
    ("ranks_per_host", "severity"), [(1, BenchSeverity.FAULT), (8, BenchSeverity.NOTE)]
)
def test_without_theory_a_break_is_a_fault_only_where_it_would_be_flat(
    ranks_per_host: int, severity: BenchSeverity
) -> None:
    runs = [
        run(hosts, ranks_per_host=ranks_per_host, rate=rising(50.0 if hosts < 8 else 20.0))
        for hosts in (4, 8)
    ]
    broken = found(judge(runs, ALL_REDUCE), BenchFindingKind.SCALING_BREAK)
    assert broken.severity is severity


def test_one_host_is_not_compared_with_several_without_theory() -> None:
    runs = [run(1, rate=rising(400.0)), run(2, rate=rising(100.0)), run(4, rate=rising(95.0))]
    assert judge(runs, ALL_REDUCE).findings == ()


def test_a_run_that_failed_makes_it_inconclusive_and_accuses_nobody() -> None:
    judged = judge([run(), run(error="timed out", seed=2)], ALL_REDUCE)
    assert judged.verdict is Verdict.INCONCLUSIVE
    assert "timed out" in found(judged, BenchFindingKind.INCOMPLETE).text
    judged = judge([BenchRun(hosts=("a", "b"), ranks_per_host=8, error="no program")], ALL_REDUCE)
    assert judged.verdict is Verdict.INCONCLUSIVE
    assert judged.curves[0].error == "no program"


def test_what_was_found_stands_though_a_run_failed() -> None:
    runs = [run(shares={256 * MIB: 0.4}), run(sizes=SIZES[:5], error="killed")]
    assert judge(runs, ALL_REDUCE).verdict is Verdict.FAULTY


def test_what_could_not_be_measured_is_not_healthy() -> None:
    assert judge([run()], ALL_REDUCE, whole=False).verdict is Verdict.INCONCLUSIVE


def test_a_fleet_is_compared_with_its_own_history() -> None:
    past = [judge([run(seed=seed, noise=0.05)], ALL_REDUCE).curves[0] for seed in range(3)]
    judged = judge([run(rate=rising(60.0))], ALL_REDUCE, history=past)
    assert found(judged, BenchFindingKind.BELOW_HISTORY).severity is BenchSeverity.FAULT
    last = judged.curves[0].points[-1]
    assert last.history_min_busbw_gb_per_s == min(
        one.points[-1].busbw_gb_per_s or 0 for one in past
    )
    assert judge([run()], ALL_REDUCE, history=past).findings == ()


def test_two_benchmarks_or_those_of_other_fleets_are_no_history() -> None:
    past = [judge([run(seed=seed)], ALL_REDUCE).curves[0] for seed in range(2)]
    past += [judge([run(4, seed=seed)], ALL_REDUCE).curves[0] for seed in range(3)]
    assert judge([run(rate=rising(60.0))], ALL_REDUCE, history=past).findings == ()


def test_figures_of_small_messages_have_more_digits_than_were_printed() -> None:
    point = judge([run()], ALL_REDUCE).curves[0].points[0]
    assert point.size_bytes == 8
    assert point.busbw_gb_per_s == pytest.approx(rising(100.0)(8), rel=0.02)
