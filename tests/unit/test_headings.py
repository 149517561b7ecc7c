"""Hosts that a heading names for the lines below it."""

from collections.abc import Sequence

import pytest

from ncdiag.read.log_reader import LogReader

FAULT = (
    "[  51.250000] NVRM: Xid (PCI:0000:3b:00): 79, pid=12, name=demo, GPU has fallen off the bus."
)
RULE = "-" * 16


def hosts(*lines: str, brief: bool = False) -> list[str | None]:
    """The hosts that the faults in ``lines`` are said to be on."""
    reader = LogReader("a.log", brief=brief)
    wanted: Sequence[bytes] = sorted(reader.needles | reader.facts)
    for number, line in enumerate(lines, 1):
        raw = line.encode()
        reader.take(raw, number, tuple(needle for needle in wanted if needle in raw))
    return [event.speaker.host for event in reader.finish().events]


@pytest.mark.parametrize(
    "heading",
    [
        [RULE, "vq-07", RULE],
        ["-" * 15, "vq-07", "-" * 15],
        [RULE, "vq-[01-06]", RULE, "all is well", RULE, "vq-07", RULE, "something else"],
        ["vq-07 | CHANGED | rc=0 >>"],
        ["vq-07 | SUCCESS | rc=0 >>"],
        ["vq-06 | UNREACHABLE! => {", "}", "vq-07 | FAILED | rc=2 >>"],
    ],
)
def test_the_lines_of_a_block_are_of_the_host_above_them(heading: list[str]) -> None:
    assert hosts(*heading, FAULT) == ["vq-07"]


@pytest.mark.parametrize(
    "heading",
    [
        [RULE, "vq-[07-08]", RULE],
        [RULE, "vq-07 vq-08", RULE],
        [RULE, "Failures:", RULE],
        [RULE, "summary", RULE],
        [RULE, "demo7.py", RULE],
        [RULE, "10.4.0.7", RULE],
        ["-" * 60, "vq-07", "-" * 60],
        [RULE, "vq-07"],
        [RULE, "vq-07", "and more", RULE],
        ["==> vq-07 <=="],
        ["### vq-07 ###"],
        ["10.4.0.7 | CHANGED | rc=0 >>"],
        [RULE, "vq-07", RULE, "text", RULE, "vq-[08-09]", RULE],
        ["vq-07 | CHANGED | rc=0 >>", "10.4.0.8 | CHANGED | rc=0 >>"],
    ],
)
def test_other_words_between_rules_name_no_host(heading: list[str]) -> None:
    assert hosts(*heading, FAULT) == [None]


def test_a_line_that_names_its_host_is_of_that() -> None:
    named = f"Mar  4 01:02:03 vq-09 kernel: {FAULT}"
    assert hosts(RULE, "vq-07", RULE, named) == ["vq-09"]


def test_where_lines_are_left_out_headings_prove_nothing() -> None:
    assert hosts(RULE, "vq-07", RULE, FAULT, brief=True) == [None]
