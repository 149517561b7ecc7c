"""The journal: append-only, told line by line, forgiving about its very end only."""

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
    hosts=(Host(name="a", address="10.0.0.1", nics=("eth0",), rate_gbit_per_s=0.5),),
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

    with pytest.raises(UsageError, match="does not begin with the plan"):
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
