"""torchrun's closing reports and the lines of its agent."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scanned import scanned

from ncdiag.model.log import Event, LogEvidence, WorkerFailure
from ncdiag.model.place import Clock
from ncdiag.read.elastic import ElasticReader

NO_OTHERS = ("  <NO_OTHER_FAILURES>",)


def block(
    index: int,
    rank: int,
    code: str,
    *,
    time: str = "2031-02-03_04:05:06",
    host: str = "gpu8.pod",
    last: str = "traceback : To enable traceback see: https://pytorch.org",
) -> tuple[str, ...]:
    """One failure of a report."""
    return (
        f"[{index}]:",
        f"  time      : {time}",
        f"  host      : {host}",
        f"  rank      : {rank} (local_rank: {rank % 8})",
        f"  exitcode  : {code} (pid: {4000 + rank})",
        "  error_file: <N/A>",
        f"  {last}",
    )


def report(root: tuple[str, ...], others: tuple[str, ...] = NO_OTHERS, width: int = 60) -> str:
    """A whole report."""
    edge, rule = "=" * width, "-" * width
    lines = (
        "torch.distributed.elastic.multiprocessing.errors.ChildFailedError: ",
        *(edge, "pretrain.py FAILED", rule, "Failures:"),
        *(*others, rule, "Root Cause (first observed failure):"),
        *(*root, edge),
    )
    return "\n".join(lines) + "\n"


def read(text: str | bytes) -> LogEvidence:
    return scanned(ElasticReader(), text)


def told(failure: WorkerFailure) -> tuple[object, ...]:
    return (failure.rank, failure.host, failure.exitcode, failure.first)


def roots(evidence: LogEvidence) -> list[Event]:
    return [event for event in evidence.events if event.role is None]


def test_root_cause_of_a_report() -> None:
    evidence = read(report(block(0, 11, "1")))
    (failure,) = evidence.failures
    assert told(failure) == (11, "gpu8.pod", "1", True)
    assert (failure.local_rank, failure.pid) == ("3", "4011")
    assert failure.time
    assert (failure.time.text, failure.time.clock) == ("2031-02-03_04:05:06", Clock.WALL)
    (event,) = evidence.events
    assert event.class_name == "elastic_worker_failed"
    assert event.attributes == {"exitcode": "1", "local_rank": "3", "host": "gpu8.pod"}
    assert event.ranks == (11,)
    assert event.role is None


@pytest.mark.parametrize("width", [20, 41, 60])
def test_border_has_any_length(width: int) -> None:
    assert len(read(report(block(0, 1, "1"), width=width)).failures) == 1


def test_exit_code_with_the_name_of_its_signal() -> None:
    root = tuple(
        line.replace("(pid: 4011)", "(pid: 4011)  (SIGABRT)") for line in block(0, 11, "-6")
    )
    (failure,) = read(report(root)).failures
    assert (failure.exitcode, failure.pid) == ("-6", "4011")


def test_other_failures_are_kept_and_only_the_first_is_accused() -> None:
    others = (*block(1, 3, "-6"), *block(2, 5, "-15"))
    evidence = read(report(block(0, 2, "-6"), others))
    assert [told(failure) for failure in evidence.failures] == [
        (3, "gpu8.pod", "-6", False),
        (5, "gpu8.pod", "-15", False),
        (2, "gpu8.pod", "-6", True),
    ]
    (event,) = roots(evidence)
    assert event.ranks == (2,)
    assert not any(event.ranks for event in evidence.events if event.role)


def test_of_several_reports_the_earliest_counts_that_was_not_told_to_stop() -> None:
    stopped = report(block(0, 16, "-15", time="2031-02-03_04:05:01", host="gpu9.pod"))
    later = report(block(0, 30, "1", time="2031-02-03_04:05:09", host="gpu7.pod"))
    first = report(block(0, 7, "1", time="2031-02-03_04:05:02"))
    evidence = read(stopped + later + first)
    assert len(evidence.failures) == 3
    (event,) = roots(evidence)
    assert (event.ranks, event.attributes["host"]) == ((7,), "gpu8.pod")


def test_who_was_only_told_to_stop_is_no_root() -> None:
    evidence = read(report(block(0, 16, "-15")))
    assert len(evidence.failures) == 1
    (event,) = evidence.events
    assert event.role == "consequence"


@pytest.mark.parametrize(
    ("code", "signal"), [("-11", "11"), ("-7", "7"), ("139", "11"), ("135", "7")]
)
def test_fault_signal_is_a_crash_and_the_report_its_consequence(code: str, signal: str) -> None:
    evidence = read(report(block(0, 4, code)))
    (crash,) = roots(evidence)
    assert crash.class_name == "process_crash"
    assert crash.attributes == {"signal": signal}
    assert (crash.ranks, crash.details["host"]) == ((4,), "gpu8.pod")
    assert [e.class_name for e in evidence.events if e.role] == ["elastic_worker_failed"]


@pytest.mark.parametrize("code", ["-9", "137"])
def test_kill_is_a_death(code: str) -> None:
    (death,) = roots(read(report(block(0, 4, code))))
    assert death.class_name == "process_died"
    assert death.attributes == {"exitcode": code, "pid": "4004"}


def test_abort_stays_with_the_report() -> None:
    (event,) = roots(read(report(block(0, 4, "-6"))))
    assert event.class_name == "elastic_worker_failed"


def test_error_that_the_program_recorded() -> None:
    last = (
        "traceback : Traceback (most recent call last):\n"
        '    File "/srv/train.py", line 9, in main\n      f()\n  ValueError: no shard 3'
    )
    (failure,) = read(report(block(0, 4, "1", last=last))).failures
    assert failure.error == "ValueError: no shard 3"


@pytest.mark.parametrize(
    "head",
    [
        "E0203 04:05:06.123000 140 torch/distributed/elastic/multiprocessing/api.py:869] ",
        "ERROR:torch.distributed.elastic.multiprocessing.api:",
        "[2031-02-03 04:05:06,123] torch.distributed.elastic.multiprocessing.api: [ERROR] ",
        "",
    ],
)
def test_line_of_the_agent(head: str) -> None:
    evidence = read(
        f"{head}failed (exitcode: 1) local_rank: 5 (pid: 812) of binary: /usr/bin/python3"
    )
    (failure,) = evidence.failures
    assert (failure.exitcode, failure.local_rank, failure.pid) == ("1", "5", "812")
    assert (failure.rank, failure.first) == (None, False)
    (event,) = evidence.events
    assert event.attributes == {"exitcode": "1", "local_rank": "5"}
    assert event.ranks == ()


def test_line_and_report_of_one_failure_are_one() -> None:
    line = "failed (exitcode: 1) local_rank: 3 (pid: 4011) of binary: /usr/bin/python3\n"
    evidence = read(line + report(block(0, 11, "1")))
    assert len(evidence.failures) == 1
    assert len(evidence.events) == 1


@pytest.mark.parametrize(
    "prefix", ["1: ", "[1,4]<stderr>:", "2031-02-03T04:05:06.1Z stderr F ", "gpu8: "]
)
def test_behind_a_launchers_prefix(prefix: str) -> None:
    text = "".join(f"{prefix}{line}\n" for line in report(block(0, 11, "1")).splitlines())
    (failure,) = read(text * 2 if prefix == "gpu8: " else text).failures[:1]
    assert told(failure) == (11, "gpu8.pod", "1", True)


def test_two_reports_run_into_one_another() -> None:
    reports = [
        [f"{rank}: {line}" for line in report(block(0, rank, "1")).splitlines()] for rank in (3, 12)
    ]
    mixed = "\n".join(line for pair in zip(*reports, strict=True) for line in pair)
    assert {failure.rank for failure in read(mixed).failures} == {3, 12}


def test_report_whose_head_was_cut_off() -> None:
    text = report(block(0, 11, "1")).split("\n")
    start = next(number for number, line in enumerate(text) if "rank   " in line)
    (failure,) = read("\n".join(text[start:])).failures
    assert (failure.rank, failure.exitcode) == (11, "1")


def test_words_of_a_report_elsewhere_are_none() -> None:
    assert read("Failures:\nnone\n\nhost: gpu8\nrank: 3\n").failures == []
    assert not read("the first local_rank: 3 failed").events


def test_log_cut_anywhere() -> None:
    raw = report(block(0, 11, "-11"), block(1, 3, "1")).encode()
    for cut in range(len(raw)):
        read(raw[:cut])
        read(raw[cut:])


@given(
    st.lists(
        st.sampled_from(
            [*report(block(0, 1, "1"), block(1, 2, "-9")).split("\n"), "", "  time : x"]
        ),
        max_size=40,
    )
)
def test_lines_in_any_order(lines: list[str]) -> None:
    read("\n".join(lines))


@given(st.binary(max_size=300))
def test_any_bytes(raw: bytes) -> None:
    read(b"Root Cause (first observed failure):\n[0]:\n" + raw)


def test_report_of_the_first_releases() -> None:
    fields = (
        "  time: 2031-02-03_04:05:06\n  rank: {0} (local_rank: {0})\n  exitcode: 1 (pid: 81{0})"
    )
    text = (
        "*****\n        train.py FAILED\n=====\nRoot Cause:\n[0]:\n"
        + fields.format(3)
        + '\n  error_file: <N/A>\n  msg: "Process failed with exitcode 1"\n=====\n'
        + "Other Failures:\n[1]:\n"
        + fields.format(2)
        + "\n*****\n"
    )
    evidence = read(text)
    assert [told(failure) for failure in evidence.failures] == [
        (3, None, "1", True),
        (2, None, "1", False),
    ]
    assert [event.ranks for event in roots(evidence)] == [(3,)]
