"""How far ranks got, by the lines of PyTorch's watchdogs."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scanned import scanned

from ncdiag.model.log import GroupProgress
from ncdiag.read.torch_progress import TorchProgressReader

STAMP = "[E203 04:05:06.123456789 ProcessGroupNCCL.cpp:629] "
DEFAULT = "[PG ID 0 PG GUID 0(default_pg) Rank {}] "
CAUGHT = (
    "[Rank {}] Watchdog caught collective operation timeout: WorkNCCL(SeqNum={}, OpType={}, "
    "NumelIn=8, NumelOut=8, Timeout(ms)=300000) ran for 300011 milliseconds before timing out."
)


def read(*lines: str | bytes) -> list[GroupProgress]:
    raw = [line.encode() if isinstance(line, str) else line for line in lines]
    return scanned(TorchProgressReader(), b"\n".join(raw)).progress


def numbers(record: GroupProgress) -> tuple[int | None, int | None, int | None]:
    return record.timed_out, record.enqueued, record.completed


@pytest.mark.parametrize(
    ("text", "group", "expected"),
    [
        (
            DEFAULT.format(3)
            + " failure detected by watchdog at work sequence id: 71 PG status: last "
            "enqueued work: 75, last completed work: 70",
            "PG ID 0 PG GUID 0(default_pg)",
            (71, 75, 70),
        ),
        (
            (
                "[PG 4 Rank 3] Exception (either an error or timeout) detected by watchdog at "
                "work: 71, last enqueued NCCL work: 75, last completed NCCL work: 70."
            ),
            "PG 4",
            (71, 75, 70),
        ),
        (
            (
                "[PG ID 9 PG GUID 31(dp) Rank 3] Work timeout is detected by watchdog at work: 71, "
                "last enqueued NCCL work: 75, last completed NCCL work: 70."
            ),
            "PG ID 9 PG GUID 31(dp)",
            (71, 75, 70),
        ),
        (
            (
                "[PG 4 Rank 3] Timeout at NCCL work: 71, last enqueued NCCL work: 75, last "
                "completed NCCL work: 70."
            ),
            "PG 4",
            (71, 75, 70),
        ),
        (
            DEFAULT.format(3)
            + "Received a dump signal due to a collective timeout from  rank 0 and we "
            "will try our best to dump the debug info. Last enqueued NCCL work: 70, last "
            "completed NCCL "
            "work: 70.This is most likely caused by incorrect usages of collectives",
            "PG ID 0 PG GUID 0(default_pg)",
            (None, 70, 70),
        ),
        (
            DEFAULT.format(3)
            + "Received a dump signal due to a collective timeout from this local rank "
            "and we will try our best to dump the debug info. Last enqueued NCCL work: 1, last "
            "completed NCCL work: -1.",
            "PG ID 0 PG GUID 0(default_pg)",
            (None, 1, -1),
        ),
    ],
    ids=["2.7", "2.4", "2.6", "2.3", "dump", "none yet"],
)
def test_status_line_of_each_release(
    text: str, group: str, expected: tuple[int | None, int, int]
) -> None:
    (record,) = read(f"[rank19]:{STAMP}{text}")
    assert (record.rank, record.group, record.group_rank) == (19, group, 3)
    assert numbers(record) == expected


def test_time_out_without_a_group() -> None:
    (record,) = read(STAMP + CAUGHT.format(6, 71, "ALLREDUCE"))
    assert (record.rank, record.group, record.group_rank) == (6, None, None)
    assert (record.timed_out, record.op, record.timeout_ms) == (71, "ALLREDUCE", "300000")


def test_time_out_before_there_were_sequence_numbers() -> None:
    (record,) = read(
        "[E ProcessGroupNCCL.cpp:325] [Rank 6] Watchdog caught collective operation timeout: "
        "WorkNCCL(OpType=ALLGATHER, TensorShape=[8], Timeout(ms)=300000) ran for 300011 "
        "milliseconds "
        "before timing out."
    )
    assert (record.timed_out, record.op) == (None, "ALLGATHER")


def test_group_learns_the_operation_from_the_line_before() -> None:
    records = read(
        f"[rank6]:{STAMP}" + CAUGHT.format(6, 71, "ALLREDUCE"),
        f"[rank6]:{STAMP}[PG ID 2 PG GUID 8(tp) Rank 1]  failure detected by watchdog at work "
        f"sequence "
        "id: 71 PG status: last enqueued work: 72, last completed work: 70",
    )
    record = next(record for record in records if record.group)
    assert (record.rank, record.group_rank) == (6, 1)
    assert (record.op, record.timeout_ms) == ("ALLREDUCE", "300000")
    assert record.place.line == 1


def test_group_does_not_learn_from_another_piece_of_work() -> None:
    records = read(
        f"[rank6]:{STAMP}" + CAUGHT.format(6, 12, "BROADCAST"),
        f"[rank6]:{STAMP}[PG 2 Rank 1] Timeout at NCCL work: 71, last enqueued NCCL work: 72, last "
        "completed NCCL work: 70.",
    )
    assert next(record for record in records if record.group).op is None


@pytest.mark.parametrize(
    ("prefix", "rank"),
    [
        ("[PG ID 0 PG GUID 0(default_pg) Rank 5] ", 5),
        ("[PG ID 0 PG GUID 0 Rank 5] ", 5),
        ("[PG 0 Rank 5] ", 5),
        ("[PG ID 3 PG GUID 0x1(tp) Rank 5] ", None),
        ("[PG 3 Rank 5] ", None),
    ],
)
def test_rank_in_a_group_is_global_in_the_group_of_all_only(prefix: str, rank: int | None) -> None:
    (record,) = read(
        f"{prefix}Timeout at NCCL work: 2, last enqueued NCCL work: 2, last completed NCCL work: 1."
    )
    assert (record.rank, record.group_rank) == (rank, 5)


@pytest.mark.parametrize("rubbish", [3452013982, 1 << 40, -7])
def test_numbers_that_nobody_wrote_are_left_out(rubbish: int) -> None:
    (record,) = read(
        f"[PG 3 Rank 5] Timeout at NCCL work: 40, last enqueued NCCL work: {rubbish}, last "
        f"completed "
        "NCCL work: 39."
    )
    assert numbers(record) == (40, None, 39)


def test_latest_status_and_earliest_time_out_of_a_rank_are_kept() -> None:
    status = "last enqueued NCCL work: {}, last completed NCCL work: {}."
    text = "[PG 3 Rank 5] Timeout at NCCL work: {}, " + status
    (record,) = read(text.format(9, 12, 8), text.format(8, 11, 7))
    assert numbers(record) == (8, 12, 8)


def test_lines_of_others_are_left_alone() -> None:
    assert read("last enqueued NCCL work: soon", "Timeout at NCCL work begins") == []


LINES = (
    f"[rank6]:{STAMP}" + CAUGHT.format(6, 71, "ALLREDUCE"),
    (
        f"[rank6]:{STAMP}[PG ID 2 PG GUID 8(tp) Rank 1]  failure detected by watchdog at work "
        f"sequence id: "
        "71 PG status: last enqueued work: 72, last completed work: 70"
    ),
)


def test_line_cut_anywhere() -> None:
    for line in LINES:
        for cut in range(len(line)):
            read(line[:cut])
            read(line[cut:])


@given(st.sampled_from(LINES), st.integers(0, 200), st.binary(max_size=60))
def test_damaged_line(line: str, at: int, damage: bytes) -> None:
    raw = line.encode()
    for record in read(raw[:at] + damage + raw[at:]):
        assert all(number is None or -1 <= number < 1 << 31 for number in numbers(record))
