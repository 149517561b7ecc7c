"""What a row of the signature table is."""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from ncdiag.model.finding import FindingClass, Role, Severity
from ncdiag.read.line import Line

# Capture groups whose names begin so are for the diagnosis and not published as attributes.
DETAIL = "d_"
# Groups that hold ranks the message names: digits, or a list of digits and commas or blanks.
RANKS = "ranks"

ANY_LEVEL = frozenset({None, "WARN", "INFO", "TRACE", "ABORT", "CALL"})
WARN = frozenset({"WARN"})
LIBRARY = frozenset({"WARN", "INFO", "ABORT"})
OUTSIDE = frozenset({None})


class Pattern:
    """A regular expression that is compiled when it is first needed.

    Of hundreds a log needs a few, and compiling them all is what most of a start would go into.
    """

    __slots__ = ("search", "text")

    def __init__(self, text: str) -> None:
        self.text = text
        self.search: Callable[[str], re.Match[str] | None] = self._first_search

    def _first_search(self, line: str) -> re.Match[str] | None:
        self.search = self.compiled().search
        return self.search(line)

    def compiled(self) -> re.Pattern[str]:
        """The compiled expression."""
        return re.compile(self.text)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Signature:
    """One form of one message.

    ``needle`` is text that every such line contains, with no letter that differs between lines:
    the scanner looks for it. ``pattern`` is searched in ``Line.text``; its named groups become
    attributes of the class, or details when they begin with ``d_``, or ranks (``ranks...``).
    ``levels`` are the levels at which it counts (``None`` is a line that is not the library's).
    ``sample`` must match, ``near_miss`` must not: messages as they stand after the library's
    prefix, or whole lines where there is none; both are of our own making.
    ``versions`` says which releases print it so, ``source`` where that is known from.
    ``refine`` may change what was captured (a name to its number), or refuse with ``None``.
    ``location`` restricts it to lines printed from source files matching this.
    ``further`` are other needles, for a form whose wording varies.
    ``kind`` is what an input that holds such a line is one of (``kernel``, ``torch``, ...).
    """

    name: str
    class_: FindingClass
    needle: str
    pattern: Pattern
    sample: str
    near_miss: str
    source: str
    versions: str = "all"
    levels: frozenset[str | None] = ANY_LEVEL
    role: Role | None = None
    severity: Severity | None = None
    location: re.Pattern[str] | None = None
    further: tuple[str, ...] = ()
    constants: Mapping[str, str] = field(default_factory=dict)
    refine: Callable[[dict[str, str], Line], dict[str, str] | None] | None = None
    kind: str | None = None
