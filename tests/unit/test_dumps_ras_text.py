from collections.abc import Iterable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ncdiag.model.log import LogEvidence, RasMember, RasReport
from ncdiag.model.place import Place
from ncdiag.read.line import Line
from ncdiag.read.ras.text import RasTextReader

HEAD = """\
NCCL version 2.28.9 compiled with CUDA 13.0
CUDA runtime version 13000, driver version 13010

Job summary
===========

  Nodes  Processes         GPUs  Processes     GPUs
(total)   per node  per process    (total)  (total)
      3          8            1         24       24

Communicators... (1.07s)
=============

Group     Comms     Nodes     Ranks     Ranks     Ranks    Status  Errors
    #  in group  per comm  per node  per comm  in group
    0         1         3         8        24        24   RUNNING  INCOMPLETE,ERROR,MISMATCH
    1         4         3       1-2         6        24      INIT      OK

"""
PARTS = "Errors\n======\n\n{errors}\nWarnings\n========\n\n{warnings}\n"


def read(lines: Iterable[str], *, every_line: bool = False) -> list[RasReport]:
    reader = RasTextReader()
    for number, text in enumerate(lines, 1):
        hits = [needle for needle in reader.needles if needle in text.encode(errors="replace")]
        if hits or reader.open or every_line:
            level = "INFO" if " NCCL INFO " in text else None
            reader.read(Line(text=text, place=Place("r", number), shown=text, level=level), hits)
    evidence = LogEvidence()
    reader.finish(evidence)
    assert reader.kinds == ({"ras"} if evidence.ras else set())
    return evidence.ras


def report(errors: str = "", warnings: str = "", head: str = HEAD) -> RasReport:
    (only,) = read((head + PARTS.format(errors=errors, warnings=warnings)).split("\n"))
    return only


def test_the_summary() -> None:
    told = report()
    assert told.version == "2.28.9"
    assert (told.nodes, told.processes, told.gpus) == (3, 24, 24)
    assert (told.communicators, told.largest) == (5, 24)
    assert told.complete
    assert told.issues == []
    assert told.place.line == 2


def test_an_irregular_summary() -> None:
    head = """\
NCCL version 2.24.3 compiled with CUDA 12.6
CUDA runtime version 12060, driver version 12080

Job summary
===========

  Nodes  Processes
          per node
      2          8
      1          7

         Processes         GPUs
                    per process
                22            1
                 1            2

  Nodes  Processes         GPUs
(total)    (total)      (total)
      3         23           24

The outlier node:
  Node 10.4.0.9 running processes 11,12,13,14,15,16,17

Communicators... (0.21s)
=============

No communicator data collected!
"""
    told = report(head=head)
    assert (told.nodes, told.processes, told.gpus) == (3, 23, 24)
    assert told.communicators == 0
    assert told.largest is None


def test_processes_that_gave_no_data_and_dead_ones() -> None:
    told = report(
        """\
INCOMPLETE
  Missing communicator data from 2 job processes
  Process 811 on node 10.4.0.7 managing GPU 3
  Process 812 on node fd00::7 managing GPUs 4,5 (NVML 0,1)

DEAD
  1 job process is considered dead (unreachable via the RAS network)
  Process 900 on node 10.4.0.8 managing GPU 0 (NVML 6)

#0-0 (00ab) INCOMPLETE
  Missing communicator data from 3 ranks
  Rank 3 -- GPU 3 managed by process 811 on node 10.4.0.7
  Rank 5 -- [process information not found]
  Rank 4294967290 -- [process information not found]
"""
    )
    first, dead, third = told.issues
    assert (first.kind, first.group) == ("INCOMPLETE", None)
    assert [(m.pid, m.host, m.gpus) for m in first.members] == [
        ("811", "10.4.0.7", "3"),
        ("812", "fd00::7", "4,5 (NVML 0,1)"),
    ]
    assert (dead.kind, dead.members[0].gpus) == ("DEAD", "0 (NVML 6)")
    assert (third.kind, third.group, third.ranks) == ("INCOMPLETE", "#0-0", 24)
    assert [m.rank for m in third.members] == [3, 5]


def test_errors_of_ranks() -> None:
    told = report(
        """\
#0-0 (77aa) ERROR
  Initialization error on 1 rank
  Rank 7 reported System error -- GPU 7 managed by process 31 on node 10.4.0.7
  Asynchronous errors on 3 ranks
  2 ranks reported Remote process error
  Rank 1 -- GPU 1 managed by process 25 on node 10.4.0.7
  Rank 2 -- GPU 2 managed by process 26 on node 10.4.0.7
  Rank 9 reported Unhandled CUDA error -- [process information not found]
"""
    )
    first, second = told.issues
    assert first.statuses == {"System error": 1}
    assert first.members == [RasMember(7, "10.4.0.7", "31", "7", None, "System error")]
    assert second.statuses == {"Remote process error": 2, "Unhandled CUDA error": 1}
    assert [(m.rank, m.status) for m in second.members] == [
        (1, "Remote process error"),
        (2, "Remote process error"),
        (9, "Unhandled CUDA error"),
    ]
    assert {issue.kind for issue in told.issues} == {"ERROR"}


def test_mismatch_of_status_and_of_counts() -> None:
    told = report(
        warnings="""\
TIMEOUT
  Encountered 2 communication timeouts while gathering communicator data

#0-0 (77aa) MISMATCH
  Communicator ranks have different status
  22 ranks have status RUNNING
  Rank 4 has status INIT -- GPU 4 managed by process 28 on node 10.4.0.7
  Rank 99 has status ABORT -- [process information not found]
  Communicator ranks have different AllReduce operation counts
  21 ranks have launched up to operation 900
  2 ranks have launched up to operation 899
  Rank 5 -- GPU 5 (NVML 1) managed by process 29 on node 10.4.0.7
  Rank 6 -- GPU 6 managed by process 30 on node 10.4.0.7
  Rank 8 has launched up to operation 17 -- GPU 0 managed by process 44 on node 10.4.0.8

  Communicator ranks have different Broadcast operation counts
  23 ranks have launched up to operation 3
  Rank 0 has not launched any operations -- GPU 0 managed by process 24 on node 10.4.0.7

#1-2 (77ab) MISMATCH
  Communicator ranks have different Reduce operation counts
  4 ranks have not launched any operations
  2 ranks have launched up to operation 1
"""
    )
    timeout, status, reduce, broadcast, other = told.issues
    assert timeout.kind == "TIMEOUT"
    assert status.statuses == {"RUNNING": 22, "INIT": 1}
    assert [(m.rank, m.status) for m in status.members] == [(4, "INIT")]
    assert reduce.op == "AllReduce"
    assert reduce.counts == {900: 21, 899: 2, 17: 1}
    assert [(m.rank, m.operation) for m in reduce.members] == [(5, 899), (6, 899), (8, 17)]
    assert reduce.members[0].gpus == "5 (NVML 1)"
    assert broadcast.counts == {3: 23, -1: 1}
    assert (other.group, other.ranks, other.op) == ("#1-2", 6, "Reduce")
    assert other.counts == {-1: 4, 1: 2}


def test_lines_of_the_library_between_are_none_of_the_report() -> None:
    text = HEAD + PARTS.format(
        errors="",
        warnings="#0-0 (77aa) MISMATCH\n  Communicator ranks have different Reduce operation "
        "counts\n  23 ranks have launched up to operation 9\n",
    )
    mixed = [part for line in text.split("\n") for part in (line, "h:1:2 [0] NCCL INFO Launch")]
    assert read(mixed)[0].issues[0].counts == {9: 23}


def test_reports_one_behind_the_other_and_text_after_the_last() -> None:
    one = HEAD + PARTS.format(errors="", warnings="")
    reports = read((one + one).split("\n") + ["step 1"] * 40 + ["  Rank 3 -- GPU 3"])
    assert [r.complete for r in reports] == [True, True]
    assert [r.version for r in reports] == ["2.28.9"] * 2


def test_a_part_of_a_report_is_one() -> None:
    lines = [
        "#2-7 (9f) MISMATCH",
        "  Communicator ranks have different AllGather operation counts",
        "  Rank 1 has launched up to operation 5 -- GPU 1 managed by process 5 on node 10.1.1.1",
    ]
    (told,) = read(lines)
    assert told.issues[0].group == "#2-7"
    assert told.issues[0].counts == {5: 1}
    assert not told.complete
    (cut,) = read(lines[:1])
    assert cut.issues[0].kind == "MISMATCH"


@pytest.mark.parametrize(
    "line",
    [
        "NCCL version 2.28.9 compiled with CUDA 13.0",
        "Job summary of last night: 4 jobs",
        "DEAD",
        "INCOMPLETE",
        "all checks: (0) MISMATCH found in config",
        "something else: PEER_FOO: text",
    ],
)
def test_words_alone_are_no_report(line: str) -> None:
    assert read([line, "4 8 1 32 32"], every_line=True) == []


def test_events_of_a_monitor() -> None:
    (told,) = read(
        [
            "[2026-03-04 05:06:07] PEER_NEW: Process 5 on node 10.1.1.1 managing GPU 0 joined",
            "[2026-03-04 05:07:07] PEER_UNRESPONSIVE: process 5 on node 10.1.1.1 managing GPU 0 x",
            "[2026-03-04 05:07:09] PEER_UNRESPONSIVE: process 6 on node 10.1.1.1 managing GPU 1 x",
            "[2026-03-04 05:07:19] PEER_RECOVERED: process 5 on node 10.1.1.1 managing GPU 0 x",
            "PEER_DEAD: 10.1.1.2<4242> declared dead",
            "PEER_DEAD: 10.1.1.2<4242> declared dead",
        ]
    )
    late, dead = told.issues
    assert (late.kind, [m.pid for m in late.members]) == ("TIMEOUT", ["6"])
    assert (dead.kind, [m.host for m in dead.members]) == ("DEAD", ["10.1.1.2"])
    assert told.complete


@given(st.lists(st.text(max_size=80), max_size=30), st.integers(0, 60))
def test_any_lines_and_any_cut(lines: list[str], at: int) -> None:
    whole = (HEAD + PARTS.format(errors="", warnings="#0-0 (a) MISMATCH")).split("\n")
    read([*whole[:at], *lines, *whole[at:]], every_line=True)


def test_lines_of_any_length() -> None:
    for start in ("1 ", "Rank 1 -- GPU 1", "#0-0 (", "PEER_DEAD: ", "9 ranks have ", " "):
        read([*HEAD.split("\n"), start + " " * 65_536 + "x", start + "1" * 65_536])
