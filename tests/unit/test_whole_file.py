import os
import secrets
import stat
from pathlib import Path

import pytest

from ncdiag.report.write import write_file
from ncdiag.store.whole_file import replacing


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def test_nobody_reads_the_new_file_who_may_not_read_the_old_one(tmp_path: Path) -> None:
    file = tmp_path / "hosts.txt"
    file.write_text("old")
    file.chmod(0o640)
    with replacing(file, file.stat()) as new:
        (unfinished,) = (path for path in tmp_path.iterdir() if path != file)
        assert mode(unfinished) == 0o640
        new.write(b"new")
        assert file.read_text() == "old"
    assert (file.read_text(), mode(file)) == ("new", 0o640)
    assert [*tmp_path.iterdir()] == [file]


def test_a_report_keeps_the_mode_of_the_one_before_and_a_first_one_has_the_usual_one(
    tmp_path: Path,
) -> None:
    file = tmp_path / "report.json"
    before = os.umask(0o027)
    try:
        write_file(file, "first")
        assert mode(file) == 0o640
        file.chmod(0o600)
        write_file(file, "second")
    finally:
        os.umask(before)
    assert (file.read_text(), mode(file)) == ("second", 0o600)


def test_a_link_that_somebody_laid_there_is_not_written_into(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(secrets, "token_hex", lambda _: "guessed")
    target, file = tmp_path / "target", tmp_path / "report.json"
    target.write_text("theirs")
    (tmp_path / f".report.json.{os.getpid()}-guessed.tmp").symlink_to(target)
    with pytest.raises(FileExistsError), replacing(file, None) as new:
        new.write(b"ours")
    assert (target.read_text(), file.exists()) == ("theirs", False)


def test_what_is_raised_meanwhile_leaves_the_old_file_and_nothing_else(tmp_path: Path) -> None:
    file = tmp_path / "hosts.txt"
    file.write_text("old")

    def interrupted() -> None:
        with replacing(file, file.stat()) as new:
            new.write(b"half")
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        interrupted()
    assert file.read_text() == "old"
    assert [*tmp_path.iterdir()] == [file]
