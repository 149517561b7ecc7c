import gzip
from itertools import pairwise
from pathlib import Path

import pytest

from ncdiag.logs import plan, read_logs, workers
from ncdiag.logs.read_input import Job, read_input
from ncdiag.model.log import (
    CommunicatorState,
    Event,
    InputSummary,
    LogEvidence,
    NcclProcess,
    Speaker,
)
from ncdiag.model.place import Clock, Moment, Place
from ncdiag.read import events
from ncdiag.read.events import EventLog
from ncdiag.read.merge import EvidenceSum, join_process

POINTER = "0x55d0c0de0000"
COMM = f"comm {POINTER} rank 3 nranks 8 cudaDev 3 nvmlDev 3 busId 4b000 commId 0xfeed01"
SAID = (
    "n3:71:80 [3] NCCL INFO Bootstrap: Using eth0:10.9.0.3<0>",
    f"n3:71:80 [3] NCCL INFO ncclCommInitRank {COMM} - Init START",
    "n3:71:80 [3] NCCL INFO Using network IB",
    "n3:71:80 [3] NCCL INFO Channel 00/0 : 3[3] -> 4[4] [send] via NET/IB/0/GDRDMA",
    "n3:71:80 [3] NCCL INFO Channel 01/0 : 3[3] -> 4[4] [send] via NET/IB/0/GDRDMA",
    "n3:71:80 [3] NCCL INFO Connected all rings",
    f"n3:71:80 [3] NCCL INFO ncclCommInitRank {COMM} - Init COMPLETE",
    (
        "n3:71:90 [3] NCCL INFO AllReduce: opCount 1 sendbuff 0x1 recvbuff 0x1 count 5 datatype 7"
        f" op 0 root 0 comm {POINTER} [nranks=8] stream 0x2"
    ),
    "n4:72:81 [0] NCCL INFO Using network Socket",
    "[2026-02-03 04:05:06] n3:71:90 [3] NCCL WARN Cuda failure 700 'an illegal memory access'",
    "[2026-02-03 04:05:07] n3:71:90 [3] NCCL WARN Cuda failure 700 'an illegal memory access'",
    "n4:72:81 [0] NCCL WARN Cuda failure 2 'out of memory'",
    "kernel says nothing",
)
TEXT = "".join(line + "\n" for line in SAID).encode()


def cut_at(path: Path, *cuts: int) -> LogEvidence:
    """The evidence of a file read in pieces, as several processes would."""
    together = EvidenceSum()
    bounds = [0, *cuts, len(TEXT)]
    for start, stop in pairwise(bounds):
        job = Job(str(path), str(path), True, 1 << 30, len(TEXT), start, stop)  # noqa: FBT003
        together.add(read_input(job), [str(path)] if start else [])
    result = together.result()
    for process in result.processes:
        for state in process.communicators:
            # Which step proved first that it went on depends on the cut; that one did does not.
            state.progressed = state.progressed and Place("log", 0)
    return result


def test_pieces_of_a_file_give_the_evidence_of_the_whole(tmp_path: Path) -> None:
    path = tmp_path / "log"
    path.write_bytes(TEXT)
    whole = cut_at(path)
    assert len(whole.events) == 2
    assert [process.host for process in whole.processes] == ["n3", "n4"]
    line_starts = [at + 1 for at in range(len(TEXT) - 1) if TEXT[at] == 0x0A]
    for cut in line_starts:
        assert cut_at(path, cut) == whole
    for first, second in zip(line_starts, line_starts[2:], strict=False):
        assert cut_at(path, first, second) == whole


def event(text: str, *, pid: int = 1, line: int = 1, form: str = "f", **attributes: str) -> Event:
    return Event(
        class_name="cuda_error",
        form=form,
        place=Place("log", line),
        text=text,
        speaker=Speaker(host="n", pid=str(pid)),
        attributes=attributes,
    )


def test_equal_events_are_counted() -> None:
    log = EventLog()
    first = log.add(event("a", code="1"))
    assert log.add(event("a", code="1", line=7)) is first
    log.add(event("a", code="2"))
    assert [(one.count, one.last and one.last.line) for one in log.all()] == [(2, 7), (1, None)]


def test_a_flood_of_different_events_is_counted_on_one_that_is_kept() -> None:
    log = EventLog()
    for number in range(events.PER_PROCESS + 500):
        log.add(event("a", code=str(number)))
    assert len(list(log.all())) == events.PER_PROCESS
    assert next(log.all()).count == 501
    for pid in range(2, 3 * events.PER_FORM):
        log.add(event("a", pid=pid))
    kept = list(log.all())
    assert len(kept) == events.PER_FORM
    assert sum(one.count for one in kept) == events.PER_PROCESS + 500 + 3 * events.PER_FORM - 2
    forms = 2 * events.IN_ALL // events.PER_FORM
    for form in range(forms):
        for pid in range(events.PER_FORM):
            log.add(event("a", pid=pid, form=f"form{form}"))
    assert len(list(log.all())) < events.IN_ALL + forms * events.PER_FORM // 2
    late = log.add(event("a", form="late"))
    assert late.form == "late"


def test_a_process_of_two_inputs_is_one() -> None:
    first = NcclProcess(host="n", pid="5", first=Place("a", 1), last=Place("a", 9))
    first.communicators = [CommunicatorState(pointer="0x1", rank=2, started=Place("a", 2))]
    first.transports["P2P"] = 3
    first.nics = ["mlx5_0"]
    second = NcclProcess(host="n", pid="5", first=Place("b", 1), last=Place("b", 4), nvls=True)
    second.communicators = [
        CommunicatorState(pointer="0x1", completed=Place("b", 2), ranks=4),
        CommunicatorState(pointer="0x2", rank=0),
    ]
    second.transports["P2P"] = 2
    second.nics = ["mlx5_0", "mlx5_1"]
    second.environment["NCCL_DEBUG"] = "INFO"
    join_process(first, second)
    assert (first.first, first.last, first.nvls) == (Place("a", 1), Place("b", 4), True)
    assert first.transports["P2P"] == 5
    assert first.nics == ["mlx5_0", "mlx5_1"]
    assert first.environment == {"NCCL_DEBUG": "INFO"}
    one, two = first.communicators
    assert (one.rank, one.ranks) == (2, 4)
    assert (one.started, one.completed) == (Place("a", 2), Place("b", 2))
    assert two.pointer == "0x2"


def test_memory_that_is_used_again_holds_another_communicator() -> None:
    first = NcclProcess(host="n", pid="5")
    first.communicators = [CommunicatorState(pointer="0x1", ended=Place("a", 2))]
    second = NcclProcess(host="n", pid="5")
    second.communicators = [CommunicatorState(pointer="0x1", started=Place("b", 2))]
    join_process(first, second)
    assert len(first.communicators) == 2


def test_processes_without_a_name_are_not_joined_across_inputs() -> None:
    together = EvidenceSum()
    for path in "ab":
        together.add(LogEvidence(processes=[NcclProcess(host="", pid="", first=Place(path, 1))]))
    assert len(together.result().processes) == 2


def test_times_stay_with_their_places_when_lines_move() -> None:
    moment = Moment("12:00", 43200.0, Clock.DAY)
    together = EvidenceSum()
    together.add(LogEvidence(inputs=[InputSummary(path="p", lines=10)]))
    piece = LogEvidence(inputs=[InputSummary(path="p", lines=5, bytes=3)])
    piece.ends["p"] = Place("p", 5, moment)
    piece.events = [event("x")]
    piece.events[0].place = Place("p", 2)
    together.add(piece, ["p"])
    result = together.result()
    assert result.ends["p"] == Place("p", 15, moment)
    assert result.events[0].place.line == 12
    assert [(one.lines, one.bytes) for one in result.inputs] == [(15, 3)]


@pytest.fixture
def small_limits(monkeypatch: pytest.MonkeyPatch) -> None:
    """As if the test's small files were large."""
    monkeypatch.setattr(plan, "CAREFUL_BYTES", 0)
    monkeypatch.setattr(plan, "_PIECE_BYTES", 400)
    monkeypatch.setattr(plan, "_FIRST_PIECE_LESS", 100)
    monkeypatch.setattr(plan, "_BATCH_BYTES", 500)
    monkeypatch.setattr(read_logs, "_ALONE_BYTES", 0)


@pytest.mark.usefixtures("small_limits")
def test_several_processes_give_what_one_gives(tmp_path: Path) -> None:
    (tmp_path / "a.log").write_bytes(TEXT)
    (tmp_path / "b.log.gz").write_bytes(gzip.compress(TEXT.replace(b"n3:71", b"n5:73")))
    (tmp_path / "c.log").write_bytes(TEXT.replace(b"n3:71", b"n6:74"))
    for name in "defg":
        (tmp_path / name).write_bytes(LINE)
    (tmp_path / "h").symlink_to("nowhere")
    paths = [str(tmp_path)]
    alone = read_logs.read_logs(paths, jobs=1)
    assert len(alone.inputs) == 8
    assert read_logs.read_logs(paths, jobs=3) == alone


LINE = b"n8:75:76 [0] NCCL WARN Cuda failure 2 'out of memory'\n"


@pytest.mark.usefixtures("small_limits")
def test_a_process_that_dies_loses_only_what_it_was_reading(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in "abc":
        (tmp_path / name).write_bytes(LINE * 10)
    hired = []
    start = workers.Crew._hire

    def hire(crew: workers.Crew) -> None:
        start(crew)
        process, number = list(crew._busy.values())[-1]
        if not hired:
            process.kill()
        hired.append(number)

    monkeypatch.setattr(workers.Crew, "_hire", hire)
    evidence = read_logs.read_logs([str(tmp_path)], jobs=2)
    lost, *others = evidence.inputs
    assert lost.truncated
    assert lost.error == "the process that read it ended with -9; was there enough memory?"
    assert [(one.error, one.lines) for one in others] == [(None, 10), (None, 10)]


@pytest.mark.usefixtures("small_limits")
def test_an_interrupt_leaves_no_process_behind(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in "abcd":
        (tmp_path / name).write_bytes(LINE * 20)
    crews = []

    def listen(crew: workers.Crew, _connection: object) -> None:
        crews.extend(process for process, _ in crew._busy.values())
        raise KeyboardInterrupt

    monkeypatch.setattr(workers.Crew, "_listen", listen)
    with pytest.raises(KeyboardInterrupt):
        read_logs.read_logs([str(tmp_path)], jobs=3)
    assert len(crews) == 2
    assert not any(process.is_alive() for process in crews)
