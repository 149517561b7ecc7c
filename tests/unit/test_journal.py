"""The journal: append-only, told line by line, forgiving about its very end only."""

import errno
import os
from pathlib import Path

import pytest

from ncdiag.measure.engines.base import Timing
from ncdiag.measure.journal import (
    JOURNAL_NAME,
    HostState,
    Journal,
    Line,
    Plan,
    RunEnd,
    drop_torn_line,
    read_journal,
)
from ncdiag.model.errors import UndecidedError, UsageError
from ncdiag.model.host import Host, HostFacts, Nic, NicKind
from ncdiag.model.measurement import Measurement, Purpose

PLAN = Plan(
    started="2026-01-02T03:04:05Z",
    hosts=(
        Host(name="a", address="10.0.0.1", nics=("eth0",), rate_gbit_per_s=0.5),
        Host(name="b", address="10.0.0.2"),
    ),
    mode="full",
    engine="torch",
    launcher="ssh",
    seed=3,
    faulty_below=0.8,
    timing=Timing(),
)
RESULT = Measurement(
    source="a", target="b", rail=0, round=1, purpose=Purpose.QUIET, engine="torch", bytes=7
)
NIC = Nic(name="eth0", kind=NicKind.ETHERNET, address="10.0.0.1")
LINES: list[Line] = [
    PLAN,
    HostState(name="a", facts=HostFacts(hostname="a", nics=(NIC,), missing_nics={"x": "gone"})),
    HostState(name="b", unreachable="refused"),
    RESULT,
    RunEnd(seconds=1.5, interrupted=True),
]


def write(directory: Path, *, tail: bytes = b"") -> Path:
    with Journal(directory) as journal:
        journal.append(LINES)
        journal.sync()
    path = directory / JOURNAL_NAME
    with path.open("ab") as file:
        file.write(tail)
    return path


def test_lines_come_back_as_they_were_written(tmp_path: Path) -> None:
    write(tmp_path)

    assert read_journal(tmp_path) == LINES


def test_a_second_journal_on_the_same_directory_appends(tmp_path: Path) -> None:
    write(tmp_path)
    with Journal(tmp_path) as journal:
        journal.append([RESULT])

    assert read_journal(tmp_path) == [*LINES, RESULT]


def test_a_torn_last_line_is_passed_over_and_can_be_cut_off(tmp_path: Path) -> None:
    path = write(tmp_path, tail=b'{"kind":"direction","sour')
    assert read_journal(tmp_path) == LINES

    drop_torn_line(tmp_path)

    assert path.read_bytes().endswith(b"}\n")
    assert read_journal(tmp_path) == LINES


def test_a_torn_line_longer_than_the_search_block_is_cut_off(tmp_path: Path) -> None:
    path = write(tmp_path)
    whole = path.read_bytes()
    path.write_bytes(whole + b"x" * 200_000)

    drop_torn_line(tmp_path)

    assert path.read_bytes() == whole


def test_a_whole_journal_is_left_alone(tmp_path: Path) -> None:
    path = write(tmp_path)
    whole = path.read_bytes()

    drop_torn_line(tmp_path)

    assert path.read_bytes() == whole


@pytest.mark.parametrize(
    "damage",
    [
        b"not json\n",
        b'{"kind":"surprise"}\n',
        b'{"kind":"direction","source":"a"}\n',
        b'{"kind":"end","seconds":"soon"}\n',
        b'{"kind":"host","name":"\xff"}\n',
        b"\x00\x00\n",
        b"[1]\n",
    ],
)
def test_a_damaged_line_is_named_by_its_number(tmp_path: Path, damage: bytes) -> None:
    write(tmp_path, tail=damage)

    with pytest.raises(UsageError, match=r"journal\.jsonl, line 6 is damaged"):
        read_journal(tmp_path)


def test_a_directory_without_a_journal_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="no sweep to read"):
        read_journal(tmp_path)


def test_a_journal_that_begins_with_something_else_is_refused(tmp_path: Path) -> None:
    with Journal(tmp_path) as journal:
        journal.append([RESULT])

    with pytest.raises(UsageError, match="not begin with the plan"):
        read_journal(tmp_path)


def test_a_newer_schema_is_refused(tmp_path: Path) -> None:
    path = write(tmp_path)
    path.write_bytes(path.read_bytes().replace(b"ncdiag/journal/1", b"ncdiag/journal/9"))

    with pytest.raises(UsageError, match="ncdiag/journal/9"):
        read_journal(tmp_path)


def test_a_full_disk_is_one_clear_line() -> None:
    if not os.access("/dev/full", os.W_OK):
        pytest.skip("/dev/full is missing")
    directory = Path("/dev")
    journal = Journal.__new__(Journal)
    journal._path = directory / "full"
    journal._file = os.open("/dev/full", os.O_WRONLY)
    try:
        with pytest.raises(UndecidedError, match="No space left on device"):
            journal.append([RESULT])
    finally:
        journal.close()


def test_a_directory_that_cannot_be_written_is_one_clear_line(tmp_path: Path) -> None:
    with pytest.raises(UndecidedError, match="No such file or directory"):
        Journal(tmp_path / "missing")


def changed(directory: Path, old: bytes, new: bytes) -> None:
    path = write(directory)
    before = path.read_bytes()
    path.write_bytes(before.replace(old, new))
    assert path.read_bytes() != before, f"{old!r} is not in the journal"


@pytest.mark.parametrize(
    ("old", "new", "complaint"),
    [
        (b'"rail":0', b'"rail":70000', "line 4 is damaged: rail must be 0 to 255"),
        (b'"rail":0', b'"rail":-1', "rail must be"),
        (b'"rail":0', b'"rail":1000000000000000000000000', "rail must be"),
        (b'"idle":null', b'"idle":1e308', "idle must be 0 to 1"),
        (b'"measured_gbit_per_s":null', b'"measured_gbit_per_s":-1.0', "measured_gbit_per_s must"),
        (b'"measured_gbit_per_s":null', b'"measured_gbit_per_s":1e308', "measured_gbit_per_s must"),
        (b'"seconds":1.5', b'"seconds":1e308', "line 5 is damaged: seconds must be"),
        (b'"rate_gbit_per_s":0.5', b'"rate_gbit_per_s":0', "line 1 is damaged: rate_gbit_per_s"),
        (b'"measure_s":0.4', b'"measure_s":-1', "measure_s must be"),
        (b'"faulty_below":0.8', b'"faulty_below":0', "faulty_below must be"),
        (b'"mtu":null', b'"mtu":-1', "line 2 is damaged: mtu must be"),
        (b'"mode":"full"', b'"mode":"\\u001b[31m"', "unknown mode"),
        (b'"name":"b"', b'"name":"a"', "a host stands in the plan twice"),
        (b'"name":"b"', b'"name":""', "one without a name"),
        (b'"source":"a"', b'"source":"zz"', "line 4 is damaged: 'zz' is not in the plan"),
        (b'"source":"a"', b'"source":"b"', "'b' cannot be measured against itself"),
        (b'"name":"eth0"', b'"name":"%b"' % (b"e" * 300), "name is longer than 255"),
        (b'"facts":null', b'"facts":' + b"[" * 200_000, "is damaged"),
        (b'"facts":null', b'"x":' + b"[" * 9999 + b"]" * 9999, "line 3 is damaged: maximum rec"),
    ],
)  # fmt: skip
def test_what_no_sweep_writes_is_damage(
    tmp_path: Path, old: bytes, new: bytes, complaint: str
) -> None:
    changed(tmp_path, old, new)

    with pytest.raises(UsageError, match="is damaged") as raised:
        read_journal(tmp_path)

    assert complaint in str(raised.value)
    assert len(str(raised.value)) < 500


@pytest.mark.parametrize("name", [b"<script>alert(1)</script>", b"h\\u001b[31m", b"\\u202eh"])
def test_a_host_may_have_any_name(tmp_path: Path, name: bytes) -> None:
    changed(tmp_path, b'"a"', b'"%b"' % name)

    assert len(read_journal(tmp_path)) == len(LINES)


def test_a_second_plan_is_damage(tmp_path: Path) -> None:
    path = write(tmp_path)
    path.write_bytes(path.read_bytes() * 2)

    with pytest.raises(UsageError, match="line 6 is damaged: a second plan"):
        read_journal(tmp_path)


def test_a_complaint_does_not_repeat_a_long_line(tmp_path: Path) -> None:
    write(tmp_path, tail=b'{"kind":"%b"}\n' % (b"k" * 1_000_000))

    with pytest.raises(UsageError, match="unknown kind") as raised:
        read_journal(tmp_path)

    assert len(str(raised.value)) < 500


def test_a_pipe_and_a_device_are_no_journal(tmp_path: Path) -> None:
    path = tmp_path / JOURNAL_NAME
    os.mkfifo(path)
    with pytest.raises(UsageError, match="is no file"):
        read_journal(tmp_path)
    path.unlink()
    path.symlink_to("/dev/zero")
    with pytest.raises(UsageError, match="is no file"):
        read_journal(tmp_path)


def test_lines_that_do_not_fit_on_the_disk_leave_nothing_behind(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(tmp_path)
    real_write = os.write

    def half(file: int, data: bytes) -> int:
        if data.endswith(b"\n") and len(data) > 10:
            return real_write(file, data[: len(data) // 2]) and len(data) - 5
        raise OSError(errno.ENOSPC, "No space left on device")

    with Journal(tmp_path) as journal:
        monkeypatch.setattr(os, "write", half)
        with pytest.raises(UndecidedError, match="No space left on device"):
            journal.append([RESULT])
        monkeypatch.undo()
        journal.append([RunEnd(seconds=2)])

    assert read_journal(tmp_path) == [*LINES, RunEnd(seconds=2)]


def test_damage_is_kept_and_a_journal_from_before_it_was_told_has_none(tmp_path: Path) -> None:
    damaged = Measurement(
        source="a",
        target="b",
        rail=0,
        round=1,
        purpose=Purpose.ROUND,
        engine="torch",
        error="b: payload arrived damaged",
        damaged=True,
    )
    with Journal(tmp_path) as journal:
        journal.append([PLAN, damaged])
        journal.sync()
    assert read_journal(tmp_path)[1] == damaged
    path = tmp_path / JOURNAL_NAME
    text = path.read_text()
    older = text.replace(',"damaged":true', "")
    assert older != text
    path.write_text(older)
    line = read_journal(tmp_path)[1]
    assert isinstance(line, Measurement)
    assert not line.damaged
