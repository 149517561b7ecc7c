"""The first lines of a report's JSON, which tell what it is, however long the rest may be."""

from dataclasses import dataclass
from typing import Final

import msgspec

# The schemas of report.json and bench.json, and the command that writes each.
_KINDS: Final = {"ncdiag/sweep": "sweep", "ncdiag/burn-in": "burn-in", "ncdiag/bench": "bench"}
_MOST_LINES: Final = 12


@dataclass(frozen=True, slots=True, kw_only=True)
class ReportHead:
    """What a report is of, when it began, and its verdict; empty where that is not told."""

    kind: str = ""
    verdict: str = ""
    started: str = ""


def read_head(data: bytes) -> ReportHead:
    """The head of a document whose beginning is ``data``, laid out a key a line."""
    found: dict[str, str] = {}
    for line in data.split(b"\n", _MOST_LINES)[:_MOST_LINES]:
        try:
            pair = msgspec.json.decode(b"{" + line.strip().rstrip(b",") + b"}", type=dict[str, str])
        except (msgspec.DecodeError, UnicodeDecodeError):
            continue
        found = pair | found
    schema = found.get("schema", "").rpartition("/")[0]
    return ReportHead(
        kind=_KINDS.get(schema, ""),
        verdict=found.get("verdict", "") if schema in _KINDS else "",
        started=found.get("started", "") if schema in _KINDS else "",
    )
