import errno
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from ncdiag.model.errors import UndecidedError
from ncdiag.model.verdict import SweepReport
from ncdiag.report.write import write_all

MakeReport = Callable[..., SweepReport]

FILES = {
    "report.json",
    "links.csv",
    "summary.txt",
    "report.html",
    "heatmap.png",
    "hosts.good.txt",
    "hosts.isolate.txt",
    "metrics.prom",
}


def names_in(directory: Path) -> set[str]:
    return {path.name for path in directory.iterdir()}


def test_every_file_is_written_and_nothing_else(faulty_report: SweepReport, tmp_path: Path) -> None:
    directory = tmp_path / "new" / "report"
    write_all(faulty_report, directory)
    assert names_in(directory) == FILES
    assert (directory / "hosts.isolate.txt").read_text() == "h3\n"
    assert (directory / "hosts.good.txt").read_text() == "h1\nh2\nh4\nh5\nh6\nh7\n"


def test_the_list_to_isolate_exists_when_it_is_empty(
    make_report: MakeReport, tmp_path: Path
) -> None:
    write_all(make_report(2), tmp_path)
    assert (tmp_path / "hosts.isolate.txt").read_bytes() == b""


def test_what_is_there_already_is_replaced_or_left_alone(
    make_report: MakeReport, faulty_report: SweepReport, tmp_path: Path
) -> None:
    (tmp_path / "journal.jsonl").write_text("kept\n")
    write_all(faulty_report, tmp_path)
    write_all(make_report(2), tmp_path)
    assert names_in(tmp_path) == FILES | {"journal.jsonl"}
    assert "HEALTHY" in (tmp_path / "summary.txt").read_text()


def test_control_characters_are_visible_in_every_text_file(
    make_report: MakeReport, tmp_path: Path
) -> None:
    name, text = "h\x1b[31m1", "a\x1b]0;x\x07\nb\u202e\udcff"
    report = make_report(
        [name, "h2", "h3"],
        slow_senders={name: 0.2},
        unreachable={"h3": text},
        errors={("h2", name): text},
        notes=[text],
    )
    plan = replace(report.plan, mode=text, engine=text, launcher=text)
    links = tuple(replace(link, engine=text) for link in report.diagnosis.links)
    report = replace(
        report, started=text, plan=plan, diagnosis=replace(report.diagnosis, links=links)
    )
    write_all(report, tmp_path)
    for file in FILES - {"heatmap.png"}:
        content = (tmp_path / file).read_text(encoding="utf-8")
        assert not set(content) & {"\x1b", "\x07", "\u202e"}, file
    assert r"a\x1b]0;x\x07\nb\u202e\udcff" in (tmp_path / "summary.txt").read_text()


def test_a_full_disk_is_one_line_and_leaves_no_half_file(
    make_report: MakeReport, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_all(make_report(2), tmp_path)
    before = (tmp_path / "report.json").read_bytes()

    def full(_self: Path, target: Path) -> Path:
        if target.name == "report.json":
            raise OSError(errno.ENOSPC, "No space left on device")
        return target

    monkeypatch.setattr(Path, "replace", full)
    with pytest.raises(
        UndecidedError, match=r"^cannot write .*report\.json: No space left on device"
    ):
        write_all(make_report(3), tmp_path)
    assert (tmp_path / "report.json").read_bytes() == before
    assert not [name for name in names_in(tmp_path) if "report.json." in name]


def test_a_directory_that_is_a_file_is_one_line(make_report: MakeReport, tmp_path: Path) -> None:
    (tmp_path / "report").write_text("")
    with pytest.raises(UndecidedError, match=r"cannot write .*report"):
        write_all(make_report(2), tmp_path / "report")


def test_the_terminal_needs_none_of_the_heavy_libraries() -> None:
    code = (
        "import sys, ncdiag.report.terminal, ncdiag.report;"
        "print(*sorted({'matplotlib', 'pandas', 'numpy', 'jinja2', 'torch'} & set(sys.modules)))"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout.strip() == ""
