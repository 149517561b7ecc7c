"""OSU micro-benchmarks between two hosts: ``osu_bw`` and ``osu_mbw_mr``, whose MB are 1e6 bytes.

They print no host, so the two ends are left to be named.
"""

import re
from pathlib import PurePath
from statistics import median

from ncdiag.model.errors import UsageError
from ncdiag.model.imported import ForeignResults, PairFigure
from ncdiag.model.text import visible
from ncdiag.read.results.text import MB_GBIT, lines_of, rate

FORMAT = "osu"
_TITLE = re.compile(
    r"# OSU ((?:MPI|NCCL|SHMEM|XCCL|UPC)(?:-[A-Z]+)?)(.{0,80}?) ?(?:Test|Benchmark)?"
    r"(?: v[\d.]+)?\s*\Z"
)
_ANY = re.compile(rb"^# OSU (?:MPI|NCCL|XCCL)", re.MULTILINE)
_PAIRS = re.compile(r"# \[ pairs: (\d{1,6}) \]")
_VALIDATED = re.compile(r"# Size\b.*\bValidation\s*\Z")
_WRONG = re.compile(r"DATA VALIDATION ERROR\b")
_ROW = re.compile(r"\s*(\d{1,15})\s{1,40}(\d{1,12}(?:\.\d{1,6})?)(?:\s|\Z)")


def recognises(head: bytes) -> bool:
    """Whether a file that begins so is the output of such a test."""
    return _ANY.search(head) is not None


def read(data: bytes, path: str) -> ForeignResults:
    """The one direction that the file tells of, its ends unnamed; raises :class:`UsageError`."""
    runs = _runs(lines_of(data, table=True))
    told = [run for run in runs if run.figure is not None]
    wrong = [run for run in told if run.wrong]
    if not told:
        raise UsageError(f"{visible(path)}: {_why_nothing(runs)}")
    name = PurePath(path).name or FORMAT
    ends = [f"{name}.rank0", f"{name}.rank1"]
    results = ForeignResults(
        format=FORMAT, path=path, endpoints=list(ends), unnamed=list(ends), sums=False
    )
    figures = [run.figure or 0.0 for run in told]
    best = max(told, key=lambda run: run.figure or 0.0)
    results.pairs.append(
        PairFigure(
            source=ends[0],
            target=ends[1],
            gbit_per_s=None if wrong else median(figures),
            min_gbit_per_s=min(figures) if len(figures) > 1 and not wrong else None,
            size_bytes=best.size,
            largest_bytes=min(run.largest for run in told),
            kind=" and ".join(sorted({run.kind for run in told})),
            error="wrong data arrived" if wrong else None,
            damaged=bool(wrong),
        )
    )
    if wrong:
        results.notes.append("its validation failed: wrong data arrived, which is worse than slow")
    pairs = max(run.pairs for run in told)
    if pairs > 1:
        results.notes.append(f"the figure is the sum of {pairs} pairs of processes")
    left_out = [run.title for run in runs if run.figure is None]
    if left_out:
        results.notes.append(f"not bandwidth in one direction, left out: {', '.join(left_out)}")
    return results


class _Run:
    """One test: its title, the largest bandwidth with its size, and the largest size."""

    def __init__(self, title: str, library: str) -> None:
        self.title = title
        self.library = library
        lower = title.lower()
        self.judged = "bandwidth" in lower and "bi-directional" not in lower
        self.pairs = 1
        self.figure: float | None = None
        self.size: int | None = None
        self.largest = 0
        self.validated = False
        self.wrong = False

    @property
    def kind(self) -> str:
        """What its figures depend on: of buffers of a GPU, or by several processes, is another."""
        several = f" of {self.pairs} pairs" if self.pairs > 1 else ""
        return f"{self.library} {self.title}{several}"

    def row(self, size: int, word: str, rest: str) -> None:
        """Take a row, of which ``rest`` stands after the bandwidth."""
        figure = rate(word, MB_GBIT) if self.judged else None
        if figure is not None:
            self.largest = max(self.largest, size)
        self.wrong |= self.validated and rest.split()[-1:] == ["Fail"]
        if figure is not None and figure > (self.figure or 0.0):
            self.figure, self.size = figure, size


def _runs(lines: list[str]) -> list[_Run]:
    runs: list[_Run] = []
    for line in lines:
        if line.startswith("# OSU") and (found := _TITLE.match(line)):
            runs.append(_Run(found[2].strip(), found[1]))
        elif runs and (found := _PAIRS.match(line)):
            runs[-1].pairs = int(found[1])
        elif runs and (found := _ROW.match(line)):
            runs[-1].row(int(found[1]), found[2], line[found.end() :])
        elif runs and _VALIDATED.match(line):
            runs[-1].validated = True
        elif runs and _WRONG.search(line):
            runs[-1].wrong = True
    return runs


def _why_nothing(runs: list[_Run]) -> str:
    judged = [run for run in runs if run.judged]
    if judged:
        return "an OSU bandwidth test without a single result in it"
    if any("Bi-Directional" in run.title for run in runs):
        return (
            "osu_bibw prints the sum of both directions, which says of no link what it reaches; "
            "import osu_bw"
        )
    return "an OSU test that measures no bandwidth between two hosts; osu_bw and osu_mbw_mr do"
