"""A line of a log without its wrappers, and what a reader of lines is."""

from collections.abc import Sequence
from typing import NamedTuple, Protocol

from ncdiag.model.log import NOBODY, LogEvidence, Speaker
from ncdiag.model.place import Place


class Line(NamedTuple):
    """One record of a log.

    ``text`` is the message: what launchers, collectors, terminals and the library put before it is
    peeled off. ``shown`` is the line as an operator would quote it, without launchers' wrappers but
    with the library's own prefix. ``level`` is ``WARN``, ``INFO``, ``TRACE``, ``CALL`` or ``ABORT``
    for a line of NCCL or RCCL and ``None`` for anything else. ``location`` is the source file and
    line that printed it (``transport/net_ib.cc:93``), with ``function`` where that is printed.
    ``origin`` names the wrapper that decides what kind of log this is (``kernel``, ``ray``, ...).
    ``carrier`` is the host that the wrapper names where the library itself names another: its node.
    ``repeats`` is how many more such lines a collector left out (``[repeated 6x across cluster]``).
    ``unended`` is a line in whose last word the input ends: more of the word may be missing.
    """

    text: str
    place: Place
    shown: str = ""
    speaker: Speaker = NOBODY
    level: str | None = None
    location: str | None = None
    function: str | None = None
    origin: str | None = None
    repeats: int = 0
    carrier: str | None = None
    unended: bool = False


class LineReader(Protocol):
    """Reads one dialect out of the lines of one input; keeps what it must between lines.

    A line is handed over when it contains one of ``needles``, or while the reader is ``open``:
    inside a table, a report or a traceback, whose lines have nothing in common. A reader closes by
    itself when its block ends, or when too many lines in a row were not part of it.
    ``facts`` are the needles of lines that only repeat what is known about a process soon; in
    a large log they are looked for less once they teach nothing new.
    """

    needles: frozenset[bytes]
    facts: frozenset[bytes]

    @property
    def open(self) -> bool:
        """Whether the next line is wanted whatever it contains."""

    def read(self, line: Line, hits: Sequence[bytes]) -> None:
        """Take one line; ``hits`` are the needles of any reader that its raw form contains."""

    def finish(self, evidence: LogEvidence) -> None:
        """Add what was read to ``evidence``, once, at the end of the input."""
