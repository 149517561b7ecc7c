"""Inputs made to break the reading of logs: what can be read of them is read."""

import bz2
import gzip
import lzma
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
import zstandard

from ncdiag.cli import main
from ncdiag.diagnose.postmortem import diagnose
from ncdiag.logs.read_logs import read_logs
from ncdiag.logs.sources import sources
from ncdiag.model.errors import ExitCode
from ncdiag.model.finding import FindingClass
from ncdiag.model.log import Event, LogEvidence, Speaker
from ncdiag.model.nodes import fold
from ncdiag.model.place import Place
from ncdiag.read.nccl_tests.runs import Runs
from ncdiag.read.scan import Scanner
from ncdiag.report.write import write_file

TIMEOUT = (
    b"n1:7:9 [0] NCCL WARN NET/IB : Got completion from peer 192.0.2.7<4567> with status=12 "
    b"opcode=0 len=0 vendor err 129 (Recv)\n"
)
Compress = Callable[[bytes], bytes]

COMPRESSORS: list[Compress] = [gzip.compress, bz2.compress, lzma.compress, zstandard.compress]


def read(path: Path, content: bytes) -> LogEvidence:
    path.write_bytes(content)
    return read_logs([str(path)], jobs=1)


def classes(evidence: LogEvidence) -> list[str]:
    return [str(event.class_name) for event in evidence.events]


@pytest.mark.parametrize("compress", COMPRESSORS)
@pytest.mark.parametrize("rest", [b"no such format", b"\0\0\0\0\0\0\0\0no such format"])
def test_what_follows_compressed_data_costs_nothing_of_it(
    tmp_path: Path, compress: Compress, rest: bytes
) -> None:
    evidence = read(tmp_path / "log", compress(TIMEOUT) + rest)
    assert classes(evidence) == ["ib_completion_error"]
    assert evidence.inputs[0].truncated
    assert evidence.inputs[0].error


@pytest.mark.parametrize("compress", COMPRESSORS)
def test_compressed_data_that_ends_too_early_says_so_at_every_cut(
    tmp_path: Path, compress: Compress
) -> None:
    packed = compress(TIMEOUT)
    for end in range(12, len(packed) - 1, 3):
        (summary,) = read(tmp_path / "log", packed[:end]).inputs
        assert summary.error == "the compressed data ends too early", end


@pytest.mark.parametrize("compress", COMPRESSORS)
def test_zeros_between_members_are_padding(tmp_path: Path, compress: Compress) -> None:
    evidence = read(tmp_path / "log", compress(b"n1\n") + bytes(600) + compress(TIMEOUT) + bytes(9))
    assert classes(evidence) == ["ib_completion_error"]
    assert evidence.inputs[0].error is None


def test_a_wrong_check_sum_costs_nothing_of_the_text(tmp_path: Path) -> None:
    packed = bytearray(gzip.compress(TIMEOUT * 2))
    packed[-6] ^= 0x10
    evidence = read(tmp_path / "log", bytes(packed))
    assert classes(evidence) == ["ib_completion_error"]
    assert "damaged" in (evidence.inputs[0].error or "")


@pytest.mark.parametrize("inner", COMPRESSORS)
@pytest.mark.parametrize("outer", COMPRESSORS)
def test_compressed_twice_is_text_still(tmp_path: Path, inner: Compress, outer: Compress) -> None:
    evidence = read(tmp_path / "log", outer(inner(TIMEOUT)))
    assert classes(evidence) == ["ib_completion_error"]


def test_many_empty_members_come_before_the_text(tmp_path: Path) -> None:
    for compress in COMPRESSORS:
        evidence = read(tmp_path / "log", compress(b"") * 2000 + compress(TIMEOUT))
        assert classes(evidence) == ["ib_completion_error"]


@pytest.mark.parametrize("encoding", ["utf-16", "utf-16-le", "utf-16-be", "utf-32", "utf-32-le"])
def test_a_large_text_of_wide_letters_is_read(tmp_path: Path, encoding: str) -> None:
    text = b"n1:7:9 [0] training\n" * 110_000 + TIMEOUT + b"n1:7:9 [0] training\n" * 3_000
    evidence = read(tmp_path / "log", text.decode().encode(encoding))
    assert classes(evidence) == ["ib_completion_error"]


def test_the_line_behind_the_zeros_of_a_cut_log_is_read(tmp_path: Path) -> None:
    for zeros in (100_000, (4 << 20) - 10, 9 << 20):
        evidence = read(tmp_path / "log", bytes(zeros) + TIMEOUT + b"n1:7:9 [0] x\n" * 400_000)
        assert classes(evidence) == ["ib_completion_error"]


def test_carriage_returns_alone_are_looked_through_like_lines(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    looked: list[bytes] = []
    hits = Scanner.hits

    def noted(self: Scanner, line: bytes) -> tuple[bytes, ...]:
        looked.append(line)
        return hits(self, line)

    monkeypatch.setattr(Scanner, "hits", noted)
    text = b"\r" * (5 << 20) + TIMEOUT.replace(b"\n", b"\r") + b"x\r" * (1 << 20)
    assert classes(read(tmp_path / "log", text)) == ["ib_completion_error"]
    assert len(looked) < 10


@pytest.mark.parametrize("name", ["--all", "-w", "../etc/passwd", "<b>n1</b>", "n1;id", "@all"])
def test_what_no_host_can_be_called_is_isolated_by_no_one(name: str) -> None:
    place = Place("log", 1)
    event = Event(
        class_name=FindingClass.GPU_FELL_OFF_BUS,
        form="f",
        place=place,
        text="t",
        speaker=Speaker(name),
    )
    evidence = LogEvidence(events=[event], hosts={name: place})
    assert not diagnose(evidence, {}).isolate
    event.speaker = Speaker("n1")
    evidence = LogEvidence(events=[event], hosts={"n1": place})
    assert [one.host for one in diagnose(evidence, {}).isolate] == ["n1"]


def test_names_of_endless_numbers_and_of_many_fold() -> None:
    assert fold(["n" + "9" * 5000, "n1", "n2"]) == "n[1-2],n" + "9" * 5000
    many = [f"ip-10-{n % 7}-{n // 250}-{n % 250}.ec2.internal" for n in range(1000)]
    assert "ip-10-0-0-[0,7,14," in fold(many)


def test_patterns_follow_no_links_in_circles(tmp_path: Path) -> None:
    (tmp_path / "a" / "b").mkdir(parents=True)
    (tmp_path / ".hidden").mkdir()
    for folder in (tmp_path, tmp_path / "a", tmp_path / "a" / "b", tmp_path / ".hidden"):
        (folder / "n.log").write_bytes(TIMEOUT)
        for link in "xyz":
            (folder / link).symlink_to(tmp_path)
    expected = [str(tmp_path / name) for name in ("a/b/n.log", "a/n.log", "n.log")]
    for pattern in ("**/*.log", "a/**/n.log", "**/a/**/*.log", "**"):
        found = [one.path for one in sources([f"{tmp_path}/{pattern}"])]
        wanted = expected[:2] if pattern.startswith("a/") or "/a/" in pattern else expected
        assert [path for path in sorted(found) if "hidden" not in path][: len(wanted)] == wanted


def test_what_is_no_plain_file_is_written_into_and_stays(tmp_path: Path) -> None:
    target, link, pipe = tmp_path / "target", tmp_path / "link", tmp_path / "pipe"
    link.symlink_to(target)
    target.write_text("old")
    write_file(link, "new")
    assert link.is_symlink()
    assert target.read_text() == "new"
    os.mkfifo(pipe)
    reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    write_file(pipe, "new")
    assert os.read(reader, 9) == b"new"
    os.close(reader)
    assert pipe.is_fifo()


@pytest.mark.parametrize("option", ["--html", "--isolate-out"])
def test_a_log_is_never_written_over(
    tmp_path: Path, option: str, capsys: pytest.CaptureFixture[str]
) -> None:
    log = tmp_path / "log"
    log.write_bytes(TIMEOUT)
    (tmp_path / "link").symlink_to(log)
    for output in (log, tmp_path / "link"):
        code = main.run(["parse-log", str(log), option, str(output), "--force"])
        assert code == ExitCode.USAGE
        assert "is a log to read; name another file" in capsys.readouterr().err
    assert log.read_bytes() == TIMEOUT


def test_what_prose_quotes_was_said_by_no_host(tmp_path: Path) -> None:
    fault = b"n1:7:9 [0] NCCL WARN NET/IB : mlx5_0:1 Got async event : port error"
    prose = b"If you read `" + fault + b"`, look at the cable.\n"
    evidence = read(tmp_path / "README.md", prose * 3)
    assert not evidence.hosts
    assert not diagnose(evidence, {}).isolate
    assert diagnose(read(tmp_path / "log", (fault + b"\n") * 3), {}).job.hosts == ("n1",)


def test_runs_that_never_end_are_not_all_asked_for_each_row() -> None:
    runs = Runs()
    for number in range(1000):
        runs.begin(("n1",), Place("log", number))
    waiting = runs.open(("n1",))
    assert len(waiting) < 200
    assert waiting[0] is runs.all[-1]
    assert len(runs.all) == 1000


KILLED = """
import os, signal, sys
from ncdiag.logs.read_input import Job
from ncdiag.logs.workers import Crew
job = Job(sys.argv[1], "log", every_line=True, max_bytes=99, size=9)
crew = Crew([(job,), (job,), (job,)], 3, print)
for _ in range(3):
    crew._hire()
os.kill(os.getpid(), signal.SIGKILL)
"""


def test_processes_end_when_the_one_that_started_them_is_killed(tmp_path: Path) -> None:
    (tmp_path / "log").write_bytes(TIMEOUT)
    # The pipe of its output is at its end when nobody is left who holds it.
    command = [sys.executable, "-c", KILLED, str(tmp_path / "log")]
    ran = subprocess.run(command, stdout=subprocess.PIPE, timeout=30, check=False)
    assert ran.returncode == -signal.SIGKILL
