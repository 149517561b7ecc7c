import io

import pytest

from ncdiag.cli import console
from ncdiag.cli.trimmed import TrimmedConsole
from ncdiag.report.labelled import say, say_whole

WORDS = "slow while other pairs were measured, and never measured alone, so nobody is accused " * 2


def test_what_people_read_wraps_beside_its_label_also_in_a_pipe(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    say(console.results(), "note", WORDS)
    first, *others = capsys.readouterr().out.splitlines()
    assert first.startswith("note        slow while")
    assert others
    assert all(line.startswith(" " * 12) and line[12] != " " for line in others)
    assert [line for line in (first, *others) if len(line) > 80 or line.endswith(" ")] == []


def test_what_is_copied_stays_on_one_line(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    hosts = ",".join(f"gpu{number:03}" for number in range(0, 90, 2))
    say_whole(console.results(), "isolate", hosts)
    assert capsys.readouterr().out == f"isolate     {hosts}\n"


def test_a_terminal_gets_tables_as_they_are() -> None:
    def shown(*, terminal: bool) -> str:
        out = io.StringIO()
        to = TrimmedConsole(file=out, force_terminal=terminal, color_system=None, width=20)
        to.print("a b ", end="")
        to.print("c  \n d  ")
        return out.getvalue()

    assert shown(terminal=True) == "a b c  \n d  \n"
    assert shown(terminal=False) == "a b c\n d\n"


def test_a_quiet_console_prints_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    console.messages(quiet=True).print("a  ")
    assert capsys.readouterr() == ("", "")


def test_a_capture_gets_what_is_printed_within_it() -> None:
    to = TrimmedConsole(file=io.StringIO(), width=20)
    with to.capture() as captured:
        to.print("a")
    assert captured.get() == "a\n"
