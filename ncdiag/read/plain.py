"""Takes apart the commonest lines fast: one record of one process, with the library's prefix.

What is not quite so plain is left to the peeler, which understands everything.
"""

import re
from typing import NamedTuple

from ncdiag.model.log import Place, Speaker
from ncdiag.read.line import Line
from ncdiag.read.peel import clean, records

# The library's own prefix, as far as its level; what stands before it are wrappers.
_PREFIX = re.compile(
    r"([^\s:\[\]<>(){}|\"'`,;=\\]{1,255}):(\d{1,10}):\d{1,10} \[(-?\d{1,4})\]"
    r"(?: (\S{1,256}:\d{1,7})(?: \(([^()]{0,200})\))?)? \Z",
    re.ASCII,
)
_LEVEL = " NCCL "
_FARTHEST_LEVEL = 400
_TIME = re.compile(r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(?:[.,]\d{1,9})?(?:Z|[+-]\d\d:?\d\d)?")
_SHOWN_MAX = 1000


class PlainLine(NamedTuple):
    """The parts of a line; ``wrapper`` is what stands before the prefix, its time as ``T``."""

    host: str
    pid: str
    wrapper: str
    device: str
    location: str | None
    function: str | None
    level: str
    body: str
    shown: str

    def line(self, path: str, number: int) -> Line:
        """The line as the peeler would make it, if there is no wrapper."""
        return Line(
            text=self.body,
            place=Place(path, number),
            shown=self.shown,
            speaker=Speaker(self.host, self.pid, None, self.device),
            level=self.level,
            location=self.location,
            function=self.function,
        )


def plain(raw: bytes) -> PlainLine | None:
    """The parts of a raw line; ``None`` if there is any doubt about them."""
    if b"\x1b" in raw or b"\r" in raw or b"\0" in raw:
        return None
    text = raw.decode(errors="replace")
    at = text.find(_LEVEL, 0, _FARTHEST_LEVEL) + 1
    found = _PREFIX.search(text, 0, at) if at else None
    start = text.find(" ", at + 5)
    if found is None or start < 0:
        return None
    body = text[start + 1 :].rstrip()
    doubtful = "[" in body or "CCL" in body or "NVRM" in body or body.endswith("$")
    if doubtful and (records.hinted(body) or not clean.is_plain(body) or body[-1] in "])$"):
        return None
    host, pid, device, location, function = found.groups()
    begin = found.start()
    wrapper = _TIME.sub("T", text[:begin]) if begin else ""
    level = text[at + 5 : start]
    shown = text[begin : begin + _SHOWN_MAX].rstrip()
    return PlainLine(host, pid, wrapper, device, location, function, level, body, shown)
