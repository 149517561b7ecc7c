"""Records inside strings, cells of tables, pages' code and what grep prints around a hit."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ncdiag.read.line import Line
from ncdiag.read.peel import Peeler, quotes
from ncdiag.read.plain_lines import PlainLines

SAID = "lx4:90:95 [2] NCCL INFO Using network Made Up"
MORE = "lx4:90:96 [2] made/up.cc:8 NCCL WARN Call 'to' demo failed"


def peel(*raws: str) -> list[Line]:
    peeler = Peeler("a.log")
    lines = [line for n, raw in enumerate(raws, 1) for line in peeler.feed(raw.encode(), n)]
    return [line for line in [*lines, *peeler.finish()] if line.level]


def texts(*raws: str) -> list[tuple[str | None, str]]:
    return [(line.speaker.host, line.text) for line in peel(*raws)]


BOTH = [("lx4", "Using network Made Up"), ("lx4", "Call 'to' demo failed")]


@pytest.mark.parametrize(
    "raw",
    [
        f'stderr = "{SAID}\\n{MORE}\\n"',
        f"b'{SAID}\\n{MORE}\\n'",
        f'{{"out": "{SAID}\\\\n{MORE}\\\\n"',
        f"'{SAID}', '{MORE}'",
        f'"{SAID}","{MORE}"',
    ],
)
def test_strings_of_several_records_come_apart(raw: str) -> None:
    assert texts(raw) == BOTH


@pytest.mark.parametrize(
    "form",
    [
        '"2031-01-02T03:04:05Z","east","{}"',
        'lvl=info at=2031-01-02T03:04:05Z text="{}"',
        "* `{}`",
        "12. `{}`",
        "`{}`",
        '    "{}\\n\\',
        "{}\\n",
        "some/where/rank1.err-{}",
        "some/where/rank1.err-31-{}",
        "some/where/rank1.err:{}",
    ],
)
def test_what_is_around_a_record_is_not_of_it(form: str) -> None:
    assert texts(form.format(SAID), form.format(MORE)) == BOTH


def test_quotes_that_a_record_opened_are_its_own() -> None:
    ends = ["failed 'for good'", 'set to "yes"', "is `demo`", "can't open 'it'", 'an "odd" "one"']
    raws = [f"lx4:90:95 [2] NCCL WARN Demo {end}" for end in ends]
    assert [line.text for line in peel(*raws)] == [f"Demo {end}" for end in ends]


def test_code_within_a_sentence_was_said_by_nobody() -> None:
    assert texts(f"When `{SAID}` is printed, look twice.") in (
        [],
        [(None, "Using network Made Up")],
    )


def test_a_record_wrapped_with_backslashes_is_joined() -> None:
    cut = [MORE[at : at + 38] for at in range(0, len(MORE), 38)]
    assert texts(SAID, *(f"{part}\\" for part in cut[:-1]), cut[-1]) == BOTH


def test_a_backslash_before_another_record_joins_nothing() -> None:
    assert texts(f"{SAID}\\", MORE) == BOTH


@pytest.mark.parametrize(
    "raw", [f"{SAID}\\n", f'"{SAID}"', f"\\n{SAID}", f"a.log-{SAID}", f"{SAID}\\"]
)
def test_the_short_way_leaves_strings_alone(raw: str) -> None:
    assert PlainLines().parts(SAID.encode()) is not None
    assert PlainLines().parts(raw.encode()) is None


@given(st.text(alphabet="\"'`\\n, a", max_size=60), st.integers(0, 20))
def test_the_end_is_always_within(text: str, start: int) -> None:
    start = min(start, len(text))
    assert start <= quotes.end_of(text, start, start, len(text)) <= len(text)
