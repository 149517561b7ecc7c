"""Where, in one line of a file, further records begin that another process wrote into it."""

import re
from typing import NamedTuple

from ncdiag.read.peel import library

_TORCH = re.compile(
    r"(?:\[rank\d{1,7}\]:? ?)?\[[EWIF](?:\d{3,4} \d\d:\d\d:\d\d(?:\.\d{1,9})?)? "
    r"[\w./-]{1,200}\.(?:cpp|hpp|h|cc|cu):\d{1,6}\] ",
    re.ASCII,
)
_VERSION = re.compile(r"(?<=[\w)])[NR]CCL version(?= \d| : )", re.ASCII)
_XID = re.compile(r"NVRM: Xid \(", re.ASCII)
# Cheap looks for anything that needs a closer one.
_TORCH_HINT = re.compile(r"\[[EWIF][\d ]")
# Wrappers and stamps that belong to the record after them; they end where it begins.
_BEFORE = re.compile(
    r"(?:\[[\w.@-]{0,128},?\d{1,7}\]<std(?:out|err)>: ?"
    r"|\[rank\d{1,7}\]: ?|\[[a-z]+\d{1,5}\]: ?|\([\w. ]{0,100}pid=\d{1,10}[^()]{0,80}\) "
    r"|\[?\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d[\d.,:+Z-]{0,16}\]? (?:std(?:out|err) [FP] )?"
    r"|(?:[A-Z][a-z]{2} [ \d]\d \d\d:\d\d:\d\d|\d{4}-\d\d-\d\dT[\d:.+Z-]{8,30}) [\w.-]{1,64}"
    r" kernel: "
    r"|kernel: |\[ {0,8}\d{1,9}\.\d{3,9}\] ?"
    r"|\[[A-Z][a-z]{2} [A-Z][a-z]{2} [ \d]\d \d\d:\d\d:\d\d \d{4}\] )$",
    re.ASCII,
)
_BEFORE_MOST = 200
# More records in one line are no accident.
_MOST_MARKS = 256


class Mark(NamedTuple):
    """A record that begins at ``start``; ``prefix`` if it is the library's."""

    start: int
    prefix: library.Prefix | None = None


def hinted(text: str, start: int = 0) -> bool:
    """Whether a record may begin in ``text`` after ``start``."""
    return (
        text.find("CCL ", start) >= 0
        or text.find("NVRM: Xid (", start) >= 0
        or _TORCH_HINT.search(text, start) is not None
    )


def marks(text: str, hosts: library.Hosts) -> list[Mark]:
    """All places where a record begins for sure, in order."""
    found = [Mark(prefix.start, prefix) for prefix in library.find_all(text, hosts)]
    for pattern in (_TORCH, _VERSION, _XID):
        found.extend(Mark(match.start()) for match in pattern.finditer(text))
    return sorted(found, key=lambda mark: mark.start)[:_MOST_MARKS]


def with_wrappers(text: str, start: int, floor: int) -> int:
    """Where the wrappers begin that stand directly before a record at ``start``."""
    for _ in range(6):
        found = _BEFORE.search(text, max(floor, start - _BEFORE_MOST), start)
        if not found:
            break
        start = found.start()
    return start
