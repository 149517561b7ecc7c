"""Calls of the library compared between ranks, and return-code chains."""

from typing import Any


def caller(bench: Any, host: Any, rank: Any, calls: Any, **fields: Any) -> Any:
    state = bench.communicator(rank, 2, completed=True, **fields)
    state.calls = calls
    return bench.process(host, str(rank), communicators=[state])


SUM = ("AllReduce", "1024", "7")


def test_calls_that_differ_at_one_number_are_a_mismatch(bench: Any, post: Any) -> None:
    odd = ("AllReduce", "2048", "7")
    processes = [caller(bench, "a", 0, {4: SUM, 5: SUM}), caller(bench, "b", 1, {4: SUM, 5: odd})]
    finding = post(processes=processes).findings[0]
    assert finding.class_ == "collective_mismatch"
    assert "call 5" in finding.explanation


def test_calls_of_different_communicators_are_not_compared(
    bench: Any, post: Any, names: Any
) -> None:
    processes = [
        caller(bench, "a", 0, {4: SUM}, comm_id="0x1"),
        caller(bench, "b", 1, {4: ("Broadcast", "1", "0")}, comm_id="0x2"),
    ]
    assert not names.classes(post(processes=processes))


def test_calls_that_only_one_rank_is_known_to_have_made_prove_nothing(
    bench: Any, post: Any, names: Any
) -> None:
    processes = [caller(bench, "a", 0, {4: SUM, 5: SUM}), caller(bench, "b", 1, {4: SUM})]
    assert not names.classes(post(processes=processes))


def test_a_chain_that_reached_the_caller_failed(bench: Any, post: Any, names: Any) -> None:
    chain = [("misc/socket.cc", 46, 2), ("init.cc", 1350, 2), ("group.cc", 65, 2)]
    process = bench.process("a", chain=chain, chain_place=bench.place())
    answer = post(processes=[process])
    assert names.roots(answer) == ["unhandled_system_error"]
    assert answer.findings[0].confidence < 0.5


def test_a_chain_before_a_start_up_that_completes_ended_in_a_fall_back(
    bench: Any, post: Any
) -> None:
    chain = [("transport.cc", 291, 2), ("init.cc", 670, 2)]
    process = bench.process("a", chain=chain, chain_place=bench.place())
    other = bench.process("b", communicators=[bench.communicator(0, 2, completed=True)])
    assert post(processes=[process, other]).verdict == "ok"


def test_a_chain_with_a_message_that_explains_it_is_nothing_new(
    bench: Any, post: Any, names: Any
) -> None:
    chain = [("transport/shm.cc", 551, 2), ("init.cc", 1350, 2)]
    process = bench.process("a", chain=chain, chain_place=bench.place())
    full = bench.event("shm_no_space", "a", pid="1", errno="28")
    assert names.classes(post(full, processes=[process])) == ["shm_no_space"]
