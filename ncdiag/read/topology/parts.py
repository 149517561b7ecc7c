"""The parts of a text that holds the output of several hosts, or of one under a launcher's mark.

``mpirun --tag-output``, ``srun --label``, ``pdsh`` and ``clush`` put a mark before each line;
``dshbak``, ``clush -b`` and ``tail`` put a heading before each host's or file's lines.
"""

import re
from collections.abc import Iterator
from typing import Final

_MARK: Final = re.compile(
    r"(?:\[(?P<rank>\d{1,6}(?:,\d{1,6})?)\]<std(?:out|err|diag)>:"  # mpirun --tag-output
    r"|\[(?P<listed>[\w.-]{1,255})\](?=\s)"  # mpiexec -prepend-rank, parallel-ssh
    r"|[ ]{0,6}(?P<task>\d{1,7}):(?=\s|$)"  # srun --label
    r"|(?P<host>[A-Za-z0-9][\w.-]{0,254}):(?=\s|$))"  # pdsh, clush
    r" ?"
)
_HEADING: Final = re.compile(
    r"^(?:-{3,}\n(?P<host>[^\s-][^\n]{0,4000})\n-{3,}|==> (?P<file>[^\n]{1,4000}) <==)[ \t]*\n",
    re.MULTILINE,
)
# A launcher's own words, and warnings that came past it, have no mark.
_MARKED_SHARE: Final = 0.9
_MOST_PARTS: Final = 4096
_PEEKED_CHARS, _PEEKED_LINES = 16 << 10, 40

Part = tuple[str, str]
"""What tells a part from the others (a host, a rank; empty if nothing does), and its text."""


def marked(text: str) -> list[Part]:
    """Return the lines by their marks, which are taken off; nothing where lines have no mark."""
    begin = [line for line in text[:_PEEKED_CHARS].split("\n") if line.strip()][:_PEEKED_LINES]
    if not begin or not _mostly(sum(map(bool, map(_MARK.match, begin))), len(begin)):
        return []
    lines = [line for line in text.split("\n") if line.strip()]
    parts: dict[str, list[str]] = {}
    unmarked = 0
    for line in lines:
        match = _MARK.match(line)
        if match is None:
            unmarked += 1
            continue
        kept = parts.setdefault(next(filter(None, match.groups()), ""), [])
        if "<stderr>" not in match[0]:
            kept.append(line[match.end() :])
        if len(parts) > _MOST_PARTS:
            return []
    if not _mostly(len(lines) - unmarked, len(lines)):
        return []
    end = "\n" if text.endswith("\n") else ""
    return [(label, "\n".join(kept) + end) for label, kept in parts.items()]


def _mostly(having: int, total: int) -> bool:
    return having >= _MARKED_SHARE * total


def headed(text: str) -> list[Part]:
    """Return the lines below each heading; nothing where there is none."""
    headings = list(_HEADING.finditer(text))
    if not headings or len(headings) > _MOST_PARTS:
        return []
    ends = [heading.start() for heading in headings[1:]] + [len(text)]
    before = text[: headings[0].start()]
    parts = [("", before)] if before.strip() else []
    return parts + [
        ((heading["host"] or heading["file"]).strip(), text[heading.end() : end])
        for heading, end in zip(headings, ends, strict=True)
    ]


def at_repeats(text: str, record: re.Pattern[str]) -> Iterator[str]:
    """Yield the text in pieces, none of which has a record (by its first group) twice."""
    seen: set[str] = set()
    begin = 0
    for match in record.finditer(text):
        if match[1] in seen:
            yield text[begin : match.start()]
            seen, begin = set(), match.start()
        seen.add(match[1])
    yield text[begin:]
