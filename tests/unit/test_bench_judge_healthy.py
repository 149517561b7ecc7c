"""Benchmarks of healthy fleets that look odd, and what must not be said of them."""

import math
from collections.abc import Callable
from dataclasses import replace

import pytest
from bench_cases import SIZES, rising, run

from ncdiag.diagnose.bench import Judgement, judge
from ncdiag.expect.collective import CollectiveExpectation, expect_collective
from ncdiag.expect.hardware import find_machine
from ncdiag.expect.traffic import Collective
from ncdiag.model.bench import BenchFindingKind, BenchRun, BenchSeverity
from ncdiag.model.benchmark import TableRow
from ncdiag.model.verdict import Verdict

ALL_REDUCE = Collective.ALL_REDUCE
MIB = 2**20
Expect = Callable[[int, int], CollectiveExpectation]


def expecting(machine: str) -> Expect:
    found = find_machine(machine)
    return lambda hosts, ranks: expect_collective(found, ALL_REDUCE, hosts, gpus_per_node=ranks)


def reaching(expect: Expect, share: float, hosts: int, ranks: int = 8) -> BenchRun:
    expected = expect(hosts, ranks)
    rate = lambda size: share * expected.at(size).busbw_gb_per_s  # noqa: E731
    return run(hosts, ranks_per_host=ranks, rate=rate)


def with_rows(one: BenchRun, change: Callable[[TableRow], TableRow]) -> BenchRun:
    assert one.benchmark
    return replace(one, benchmark=replace(one.benchmark, rows=[*map(change, one.benchmark.rows)]))


def kinds(judged: Judgement) -> list[tuple[BenchFindingKind, BenchSeverity]]:
    return [(one.kind, one.severity) for one in judged.findings]


def test_middle_sizes_between_hosts_are_no_yardstick() -> None:
    sizes = [MIB << power for power in range(7)]
    flat = run(4, rate=rising(40.0, 1024), sizes=sizes)
    expect = expecting("h100-8x400g")
    judged = judge([flat], ALL_REDUCE, expect=expect)
    assert judged.curves[0].expectation_unreliable
    assert kinds(judged) == [(BenchFindingKind.BELOW_EXPECTATION, BenchSeverity.NOTE)]
    large = run(4, rate=rising(40.0, 1024), sizes=[size << 7 for size in sizes])
    judged = judge([large], ALL_REDUCE, expect=expect)
    assert kinds(judged) == [(BenchFindingKind.BELOW_EXPECTATION, BenchSeverity.FAULT)]


def test_scaling_breaks_at_no_expectation_that_published_runs_miss_too() -> None:
    expect = expecting("gb200-nvl72")
    runs = [reaching(expect, share, hosts, 4) for share, hosts in ((0.95, 2), (0.65, 18))]
    judged = judge(runs, ALL_REDUCE, expect=expect)
    assert judged.verdict is Verdict.HEALTHY
    assert (BenchFindingKind.SCALING_BREAK, BenchSeverity.NOTE) in kinds(judged)


def test_scaling_is_whole_where_each_number_of_hosts_is_near_its_expectation() -> None:
    expect = expecting("h100-8x400g")
    runs = [reaching(expect, share, hosts) for share, hosts in ((1.06, 1), (0.88, 16))]
    judged = judge(runs, ALL_REDUCE, expect=expect)
    assert kinds(judged) == [(BenchFindingKind.SCALING_BREAK, BenchSeverity.NOTE)]
    assert judged.verdict is Verdict.HEALTHY


def test_a_break_goes_before_one_that_may_be_none() -> None:
    expect = expecting("h100-8x400g")
    runs = [reaching(expect, share, n) for share, n in ((1.06, 1), (0.88, 2), (0.5, 4))]
    judged = judge(runs, ALL_REDUCE, expect=expect, faulty_below=0.1)
    assert kinds(judged) == [(BenchFindingKind.SCALING_BREAK, BenchSeverity.FAULT)]
    assert judged.findings[0].text.startswith("bandwidth breaks at 4 hosts")


def test_ranks_with_a_neighbour_on_another_host_are_not_slow() -> None:
    sendrecv = Collective.SENDRECV
    assert judge([run(2, slow_process=7, collective=sendrecv)], sendrecv).findings == ()
    for hosts, ranks in ((1, 8), (8, 1)):
        one = run(hosts, ranks_per_host=ranks, slow_process=7, collective=sendrecv)
        assert kinds(judge([one], sendrecv)) == [(BenchFindingKind.SLOW_RANK, BenchSeverity.FAULT)]


def test_history_is_compared_at_the_sizes_that_were_measured() -> None:
    rate = rising(100.0, 64 * MIB)
    past = [judge([run(rate=rate, seed=seed)], ALL_REDUCE).curves[0] for seed in range(3)]
    least = past[0].plateau_from_bytes or 0
    few = [size for size in SIZES if size <= 4 * least]
    slower = run(rate=lambda size: 0.86 * rate(size), sizes=few)
    judged = judge([slower], ALL_REDUCE, history=past)
    assert judged.findings == ()
    now, before = judged.curves[0].plateau_busbw_gb_per_s, judged.curves[0].history_plateau_gb_per_s
    assert now
    assert before
    assert now / before == pytest.approx(0.86, abs=0.02)


@pytest.mark.parametrize("odd", [math.nan, math.inf, -1.0])
def test_a_figure_that_is_no_number_counts_as_none(odd: float) -> None:
    def change(row: TableRow) -> TableRow:
        if row.size not in (8, SIZES[-1], 64 * MIB):
            return row
        return row._replace(
            out_of_place_busbw=odd,
            in_place_busbw=odd,
            out_of_place_time_us=odd,
            in_place_time_us=odd,
            out_of_place_wrong=max(odd, 0),
        )

    judged = judge([with_rows(run(), change)], ALL_REDUCE)
    assert judged.verdict is Verdict.HEALTHY
    assert judged.findings == ()


@pytest.mark.parametrize(("sizes", "why"), [(SIZES[-1:], "3 sizes"), (SIZES[:9], "still rises")])
def test_why_there_is_no_plateau_is_said(sizes: tuple[int, ...], why: str) -> None:
    judged = judge([run(sizes=sizes)], ALL_REDUCE)
    assert judged.verdict is Verdict.INCONCLUSIVE
    assert any(why in note for note in judged.notes)


@pytest.mark.parametrize("slow", [1, 2, 4])
def test_a_fall_that_lasts_to_the_end_is_noted(slow: int) -> None:
    shares = dict.fromkeys(SIZES[-slow:], 0.55)
    judged = judge([run(shares=shares)], ALL_REDUCE)
    assert kinds(judged) == [(BenchFindingKind.CLIFF, BenchSeverity.NOTE)]
    assert judged.findings[0].size_bytes == SIZES[-slow]
    assert " 5" in judged.findings[0].text


@pytest.mark.parametrize(("slow", "severity"), [(1, BenchSeverity.NOTE), (2, BenchSeverity.FAULT)])
def test_a_fall_of_several_sizes_is_a_fault_where_theory_is_missed(
    slow: int, severity: BenchSeverity
) -> None:
    expect = expecting("h100-8x400g")
    shares = dict.fromkeys(SIZES[-slow:], 0.5)
    rate = lambda size: 0.95 * expect(4, 8).at(size).busbw_gb_per_s  # noqa: E731
    judged = judge([run(4, rate=rate, shares=shares)], ALL_REDUCE, expect=expect)
    assert kinds(judged) == [(BenchFindingKind.CLIFF, severity)]


def test_a_fall_among_small_messages_is_none() -> None:
    sizes = SIZES[:6]
    judged = judge([run(sizes=(*sizes, *SIZES[-6:]), shares={sizes[-1]: 0.5})], ALL_REDUCE)
    assert all(severity is BenchSeverity.NOTE for _, severity in kinds(judged))


def test_a_cliff_says_over_how_many_hosts_where_there_are_several() -> None:
    runs = [run(hosts, shares={256 * MIB: 0.4}) for hosts in (2, 4)]
    texts = [one.text for one in judge(runs, ALL_REDUCE).findings]
    assert [text.partition(":")[0] for text in texts] == ["on 2 hosts", "on 4 hosts"]
    assert judge(runs[:1], ALL_REDUCE).findings[0].text.startswith("at 256 MiB")
