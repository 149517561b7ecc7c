"""What rccl-tests write with ``--output_file``: an object a line, or CSV.

The header of its CSV built with MPI lacks the column of nodes that the rows have.
"""

import csv
import re
from collections.abc import Iterator, Mapping
from typing import Any

import msgspec

from ncdiag.model.benchmark import Benchmark, TableRank, TableRow
from ncdiag.model.errors import UsageError
from ncdiag.model.imported import ForeignResults
from ncdiag.model.place import Place
from ncdiag.model.text import visible
from ncdiag.read.results.collectives import program_of
from ncdiag.read.results.text import lines_of, number, whole

FORMAT = "rccl-tests"
_JSON = re.compile(
    rb'^[ \t]*\{(?:"numCycle"\s*:\s*\d{1,9}, ?)?"name"\s*:\s*"?\w{2,40}"?, ?"(?:nodes|gpus)"\s*:',
    re.MULTILINE,
)
_CSV = re.compile(rb"^(?:numCycle, ?)?collective, ?(?:ranks, ?rankspernode|gpus), ?", re.MULTILINE)
_BARE = re.compile(r'(":\s*)([A-Za-z][\w/]{0,40})(?=\s*[,}])')
_MAX_ROWS = 200_000
_MAX_RANKS = 100_000

Key = tuple[str, int, int]


def recognises(head: bytes) -> bool:
    """Whether a file that begins so is one of them."""
    return _JSON.search(head) is not None or _CSV.search(head) is not None


def read(data: bytes, path: str) -> ForeignResults:
    """The runs in a file; raises :class:`UsageError` where it has no result."""
    entries = _csv_rows(lines_of(data)) if _CSV.search(data) else _json_rows(lines_of(data))
    results = ForeignResults(format=FORMAT, path=path)
    runs: dict[Key, Benchmark] = {}
    damaged = 0
    for entry in entries:
        run = _run(entry, runs, path)
        row = _row(entry) if run else None
        if run is None or row is None:
            damaged += 1
        elif len(run.rows) < _MAX_ROWS:
            _add(run, row)
    results.benchmarks = list(runs.values())
    if not results.benchmarks:
        raise UsageError(f"{visible(path)}: a report of rccl-tests without a single result in it")
    names = dict.fromkeys(rank.host for run in results.benchmarks for rank in run.ranks)
    results.endpoints = list(names)
    results.unnamed = list(names)
    text = data.strip()
    if text.startswith(b"[") and not text.endswith(b"]"):
        results.cut = True
    if damaged:
        results.notes.append(f"{damaged} of its lines are damaged and left out")
        results.cut = True
    return results


def _json_rows(lines: list[str]) -> Iterator[Mapping[str, Any]]:
    for line in lines:
        one = line.strip().removeprefix("[").rstrip("],").strip()  # newer ones write a list
        if not one.startswith("{"):
            continue
        try:
            found = msgspec.json.decode(_BARE.sub(r'\1"\2"', one))
        except (msgspec.DecodeError, RecursionError):
            yield {}
            continue
        yield {str(k).lower(): v for k, v in found.items()} if isinstance(found, dict) else {}


def _csv_rows(lines: list[str]) -> Iterator[Mapping[str, Any]]:
    columns: list[str] = []
    for line in lines:
        try:
            words = next(csv.reader([line.replace("\0", "")], skipinitialspace=True), [])
        except csv.Error:  # a word longer than any of it
            words = ["damaged", ""]
        words = [word.strip() for word in words]
        cycle = words[:1] == ["numCycle"]
        if words[cycle : cycle + 1] == ["collective"]:
            columns = words
        elif columns and len(words) == len(columns) + 1 and "rankspernode" in columns:
            at = columns.index("collective") + 1
            yield _named([*columns[:at], "nodes", *columns[at:]], words)
        elif columns and len(words) > 1:
            yield _named(columns, words) if len(words) == len(columns) else {}


def _named(columns: list[str], words: list[str]) -> Mapping[str, Any]:
    renamed = {"collective": "name", "#wrong": "wrong"}
    return {renamed.get(column, column): word for column, word in zip(columns, words, strict=True)}


def _run(entry: Mapping[str, Any], runs: dict[Key, Benchmark], path: str) -> Benchmark | None:
    """The run of an entry: a collective on so many ranks."""
    program = program_of(str(entry.get("name", "")))
    ranks = whole(entry.get("ranks", entry.get("gpus")))
    per_node = whole(entry.get("rankspernode", ranks))
    if program is None or not ranks or not per_node or not 0 < per_node <= ranks <= _MAX_RANKS:
        return None
    gpus = whole(entry.get("gpusperrank")) or 1
    key = program, ranks, per_node
    if key not in runs:
        place = Place(path, 1)
        runs[key] = Benchmark(place=place, test=program, heading=place, end=place, complete=True)
        runs[key].ranks = [
            TableRank(rank, f"node{rank // (per_node * gpus) + 1}", "", "", "", "")
            for rank in range(min(ranks * gpus, _MAX_RANKS))
        ]
    return runs[key]


def _row(entry: Mapping[str, Any]) -> TableRow | None:
    size, busbw = whole(entry.get("size")), number(entry.get("busbw"))
    in_place = whole(entry.get("inplace"))
    if size is None or size < 0 or busbw is None or in_place not in {0, 1}:
        return None
    figures = (number(entry.get("time")), number(entry.get("algbw")), number(entry.get("wrong")))
    time_us, algbw, wrong = figures
    return TableRow(
        size=size,
        type=str(entry.get("type", ""))[:40],
        redop=str(entry.get("redop", ""))[:40],
        out_of_place_busbw=None if in_place else busbw,
        in_place_busbw=busbw if in_place else None,
        out_of_place_wrong=None if in_place else wrong,
        in_place_wrong=wrong if in_place else None,
        out_of_place_time_us=None if in_place else time_us,
        in_place_time_us=time_us if in_place else None,
        out_of_place_algbw=None if in_place else algbw,
        in_place_algbw=algbw if in_place else None,
    )


def _add(run: Benchmark, row: TableRow) -> None:
    """Out of place comes first, in place completes its row."""
    last = run.rows[-1] if run.rows else None
    if (
        last is not None
        and row.in_place_busbw is not None
        and last.in_place_busbw is None
        and (last.size, last.type, last.redop) == (row.size, row.type, row.redop)
    ):
        run.rows[-1] = last._replace(
            in_place_busbw=row.in_place_busbw,
            in_place_wrong=row.in_place_wrong,
            in_place_time_us=row.in_place_time_us,
            in_place_algbw=row.in_place_algbw,
        )
    else:
        run.rows.append(row)
