"""nvbandwidth: matrices of copies between the GPUs of one host, and between them and its CPU.

Its GB are 1e9 bytes. In a matrix named ``GPU(row) <- GPU(column)`` the column sends.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from statistics import median
from typing import Any

from ncdiag.model.errors import UsageError
from ncdiag.model.imported import MAX_PAIRS, ForeignResults, PairFigure
from ncdiag.model.text import visible
from ncdiag.read.results.text import GB_GBIT, document, lines_of, rate

FORMAT = "nvbandwidth"
_TEXT = re.compile(rb"^nvbandwidth Version|^Running \w{4,80}\.\s*$", re.MULTILINE)
_JSON = re.compile(rb'"(?:nvbandwidth|bandwidth_matrix|bandwidth_description)"\s*:')
_RUNNING = re.compile(r"Running (\w{4,80})\.")
_DESCRIBED = re.compile(r"(?:memcpy|memory latency) .{0,80}\(row\).{0,40}\(column\).{0,60}")
_ROW = re.compile(r"\s{0,12}(\d{1,5})((?:\s{1,20}(?:N/A|\d{1,9}(?:\.\d{1,4})?))+)\s*\Z")
_COLUMNS = re.compile(r"\s{2,40}0(?:\s{1,20}\d{1,5})*\s*\Z")
_PROCESS = re.compile(r"Process\s{1,6}(\d{1,6}) \(([^)\s]{1,200})\): device\s{1,4}(\d{1,4})")
_HOST = re.compile(r"^(?:Hostname|Host(?: name)?): (\S{1,200})\s*\Z", re.IGNORECASE)
# A GPU this far below the others at the same copy is worth a line: GPUs of one host agree within
# a few per cent, and a PCIe link that lost a generation or half its lanes has half of it.
_ODD = 0.8
# With fewer, the median is one of two, and nobody can tell which one is odd.
_FEW = 3


@dataclass(slots=True)
class _Case:
    """One test; ``rows`` hold words as printed."""

    name: str
    description: str = ""
    rows: list[list[object]] = field(default_factory=list)
    cut: bool = False

    @property
    def arrow(self) -> str:
        """How rows and columns send: ``->``, ``<-`` or ``<->``."""
        found = re.search(r"\(row\) (<->|->|<-)", self.description)
        return found[1] if found else ""

    @property
    def between_gpus(self) -> bool:
        """Whether single copies from GPU to GPU in one direction are in it."""
        return (
            "GPU(row)" in self.description
            and "GPU(column)" in self.description
            and "GB/s" in self.description
            and self.arrow in {"->", "<-"}
            and "device_to_device" in self.name
            and "bidirectional" not in self.name
        )

    @property
    def with_cpu(self) -> bool:
        """Whether single copies between CPU and GPU in one direction are in it."""
        return self.name.startswith(("host_to_device_memcpy", "device_to_host_memcpy"))


def recognises(head: bytes) -> bool:
    """Whether a file that begins so is nvbandwidth's output."""
    return _TEXT.search(head) is not None or _JSON.search(head) is not None


def read(data: bytes, path: str) -> ForeignResults:
    """The links between GPUs, and notes on the rest; raises :class:`UsageError`."""
    results = ForeignResults(format=FORMAT, path=path, inside="")
    cases, devices = _from_json(data, results) if _JSON.search(data) else _from_text(data, results)
    chosen = _chosen(cases)
    size = max((len(row) for case in chosen for row in case.rows), default=0)
    size = max(size, *(len(case.rows) for case in chosen), 0)
    if size * size > MAX_PAIRS:
        raise UsageError(f"{visible(path)}: a matrix of {size} devices is too large")
    names = [devices.get(index, f"gpu{index}") for index in range(size)]
    results.endpoints = names
    for case in chosen:
        results.pairs += _pairs(case, names)
    results.notes += _notes([case for case in cases if case.with_cpu])
    if not results.pairs:
        others = f" (it has {', '.join(case.name for case in cases[:3])})" if cases else ""
        raise UsageError(
            f"{visible(path)}: no copies between two GPUs in it{others}; "
            "run nvbandwidth -t device_to_device_memcpy_read_ce"
        )
    results.cut |= any(case.cut for case in cases)
    return results


def _chosen(cases: list[_Case]) -> list[_Case]:
    """Copies by copy engines, else by kernels: the two differ, on a healthy host too."""
    between = [case for case in cases if case.between_gpus and case.rows]
    engines = [case for case in between if case.name.endswith("_ce")]
    chosen = engines or between
    reads = [case for case in chosen if "_read_" in case.name]
    return (reads or chosen)[:1]


def _pairs(case: _Case, names: list[str]) -> Iterator[PairFigure]:
    for row, words in enumerate(case.rows):
        for column, word in enumerate(words):
            figure = rate(word, GB_GBIT)
            if row == column or figure is None:
                continue
            source, target = (column, row) if case.arrow == "<-" else (row, column)
            yield PairFigure(source=names[source], target=names[target], gbit_per_s=figure)


def _notes(cases: list[_Case]) -> Iterator[str]:
    """GPUs whose copies to or from the CPU are slow beside those of the others."""
    for case in cases:
        figures = {
            column: figure
            for words in case.rows[:1]
            for column, word in enumerate(words)
            if (figure := rate(word, 1.0)) is not None
        }
        if len(figures) < _FEW:
            continue
        usual = median(figures.values())
        for column, figure in figures.items():
            if figure < _ODD * usual:
                yield (
                    f"{case.name}: gpu{column} reaches {figure:.4g} GB/s, the median of "
                    f"{len(figures)} is {usual:.4g} GB/s; look at its PCIe link"
                )


def _from_text(data: bytes, results: ForeignResults) -> tuple[list[_Case], dict[int, str]]:
    cases: list[_Case] = []
    devices: dict[int, str] = {}
    columns = 0
    for line in lines_of(data, table=True):
        if found := _RUNNING.match(line):
            cases.append(_Case(found[1]))
            columns = 0
        elif found := _PROCESS.match(line):
            devices[int(found[1])] = f"{found[2]}:gpu{found[3]}"
        elif found := _HOST.match(line):
            results.inside = found[1]
        elif cases and not cases[-1].description and _DESCRIBED.match(line):
            cases[-1].description = line.strip()
        elif cases and cases[-1].description and not columns and _COLUMNS.match(line):
            columns = len(line.split())
        elif columns and (found := _ROW.match(line)) and len(cases[-1].rows) == int(found[1]):
            words: list[object] = [*found[2].split()]
            cases[-1].rows.append(words)
            cases[-1].cut |= len(words) < columns
    for case in cases:
        case.cut |= case.between_gpus and len(case.rows) < max(map(len, case.rows), default=0)
    return cases, devices


def _from_json(data: bytes, results: ForeignResults) -> tuple[list[_Case], dict[int, str]]:
    found, results.cut = document(data)
    root: Any = (found or {}).get("nvbandwidth", found or {})
    if not isinstance(root, dict):
        return [], {}
    host = root.get("hostname") or root.get("Hostname") or root.get("host")
    results.inside = host.strip()[:200] if isinstance(host, str) else ""
    error = root.get("error")
    if isinstance(error, str) and error.strip():
        results.notes.append(f"it says: {visible(error.strip())[:200]}")
        results.failed = True
    listed = root.get("testcases")
    cases = []
    for entry in listed if isinstance(listed, list) else ():
        if not isinstance(entry, dict):
            continue
        matrix = entry.get("bandwidth_matrix")
        case = _Case(str(entry.get("name", "")), str(entry.get("bandwidth_description", "")))
        rows = matrix if isinstance(matrix, list) else []
        case.rows = [row for row in rows if isinstance(row, list)]
        case.cut = case.between_gpus and len(case.rows) < max(map(len, case.rows), default=0)
        if entry.get("status") == "Error":
            results.notes.append(f"{visible(case.name)}: ended in an error")
            results.failed = True
        cases.append(case)
    return cases, {}
