"""ClusterKit's matrices of bandwidth between nodes, as text or JSON.

Pairs of a round run at the same time, and unless it was told otherwise a figure is the sum of both
directions. Its MB are taken for 1e6 bytes; only the fleet's own median is a yardstick for them.
"""

import re
from collections.abc import Iterator, Mapping
from typing import Any

from ncdiag.model.errors import UsageError
from ncdiag.model.imported import MAX_PAIRS, ForeignResults, PairFigure
from ncdiag.model.text import visible
from ncdiag.read.results.text import MB_GBIT, document, lines_of, number, rate, whole

FORMAT = "clusterkit"
_TEXT = re.compile(rb"^\s{0,20}Rank:?(?:\s{1,20}\d{1,6}){2,}", re.MULTILINE)
_JSON = re.compile(rb'"Links"\s*:\s*\[')
_TITLES = re.compile(r"\s{0,20}Rank:?((?:\s{1,20}\d{1,6})+)\s*\Z")
_ROW = re.compile(r"\s{0,20}(\d{1,6}) \((\S{1,255})\):?((?:\s{1,20}[\w./+-]{1,20})+)\s*\Z")
_LATENCY = re.compile(r"latency|usec", re.IGNORECASE)
_NAME_KEYS = ("Name", "Node", "NodeName", "Hostname", "HostName", "Host", "name", "hostname")
# Normalized to the largest one.
_MOST_SHARE = 1.0001
_SUMS = (
    "ClusterKit tells the sum of both directions unless it ran with --unidirectional: its figures "
    "are compared with one another only"
)

Matrix = dict[tuple[int, int], float]


def recognises(head: bytes) -> bool:
    """Whether a file that begins so is one of them."""
    return _TEXT.search(head) is not None or _JSON.search(head) is not None


def read(data: bytes, path: str) -> ForeignResults:
    """All directions of a matrix; raises :class:`UsageError` for one that cannot be judged."""
    results = ForeignResults(format=FORMAT, path=path, together=True, sums=True)
    if _TEXT.search(data):
        names, matrix, latency = _from_text(lines_of(data, table=True), results)
    else:
        names, matrix, latency = _from_json(data, results)
    shown = visible(path)
    if latency:
        raise UsageError(f"{shown}: latencies of ClusterKit; import its bandwidth.txt or .json")
    if not matrix or len(names) < 2:
        raise UsageError(f"{shown}: output of ClusterKit without a matrix of bandwidths in it")
    if max(matrix.values()) <= _MOST_SHARE:
        raise UsageError(
            f"{shown}: a matrix that was normalized to its largest figure; import the one in MB/s"
        )
    if len(names) * (len(names) - 1) > MAX_PAIRS:
        raise UsageError(f"{shown}: a matrix of {len(names)} nodes is too large")
    results.endpoints = list(names.values())
    if len(set(results.endpoints)) < len(results.endpoints):
        raise UsageError(f"{shown}: two nodes of its matrix have the same name")
    results.pairs = list(_pairs(names, matrix))
    results.cut |= any(pair.error for pair in results.pairs)
    results.notes.append(_SUMS)
    return results


def _pairs(names: Mapping[int, str], matrix: Matrix) -> Iterator[PairFigure]:
    """A matrix may hold each pair once: both directions are the same figure then."""
    for row, source in names.items():
        for column, target in names.items():
            if row == column:
                continue
            figure = rate(matrix.get((row, column), matrix.get((column, row))), MB_GBIT)
            yield PairFigure(
                source=source,
                target=target,
                gbit_per_s=figure,
                error=None if figure is not None else "not in the file",
            )


def _from_text(lines: list[str], results: ForeignResults) -> tuple[dict[int, str], Matrix, bool]:
    """The last matrix of a text, which is the one after retests; a title says what it is of."""
    names: dict[int, str] = {}
    matrix: Matrix = {}
    columns: list[int] = []
    latency, title = False, ""
    for line in lines:
        if found := _TITLES.match(line):
            columns, names, matrix = [int(word) for word in found[1].split()], {}, {}
            latency = bool(_LATENCY.search(title))
        elif columns and (found := _ROW.match(line)):
            row, words = int(found[1]), found[3].split()
            names[row] = found[2]
            results.cut |= len(words) < len(columns)
            for column, word in zip(columns, words, strict=False):
                if (value := number(word)) is not None and value > 0:
                    matrix[row, column] = value
        elif line.strip():
            title = line
    missing = [column for column in columns if column not in names]
    if missing:
        results.cut = True
        results.notes.append(f"{len(missing)} of {len(columns)} nodes have no row in it")
    kept = {link: value for link, value in matrix.items() if link[1] in names}
    return names, kept, latency


def _from_json(data: bytes, results: ForeignResults) -> tuple[dict[int, str], Matrix, bool]:
    found, results.cut = document(data)
    latency = any(
        _LATENCY.search(word)
        for key, value in (found or {}).items()
        for word in (key, value if isinstance(value, str) else "")
    )
    names: dict[int, str] = {}
    matrix: Matrix = {}
    for place, node in enumerate(_nodes(found)):
        index = whole(node.get("Rank", node.get("Index", node.get("Id", place))))
        name = next((node[key] for key in _NAME_KEYS if isinstance(node.get(key), str)), None)
        if index is None or not name:
            continue
        names[index] = str(name)[:255]
        links = node.get("Links")
        for link in links if isinstance(links, list) else ():
            if not isinstance(link, list) or len(link) != 2:
                continue
            peer, value = whole(link[0]), number(link[1])
            if peer is not None and value is not None and value > 0:
                matrix[index, peer] = value
    return names, {link: v for link, v in matrix.items() if link[1] in names}, latency


def _nodes(value: object, depth: int = 0) -> list[Mapping[str, Any]]:
    """The first list of objects with ``Links``, wherever it stands."""
    if depth > 6:
        return []
    inner: list[Any] = []
    if isinstance(value, list):
        nodes: list[Mapping[str, Any]] = [
            one for one in value if isinstance(one, dict) and "Links" in one
        ]
        if nodes:
            return nodes
        inner = value[:100]
    elif isinstance(value, dict):
        inner = list(value.values())[:100]
    return next((nodes for one in inner if (nodes := _nodes(one, depth + 1))), [])
