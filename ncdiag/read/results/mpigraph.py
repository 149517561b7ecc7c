"""mpiGraph: two matrices of bandwidths between all tasks, all of which send at the same time.

Its MB are 2**20 bytes (mpiGraph.c 1.5 divides by 1024 * 1024). The receiver's clock counts: a
sender is done when its messages are in buffers.
"""

import re
from collections import defaultdict
from collections.abc import Iterator
from statistics import median

from ncdiag.model.errors import UsageError
from ncdiag.model.imported import MAX_PAIRS, ForeignResults, PairFigure
from ncdiag.model.text import visible
from ncdiag.read.results.text import MIB_GBIT, lines_of, rate, whole

FORMAT = "mpigraph"
_START = re.compile(rb"^START mpiGraph\b|^(?:Send|Recv)\t\S", re.MULTILINE)
_END = "END mpiGraph"
_ROW = re.compile(r"\s*(\S{1,255}) (to|from)\t(.*)\Z", re.DOTALL)
_SIZE = re.compile(r"MsgSize\t(\d{1,12})")
_CLOSED = "Recv\t"

Link = tuple[str, str]


def recognises(head: bytes) -> bool:
    """Whether a file that begins so is mpiGraph's output."""
    return _START.search(head) is not None


def read(data: bytes, path: str) -> ForeignResults:
    """The directions of all pairs; raises :class:`UsageError` for output without a matrix."""
    tables, labels, size, ended = _tables(lines_of(data), path)
    if not labels:
        raise UsageError(f"{visible(path)}: output of mpiGraph without a matrix: it died before")
    results = ForeignResults(format=FORMAT, path=path, together=True, cut=not ended)
    results.endpoints = list(dict.fromkeys(map(_host, labels)))
    sent, received = tables["Send"], tables["Recv"]
    for source in results.endpoints:
        for target in results.endpoints:
            if source != target:
                told = received.get((source, target)) or sent.get((source, target))
                worst = sent.get((source, target), []) + received.get((source, target), [])
                results.pairs.append(_pair(source, target, told, worst, size))
    results.cut |= any(pair.error for pair in results.pairs)
    if not received:
        results.notes.append("it ends before what was received: judged by what was sent")
    return results


def _pair(
    source: str, target: str, told: list[float] | None, worst: list[float], size: int | None
) -> PairFigure:
    return PairFigure(
        source=source,
        target=target,
        gbit_per_s=median(told) if told else None,
        min_gbit_per_s=min(worst) if worst else None,
        size_bytes=size,
        error=None if told else "not in the file",
    )


def _tables(
    lines: list[str], path: str
) -> tuple[dict[str, dict[Link, list[float]]], list[str], int | None, bool]:
    """Figures in Gbit/s by link, of both tables; the labels of the columns; size; the end."""
    tables: dict[str, dict[Link, list[float]]] = {
        "Send": defaultdict(list),
        "Recv": defaultdict(list),
    }
    labels: list[str] = []
    columns: list[str] = []
    size, ended = None, False
    for line in lines:
        word, _, rest = line.partition("\t")
        if word in tables and rest.strip() and not rest[:1].isspace():
            columns = [label for label in rest.split("\t") if label.strip()]
            labels = columns if len(columns) > len(labels) else labels
            if len(labels) * (len(labels) - 1) > MAX_PAIRS:
                raise UsageError(f"{visible(path)}: a matrix of {len(labels)} tasks is too large")
        elif found := _ROW.match(line):
            table = tables["Send" if found[2] == "to" else "Recv"]
            for link, figure in _row(found, columns):
                table[link].append(figure)
        elif found := _SIZE.match(line):
            size = whole(found[1])
        ended = ended or line.startswith(_END)
    return tables, labels, size, ended


def _row(found: re.Match[str], columns: list[str]) -> Iterator[tuple[Link, float]]:
    """Links and figures of one row; the last figure of a row that is cut may be cut, too."""
    here = _host(found[1])
    for there, word in zip(map(_host, columns), found[3].split("\t")[:-1], strict=False):
        figure = rate(word, MIB_GBIT)
        if figure is not None and here != there:
            yield ((here, there) if found[2] == "to" else (there, here)), figure


def _host(label: str) -> str:
    """``node:3`` is task 3 on ``node``."""
    name, colon, task = label.strip().rpartition(":")
    return name if colon and task.isdigit() else label.strip()
