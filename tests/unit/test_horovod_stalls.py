"""Ranks that Horovod says tensors wait for: a hang only where nothing came after."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scanned import scanned

from ncdiag.diagnose.postmortem import diagnose
from ncdiag.model.finding import Finding
from ncdiag.read.horovod_stalls import HorovodStallReader
from ncdiag.read.log_reader import LogReader

HEAD = (
    "[2031-01-02 03:0{minute}:05.000000: W horovod/common/stall_inspector.cc:107] One or more "
    "tensors were submitted to be reduced, gathered or broadcasted by subset of ranks and are "
    "waiting for remainder of ranks for more than 60 seconds. "
)
TITLE = "Missing ranks:"
KILL = "mpirun: Forwarding signal 15 to job"


def report(*ranks: int, minute: int = 1) -> list[str]:
    return [HEAD.format(minute=minute), TITLE, *(f"{rank}: [grad_1, grad_2 ...]" for rank in ranks)]


def findings(*lines: str, stream: str = "[1,0]<stderr>:") -> list[Finding]:
    reader = LogReader("job.log")
    wanted = sorted(reader.needles | reader.facts)
    for number, line in enumerate(lines, 1):
        text = line if line == KILL else stream + line
        raw = text.encode()
        hits = tuple(needle for needle in wanted if needle in raw)
        if hits or reader.open:
            reader.take(raw, number, hits)
    return list(diagnose(reader.finish()).findings)


def told(*lines: str) -> list[tuple[str, str, list[str]]]:
    """Class, role and suspected ranks of the first finding."""
    return [
        (str(each.class_), str(each.role), [suspect.name for suspect in each.suspects])
        for each in findings(*lines)[:1]
    ]


def ranks_of(text: str) -> list[tuple[int, ...]]:
    return [event.ranks for event in scanned(HorovodStallReader(), text).events]


def test_ranks_that_are_missing_until_the_job_is_stopped_hang() -> None:
    lines = [*report(3), *report(3, minute=2), KILL]
    assert told(*lines) == [("hang_mid_run", "root", ["3"])]
    assert ("terminated_by_launcher", "consequence") in [
        (each.class_, each.role) for each in findings(*lines)
    ]


def test_ranks_that_are_missing_where_the_log_ends_hang() -> None:
    assert told("step 1", *report(3, 5)) == [("hang_mid_run", "root", ["3", "5"])]


def test_ranks_that_came_after_all_are_not_accused() -> None:
    steps = [f"step {number}" for number in range(9)]
    assert told(*report(3), *steps) == [("hang_mid_run", "warning", [])]
    assert told(*report(3), "Training finished") == [("hang_mid_run", "warning", [])]


def test_of_several_stalls_the_last_accuses() -> None:
    lines = [*report(3), *(f"step {number}" for number in range(9)), *report(5, minute=4), KILL]
    assert told(*lines) == [("hang_mid_run", "root", ["5"])]


def test_a_stall_before_a_failure_is_no_root() -> None:
    memory = "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB."
    assert told(*report(3), memory)[0][:2] == ("cuda_out_of_memory", "root")


@pytest.mark.parametrize(
    "text",
    [
        f"{HEAD}{TITLE} 3: [a, b], 6: [a]",
        f"{HEAD}\n{TITLE}3: [a, b], 6: [a]",
        f"{HEAD}\n{TITLE}\n3: [a, b]\n6: [a]\nstep 4",
        f"{HEAD}\nStalled ops:grad_1 [missing ranks: 3, 6]",
        f"{HEAD}\nStalled ops:\ngrad_1 [missing ranks: 6]\ngrad_2 [missing ranks: 3, 6]",
    ],
)
def test_ranks_on_lines_of_their_own_or_not(text: str) -> None:
    assert ranks_of(text) == [(3, 6)]


def test_a_report_without_ranks_tells_nothing() -> None:
    assert ranks_of(f"{HEAD}\nstep 4\n3: [a]") == []
    assert ranks_of(f"{TITLE}\n3: [a]") == []


@given(st.integers(0, 400), st.text(max_size=40))
def test_a_cut_or_damaged_report_names_no_other_ranks(end: int, noise: str) -> None:
    text = f"{HEAD}\n{TITLE}\n3: [a, b]\n6: [a]"[:end]
    assert {rank for ranks in ranks_of(text) for rank in ranks} <= {3, 6}
    ranks_of(text + noise)
