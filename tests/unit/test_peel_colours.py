"""What terminals leave in a line goes, whole or maimed; words in brackets stay."""

import pytest

from ncdiag.read.peel.clean import without_colours


@pytest.mark.parametrize(
    ("text", "left"),
    [
        ("\x1b[32mINFO\x1b[m: up", "INFO: up"),
        ("[32mINFO[m: up", "INFO: up"),
        ("^[[1;31mup^[[0m", "up"),
        ("[m[rank0]: up", "[rank0]: up"),
        ("[main] up", "[main] up"),
        ("[master-0.lan]: up", "[master-0.lan]: up"),
        ("[missing ranks: 5, 6]", "[missing ranks: 5, 6]"),
        ("[0m] up", "[0m] up"),
    ],
)
def test_colours_and_words_in_brackets(text: str, left: str) -> None:
    assert without_colours(text) == left
