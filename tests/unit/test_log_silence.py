"""A run that printed at its pace and then nothing until it was stopped."""

from collections.abc import Iterable
from pathlib import Path

import pytest

from ncdiag.diagnose.postmortem import diagnose
from ncdiag.logs.read_input import Job, read_input
from ncdiag.model.log import LogEvidence, Pace
from ncdiag.model.place import Clock, Moment, Place
from ncdiag.read import pace
from ncdiag.read.merge import EvidenceSum

STARTED = (
    "rk3:410:622 [1] NCCL INFO ncclCommInitRank comm 0x7f31d0000b10 rank 1 nranks 2 cudaDev 1 "
    "nvmlDev 1 busId 3b000 commId 0x81c0ffee - Init COMPLETE"
)
LIMIT = "slurmstepd: error: *** JOB 9114 ON rk3 CANCELLED AT {} DUE TO TIME LIMIT ***"


def stepped(*minutes: int) -> list[str]:
    return [
        f"[2031-05-06 {8 + m // 60:02}:{m % 60:02}:10] epoch 0 batch {m} took 1.1" for m in minutes
    ]


def read(path: Path, lines: Iterable[str]) -> LogEvidence:
    path.write_text("".join(f"{line}\n" for line in lines))
    size = path.stat().st_size
    return read_input(Job(str(path), str(path), True, 1 << 30, size))  # noqa: FBT003


def told(path: Path, *lines: str) -> list[tuple[str, str]]:
    return [(f.class_, f.role) for f in diagnose(read(path, [STARTED, *lines]), {}).findings]


HANG = [("hang_mid_run", "root"), ("job_time_limit", "consequence")]


def test_a_long_silence_before_the_limit_is_a_hang(tmp_path: Path) -> None:
    steps = stepped(0, 2, 4, 6, 8, 10)
    assert told(tmp_path / "log", *steps, LIMIT.format("2031-05-06T11:52:40")) == HANG


def test_the_hang_is_of_low_confidence_and_shows_the_last_line(tmp_path: Path) -> None:
    end = LIMIT.format("2031-05-06T11:52:40")
    answer = diagnose(read(tmp_path / "log", [STARTED, *stepped(0, 2, 4, 6), end]), {})
    assert answer.findings[0].confidence <= 0.7
    assert answer.findings[0].evidence[0].line == 5


@pytest.mark.parametrize(
    ("minutes", "end"),
    [
        pytest.param((0, 2, 4, 6, 8), "2031-05-06T08:10:00", id="at its pace"),
        pytest.param((0, 30, 60, 90), "2031-05-06T12:00:00", id="it always is slow"),
        pytest.param((0, 2), "2031-05-06T12:41:00", id="too few lines for a pace"),
        pytest.param((0, 2, 4, 6, 8), "2031-05-06T17:08:50", id="a clock of another zone"),
        pytest.param((0, 2, 4, 6, 8), "someday", id="no time"),
    ],
)
def test_a_limit_alone_is_no_hang(tmp_path: Path, minutes: tuple[int, ...], end: str) -> None:
    classes = told(tmp_path / "log", *stepped(*minutes), LIMIT.format(end))
    assert classes == [("job_time_limit", "root")]


def test_a_signal_after_a_silence_ends_a_hang(tmp_path: Path) -> None:
    lines = [f"[09:{m:02}:00] it {m}" for m in range(5)]
    lines += ["[11:50:31] mpirun: Forwarding signal 15 to job"]
    found = told(tmp_path / "log", *lines)
    assert found[0] == ("hang_mid_run", "root")
    assert ("terminated_by_launcher", "root") not in found


def test_another_input_that_goes_on_shows_that_nothing_hung(tmp_path: Path) -> None:
    both = EvidenceSum()
    end = LIMIT.format("2031-05-06T11:52:40")
    both.add(read(tmp_path / "a", [STARTED, *stepped(0, 2, 4, 6), end]))
    both.add(read(tmp_path / "b", stepped(0, 50, 100, 150, 200)))
    assert [f.class_ for f in diagnose(both.result(), {}).findings] == ["job_time_limit"]


def place(line: int, seconds: float, clock: Clock = Clock.WALL) -> Place:
    return Place("log", line, Moment(str(seconds), seconds, clock))


def paced(*seconds: float) -> Pace:
    found = Pace(first=place(1, seconds[0]), last=place(1, seconds[0]))
    for line, second in enumerate(seconds[1:], 2):
        pace.step(found, place(line, second))
    return found


def test_only_the_longest_pauses_are_kept() -> None:
    found = paced(*(n * n for n in range(30)))
    assert found.lines == 30
    assert [p.seconds for p in found.pauses] == [57, 55, 53, 51, 49, 47, 45, 43]
    assert [p.lines for p in found.pauses][:2] == [29, 28]


def test_clocks_that_differ_or_go_back_make_no_pause() -> None:
    found = paced(100, 40)
    pace.step(found, place(3, 9_000, Clock.UPTIME))
    assert [p.seconds for p in found.pauses] == [0, 0]


def test_midnight_is_no_silence() -> None:
    found = Pace(first=place(1, 86_390, Clock.DAY), last=place(1, 86_390, Clock.DAY))
    pace.step(found, place(2, 20, Clock.DAY))
    assert found.pauses[0].seconds == 30


@pytest.mark.parametrize("cut", range(1, 8))
def test_pieces_have_the_pace_of_the_whole(tmp_path: Path, cut: int) -> None:
    lines = [STARTED, *stepped(0, 2, 4, 6, 90, 91), LIMIT.format("2031-05-06T11:52:40")]
    whole = read(tmp_path / "log", lines)
    text = (tmp_path / "log").read_bytes()
    at = len(b"".join(text.splitlines(keepends=True)[:cut]))
    path = str(tmp_path / "log")
    pieces = EvidenceSum()
    for start, stop in ((0, at), (at, len(text))):
        job = Job(path, path, True, 1 << 30, len(text), start, stop)  # noqa: FBT003
        pieces.add(read_input(job), [path] if start else [])
    assert pieces.result().paces == whole.paces
