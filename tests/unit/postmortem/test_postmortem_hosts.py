"""Names and addresses of hosts."""

from typing import Any

from ncdiag.diagnose.postmortem.hosts import HostBook
from ncdiag.model.log import LogEvidence


def book(*processes: Any, events: Any = (), names: Any = None) -> Any:
    return HostBook(LogEvidence(processes=list(processes), events=list(events)), names)


def test_an_address_belongs_to_the_host_that_listens_on_it(bench: Any) -> None:
    hosts = book(bench.process("gpu-07", addresses=["10.1.2.3"]))
    assert hosts.resolve("10.1.2.3") == "gpu-07"
    assert hosts.resolve("10.1.2.4") == "10.1.2.4"


def test_an_address_that_two_hosts_claim_belongs_to_none(bench: Any) -> None:
    hosts = book(
        bench.process("a", addresses=["10.9.0.1"]),
        bench.process("b", addresses=["10.9.0.1"]),
    )
    assert hosts.resolve("10.9.0.1") == "10.9.0.1"


def test_an_address_that_every_host_has_belongs_to_none(bench: Any) -> None:
    hosts = book(bench.process("a", addresses=["172.17.0.1", "127.0.0.1", "fe80::1%eth0"]))
    for address in ("172.17.0.1", "127.0.0.1", "fe80::1%eth0"):
        assert hosts.resolve(address) == address


def test_the_operators_word_goes_first(bench: Any) -> None:
    process = bench.process("pod-1", addresses=["10.1.2.3"])
    assert book(process, names={"10.1.2.3": "rack-4"}).resolve("10.1.2.3") == "rack-4"


def test_a_qualified_name_is_the_short_one_that_speaks(bench: Any) -> None:
    hosts = book(bench.process("gpu-07"))
    assert hosts.resolve("gpu-07.cluster.example") == "gpu-07"
    assert hosts.same("gpu-07.cluster.example", "gpu-07")


def test_a_name_whose_beginning_was_blanked_out_is_completed_where_only_one_fits(
    bench: Any,
) -> None:
    named = bench.event("ib_completion_error", "...-31", peer="rack31", status="12")
    hosts = book(bench.process("...-31"), events=[named])
    assert hosts.resolve("...-31") == "rack31"
    assert hosts.resolve("...-1") == "...-1"


def test_a_gid_belongs_to_the_host_that_printed_it_as_its_own(bench: Any) -> None:
    mine = bench.event("ib_completion_error", "a", status="12", local_gid="::ffff:10.3.0.1")
    theirs = bench.event("ib_completion_error", "b", status="12", remote_gid="::ffff:10.3.0.1")
    hosts = book(events=[mine, theirs])
    assert hosts.peer_of(theirs) == "a"


def test_the_host_that_a_message_is_about_goes_before_the_one_that_speaks(bench: Any) -> None:
    event = bench.event("process_died", "login1", details={"host": "n7"}, exitcode="137")
    assert book(events=[event]).of_event(event) == "n7"


def test_a_line_that_proves_only_its_rank_is_of_the_host_of_that_rank(bench: Any) -> None:
    event = bench.event("application_exception", rank=3, exception="KeyError")
    state = bench.communicator(3, 8, completed=True)
    hosts = book(bench.process("n2", communicators=[state]), events=[event])
    assert hosts.of_event(event) == "n2"
    two = [bench.process(host, communicators=[state]) for host in ("n2", "n5")]
    assert book(*two, events=[event]).of_event(event) is None
