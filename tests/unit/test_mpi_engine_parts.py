"""The pieces of the mpi engine: places, messages, the roll call, ends of jobs, memory, a job."""

import queue
import re
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ncdiag.cluster.launchers import Launch
from ncdiag.health.self_report import SelfReport
from ncdiag.measure.engines.base import Timing
from ncdiag.measure.engines.halves import Half, Sent
from ncdiag.measure.engines.mpi import job as job_module
from ncdiag.measure.engines.mpi.job import Job, JobEnded, hear
from ncdiag.measure.engines.mpi.job_end import DEATHS, Dead, Death, mpi_gave_up, who_died, why_ended
from ncdiag.measure.engines.mpi.memory import HostMemory
from ncdiag.measure.engines.mpi.messages import (
    Beat,
    Done,
    End,
    Here,
    Orders,
    Part,
    Passed,
    Ready,
    decode_said,
    decode_told,
    encode_said,
    encode_told,
)
from ncdiag.measure.engines.mpi.place import (
    OWN_VARIABLES,
    Place,
    describe,
    find_place,
    place_on,
    variables_of,
)
from ncdiag.measure.engines.mpi.roll_call import RollCall
from ncdiag.measure.engines.probe import Probed
from ncdiag.measure.rails import nics_by_rail
from ncdiag.model.errors import UndecidedError
from ncdiag.model.host import Host, HostFacts, Nic, NicKind

ETH0 = Nic(name="eth0", kind=NicKind.ETHERNET, interface="eth0", address="10.0.0.1")
MLX5 = Nic(name="mlx5_0", kind=NicKind.INFINIBAND, interface="ib0", hca="mlx5_0", hca_port=1)
PLACES = st.builds(
    Place,
    st.sampled_from(["eth0", "ens1f0np0", "bond0.12", "mlx5_0:1", "mlx5_10:2"]),
    st.none() | st.integers(0, 15),
)


@given(st.lists(PLACES, min_size=1, max_size=40))
def test_every_rank_finds_the_place_that_was_meant(places: list[Place]) -> None:
    described = describe(places)
    assert [find_place(rank, described) for rank in range(len(places))] == places
    with pytest.raises(ValueError, match="more ranks"):
        find_place(len(places), described)


def test_a_fleet_of_like_hosts_is_one_short_argument() -> None:
    assert describe([place_on(ETH0, None)] * 10_000) == ("10000*eth0",)


@pytest.mark.parametrize("word", ["1*", "1*a b", "1*eth0@x", "1*../x", "x*eth0"])
def test_what_is_no_place_is_refused(word: str) -> None:
    with pytest.raises(ValueError, match=r"no place|invalid literal"):
        find_place(0, [word])


def test_each_transport_keeps_to_its_nic() -> None:
    tcp, rdma = variables_of(place_on(ETH0, None)), variables_of(place_on(MLX5, 3))
    assert tcp["UCX_TLS"] == "tcp,self"
    assert tcp["UCX_NET_DEVICES"] == tcp["OMPI_MCA_btl_tcp_if_include"] == "eth0"
    assert rdma["UCX_NET_DEVICES"] == "mlx5_0:1"
    assert "tcp" not in rdma["UCX_TLS"]
    assert rdma["CUDA_VISIBLE_DEVICES"] == "3"
    for variables in (tcp, rdma):
        # Two hosts of one kernel, as containers are, would otherwise measure its memory.
        assert not re.search(r"sm|shm|posix|sysv|cma|knem", variables["UCX_TLS"])
        assert variables.keys() <= OWN_VARIABLES


def test_a_missing_nic_shifts_no_other_rail() -> None:
    host = Host(name="a", address="a", nics=("eth0", "eth1"))
    eth1 = Nic(name="eth1", kind=NicKind.ETHERNET, interface="eth1")
    assert nics_by_rail(host, HostFacts(hostname="a", nics=(eth1,))) == {1: eth1}
    assert nics_by_rail(Host(name="a", address="a"), HostFacts(hostname="a", nics=(eth1,))) == {
        0: eth1
    }


PART = Part(number=3, peer=1, first=True, nic=ETH0, timing=Timing(), deadline_s=6.0)


@pytest.mark.parametrize(
    "said",
    [
        Here(rank=2, hostname="h3", addresses=("10.0.0.3",)),
        Ready(rank=2, ranks=8, library="MPICH 5", gpu=True),
        Passed(number=4),
        Done(rank=1, number=4, half=Half(sent=Sent(payload_bytes=7))),
    ],
    ids=lambda said: type(said).__name__,
)
def test_what_a_rank_says_is_found_among_other_output(said: Here) -> None:
    line = encode_said(said).rstrip(b"\n")
    assert decode_said(line) == said
    assert decode_said(b"[1,2]<stdout>: \x1b[0m" + line) == said


@given(st.binary())
def test_other_output_is_nothing(line: bytes) -> None:
    assert decode_said(line) is None
    assert decode_said(b"ncdiag-mpi: " + line) is None


@pytest.mark.parametrize("told", [Orders(number=3, parts={0: PART}), Beat(), End()])
def test_what_the_driver_says_is_understood(told: Orders) -> None:
    line = encode_told(told)
    assert line.count(b"\n") == 1
    assert decode_told(line) == told


@pytest.mark.parametrize("death", DEATHS, ids=lambda death: death.sample[:30])
def test_each_way_to_tell_of_a_death_is_read(death: Death) -> None:
    assert who_died(["something else", death.sample], ["h1", "h3"]) == Dead("h3", crashed=False)
    assert who_died([death.near_miss], ["h1", "h3"]) is None
    assert who_died([death.sample], ["other"]) is None


@pytest.mark.parametrize(
    "said",
    [
        ["=   PID 5126 RUNNING AT h3", "=   EXIT CODE: 11"],
        ["mpirun noticed that process rank 2 with PID 0 on node h3 exited on signal 6 (Aborted)."],
        ["srun: error: h3: task 2: Segmentation fault", "srun: error: h1: task 0: Killed"],
    ],
)
def test_a_process_that_crashed_is_told_from_one_that_was_killed(said: list[str]) -> None:
    assert who_died(said, ["h1", "h3"]) == Dead("h3", crashed=True)
    killed = re.sub("(CODE:|signal) [0-9]+", r"\1 9", "\n".join(said)).replace("Segm", "Killed")
    assert who_died(killed.splitlines(), ["h1", "h3"]) == Dead("h3", crashed=False)


def test_a_host_may_be_told_of_by_its_short_name() -> None:
    said = ["=   PID 5126 RUNNING AT gpu3"]
    hosts = ["gpu3.cluster.example", "gpu30.cluster.example"]
    assert who_died(said, hosts) == Dead("gpu3.cluster.example", crashed=False)
    assert who_died(said, ["gpu3.east", "gpu3.west"]) is None


def test_the_last_word_that_says_something_is_the_reason() -> None:
    said = ("ssh: connect to host h3 port 22: No route to host", "=====", "=   EXIT CODE: 255")
    assert why_ended(JobEnded(255, said)).startswith("ssh: connect")
    assert why_ended(JobEnded(7, ("====",))) == "it ended with exit code 7"
    own = "[mpiexec@a] main (mpiexec.c:270): process manager error waiting for completion"
    assert why_ended(JobEnded(7, ("bash: no such file", own))) == "bash: no such file"
    assert why_ended(JobEnded(7, ("=   PID 5 RUNNING AT h1", own))) == own


def test_a_device_that_mpi_does_not_find_is_told_rather_than_what_came_of_it() -> None:
    said = (
        "[1.1] ucp_context.c:1381 UCX  WARN  network device 'mlx5_0:1' is not available, use 'lo'",
        "Abort(607274255) on node 2: Fatal error in internal_Init_thread: Other MPI error",
        "MPIDI_UCX_comm_addr_exchange(159): ucx function returned with failed status",
    )
    assert why_ended(JobEnded(15, said)).startswith("network device 'mlx5_0:1' is not available")
    assert mpi_gave_up(said)
    assert not mpi_gave_up(["=   PID 5126 RUNNING AT h3"])


def probed(*names: str) -> Probed:
    reports = {}
    for number, name in enumerate(names, start=1):
        address = f"10.0.0.{number}"
        nic = Nic(name="eth0", kind=NicKind.ETHERNET, interface="eth0", address=address)
        facts = HostFacts(hostname=name, nics=(nic,))
        reports[name] = SelfReport(host=name, facts=facts, own_address=address)
    return Probed(reports, {})


def here(rank: int, hostname: str, **more: str) -> Here:
    return Here(rank=rank, hostname=hostname, addresses=(f"10.0.0.{rank + 1}", "127.0.0.1"), **more)


def call_of(*names: str, rdma: bool = False) -> RollCall:
    return RollCall(names, probed(*names), rdma=rdma)


def test_all_ranks_in_their_places_are_a_job() -> None:
    call = call_of("a", "b")
    for rank, name in enumerate("ab"):
        assert not call.is_over
        call.note_here(here(rank, name))
        call.note_ready(Ready(rank=rank, ranks=2, library="MPICH"))
    assert call.is_over
    assert call.missing(60) == {}
    assert call.libraries == {"a": "MPICH", "b": "MPICH"}


@pytest.mark.parametrize(
    "other",
    [here(0, "b"), Here(rank=0, hostname="a", addresses=("10.0.0.2",)), here(2, "c")],
    ids=["name", "address", "rank"],
)
def test_a_rank_in_another_place_measures_nothing(other: Here) -> None:
    with pytest.raises(UndecidedError, match="MPI started"):
        call_of("a", "b").note_here(other)


def test_a_rank_that_nobody_asked_for_is_told() -> None:
    with pytest.raises(UndecidedError, match="a rank 7, where 2 ranks were asked for"):
        call_of("a", "b").note_ready(Ready(rank=7, ranks=2, library="MPICH"))


def test_a_job_of_single_ranks_is_told() -> None:
    with pytest.raises(UndecidedError, match="not of one kind"):
        call_of("a", "b").note_ready(Ready(rank=0, ranks=1, library="MPICH"))


def test_a_host_without_mpi4py_is_left_out_and_no_other() -> None:
    call = call_of("a", "b", "c")
    call.note_here(here(0, "a"))
    call.note_here(here(1, "b", error="mpi4py is not installed there"))
    assert not call.is_over, "c may have none either"
    call.note_here(here(2, "c"))
    assert call.is_over
    assert call.refusals == {"b": "mpi4py is not installed there"}


def test_a_host_where_nothing_was_started_is_left_out() -> None:
    call = call_of("a", "b", "c")
    call.note_here(here(0, "a"))
    call.note_here(here(2, "c"))
    assert call.missing(60) == {"b": "MPI started nothing there within 60 s"}


@pytest.mark.parametrize("rdma", [False, True])
def test_a_job_that_ends_before_it_starts_says_why(rdma: bool) -> None:  # noqa: FBT001 - the case
    call = call_of("a", "b", rdma=rdma)
    call.note_end(JobEnded(1, ("no usable transports",)))
    assert call.is_over
    with pytest.raises(UndecidedError, match="no usable transports") as told:
        call.missing(60)
    assert ("nic=INTERFACE" in str(told.value)) is rdma


def test_a_host_whose_process_dies_at_the_start_is_left_out() -> None:
    died = ("=   PID 5126 RUNNING AT b", "=   EXIT CODE: 9")
    call = call_of("a", "b", "c")
    call.note_end(JobEnded(9, died))
    assert call.missing(60) == {"b": "its process died while MPI started"}
    call.note_end(JobEnded(9, ("Abort(1) on node 1: Fatal error in internal_Init_thread", *died)))
    with pytest.raises(UndecidedError, match=r"MPI did not start on \[?a"):
        call.missing(60)


@pytest.mark.parametrize("rdma", [False, True])
def test_where_rdma_may_be_the_reason_other_ways_are_named(rdma: bool) -> None:  # noqa: FBT001
    call = call_of("a", "b", rdma=rdma)
    with pytest.raises(UndecidedError, match="within 60 s") as told:
        call.missing(60)
    assert ("engine torch or perftest" in str(told.value)) is rdma


def test_nobody_is_accused_where_all_started_and_mpi_did_not() -> None:
    call = call_of("a", "b")
    for rank, name in enumerate("ab"):
        call.note_here(here(rank, name))
    with pytest.raises(UndecidedError, match="within 60 s"):
        call.missing(60)


@pytest.mark.parametrize("forward", [True, False])
def test_memory_holds_what_was_sent_and_notices_a_wrong_bit(forward: bool) -> None:  # noqa: FBT001
    source, target = HostMemory(65536), HostMemory(65536)
    for number, size in enumerate([16384, 65536, 16384, 65536]):
        source.fill(number, size, 1000 + number, forward=forward)
        target.slot(number, size)[:] = source.slot(number, size)
        assert target.header(number) == 1000 + number
        assert target.is_as_sent(number, size, forward=forward)
        assert not target.is_as_sent(number, size, forward=not forward)
        target.slot(number, size)[size - 1] ^= 1
        assert not target.is_as_sent(number, size, forward=forward)


def test_memory_that_is_given_up_is_not_touched_again() -> None:
    memory = HostMemory(16384)
    memory.fill(0, 16384, 1, forward=True)
    chunk, other, token = memory.slot(0, 4096), memory.slot(1, 4096), memory.token
    before = chunk.tobytes()

    memory.give_up([chunk, token])
    memory.fill(0, 16384, 2, forward=False)
    memory.token[0] = 1

    assert (chunk.tobytes(), token.tobytes()) == (before, bytes(8))
    assert memory.header(0) == 2
    assert memory.slot(1, 4096).ctypes.data == other.ctypes.data


def test_memory_of_numpy_and_of_torch_hold_the_same() -> None:
    torch = pytest.importorskip("torch", reason="torch is not installed")
    from ncdiag.measure.engines.torch.memory import TensorMemory

    one, other = HostMemory(32768), TensorMemory(32768, torch.device("cpu"))
    for memory in (one, other):
        memory.fill(1, 32768, 77, forward=True)
    assert one.slot(1, 32768).tobytes() == bytes(other.slot(1, 32768).numpy())


ECHO = """
import sys
print("noise")
for line in sys.stdin:
    if '"end"' in line:
        print('ncdiag-mpi: {"type":"passed","number":1}', flush=True)
        print("some last words", file=sys.stderr)
        sys.exit(3)
"""
STAY = """
print('ncdiag-mpi: {"type":"passed","number":7}', flush=True)
while True:
    time.sleep(60)
"""
TIDY = f"""
import signal, sys, time
signal.signal(signal.SIGTERM, lambda *_: (print("tidied up", flush=True), sys.exit(4)))
{STAY}
"""
DEAF = f"""
import signal, time
signal.signal(signal.SIGTERM, signal.SIG_IGN)
{STAY}
"""


def started(program: str) -> tuple[Job, queue.SimpleQueue]:
    heard = queue.SimpleQueue()
    launch = Launch(argv=(sys.executable, "-c", program), hosts=("a", "b"))
    return Job(launch, 5, heard), heard


def test_a_job_that_is_told_to_end_ends_and_its_last_words_are_kept() -> None:
    job, heard = started(ECHO)
    job.close()
    assert hear(heard, 10) == (5, Passed(number=1))
    rail, ended = hear(heard, 10)
    assert rail == 5
    assert (ended.code, sorted(ended.said)) == (3, ["noise", "some last words"])
    job.close()


def test_a_job_that_does_not_end_is_asked_to_so_that_it_can_tidy_up() -> None:
    job, heard = started(TIDY)
    assert hear(heard, 30) == (5, Passed(number=7))
    job.close(kill=True)
    rail, ended = hear(heard, 10)
    assert (rail, ended.code, ended.said) == (5, 4, ("tidied up",))


def test_a_job_that_minds_nothing_is_killed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(job_module, "_TIDY_S", 0.1)
    job, heard = started(DEAF)
    assert hear(heard, 30) == (5, Passed(number=7))
    job.close(kill=True)
    rail, ended = hear(heard, 10)
    assert (rail, ended.code) == (5, -9)


def test_a_job_that_ends_by_itself_is_heard_of() -> None:
    job, heard = started("import sys; sys.exit('no such thing')")
    _, ended = hear(heard, 30)
    assert (ended.code, ended.said) == (1, ("no such thing",))
    job.tell(Beat())
    job.close()
