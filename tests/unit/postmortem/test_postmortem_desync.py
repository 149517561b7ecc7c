"""Ranks of one group at different collectives."""

from typing import Any

from ncdiag.model.log import FlightDump, FlightEntry, GroupProgress


def progress(bench: Any, rank: Any, group: Any = "PG 1", **numbers: Any) -> Any:
    return GroupProgress(rank=rank, group=group, place=bench.place(), **numbers)


def timed_out(bench: Any, rank: Any, seq: Any, op: Any = "ALLREDUCE", **numbers: Any) -> Any:
    return progress(bench, rank, timed_out=seq, op=op, **numbers)


def test_the_rank_that_did_not_enqueue_what_others_wait_for_is_behind(
    bench: Any, post: Any, names: Any
) -> None:
    records = [timed_out(bench, rank, 40, enqueued=41) for rank in range(3)]
    records.append(progress(bench, 3, enqueued=39, completed=39))
    finding = post(progress=records).findings[0]
    assert finding.class_ == "torch_desync"
    assert names.suspects(finding)[0] == "3"
    assert finding.attributes["seq"] == "40"
    assert "behind" in finding.explanation


def test_the_rank_that_is_further_is_ahead(bench: Any, post: Any, names: Any) -> None:
    records = [timed_out(bench, rank, 40) for rank in range(3)]
    records.append(timed_out(bench, 3, 41))
    finding = post(progress=records).findings[0]
    assert names.suspects(finding)[0] == "3"
    assert "ahead" in finding.explanation


def test_the_rank_in_another_operation_is_the_odd_one(bench: Any, post: Any) -> None:
    records = [timed_out(bench, rank, 40) for rank in range(3)]
    records.append(timed_out(bench, 3, 40, op="BROADCAST"))
    finding = post(progress=records).findings[0]
    assert finding.ranks == (3,)
    assert finding.attributes["op"] == "ALLREDUCE"
    assert "BROADCAST" in finding.explanation


def test_all_in_the_same_collective_prove_nothing(bench: Any, post: Any, names: Any) -> None:
    records = [timed_out(bench, rank, 40, enqueued=41, completed=39) for rank in range(4)]
    assert "torch_desync" not in names.classes(post(progress=records))


def test_lines_without_a_group_prove_nothing(bench: Any, post: Any, names: Any) -> None:
    records = [
        GroupProgress(rank=rank, group=None, place=bench.place(), timed_out=40 + rank)
        for rank in range(4)
    ]
    assert not names.classes(post(progress=records))


def test_ranks_of_different_groups_are_not_compared(bench: Any, post: Any, names: Any) -> None:
    records = [progress(bench, 0, "PG 1", timed_out=40), progress(bench, 1, "PG 2", timed_out=7)]
    assert not names.classes(post(progress=records))


def test_a_waiting_rank_without_a_time_out_shows_who_is_behind(bench: Any, post: Any) -> None:
    records = [
        progress(bench, 0, enqueued=21, completed=20),
        progress(bench, 2, enqueued=20, completed=20),
    ]
    assert post(progress=records).findings[0].ranks == (2,)


def test_ranks_that_only_work_are_not_compared(bench: Any, post: Any, names: Any) -> None:
    records = [progress(bench, rank, enqueued=20 + rank, completed=20 + rank) for rank in range(3)]
    assert not names.classes(post(progress=records))


def test_a_desync_explains_the_time_outs(bench: Any, post: Any, names: Any) -> None:
    records = [timed_out(bench, rank, 40) for rank in range(3)]
    records.append(timed_out(bench, 3, 41, op="BROADCAST"))
    events = [bench.event("torch_watchdog_timeout", rank=rank) for rank in range(4)]
    answer = post(*events, progress=records)
    assert names.roots(answer) == ["torch_desync"]
    assert names.of(answer, "torch_watchdog_timeout").role == "consequence"


def test_the_ranks_of_a_dead_process_explain_the_desync(bench: Any, post: Any, names: Any) -> None:
    records = [timed_out(bench, rank, 40) for rank in range(3)]
    records.append(progress(bench, 3, enqueued=39, completed=39))
    crash = bench.event("process_crash", rank=3, signal="11")
    assert names.roots(post(crash, progress=records)) == ["process_crash"]


def dump(bench: Any, rank: int, state: str, size: int = 4) -> FlightDump:
    entry = FlightEntry(
        record_id=5,
        group="0",
        group_id="0",
        collective_seq=5,
        p2p_seq=0,
        name="nccl:all_reduce",
        state=state,
        input_sizes=((8,),),
        output_sizes=((8,),),
    )
    groups = {"0": ("default_pg", tuple(range(size)))}
    return FlightDump(
        place=bench.place(path=f"trace_{rank}"),
        rank=rank,
        version="2.10",
        groups=groups,
        entries=[entry],
        whole=True,
    )


def test_the_rank_that_left_no_dump_is_suspect(bench: Any, post: Any, names: Any) -> None:
    answer = post(dumps=[dump(bench, rank, "scheduled") for rank in (0, 1, 3)])
    assert names.roots(answer) == ["torch_watchdog_timeout"]
    assert names.suspects(answer.findings[0]) == ["2"]


def test_ranks_that_do_not_finish_are_suspect_of_a_timeout(
    bench: Any, post: Any, names: Any
) -> None:
    dumps = [dump(bench, rank, "completed") for rank in range(3)]
    answer = post(dumps=[*dumps, dump(bench, 3, "started")])
    assert names.roots(answer) == ["torch_watchdog_timeout"]
    assert names.suspects(answer.findings[0]) == ["3"]
