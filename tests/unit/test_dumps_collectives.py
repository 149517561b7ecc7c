import itertools
from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ncdiag.diagnose.collectives import Divergence, DivergenceKind, analyse, folded
from ncdiag.model.log import FlightDump, FlightEntry, GroupProgress
from ncdiag.model.place import Place

Kind = DivergenceKind
RANKS = range(4)


def call(
    seq: int,
    op: str = "all_reduce",
    *,
    size: int = 8,
    state: str = "completed",
    group: str = "0",
    types: str = "Float",
    p2p: bool = False,
    record: int | None = None,
) -> FlightEntry:
    return FlightEntry(
        record_id=seq if record is None else record,
        group=group,
        group_id=group if group.isdigit() else None,
        collective_seq=0 if p2p else seq,
        p2p_seq=seq if p2p else 0,
        name=f"nccl:{op}",
        state=state,
        is_p2p=p2p,
        timeout_ms=600_000,
        input_sizes=((size,),),
        output_sizes=((size,),),
        input_types=(types,),
        output_types=(types,),
    )


def dump(
    rank: int,
    entries: Sequence[FlightEntry],
    groups: dict[str, tuple[str, tuple[int, ...]]] | None = None,
    status: dict[str, tuple[int, int, int]] | None = None,
) -> FlightDump:
    return FlightDump(
        place=Place(f"trace_rank_{rank}", 1),
        rank=rank,
        version="2.10",
        groups={"0": ("default_pg", tuple(RANKS))} if groups is None else groups,
        status=status or {},
        entries=list(entries),
        whole=True,
    )


def waiting(seq: int, op: str = "all_reduce", group: str = "0", size: int = 8) -> FlightEntry:
    return call(seq, op, state="scheduled", group=group, size=size, record=1000 + seq)


def done(count: int, group: str = "0") -> list[FlightEntry]:
    return [call(seq, group=group) for seq in range(1, count + 1)]


def only(found: Sequence[Divergence]) -> Divergence:
    (one,) = found
    return one


def test_one_rank_behind() -> None:
    dumps = [dump(r, [*done(5), *([waiting(6)] if r != 2 else [])]) for r in RANKS]
    found = only(analyse(dumps))
    assert (found.kind, found.ranks, found.others) == (Kind.BEHIND, (2,), (0, 1, 3))
    assert (found.seq, found.op, found.group) == (6, "all_reduce", "0")
    assert found.timeout_ms == 600_000
    assert found.accuses
    assert found.places[0] == Place("trace_rank_2", 1)
    assert "rank 2" in found.explanation


def test_one_rank_ahead_is_named_and_the_others_are_told_of() -> None:
    dumps = [dump(r, [*done(5), *([waiting(6)] if r == 2 else [])]) for r in RANKS]
    found = only(analyse(dumps))
    assert (found.kind, found.ranks, found.others) == (Kind.AHEAD, (2,), (0, 1, 3))
    assert found.confidence < 0.85
    assert "ranks 0-1,3" in found.explanation


def test_two_against_two_accuse_with_less_confidence() -> None:
    dumps = [dump(r, [*done(5), *([waiting(6)] if r > 1 else [])]) for r in RANKS]
    found = only(analyse(dumps))
    assert (found.kind, found.ranks, found.others) == (Kind.BEHIND, (0, 1), (2, 3))
    assert found.confidence <= 0.5


@pytest.mark.parametrize(
    "other",
    [
        waiting(6, "broadcast"),
        waiting(6, size=9),
        call(6, types="Half", state="scheduled"),
        call(6, "all_gather", size=9, state="started"),
    ],
    ids=["operation", "size", "type", "both"],
)
def test_the_odd_one_out(other: FlightEntry) -> None:
    dumps = [dump(r, [*done(5), other if r == 1 else waiting(6)]) for r in RANKS]
    found = only(analyse(dumps))
    assert (found.kind, found.ranks, found.others) == (Kind.ODD, (1,), (0, 2, 3))
    assert (found.seq, found.op) == (6, "all_reduce")
    assert found.odd_op == other.name.removeprefix("nccl:")


def test_an_odd_call_that_counts_as_completed_is_odd_all_the_same() -> None:
    dumps = [dump(r, [*done(5), call(6, "broadcast" if r == 3 else "all_reduce")]) for r in RANKS]
    assert only(analyse(dumps)).ranks == (3,)


def test_two_ranks_that_differ_accuse_neither() -> None:
    groups = {"0": ("default_pg", (0, 1))}
    dumps = [dump(r, [waiting(1, ("reduce", "broadcast")[r])], groups) for r in (0, 1)]
    found = only(analyse(dumps))
    assert (found.kind, found.ranks, found.others) == (Kind.ODD, (0, 1), ())
    assert not found.accuses


def test_a_call_left_out_is_seen_by_what_follows() -> None:
    plan = ["all_reduce", "broadcast", "all_gather"]
    ops = {r: [op for op in plan if r != 2 or op != "broadcast"] for r in RANKS}
    dumps = [
        dump(r, [waiting(seq, op) for seq, op in enumerate(ops[r], 1)], status={"0": (3, -1, 1)})
        for r in RANKS
    ]
    found = only(analyse(dumps))
    assert (found.kind, found.ranks, found.seq) == (Kind.ODD, (2,), 2)
    assert "left one out" in found.explanation


def test_a_call_too_many_is_seen_by_what_follows() -> None:
    dumps = [dump(r, [waiting(1), waiting(2)]) for r in RANKS]
    dumps[1] = dump(1, [waiting(1, "broadcast"), waiting(2), waiting(3)])
    found = only(analyse(dumps))
    assert (found.kind, found.ranks) == (Kind.ODD, (1,))
    assert "one too many" in found.explanation


def test_sizes_that_may_differ_accuse_nobody() -> None:
    for op in ("all_to_all", "gather", "scatter", "all_to_allv"):
        dumps = [dump(r, [*done(2), waiting(3, op, size=r + 1)]) for r in RANKS]
        assert only(analyse(dumps)).kind is Kind.STUCK


def test_shapes_do_not_matter_where_the_number_of_elements_is_the_same() -> None:
    entries = [waiting(1, size=12) for _ in RANKS]
    entries[2].input_sizes = ((3, 4),)
    assert only(analyse([dump(r, [entries[r]]) for r in RANKS])).kind is Kind.STUCK


def test_all_alike_and_stuck_accuses_nobody() -> None:
    found = only(analyse([dump(r, [*done(3), waiting(4)]) for r in RANKS]))
    assert (found.kind, found.ranks) == (Kind.STUCK, (0, 1, 2, 3))
    assert not found.accuses


def test_programs_that_ran_ahead_differently_are_stuck_where_all_wait() -> None:
    dumps = [dump(r, [*done(3), *(waiting(n) for n in range(4, 6 + r))]) for r in RANKS]
    found = only(analyse(dumps))
    assert (found.kind, found.seq) == (Kind.STUCK, 4)


def test_ranks_that_do_not_finish_what_others_finished() -> None:
    dumps = [dump(r, [*done(3), waiting(4) if r == 0 else call(4)]) for r in RANKS]
    found = only(analyse(dumps))
    assert (found.kind, found.ranks, found.others) == (Kind.UNFINISHED, (0,), (1, 2, 3))


def test_a_back_end_without_states_proves_nobody_finished() -> None:
    dumps = [dump(r, [waiting(1)], status={"0": (1, -1, 1 if r else 0)}) for r in RANKS]
    assert only(analyse(dumps)).kind is Kind.STUCK


def test_nothing_is_said_where_nobody_waits() -> None:
    assert analyse([dump(r, done(3)) for r in RANKS]) == []
    assert analyse([]) == []
    assert analyse([dump(r, []) for r in RANKS]) == []


def test_a_member_without_a_dump_is_suspect_when_others_wait() -> None:
    dumps = [dump(r, [*done(3), waiting(4)]) for r in (0, 1, 3)]
    found, stuck = analyse(dumps)
    assert (found.kind, found.ranks, found.others) == (Kind.NO_DUMP, (2,), (0, 1, 3))
    assert (stuck.kind, stuck.accuses) == (Kind.STUCK, False)


def test_a_gap_in_the_ranks_of_the_default_group_is_a_missing_dump() -> None:
    dumps = [dump(r, [*done(3), waiting(4)], groups={}) for r in (0, 1, 3)]
    assert analyse(dumps)[0].ranks == (2,)


def test_a_ring_that_lost_its_beginning_is_aligned_by_number() -> None:
    dumps = [dump(r, [*done(60)[r * 10 :], waiting(61)]) for r in RANKS]
    dumps[1].entries.pop()
    found = only(analyse(dumps))
    assert (found.kind, found.ranks, found.seq) == (Kind.BEHIND, (1,), 61)


def test_a_group_that_a_full_ring_lost_is_no_proof() -> None:
    groups = {"0": ("default_pg", (0, 1)), "dp": ("data", (0, 1))}
    dumps = [dump(r, done(2) + ([waiting(4, group="dp")] if r else []), groups) for r in (0, 1)]
    assert only(analyse(dumps)).ranks == (0,)
    dumps[0].whole = False
    assert only(analyse(dumps)).kind is Kind.STUCK


def test_who_is_blocked_elsewhere_is_an_echo() -> None:
    groups = {"0": ("default_pg", (0, 1, 2, 3)), "tp": ("tensor", (2, 3))}
    dumps = [dump(r, [*done(2), waiting(3)], {"0": groups["0"]}) for r in (0, 1)]
    dumps += [dump(2, [*done(2), waiting(7, group="tp")], groups)]
    dumps += [dump(3, [*done(2), *done(6, "tp"), waiting(9, group="x")], groups)]
    found = {each.group: each for each in analyse(dumps)}
    assert found["tp"].ranks == (3,)
    assert found["tp"].waiting_in == "x"
    assert found["0"].waiting_in == "tp"
    assert not found["0"].accuses


def test_of_two_that_do_not_come_the_one_that_is_not_blocked_is_named() -> None:
    groups = {"0": ("default_pg", (0, 1, 2, 3)), "tp": ("tensor", (2, 3))}
    dumps = [dump(r, [*done(2), waiting(3)], {"0": groups["0"]}) for r in (0, 1)]
    dumps += [dump(2, [*done(2), *done(6, "tp"), waiting(7, group="tp")], groups)]
    dumps += [dump(3, [*done(2), *done(6, "tp")], groups)]
    found = analyse(dumps)
    assert {each.group for each in found} == {"0", "tp"}
    assert all(each.ranks == (3,) and each.accuses for each in found)


def test_groups_that_wait_for_one_another_are_told_as_a_circle() -> None:
    groups = {"a": ("", (0, 1)), "b": ("", (0, 1))}
    dumps = [dump(0, [waiting(1, group="a")], groups), dump(1, [waiting(1, group="b")], groups)]
    found = analyse(dumps)
    assert {each.group for each in found} == {"a", "b"}
    assert all(each.waiting_in is None for each in found)
    assert all("order of calls" in each.explanation for each in found)


def test_a_receive_without_its_send() -> None:
    groups = {"pp": ("pipe", (4, 7))}
    dumps = [
        dump(4, [call(3, "send 0->1", p2p=True, group="pp")], groups),
        dump(
            7,
            [
                call(3, "recv 1<-0", p2p=True, group="pp"),
                call(4, "recv 1<-0", p2p=True, group="pp"),
            ],
            groups,
        ),
    ]
    assert analyse(dumps) == []
    dumps[1].entries[1].state = "scheduled"
    found = only(analyse(dumps))
    assert (found.kind, found.ranks, found.others) == (Kind.UNMATCHED, (4,), (7,))
    assert (found.op, found.seq) == ("recv", 4)


def test_a_send_and_a_receive_of_different_sizes() -> None:
    groups = {"0": ("default_pg", (0, 1))}
    ends = [
        call(1, "send 0->1", p2p=True, state="started", size=4),
        call(1, "recv 1<-0", p2p=True, state="started", size=5),
    ]
    found = only(analyse([dump(r, [ends[r]], groups) for r in (0, 1)]))
    assert found.kind is Kind.ODD
    assert "4 elements" in found.explanation
    ends[1].input_sizes = ends[1].output_sizes = ((4,),)
    assert analyse([dump(r, [ends[r]], groups) for r in (0, 1)]) == []


def test_two_dumps_of_a_rank_count_once() -> None:
    dumps = [dump(r, [*done(5), *([waiting(6)] if r != 2 else [])]) for r in RANKS]
    assert analyse(dumps + dumps[::-1]) == analyse(dumps)


def test_a_dump_left_over_from_another_run_is_none() -> None:
    dumps = [dump(r, [*done(5), waiting(6)]) for r in RANKS]
    for each in dumps:
        for entry in each.entries:
            entry.created_ns = 1_790_000_000_000_000_000 - (each.rank == 1) * 10**15
    dumps[1].entries.pop()
    assert analyse(dumps)[0].kind is Kind.NO_DUMP
    assert analyse(dumps)[0].ranks == (1,)
    for entry in dumps[1].entries:
        entry.timeout_ms = 10**9
    assert only(analyse(dumps)).kind is Kind.BEHIND


def test_dumps_of_unknown_rank_are_left_out() -> None:
    dumps = [dump(r, [waiting(6)]) for r in RANKS]
    dumps[3].rank = None
    assert analyse(dumps)[0].ranks == (3,)


def test_lines_of_the_watchdog_stand_in_for_dumps() -> None:
    progress = [
        GroupProgress(
            rank=rank,
            group="PG ID 0 PG GUID 0(default_pg)",
            place=Place("log", rank + 1),
            enqueued=40 if rank == 1 else 41,
            completed=40,
            op="ALLREDUCE",
        )
        for rank in RANKS
    ]
    found = only(analyse([], progress))
    assert (found.kind, found.ranks, found.seq, found.op) == (Kind.BEHIND, (1,), 41, "ALLREDUCE")
    dumps = [dump(r, [*done(40), waiting(41)]) for r in RANKS if r != 1]
    assert only(analyse(dumps, progress[1:2])).ranks == (1,)
    for line in progress:
        line.group = None
    assert analyse([], progress) == []


def test_groups_of_the_watchdog_are_kept_apart() -> None:
    progress = [
        GroupProgress(rank=rank, group=group, place=Place("log", 1), enqueued=n, completed=n)
        for rank in RANKS
        for group, n in (("PG 1", 40), ("PG ID 2 PG GUID 7(tp)", 50), ("PG ID 3 PG GUID 8", 60))
    ]
    assert analyse([], progress) == []
    progress[4].enqueued = progress[4].completed = 49
    assert only(analyse([], progress)).group == "7"
    assert only(analyse([], progress)).description == "tp"


def test_the_line_of_the_program_is_told() -> None:
    frames = ("f at /x/torch/distributed/c10d.py:3", "step at /app/train.py:8")
    dumps = [dump(r, [*done(5), *([waiting(6)] if r != 2 else [])]) for r in RANKS]
    dumps[2].entries[-1].frames = frames
    found = only(analyse(dumps))
    assert found.at == frames[1]
    assert "last called from step at /app/train.py:8" in found.explanation


def test_ranks_are_folded() -> None:
    assert folded([7, 0, 1, 2, 9, 8]) == "0-2,7-9"
    assert folded([3]) == "3"


@given(st.permutations(range(4)), st.integers(0, 3), st.sampled_from(["behind", "ahead", "odd"]))
def test_neither_the_order_of_dumps_nor_the_rank_s_number_matters(
    order: list[int], guilty: int, how: str
) -> None:
    last = {"behind": [], "ahead": [waiting(6), waiting(7)], "odd": [waiting(6, "reduce")]}[how]
    normal = [call(6)] if how == "ahead" else [waiting(6)]
    if how == "ahead":
        last = [call(6), waiting(7)]
    dumps = [dump(r, [*done(5), *(last if r == guilty else normal)]) for r in order]
    assert only(analyse(dumps)).ranks == (guilty,)


@given(st.data())
def test_any_calls_give_an_answer(data: st.DataObject) -> None:
    ops = st.sampled_from(["all_reduce", "broadcast", "barrier", "send 0->1", "recv 1<-0", "x"])
    counter = itertools.count()
    entries = st.builds(
        lambda seq, op, state, group: call(
            seq, op, state=state, group=group, p2p="-" in op, record=next(counter)
        ),
        st.integers(-1, 4),
        ops,
        st.sampled_from(["scheduled", "started", "completed", ""]),
        st.sampled_from(["0", "1", ""]),
    )
    members = st.lists(st.integers(0, 5), max_size=4).map(lambda ranks: ("", tuple(ranks)))
    groups = st.dictionaries(st.sampled_from(["0", "1"]), members)
    dumps = [
        dump(rank, data.draw(st.lists(entries, max_size=5)), data.draw(groups))
        for rank in data.draw(st.lists(st.integers(0, 4), max_size=4))
    ]
    for each in analyse(dumps):
        assert each.explanation
        assert not set(each.ranks) & set(each.others)
