"""Reads the report that nccl-tests write with ``-J``, all versions, also when it was cut short."""

import math
import re
from collections.abc import Iterator, Mapping
from pathlib import PurePosixPath
from typing import Any

import msgspec

from ncdiag.model.benchmark import Benchmark, IterationTimes, TableRank, TableRow
from ncdiag.model.log import LogEvidence
from ncdiag.model.place import Place
from ncdiag.read.bounded_bytes import BoundedBytes
from ncdiag.read.line import Line
from ncdiag.read.nccl.settings import safe_value
from ncdiag.read.nccl_tests.cut_json import mended
from ncdiag.read.nccl_tests.runs import MAX_ROWS, Run
from ncdiag.read.nccl_tests.table import corruption, version_of
from ncdiag.read.signatures.reader import SignatureReader
from ncdiag.read.signatures.table import TABLE

MAX_BYTES = 64 << 20
_HEAD = re.compile(rb"\s*\{")
_KEYS = re.compile(rb'"(?:nccl_version|start_time|args)"\s*:')
_PROGRAM = re.compile(r"[a-z_]{3,40}_perf\w{0,40}\Z")
# Variables that say something of the job; the report holds the whole environment.
_TELLING = re.compile(
    r"(?:NCCL|RCCL|CUDA|OFI|FI|UCX|OMPI_MCA|HIP|HSA|ROCR|NVSHMEM|SHARP|NVIDIA)_[A-Z0-9_]{1,80}\Z"
)
_MAX_VALUE = 1024
_MAX_RANKS = 100_000
# Single times of iterations that are kept of one report, over all its rows: 64 MB of memory.
_MAX_TIMES = 2_000_000


class JsonReport:
    """Reads one report into one ``Benchmark``.

    The times of single iterations, which fill most of a report, are left out without ``times``.
    """

    kind = "nccl-tests"

    def __init__(self, path: str, *, times: bool = False) -> None:
        self.error: str | None = None
        self.truncated = False
        self._path = path
        self._times = _MAX_TIMES if times else 0
        self._pieces = BoundedBytes(MAX_BYTES)

    @classmethod
    def recognises(cls, head: bytes) -> bool:
        """Whether a file that begins with ``head`` is such a report."""
        return bool(_HEAD.match(head)) and len(set(_KEYS.findall(head))) >= 2

    def feed(self, chunk: bytes) -> None:
        """Keep the next bytes, up to the limit."""
        self._pieces.add(chunk)

    def finish(self, evidence: LogEvidence) -> None:
        """Add the run to ``evidence``, or say in ``error`` why not."""
        if self._pieces.too_large:
            self.truncated = True
            self.error = f"nccl-tests report of more than {MAX_BYTES >> 20} MiB: not read"
            return
        document = self._decoded(self._pieces.whole())
        if document is None:
            self.error = "nccl-tests report cannot be read: the JSON is damaged"
            return
        place = Place(self._path, 1)
        run = _run(document, place, self._times)
        evidence.benchmarks.append(run.benchmark)
        if run.bad:
            evidence.events.append(corruption(run))
        _add_errors(document, run.benchmark, evidence)

    def _decoded(self, data: bytes) -> dict[str, Any] | None:
        """The document; what is left of it when the run died while writing it."""
        for text in (data, mended(data)):
            try:
                document = msgspec.json.decode(text)
            except (msgspec.DecodeError, RecursionError, UnicodeDecodeError):
                self.truncated = True
            else:
                return document if isinstance(document, dict) else None
        return None


def _run(document: Mapping[str, Any], place: Place, times: int) -> Run:
    config = _mapping(document, "config")
    benchmark = Benchmark(place=place, test=_test(document), heading=place, end=place)
    benchmark.started = _text(document.get("start_time"))[:40] or None
    if version := _integer(document.get("nccl_version")):
        benchmark.library_version = version_of(version)
    benchmark.environment = dict(_environment(document))
    benchmark.ranks = [_rank(device) for device in _mappings(config, "devices", _MAX_RANKS)]
    per_process = (_integer(config.get("nthreads")) or 1) * (_integer(config.get("ngpus")) or 1)
    benchmark.expected_ranks = len(benchmark.ranks) * per_process or None
    run = Run(benchmark, ())
    budget = _Budget(times)
    for entry in _mappings(document, "results", MAX_ROWS):
        _add_row(run, entry, budget)
    _add_footer(document, run)
    return run


def _test(document: Mapping[str, Any]) -> str | None:
    words = document.get("args")
    first = words[0] if isinstance(words, list) and words else None
    name = PurePosixPath(first).name if isinstance(first, str) else ""
    return name if _PROGRAM.match(name) else None


def _environment(document: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    pairs = document.get("env")
    for pair in pairs if isinstance(pairs, list) else ():
        name, _, value = pair.partition("=") if isinstance(pair, str) else ("", "", "")
        if _TELLING.match(name):
            yield name, safe_value(name, value[:_MAX_VALUE])


def _rank(device: Mapping[str, Any]) -> TableRank:
    return TableRank(
        rank=_integer(device.get("rank")) or 0,
        host=_text(device.get("hostname")),
        pid=_text(device.get("pid")),
        device=_text(device.get("device")),
        bus_id=_text(device.get("device_hex")).strip("[]"),
        name=_text(device.get("device_info")),
    )


class _Budget:
    """How many single times may still be kept."""

    def __init__(self, times: int) -> None:
        self._left = times

    def times(self, value: object) -> tuple[float, ...]:
        """The list as it is, or nothing of it where that would be too much."""
        if not isinstance(value, list) or len(value) > self._left:
            return ()
        found = [_number(each) for each in value]
        if None in found:
            return ()
        self._left -= len(found)
        return tuple(each for each in found if each is not None)


def _add_row(run: Run, entry: Mapping[str, Any], budget: _Budget) -> None:
    size = _integer(entry.get("size"))
    if size is None:
        return
    first, second = _mapping(entry, "out_of_place"), _mapping(entry, "in_place")
    run.benchmark.cpu_times |= "cpu_time" in first or "cpu_time" in second
    row = TableRow(
        size=size,
        type=_text(entry.get("type")),
        redop=_text(entry.get("redop")),
        out_of_place_busbw=_number(first.get("bus_bw")),
        in_place_busbw=_number(second.get("bus_bw")),
        out_of_place_wrong=_number(first.get("nwrong")),
        in_place_wrong=_number(second.get("nwrong")),
        place=run.benchmark.place,
        elements=_integer(entry.get("count")),
        root=_integer(entry.get("root")),
        out_of_place_time_us=_time(first),
        in_place_time_us=_time(second),
        out_of_place_algbw=_number(first.get("alg_bw")),
        in_place_algbw=_number(second.get("alg_bw")),
        out_of_place_iterations=_iterations(_mapping(entry, "out_of_place_per_iter"), budget),
        in_place_iterations=_iterations(_mapping(entry, "in_place_per_iter"), budget),
    )
    run.benchmark.rows.append(row)
    for wrong in (row.out_of_place_wrong, row.in_place_wrong):
        if wrong and run.bad is None:
            text = f"size {size}: {wrong:g} wrong values"
            run.bad = (size, f"{wrong:g}", run.benchmark.place, text)


def _time(half: Mapping[str, Any]) -> float | None:
    return _number(half.get("time", half.get("cpu_time")))


def _iterations(told: Mapping[str, Any], budget: _Budget) -> IterationTimes | None:
    if not told:
        return None
    processes = told.get("per_process_max_times_us")
    lists = processes if isinstance(processes, list) else []
    each = tuple(budget.times(one) for one in lists[:_MAX_RANKS])
    return IterationTimes(
        skipped=_integer(told.get("skipped_iterations")) or 0,
        min_us=_number(told.get("min_us")),
        max_us=_number(told.get("max_us")),
        avg_us=_number(told.get("avg_us")),
        p50_us=_number(told.get("p50_us")),
        p95_us=_number(told.get("p95_us")),
        p99_us=_number(told.get("p99_us")),
        stdev_us=_number(told.get("stdev_us")),
        cv_percent=_number(told.get("cv_pct")),
        times_us=budget.times(told.get("times_us")),
        process_max_us=each if any(each) else (),
    )


def _add_footer(document: Mapping[str, Any], run: Run) -> None:
    """The footer, whose keys the first version misspelled."""
    benchmark = run.benchmark
    bounds = _mapping(document, "out_of_bounds")
    average = _mapping(document, "average_bus_bandwidth") or _mapping(
        document, "average_bus_bandwidith"
    )
    benchmark.out_of_bounds = _integer(bounds.get("count"))
    benchmark.avg_busbw = _number(average.get("bandwidth", average.get("bandwidith")))
    benchmark.complete = benchmark.avg_busbw is not None
    if _text(bounds.get("okay")) == "false" and run.bad is None:
        count = str(benchmark.out_of_bounds or 0)
        run.bad = (None, count, benchmark.place, f"out_of_bounds: {count}, not okay")


def _add_errors(document: Mapping[str, Any], benchmark: Benchmark, evidence: LogEvidence) -> None:
    """What the library said last, which may be nothing."""
    errors = document.get("errors")
    told = (
        [e for e in errors if isinstance(e, str) and e.strip()] if isinstance(errors, list) else []
    )
    if not told:
        return
    benchmark.failed = benchmark.place
    reader = SignatureReader(TABLE)
    for text in told[:100]:
        hits = [needle for needle in reader.needles if needle.decode() in text]
        reader.read(Line(text=text[:4096], place=benchmark.place, shown=text[:1000]), hits)
    reader.finish(evidence)


def _mapping(owner: Mapping[str, Any], key: str) -> Mapping[str, Any]:
    value = owner.get(key)
    return value if isinstance(value, dict) else {}


def _mappings(owner: Mapping[str, Any], key: str, most: int) -> list[Mapping[str, Any]]:
    values = owner.get(key)
    return [v for v in values[:most] if isinstance(v, dict)] if isinstance(values, list) else []


def _text(value: object) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    return str(value).strip()[:255] if isinstance(value, str | int | float) else ""


def _integer(value: object) -> int | None:
    number = _number(value)
    return int(number) if number is not None else None


def _number(value: object) -> float | None:
    """A number, also one that stands as text; ``nan`` and ``inf`` are none."""
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        return None
    try:
        number = float(value)
    except (ValueError, OverflowError):
        return None
    return number if math.isfinite(number) else None
