"""Tables of benchmarks."""

from typing import Any

import pytest


def test_one_rank_measures_nothing(bench: Any, post: Any, names: Any) -> None:
    answer = post(benchmarks=[bench.table([0.0, 0.0], hosts=("a",))])
    assert names.roots(answer) == ["single_rank_run"]
    assert post(benchmarks=[bench.table([1.0, 2.0])]).verdict == "ok"


def test_several_tables_of_one_rank_were_launched_without_mpi(bench: Any, post: Any) -> None:
    tables = [bench.table([0.0], hosts=("a",)) for _ in range(4)]
    finding = post(benchmarks=tables).findings[0]
    assert finding.count == 4
    assert "MPI" in finding.explanation


def test_wrong_values_are_a_root_with_the_first_bad_size(bench: Any, post: Any) -> None:
    finding = post(benchmarks=[bench.table([1.0, 2.0], wrong={1: 37.0})]).findings[0]
    assert finding.class_ == "data_corruption"
    assert dict(finding.attributes) == {"size": "2048", "wrong": "37"}


def test_wrong_values_isolate_the_one_host_that_all_bad_runs_share(
    bench: Any, post: Any, names: Any
) -> None:
    bad = [bench.table([1.0], hosts=("a", other), wrong={0: 1.0}) for other in "bc"]
    good = bench.table([1.0], hosts=("b", "c"))
    assert names.isolated(post(benchmarks=[*bad, good])) == ["a"]
    assert not names.isolated(post(benchmarks=[bad[0]]))
    assert not names.isolated(post(benchmarks=[bad[0], bad[0]]))


def test_a_cliff_needs_both_halves_and_a_size_after_it(bench: Any, post: Any, names: Any) -> None:
    rows = [10.0, 20.0, 40.0, 12.0, 13.0]
    answer = post(benchmarks=[bench.table(rows, in_place=rows)])
    assert names.roots(answer) == ["bandwidth_cliff"]
    assert answer.findings[0].attributes == {"size": str(1024 << 3)}
    assert answer.findings[0].severity == "degraded"


@pytest.mark.parametrize(
    ("rows", "in_place"),
    [
        ([10.0, 40.0, 12.0, 41.0], None),  # back at the next size
        ([10.0, 40.0, 12.0], None),  # nothing after it
        ([10.0, 40.0, 12.0, 13.0], [10.0, 40.0, 41.0, 42.0]),  # one half only
        ([10.0, 40.0, 24.0, 22.0], None),  # less than half
        ([0.02, 0.04, 0.01, 0.01], None),  # too small to tell
    ],
)
def test_what_is_no_cliff(bench: Any, post: Any, rows: Any, in_place: Any) -> None:
    assert post(benchmarks=[bench.table(rows, in_place=in_place)]).verdict == "ok"


def test_tables_of_different_runs_are_not_compared(bench: Any, post: Any) -> None:
    tables = [bench.table([100.0, 110.0]), bench.table([9.0, 10.0], test="alltoall_perf")]
    assert post(benchmarks=tables).verdict == "ok"


def pairs(bench: Any, **peaks: Any) -> Any:
    return [bench.table([value], hosts=tuple(pair)) for pair, value in peaks.items()]


def test_a_host_that_is_slow_with_every_partner_is_named(bench: Any, post: Any, names: Any) -> None:
    tables = pairs(bench, ab=10.0, ac=11.0, bc=40.0, bd=41.0, cd=40.0)
    answer = post(benchmarks=tables)
    finding = answer.findings[0]
    assert (finding.class_, names.suspects(finding)) == ("slow_node", ["a"])
    assert finding.attributes == {"ratio": "0.25"}
    assert names.isolated(answer) == ["a"]


def test_one_slow_pair_names_a_host_without_isolating_it(bench: Any, post: Any, names: Any) -> None:
    answer = post(benchmarks=pairs(bench, ab=10.0, bc=40.0, cd=41.0, bd=40.0))
    assert names.suspects(answer.findings[0]) == ["a"]
    assert not names.isolated(answer)


def test_a_slow_pair_whose_ends_were_in_no_other_accuses_nobody(bench: Any, post: Any) -> None:
    assert post(benchmarks=pairs(bench, ab=10.0, cd=40.0, ce=41.0, de=40.0)).verdict == "ok"


def test_pairs_that_are_all_alike_accuse_nobody(bench: Any, post: Any) -> None:
    assert post(benchmarks=pairs(bench, ab=40.0, ac=37.0, bc=41.0)).verdict == "ok"
