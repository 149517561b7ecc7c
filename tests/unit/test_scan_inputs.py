import bz2
import errno
import gzip
import io
import lzma
import os
import socket
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ncdiag.logs import decompress, plan
from ncdiag.logs.read_logs import read_logs
from ncdiag.logs.sources import sources
from ncdiag.model.log import LogEvidence

LINE = b"node7:4100:4123 [1] NCCL WARN Cuda failure 'an illegal memory access was encountered'\n"
LOG = b"node7:4100:4123 [1] NCCL INFO Using network IB\n" * 20 + LINE + b"the end\n"


def zst(data: bytes) -> bytes:
    return pytest.importorskip("zstandard").ZstdCompressor().compress(data)


PACKERS: list[Callable[[bytes], bytes]] = [gzip.compress, bz2.compress, lzma.compress, zst]


@pytest.fixture
def log(tmp_path: Path) -> Path:
    path = tmp_path / "some.log"
    path.write_bytes(LOG)
    return path


def said(evidence: LogEvidence) -> list[tuple[int, str]]:
    return [(event.place.line, event.class_name) for event in evidence.events]


def only(evidence: LogEvidence) -> tuple[int, int, bool, str | None]:
    (one,) = evidence.inputs
    return one.bytes, one.lines, one.truncated, one.error


def test_a_plain_file(log: Path) -> None:
    evidence = read_logs([str(log)])
    assert said(evidence) == [(21, "cuda_error")]
    assert only(evidence) == (len(LOG), 22, False, None)
    assert evidence.inputs[0].path == str(log)
    assert evidence.ends[str(log)].line == 22
    assert list(evidence.hosts) == ["node7"]


@pytest.mark.parametrize("pack", PACKERS)
def test_packed_files_are_told_by_content(tmp_path: Path, pack: Callable[[bytes], bytes]) -> None:
    path = tmp_path / "misnamed.txt"
    path.write_bytes(pack(LOG))
    evidence = read_logs([str(path)])
    assert said(evidence) == [(21, "cuda_error")]
    assert only(evidence) == (len(LOG), 22, False, None)


@pytest.mark.parametrize("pack", PACKERS[:3])
def test_members_joined_with_cat_are_one_input(
    tmp_path: Path, pack: Callable[[bytes], bytes]
) -> None:
    path = tmp_path / "joined"
    path.write_bytes(pack(LOG[:100]) + pack(LOG[100:]) + b"\0" * 512)
    assert only(read_logs([str(path)])) == (len(LOG), 22, False, None)


@pytest.mark.parametrize("pack", PACKERS[:3])
@pytest.mark.parametrize("without_isal", [False, True])
def test_what_came_out_of_a_damaged_file_is_kept(
    tmp_path: Path,
    pack: Callable[[bytes], bytes],
    without_isal: bool,  # noqa: FBT001
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    if without_isal:
        monkeypatch.setattr(decompress, "igzip_lib", None)
    noise = os.urandom(300_000).hex().encode()
    packed = pack(LOG + noise)
    path = tmp_path / "cut"
    path.write_bytes(packed[: len(packed) // 2])
    size, _, truncated, error = only(read_logs([str(path)]))
    assert truncated
    assert error is not None
    assert "too early" in error or "damaged" in error
    assert size > 0 or pack is bz2.compress
    path.write_bytes(packed[:200] + b"\xaa" * 100 + packed[300:])
    assert only(read_logs([str(path)]))[2]


@pytest.mark.parametrize("encoding", ["utf-16", "utf-16-be", "utf-8-sig"])
@pytest.mark.parametrize("pack", [bytes, gzip.compress])
def test_encodings_with_a_mark(
    tmp_path: Path, encoding: str, pack: Callable[[bytes], bytes]
) -> None:
    path = tmp_path / "windows.log"
    mark = "\ufeff" if encoding == "utf-16-be" else ""
    path.write_bytes(pack((mark + LOG.decode()).replace("\n", "\r\n").encode(encoding)))
    assert said(read_logs([str(path)])) == [(21, "cuda_error")]


@pytest.mark.parametrize("pack", PACKERS)
def test_a_bomb_is_read_up_to_the_limit(tmp_path: Path, pack: Callable[[bytes], bytes]) -> None:
    path = tmp_path / "bomb"
    path.write_bytes(pack(LOG + b"\0" * (64 << 20)))
    evidence = read_logs([str(path)], max_bytes=5 << 20)
    size, _, truncated, error = only(evidence)
    assert size == 5 << 20
    assert truncated
    assert error == "only the first 5242880 bytes were read (see --max-bytes)"
    assert said(evidence) == [(21, "cuda_error")]


def test_a_limit_that_is_not_exceeded_says_nothing(log: Path) -> None:
    assert only(read_logs([str(log)], max_bytes=len(LOG))) == (len(LOG), 22, False, None)


@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    head=st.sampled_from(
        [b"", b"\x1f\x8b\x08", b"BZh9", b"\xfd7zXZ\0", b"\x28\xb5\x2f\xfd", b"\xff\xfe"]
    ),
    rest=st.binary(max_size=300),
)
def test_any_bytes_are_read_or_say_why_not(tmp_path: Path, head: bytes, rest: bytes) -> None:
    path = tmp_path / "any"
    path.write_bytes(head + rest)
    (one,) = read_logs([str(path)]).inputs
    assert one.error is None or one.truncated


def test_folders_are_read_with_all_below_them(tmp_path: Path, log: Path) -> None:
    deep = tmp_path / "rank1" / "attempt" / "0"
    deep.mkdir(parents=True)
    (deep / "stderr.log").write_bytes(LOG)
    (tmp_path / "rank1" / "loop").symlink_to(tmp_path)
    (tmp_path / "again.log").symlink_to(log)
    os.mkfifo(tmp_path / "pipe")
    named = [one.name for one in sources([str(tmp_path)])]
    assert named == [str(tmp_path / "again.log"), str(deep / "stderr.log")]
    assert len(sources([str(log), str(tmp_path), str(log)])) == 2


def test_patterns_match_as_in_a_shell(tmp_path: Path, log: Path) -> None:
    (tmp_path / "b[1].log").write_bytes(LOG)
    assert [one.name for one in sources([str(tmp_path / "*.log")])] == [
        str(tmp_path / "b[1].log"),
        str(log),
    ]
    assert [one.error for one in sources([str(tmp_path / "b[1].log")])] == [None]
    (none,) = sources([str(tmp_path / "*.txt")])
    assert none.error == "matches no file"


def test_what_is_no_log_is_refused_and_the_rest_read(tmp_path: Path, log: Path) -> None:
    path = tmp_path / "socket"
    with socket.socket(socket.AF_UNIX) as bound:
        bound.bind(str(path))
        evidence = read_logs(
            ["/dev/null", str(path), str(tmp_path / "gone"), "bad\0name", str(log)]
        )
    errors = [one.error for one in evidence.inputs]
    assert errors[:3] == [
        "is a device, not a log",
        "is a socket, not a log",
        "No such file or directory",
    ]
    assert errors[3] is not None
    assert errors[4] is None
    assert said(evidence) == [(21, "cuda_error")]


def test_an_unreadable_file_beside_good_ones(
    tmp_path: Path, log: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    locked = tmp_path / "locked.log"
    locked.write_bytes(LOG)
    locked.chmod(0)
    really_open = os.open

    def refused(path: str, *arguments: int) -> int:
        """What the system does to everybody but root."""
        if path == str(locked):
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), path)
        return really_open(path, *arguments)

    monkeypatch.setattr(os, "open", refused)
    errors = [one.error for one in read_logs([str(locked), str(log)]).inputs]
    assert errors == ["Permission denied", None]


def test_a_name_that_is_no_text(tmp_path: Path) -> None:
    path = os.fsencode(tmp_path) + b"/\xff\xfe.log"
    Path(os.fsdecode(path)).write_bytes(LOG)
    (one,) = read_logs([str(tmp_path)]).inputs
    one.path.encode()
    assert one.lines == 22


def test_standard_input_and_named_pipes(
    tmp_path: Path, log: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    end = os.open(pipe, os.O_RDWR)
    os.write(end, LOG)
    reading = os.open(pipe, os.O_RDONLY)
    os.close(end)
    monkeypatch.setattr(plan, "open_stream", lambda _path: os.dup(reading))
    evidence = read_logs(["-", str(log)])
    os.close(reading)
    assert [(one.path, one.lines) for one in evidence.inputs] == [("-", 22), (str(log), 22)]
    assert [(event.place.path, event.count) for event in evidence.events] == [("-", 2)]


def test_a_file_that_vanishes_after_it_was_listed(
    log: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def listed(_paths: object) -> object:
        found = sources([str(log)])
        log.unlink()
        return found

    monkeypatch.setattr("ncdiag.logs.read_logs.sources", listed)
    assert only(read_logs([str(log)])) == (0, 0, False, "No such file or directory")


@pytest.mark.parametrize(("change", "lines"), [(LOG, 22), (b"", 22)])
def test_a_file_that_grows_is_read_to_where_it_ended(
    log: Path, monkeypatch: pytest.MonkeyPatch, change: bytes, lines: int
) -> None:
    def listed(_paths: object) -> object:
        found = sources([str(log)])
        log.write_bytes(LOG + change)
        return found

    monkeypatch.setattr("ncdiag.logs.read_logs.sources", listed)
    assert only(read_logs([str(log)]))[:2] == (len(LOG), lines)


def test_a_file_that_shrinks_simply_ends(log: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def listed(_paths: object) -> object:
        found = sources([str(log)])
        log.write_bytes(LOG[:500])
        return found

    monkeypatch.setattr("ncdiag.logs.read_logs.sources", listed)
    assert only(read_logs([str(log)]))[0] == 500


def test_hundreds_of_small_files_in_one_pass(tmp_path: Path) -> None:
    for number in range(400):
        line = LINE.replace(b"4100", b"%d" % (5000 + number))
        (tmp_path / f"rank{number:04d}.log").write_bytes(line)
    told: list[tuple[int, int]] = []
    evidence = read_logs([str(tmp_path)], progress=lambda done, total: told.append((done, total)))
    assert len(evidence.inputs) == 400
    assert [one.path for one in evidence.inputs] == sorted(one.path for one in evidence.inputs)
    assert sum(event.count for event in evidence.events) == 400
    assert told[-1][0] == told[-1][1] == sum(one.bytes for one in evidence.inputs)


def test_a_stream_in_tiny_pieces_unpacks_the_same() -> None:
    class Tiny(io.BytesIO):
        def read(self, size: int | None = -1, /) -> bytes:
            return super().read(min(size or 1, 3))

    for pack in PACKERS:
        packed = pack(LOG)
        make = decompress.inflater(packed[:16])
        assert make is not None
        stream, out, buffer = make(Tiny(packed)), b"", bytearray(7)
        while count := stream.readinto(memoryview(buffer)):
            out += buffer[:count]
        assert out == LOG
