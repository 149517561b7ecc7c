"""SuperBench's ``results-summary.jsonl``: an object a node, its metrics by name.

Of these are read: NCCL and RCCL on each node (``nccl-bw/allreduce_8_busbw:0``), and bandwidth
between pairs of nodes (``ib-traffic/ib_write_bw_8388608_cpu-to-cpu_0_0:node1_node2``, in GB/s).
"""

import re
from collections import defaultdict
from collections.abc import Iterable, Mapping
from statistics import median
from typing import Any

from ncdiag.model.benchmark import Benchmark, TableRank, TableRow
from ncdiag.model.errors import UsageError
from ncdiag.model.imported import MAX_PAIRS, ForeignResults, PairFigure
from ncdiag.model.place import Place
from ncdiag.model.text import visible
from ncdiag.read.results.collectives import program_of
from ncdiag.read.results.text import GB_GBIT, number, rate, records

FORMAT = "superbench"
_NODE = re.compile(rb'^[ \t]*\{\s*"node"\s*:\s*"', re.MULTILINE)
_METRIC = re.compile(rb'"[a-z][\w-]{1,80}(?::[\w.-]{1,80})?/[^"]{1,200}"\s*:')
_COLLECTIVE = re.compile(
    r"[nr]ccl-bw(?::[\w.-]{1,80})?/([a-z]{3,20})_(\d{1,15})_(busbw|algbw|time)(?::\d{1,6})?\Z"
)
# So called up to SuperBench 0.5.
_OLD_PAIR = re.compile(
    r"ib-traffic(?::[\w.-]{1,80})?/ib_(?:write|read|send)_bw_\d{1,6}_\d{1,6}_"
    r"(\S{3,600})_bw(?::\d{1,6})?\Z"
)
_CODE = re.compile(r"([nr]ccl-bw|ib-traffic)(?::[\w.-]{1,80})?/return_code(?::\d{1,6})?\Z")
_PAIR = re.compile(
    r"ib-traffic(?::[\w.-]{1,80})?/ib_(?:write|read|send)_bw_(\d{1,12})(?:_[a-z]+-to-[a-z]+)?"
    r"_\d{1,6}_\d{1,6}:(\S{3,600})\Z"
)
# From here on bus and algorithm bandwidth have the digits to tell the number of ranks.
_TELLING_GB_PER_S = 1.0
_MAX_RANKS = 1024


def recognises(head: bytes) -> bool:
    """Whether a file that begins so is one."""
    return _NODE.search(head) is not None and _METRIC.search(head) is not None


def read(data: bytes, path: str) -> ForeignResults:
    """Runs on single nodes and links between them; raises :class:`UsageError`."""
    found, damaged = records(data)
    nodes = [(str(one["node"])[:255], one) for one in found if isinstance(one.get("node"), str)]
    results = ForeignResults(format=FORMAT, path=path, cut=damaged > 0)
    if damaged:
        results.notes.append(f"{damaged} of its lines are damaged and left out")
    names = {name for name, _ in nodes}
    for name, metrics in nodes:
        results.benchmarks += _benchmarks(name, metrics, path)
        for tool, code in _failures(metrics):
            results.failed = True
            results.notes.append(f"{visible(name)}: {tool} failed with code {code}: not healthy")
    results.pairs = _pairs((metrics for _, metrics in nodes), names, results)
    if len(results.pairs) > MAX_PAIRS:
        raise UsageError(f"{visible(path)}: too many pairs")
    results.together = bool(results.pairs)
    ends = (end for pair in results.pairs for end in (pair.source, pair.target))
    results.endpoints = list(dict.fromkeys(ends))
    if not results.benchmarks and not results.pairs:
        raise UsageError(
            f"{visible(path)}: results of SuperBench without any of nccl-bw, rccl-bw or ib-traffic"
        )
    return results


def _failures(metrics: Mapping[str, Any]) -> list[tuple[str, int]]:
    """The benchmarks of a node that failed, with SuperBench's codes for why."""
    found = ((_CODE.match(key), number(value)) for key, value in metrics.items())
    return [(told[1], int(code)) for told, code in found if told and code]


def _benchmarks(name: str, metrics: Mapping[str, Any], path: str) -> list[Benchmark]:
    figures: defaultdict[str, defaultdict[int, dict[str, float]]] = defaultdict(
        lambda: defaultdict(dict)
    )
    for key, value in metrics.items():
        if (told := _COLLECTIVE.match(key)) and (figure := number(value)) is not None:
            program = program_of(told[1])
            if program:
                figures[program][int(told[2])][told[3]] = figure
    runs = []
    for program, sizes in figures.items():
        place = Place(path, 1)
        run = Benchmark(place=place, test=program, heading=place, end=place, complete=True)
        ranks = _ranks(program, sizes.values())
        run.ranks = [TableRank(rank, name, "", str(rank), "", "") for rank in range(ranks)]
        run.rows = [
            TableRow(
                size=size,
                type="",
                redop="",
                out_of_place_busbw=one.get("busbw"),
                in_place_busbw=None,
                out_of_place_wrong=None,
                in_place_wrong=None,
                out_of_place_time_us=one.get("time"),
                out_of_place_algbw=one.get("algbw"),
            )
            for size, one in sorted(sizes.items())
            if "busbw" in one
        ]
        if run.rows:
            runs.append(run)
    return runs


def _ranks(program: str, sizes: Iterable[Mapping[str, float]]) -> int:
    """How many ranks took part, by what bus and algorithm bandwidth differ; else 1."""
    shares = [
        one["busbw"] / one["algbw"]
        for one in sizes
        if one.get("algbw", 0.0) >= _TELLING_GB_PER_S and "busbw" in one
    ]
    if not shares:
        return 1
    # (n - 1) / n of the payload, for all-reduce twice.
    share = median(shares) / (2 if program == "all_reduce_perf" else 1)
    ranks = round(1 / (1 - share)) if share < 1 - 1 / _MAX_RANKS else 1
    return max(1, min(ranks, _MAX_RANKS))


def _pairs(
    nodes: Iterable[Mapping[str, Any]], names: set[str], results: ForeignResults
) -> list[PairFigure]:
    """Every node of a summary tells the same: the client sends to the server."""
    best: dict[tuple[str, str], tuple[int, float]] = {}
    lost = 0
    for metrics in nodes:
        for key, value in metrics.items():
            told, old = _PAIR.match(key), _OLD_PAIR.match(key)
            figure = rate(value, GB_GBIT) if told or old else None
            if figure is None:
                continue
            size = int(told[1]) if told else 0
            ends = _ends(told[2] if told else old[1] if old else "", names)
            if ends is None:
                lost += 1
            elif (size, figure) > best.get(ends, (0, 0.0)):
                best[ends] = size, figure
    if lost:
        results.notes.append(f"{lost} figures are of pairs whose two names cannot be told apart")
        results.failed = True
    return [
        PairFigure(source=source, target=target, gbit_per_s=figure, size_bytes=size or None)
        for (source, target), (size, figure) in best.items()
    ]


def _ends(text: str, names: set[str]) -> tuple[str, str] | None:
    """Client and server out of ``server_client``, where names may hold the line, too."""
    at = [place for place, letter in enumerate(text) if letter == "_"]
    ways = [(text[place + 1 :], text[:place]) for place in at]
    known = [way for way in ways if way[0] in names and way[1] in names]
    ways = known or ways
    return ways[0] if len(ways) == 1 and all(ways[0]) and ways[0][0] != ways[0][1] else None
