"""Hangs: what counts as one, and what is only a log that ends."""

from typing import Any


def members(bench: Any, count: Any, ranks: Any, host: Any = "a", **fields: Any) -> Any:
    return [
        bench.process(
            host, str(n), communicators=[bench.communicator(n, ranks, started=True, **fields)]
        )
        for n in range(count)
    ]


def test_ranks_that_start_and_do_not_complete_hang(bench: Any, post: Any) -> None:
    processes = members(bench, 7, 8)
    finding = post(processes=processes).findings[0]
    assert finding.class_ == "hang_init"
    assert dict(finding.attributes) == {"started": "7", "completed": "0", "expected": "8"}
    assert finding.ranks == (7,)


def test_a_start_up_that_goes_on_is_no_hang(bench: Any, post: Any) -> None:
    assert post(processes=members(bench, 8, 8, completed=True)).verdict == "ok"
    assert not post(processes=members(bench, 8, 8, progressed=True)).findings


def test_few_of_many_start_lines_name_no_missing_rank(bench: Any, post: Any) -> None:
    finding = post(processes=members(bench, 3, 16)).findings[0]
    assert finding.class_ == "hang_init"
    assert finding.ranks == ()


def test_a_kill_makes_a_hang_surer_and_is_its_consequence(
    bench: Any, post: Any, names: Any
) -> None:
    processes = members(bench, 8, 8)
    alone = post(processes=processes).findings[0].confidence
    answer = post(bench.event("terminated_by_launcher", signal="15"), processes=processes)
    assert names.roots(answer) == ["hang_init"]
    assert answer.findings[0].confidence > alone


def test_a_failure_is_no_hang(bench: Any, post: Any, names: Any) -> None:
    answer = post(bench.event("cuda_out_of_memory", "a", pid="1"), processes=members(bench, 8, 8))
    assert "hang_init" not in names.classes(answer)


def test_a_time_limit_after_a_hung_start_is_its_consequence(
    bench: Any, post: Any, names: Any
) -> None:
    answer = post(bench.event("job_time_limit", job="1"), processes=members(bench, 8, 8))
    assert names.roots(answer) == ["hang_init"]


def test_a_heading_without_a_row_is_a_first_collective_that_hangs(
    bench: Any, post: Any, names: Any
) -> None:
    answer = post(benchmarks=[bench.table([], complete=False)])
    assert names.roots(answer) == ["hang_first_collective"]


def test_a_test_that_was_only_announced_is_inconclusive(bench: Any, post: Any) -> None:
    answer = post(benchmarks=[bench.table([], complete=False, heading=None)])
    assert answer.verdict == "inconclusive"
    assert not answer.findings


def test_rings_and_nothing_after_them_are_a_first_collective_that_hangs(
    bench: Any, post: Any, names: Any
) -> None:
    state = bench.communicator(0, 2, started=True, progressed=True)
    process = bench.process("a", communicators=[state], connected=bench.place())
    process.last = process.connected
    answer = post(processes=[process], ends={"job.log": process.connected})
    assert names.roots(answer) == ["hang_first_collective"]


def test_rings_and_other_lines_after_them_are_none(bench: Any, post: Any) -> None:
    state = bench.communicator(0, 2, started=True, progressed=True)
    process = bench.process("a", communicators=[state], connected=bench.place())
    process.last = process.connected
    for _ in range(20):
        end = bench.place()
    answer = post(processes=[process], ends={"job.log": end})
    assert not answer.findings


def test_rows_that_stop_are_a_hang_by_a_kill_or_by_the_clock_only(
    bench: Any, post: Any, names: Any
) -> None:
    table = bench.table([1.0, 2.0, 3.0], complete=False)
    assert post(benchmarks=[table]).verdict == "inconclusive"
    killed = post(bench.event("terminated_by_launcher", signal="15"), benchmarks=[table])
    assert names.roots(killed) == ["hang_mid_run"]
    limited = post(bench.event("job_time_limit", job="3"), benchmarks=[table])
    assert names.roots(limited) == ["job_time_limit"]


def test_a_silence_long_against_the_pace_is_a_hang(bench: Any, post: Any, names: Any) -> None:
    table = bench.table([1.0, 2.0, 3.0], complete=False, times=[0, 1, 3])
    silent = post(benchmarks=[table], clock_ends={"job.log": bench.place(3600)})
    assert names.roots(silent) == ["hang_mid_run"]
    short = post(benchmarks=[table], clock_ends={"job.log": bench.place(20)})
    assert short.verdict == "inconclusive"


def test_the_last_call_before_a_silence_is_named(bench: Any, post: Any, names: Any) -> None:
    def process(host: Any, rank: Any, calls: Any) -> Any:
        state = bench.communicator(rank, 2, completed=bench.place(0), last_call=bench.place(60))
        state.calls = dict.fromkeys(range(calls), ("AllReduce", "1024", "7"))
        return bench.process(host, communicators=[state])

    processes = [process("a", 0, 31), process("b", 1, 30)]
    answer = post(processes=processes, clock_ends={"job.log": bench.place(7200)})
    finding = answer.findings[0]
    assert finding.class_ == "hang_mid_run"
    assert finding.attributes == {"op": "AllReduce", "seq": "1e"}
    assert names.suspects(finding) == ["1"]


def test_mixed_versions_in_a_start_up_that_hangs_are_a_mismatch(
    bench: Any, post: Any, names: Any
) -> None:
    processes = members(bench, 4, 4)
    for process in processes:
        process.versions = ["2.21.5+cuda12.4"]
    processes[3].versions = ["2.18.3+cuda12.2"]
    answer = post(processes=processes)
    assert names.roots(answer) == ["bootstrap_mismatch", "hang_init"]
    assert answer.findings[0].attributes["got"] == "2.18.3+cuda12.2"


def test_settings_that_differ_are_named_with_a_hang(bench: Any, post: Any) -> None:
    processes = members(bench, 4, 4)
    for number, process in enumerate(processes):
        process.environment = {"NCCL_ALGO": "Ring" if number else "Tree", "NCCL_DEBUG": "INFO"}
    explanation = post(processes=processes).findings[0].explanation
    assert "NCCL_ALGO differs" in explanation
    assert "NCCL_DEBUG differs" not in explanation


def test_a_timer_that_runs_out_before_the_first_row_tells_of_the_first_collective(
    bench: Any, post: Any, names: Any
) -> None:
    empty = bench.table([], complete=False)
    started = bench.table([1.0], complete=False)
    event = bench.event("hang_mid_run", "a")
    assert names.roots(post(event, benchmarks=[empty])) == ["hang_first_collective"]
    assert names.roots(post(event, benchmarks=[started])) == ["hang_mid_run"]


def test_a_long_silence_of_unknown_pace_counts_before_a_kill(
    bench: Any, post: Any, names: Any
) -> None:
    def answer(last: float, killed: float) -> Any:
        call = ("AllReduce", "4", "7")
        state = bench.communicator(0, 2, last_call=bench.place(last), calls={0x18: call})
        process = bench.process("a", communicators=[state])
        return post(bench.event("terminated_by_launcher", at=killed), processes=[process])

    found = answer(0.0, 4000.0)
    assert names.roots(found) == ["hang_mid_run"]
    assert found.findings[0].attributes == {"op": "AllReduce", "seq": "18"}
    assert "hang_mid_run" not in names.classes(answer(0.0, 1000.0))
