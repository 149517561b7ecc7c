import re

import pytest

from ncdiag.cli import main
from ncdiag.expect.traffic import Collective


def help_of(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, *command: str
) -> str:
    monkeypatch.setenv("COLUMNS", "80")
    assert main.run([*command, "--help"]) == 0
    return capsys.readouterr().out


@pytest.mark.parametrize("command", [*main.COMMANDS, "history bench", "expect collective"])
def test_neither_flags_nor_arguments_have_a_type(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, command: str
) -> None:
    shown = help_of(capsys, monkeypatch, *command.split())
    assert not re.search(r"<(bool|list|path|str)", shown)
    assert not re.search(r"<[a-z|_]+ *│", shown)  # choices that are cut within a word


@pytest.mark.parametrize("command", [("bench",), ("expect", "collective")])
def test_choices_stand_in_whole_words(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, command: tuple[str, ...]
) -> None:
    shown = help_of(capsys, monkeypatch, *command)
    for name in Collective:
        assert re.search(rf"\b{name}[,.]", shown), name


def test_a_benchmark_without_a_collective_is_told_the_names(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert main.run(["bench"]) == 2
    assert "missing argument 'COLLECTIVE'" in capsys.readouterr().err
