import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ncdiag.model.text import visible


@pytest.mark.parametrize("text", ["", "gpu001", "机柜 7", "400 Gbit/s × 0.98", "naïve"])  # noqa: RUF001 - any script is text
def test_ordinary_text_stays_as_it_is(text: str) -> None:
    assert visible(text) == text


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("\x1b[31mred", r"\x1b[31mred"),
        ("a\nb\rc\td", r"a\nb\rc\td"),
        ("\x00\x7f\x9b", r"\x00\x7f\x9b"),
        ("gpu\u202e100", r"gpu\u202e100"),
        ("zero\u200bwidth", r"zero\u200bwidth"),
        ("\u2028line", r"\u2028line"),
        ("half\udc80", r"half\udc80"),
    ],
)
def test_what_hides_or_reorders_text_is_written_as_an_escape(text: str, shown: str) -> None:
    assert visible(text) == shown


@given(st.text(st.characters()))
def test_any_text_comes_out_as_one_printable_line(text: str) -> None:
    shown = visible(text)
    assert shown.encode().decode() == shown
    assert not any(unicodedata.category(char) in {"Cc", "Cf", "Cs", "Zl", "Zp"} for char in shown)
