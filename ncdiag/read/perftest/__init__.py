"""Output of perftest (``ib_write_bw`` and its like), as text and as its several kinds of JSON."""

import re

from ncdiag.model.errors import UsageError
from ncdiag.model.imported import ForeignResults
from ncdiag.read.perftest.loose_json import BLOCK, read_json
from ncdiag.read.perftest.records import Run
from ncdiag.read.perftest.results import results_of
from ncdiag.read.perftest.text import HEADING, TITLE, read_text

__all__ = ["read", "read_runs", "recognises"]

_BOM = "\ufeff"
# The keys of its JSON; "results" alone has many another program's.
_OWN_KEYS = re.compile(r'"?\b(?:test_info"?\s*:\s*\{|(?:BW_average|n_iterations)"?\s*:)')


def recognises(head: bytes) -> bool:
    """Whether the beginning of a file shows perftest's output."""
    text = _decoded(head)
    return bool(HEADING.search(text) or TITLE.search(text) or _OWN_KEYS.search(text))


def read(data: bytes, path: str) -> ForeignResults:
    """What a file says about links; raises UsageError where nothing in it is perftest's."""
    found, loose = _runs(_decoded(data))
    runs = [run for run in found if run.test or run.has_rows or run.listening]
    if not runs:
        raise UsageError(f"{path}: no output of perftest in it")
    return results_of(runs, path, loose=loose)


def read_runs(data: bytes) -> list[Run]:
    """The runs in the output of a program, which may have ended in any way."""
    return _runs(_decoded(data))[0]


def _runs(text: str) -> tuple[list[Run], bool]:
    if BLOCK.search(text) and _OWN_KEYS.search(text) and not HEADING.search(text):
        return read_json(text), True
    return read_text(text), False


def _decoded(data: bytes) -> str:
    return data.decode("utf-8", "replace").removeprefix(_BOM)
