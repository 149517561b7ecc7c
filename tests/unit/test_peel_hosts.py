"""Whose name a host's is, where one ends in another or a wrapper names one, too."""

from collections.abc import Sequence
from itertools import permutations

import pytest

from ncdiag.model.log import LogEvidence
from ncdiag.read.log_reader import LogReader


def read(*lines: str) -> LogEvidence:
    reader = LogReader("job.log")
    wanted: Sequence[bytes] = sorted(reader.needles | reader.facts)
    for number, line in enumerate(lines, 1):
        raw = line.encode()
        reader.take(raw, number, tuple(needle for needle in wanted if needle in raw))
    return reader.finish()


def said(host: str, pid: int, what: str = "Bootstrap : Using eth0:10.5.0.1<0>") -> str:
    return f"{host}:{pid}:{pid} [0] NCCL INFO {what}"


def warned(host: str, pid: int) -> str:
    where = f"{host}:{pid}:{pid} [0] misc/socket.cc:58"
    return f"{where} NCCL WARN Call to recv from 10.5.0.9<4> failed : Connection timed out"


def hosts(evidence: LogEvidence) -> set[str]:
    spoken = {process.host for process in evidence.processes}
    assert spoken == set(evidence.hosts)
    return spoken | {event.speaker.host or "" for event in evidence.events}


@pytest.mark.parametrize("pid", [1, 100, 31_337])
def test_two_pods_of_which_one_ends_in_the_other_stay_two(pid: int) -> None:
    both = [
        said("puller-0", pid),
        said("fast-puller-0", pid),
        said("fast-puller-0", pid),
        warned("puller-0", pid),
    ]
    for lines in permutations(both):
        assert hosts(read(*lines)) == {"puller-0", "fast-puller-0"}


def test_ranks_tell_two_hosts_apart_however_seldom_one_speaks() -> None:
    start = (
        "ncclCommInitRank comm 0x55d0c0ffee10 rank {} nranks 4 cudaDev 0 busId 1b000 - Init START"
    )
    lines = [said("xoak1", 7, start.format(3)), *[said("oak1", 7, start.format(1))] * 9]
    assert hosts(read(*lines)) == {"xoak1", "oak1"}


@pytest.mark.parametrize("pid", [1, 31_337])
def test_the_name_that_most_lines_begin_with_wins_over_a_garbled_one(pid: int) -> None:
    found = read(warned("stepeloak1", pid), *[said("oak1", pid)] * 5, warned("oak1", pid))
    assert hosts(found) == {"oak1"}


def test_a_name_whose_beginning_is_cut_off_is_the_whole_one() -> None:
    found = read(*[said("elm-14", 31_337)] * 5, warned("m-14", 31_337), said("elm-14", 31_337))
    assert hosts(found) == {"elm-14"}


@pytest.mark.parametrize("wrap", ["{}: ", "Mar 02 03:04:05 {} containerd[7]: "])
def test_a_node_whose_processes_give_their_own_names_counts_under_those(wrap: str) -> None:
    one, two = wrap.format("elm1"), wrap.format("elm2")
    lines = [one + said("pod-a", 9), two + said("pod-b", 9), two + "RuntimeError: no such batch"]
    assert set(read(*lines).hosts) == {"pod-a", "pod-b"}


def test_a_node_whose_kernel_speaks_counts() -> None:
    found = read(
        "Mar 02 03:04:05 elm1 containerd[7]: " + said("pod-a", 9),
        "Mar 02 03:04:06 elm1 kernel: NVRM: Xid (PCI:0000:5d:00): 79, pid=5, GPU has fallen off "
        "the bus.",
    )
    assert set(found.hosts) == {"pod-a", "elm1"}


def test_wrappers_alone_name_hosts() -> None:
    assert set(read("elm1: RuntimeError: no such batch", "elm2: Killed").hosts) <= {"elm1", "elm2"}
    assert "elm1" in read("elm1: RuntimeError: no such batch").hosts
