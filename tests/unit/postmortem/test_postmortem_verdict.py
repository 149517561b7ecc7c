"""The verdict and the story."""

from typing import Any

import pytest

from ncdiag.diagnose.postmortem.phrases import PHRASES, moment
from ncdiag.model.finding import FindingClass
from ncdiag.model.log import InputSummary
from ncdiag.model.place import Clock, Moment, Place


def test_nothing_recognised_is_inconclusive_and_said_so(post: Any) -> None:
    answer = post(inputs=[InputSummary(path="novel.txt", bytes=10, lines=1)])
    assert answer.verdict == "inconclusive"
    assert "recognised" in answer.story[0]


def test_a_known_kind_without_findings_is_ok(post: Any) -> None:
    assert post(inputs=[InputSummary(path="dmesg", kinds=["kernel"])]).verdict == "ok"


def test_an_input_that_could_not_be_read_leaves_it_open(post: Any) -> None:
    good = InputSummary(path="a.log", kinds=["nccl"])
    bad = InputSummary(path="b.log", error="permission denied")
    assert post(inputs=[good, bad]).verdict == "inconclusive"


def test_a_table_without_a_footer_leaves_it_open(bench: Any, post: Any) -> None:
    assert post(benchmarks=[bench.table([1.0, 2.0])]).verdict == "ok"
    assert post(benchmarks=[bench.table([1.0, 2.0], complete=False)]).verdict == "inconclusive"


def test_a_stop_after_a_finished_test_is_no_failure(bench: Any, post: Any, names: Any) -> None:
    answer = post(bench.event("terminated_by_launcher"), benchmarks=[bench.table([1.0])])
    assert answer.verdict == "ok"
    assert not names.roots(answer)


def test_the_story_goes_by_time_and_ends_with_whom_to_isolate(bench: Any, post: Any) -> None:
    answer = post(
        bench.event("torch_watchdog_timeout", rank=2, at=700),
        bench.event("gpu_fell_off_bus", "n7", xid="79", pci="0000:1b:00", at=100),
    )
    told = " ".join(answer.story)
    assert "a GPU fell off the bus (Xid 79); suspect: GPU 0000:1b:00 and n7." in told
    assert "What followed from it: a collective did not finish in time." in told
    assert answer.story[-1] == "To isolate: n7."


def test_the_story_says_what_failed_first_and_who_only_suffered(bench: Any, post: Any) -> None:
    answer = post(
        bench.event("gpu_fell_off_bus", "n7", xid="79", pci="0000:1b:00", at=100),
        bench.event("application_exception", "n9", pid="7", rank=5, exception="ValueError", at=50),
        bench.event("socket_closed_by_peer", "n1", pid="1", peer="n7", at=300),
    )
    told = answer.story
    assert told[0].startswith("second 50: first the program ended")
    assert "a GPU fell off the bus" in told[1]
    assert "What followed from it: the other end closed a connection." in told
    assert "Only victims of it: n1." in told


@pytest.mark.parametrize(
    ("text", "seconds", "clock", "told"),
    [
        ("118 20:03:51.110750231", 1.0, Clock.WALL, "20:03:51"),
        ("2025-10-18T04:12:18+00:00", 1.0, Clock.WALL, "2025-10-18 04:12:18"),
        ("[ 1234.5678]", 1234.5678, Clock.UPTIME, "1235 s after boot"),
        ("noon", 1.0, Clock.DAY, "noon"),
    ],
)
def test_a_date_is_told_only_where_it_is_whole(
    text: str, seconds: float, clock: Clock, told: str
) -> None:
    assert moment(Moment(text, seconds, clock)) == told


def test_the_story_names_what_is_known_of_a_process(bench: Any, post: Any) -> None:
    (died, _) = post(bench.event("process_died", exitcode="-9", details={})).story[:2]
    assert died == "A process ended without a word (exit code -9)."
    told = post(bench.event("process_died", pid="41", exitcode="-9")).story
    assert "suspect" not in told[0]
    named = bench.event("process_died", exitcode="-9")
    named.attributes = {"pid": "41", "exitcode": "-9"}
    assert post(named).story[0].endswith("suspect: pid 41.")
    own = bench.event("application_exception", rank=3, exception="KeyError")
    assert post(own).story[0].endswith("(KeyError); suspect: rank 3.")


def test_the_story_says_that_an_echo_is_not_the_cause(bench: Any, post: Any) -> None:
    echo = post(bench.event("remote_error", rank=1)).story
    assert any("the cause is in the log of the side" in sentence for sentence in echo)
    crash = post(bench.event("process_crash", rank=1, signal="11")).story
    assert not any("echo" in sentence for sentence in crash)


def test_every_class_has_a_phrase() -> None:
    assert set(PHRASES) == set(FindingClass)
    assert not any("_" in phrase or phrase.endswith(".") for phrase in PHRASES.values())


def test_the_story_says_when_the_order_of_hosts_is_not_certain(bench: Any, post: Any) -> None:
    def pair(first: Any, second: Any) -> Any:
        return post(
            bench.event("process_crash", "a", pid="1", at=first, path="a.log", signal="11"),
            bench.event("cuda_out_of_memory", "b", pid="1", at=second, path="b.log"),
        )

    assert any("not certain" in sentence for sentence in pair(10, 12).story)
    assert any("no common clock" in sentence for sentence in pair(None, None).story)
    assert not any("not certain" in sentence for sentence in pair(10, 90).story)


def test_a_cut_input_lowers_confidence(bench: Any, post: Any) -> None:
    fault = bench.event("gpu_fell_off_bus", "n7")
    whole = post(fault).findings[0].confidence
    cut = post(fault, inputs=[InputSummary(path="x", kinds=["kernel"], truncated=True)])
    assert cut.findings[0].confidence < whole


def test_evidence_quotes_the_line_that_speaks_first(bench: Any, post: Any) -> None:
    event = bench.event("shm_no_space", "a", pid="1", errno="28")
    finding = post(event).findings[0]
    assert (finding.first_seen.path, finding.first_seen.line) == (event.place.path, 1)
    assert finding.evidence[0].text == event.text
    assert isinstance(event.place, Place)


def test_a_store_that_went_at_the_end_of_a_finished_run(bench: Any, post: Any) -> None:
    table = bench.table([1.0, 2.0])
    lost = bench.event("store_failure", rank=1, details={"printed": "W"})
    assert post(lost).verdict == "findings"
    assert post(lost, benchmarks=[table]).verdict == "ok"
    printed_as_error = bench.event("store_failure", rank=1, details={"printed": "E"})
    assert post(printed_as_error, benchmarks=[table]).verdict == "findings"


def test_communicators_taken_down_after_a_regular_end(bench: Any, post: Any) -> None:
    ended = bench.communicator(0, 2, completed=True, ended=True)
    down = bench.event("comm_aborted", "a", pid="1")
    done = bench.process("a", communicators=[ended])
    assert post(down, processes=[done]).verdict == "ok"
    going_on = bench.process("b", communicators=[bench.communicator(1, 2, completed=True)])
    assert post(down, processes=[done, going_on]).verdict == "findings"


def test_a_communicator_s_abort_alone_is_no_failure(bench: Any, post: Any) -> None:
    state = bench.communicator(0, 2, completed=True, ended=True, aborted=True)
    process = bench.process("a", communicators=[state])
    regular = bench.event("comm_aborted", "a", pid="1", details={"step": "COMPLETE"})
    assert post(regular, processes=[process]).verdict == "ok"
    fatal = bench.event("comm_aborted", "a", pid="1")
    assert post(fatal, processes=[process]).verdict == "findings"


def test_an_echo_of_a_lost_store_alone_is_no_failure_of_a_run(bench: Any, post: Any) -> None:
    process = bench.process("a", communicators=[bench.communicator(0, 2, completed=True)])

    def lost(printed: str) -> Any:
        return bench.event(
            "store_failure", rank=1, details={"printed": printed}, role="consequence"
        )

    assert post(lost("W"), processes=[process]).verdict == "ok"
    assert post(lost("E"), processes=[process]).verdict == "findings"
    assert post(lost("W")).verdict == "findings"
