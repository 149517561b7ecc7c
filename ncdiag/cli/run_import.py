"""The steps of ``ncdiag import``: find files, read them, judge, write the reports."""

import hashlib
import os
import re
import stat
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path

from rich.console import Console

from ncdiag import __version__
from ncdiag.cli import console as consoles
from ncdiag.cli.announcing import Outlets
from ncdiag.cli.keeping import keep
from ncdiag.cluster.inventory import read_hosts
from ncdiag.diagnose.bench import judge
from ncdiag.diagnose.bench.judge import Expect
from ncdiag.expect.collective import CollectiveExpectation, expect_collective
from ncdiag.expect.machine import Machine
from ncdiag.expect.traffic import Collective
from ncdiag.measure.directory import prepare_directory
from ncdiag.measure.imported import (
    LAUNCHER,
    Setting,
    bench_runs,
    split_runs,
    sweep_lines,
)
from ncdiag.measure.imported_hosts import odd_hosts
from ncdiag.measure.imported_names import name_ends, with_names_of, with_unnamed_ends
from ncdiag.measure.journal import Journal, Line
from ncdiag.measure.record import SweepRecord
from ncdiag.model.bench import (
    BenchFinding,
    BenchReport,
    BenchSeverity,
)
from ncdiag.model.errors import ExitCode, UsageError
from ncdiag.model.host import Host
from ncdiag.model.imported import ForeignResults
from ncdiag.model.text import visible
from ncdiag.model.units import format_count
from ncdiag.model.verdict import SweepReport, Verdict
from ncdiag.read.results.formats import FORMATS, HEAD_BYTES, MAX_BYTES, format_of, read_results
from ncdiag.report import json_report, terminal
from ncdiag.report import write as sweep_files
from ncdiag.report.bench import json_report as bench_json
from ncdiag.report.bench import presentable as bench_presentable
from ncdiag.report.bench import text as bench_text
from ncdiag.report.bench import write as bench_files
from ncdiag.report.presentable import presentable

LINKS = "links"
# Each is opened: a directory with more is no folder of results, but a mistyped path.
_MAX_FILES = 20_000
# So many still fit a screen with the verdict; what else there is is counted.
_MAX_NOTES = 8
_NAMED = re.compile(r"([\w.:-]{1,255}(?:,[\w.:-]{1,255}){0,100000})=(.+)\Z", re.DOTALL)
_WORST_FIRST = (Verdict.FAULTY, Verdict.INCONCLUSIVE, Verdict.HEALTHY)


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """What the operator wants made of the results."""

    faulty_below: float
    collective: Collective | None
    machine: Machine | None
    output: Path | None
    force: bool
    as_json: bool
    record: bool
    store: Path | None
    quiet: bool
    outlets: Outlets = field(default_factory=Outlets)


@dataclass(slots=True)
class Found:
    """What was read: results, the hosts that were described, and when the files were written."""

    results: list[ForeignResults]
    hosts: tuple[Host, ...]
    started: str
    digest: str


def read_all(paths: Sequence[str], hosts: str | None, messages: Console) -> Found:
    """Read every file; raises :class:`UsageError` where one cannot be used.

    In a directory, files that are no results, or none that can be judged, are passed over.
    """
    known = () if hosts is None else read_hosts(hosts)
    results: list[ForeignResults] = []
    newest, digest, passed = 0.0, hashlib.sha256(), 0
    complaints: list[str] = []
    for names, path, listed in _files(paths):
        data, written = _content(path, whole=not listed)
        if data is None:
            passed += 1
            continue
        try:
            found = with_unnamed_ends(read_results(data, path))
        except UsageError as error:
            if not listed:
                raise
            complaints.append(f"{error}")
            continue
        if names:
            found = name_ends(found, names)
        results.append(with_names_of(found, known) if known else found)
        newest = max(newest, written)
        digest.update(hashlib.sha256(data).digest())
    if not results:
        raise UsageError(complaints[0] if complaints else _nothing(paths))
    for complaint in complaints[:_MAX_NOTES]:
        messages.print(f"passed over: {complaint}", soft_wrap=True)
    if len(complaints) > _MAX_NOTES:
        messages.print(f"passed over: {len(complaints) - _MAX_NOTES} more", soft_wrap=True)
    if passed:
        messages.print(f"passed over, no results: {format_count(passed, 'file')}", soft_wrap=True)
    when = datetime.fromtimestamp(newest, UTC)
    return Found(_once(results), known, f"{when:%Y-%m-%dT%H:%M:%SZ}", digest.hexdigest())


def _nothing(paths: Sequence[str]) -> str:
    known = ", ".join(one.name for one in FORMATS)
    return f"{visible(', '.join(paths))[:300]}: no results in it; known are {known}"


def _files(paths: Sequence[str]) -> Iterator[tuple[list[str], str, bool]]:
    """Names, path, and whether it was only found in a directory, of every file."""
    count = 0
    for given in paths:
        named = None if os.path.lexists(given) else _NAMED.match(given)
        names, path = (named[1].split(","), named[2]) if named else ([], given)
        inside = sorted(_inside(path)) if os.path.isdir(path) else [path]  # noqa: PTH112 - as typed
        if names and os.path.isdir(path):  # noqa: PTH112
            raise UsageError(f"{visible(path)}: names go with a file, not with a directory")
        for file in inside:
            count += 1
            if count > _MAX_FILES:
                raise UsageError(f"more than {_MAX_FILES} files; import fewer at a time")
            yield names, file, os.path.isdir(path)  # noqa: PTH112


def _inside(path: str) -> Iterator[str]:
    for folder, _, files in os.walk(path):
        yield from (os.path.join(folder, name) for name in files)  # noqa: PTH118


def _content(path: str, *, whole: bool) -> tuple[bytes | None, float]:
    """A file and when it was written; without ``whole`` only if it looks like results."""
    shown = visible(path)
    try:
        with os.fdopen(os.open(path, os.O_RDONLY | os.O_NONBLOCK), "rb") as file:
            told = os.fstat(file.fileno())
            if not stat.S_ISREG(told.st_mode):
                if not whole:
                    return None, 0.0
                raise UsageError(f"{shown}: this is no file")
            head = file.read(HEAD_BYTES)
            if not whole and format_of(head) is None:
                return None, 0.0
            return head + file.read(MAX_BYTES + 1 - len(head)), told.st_mtime
    except OSError as error:
        raise UsageError(f"{shown}: cannot be read: {error.strerror}") from error


def _once(results: list[ForeignResults]) -> list[ForeignResults]:
    """A tool that writes its matrix as text and as JSON counts once: the one read first."""
    kept: list[ForeignResults] = []
    seen: set[tuple[str, str, frozenset[str]]] = set()
    for one in results:
        key = one.format, os.path.dirname(one.path), frozenset(one.endpoints)  # noqa: PTH120
        if one.format == "clusterkit" and key in seen:
            continue
        seen.add(key)
        kept.append(one)
    return kept


def conclude(found: Found, wanted: Wanted, results: Console) -> ExitCode:
    """Judge, write and print; the exit code is that of the worst verdict."""
    split = split_runs(found.results)
    _check_formats(split)
    setting = Setting(
        started=found.started,
        faulty_below=wanted.faulty_below,
        versions={"imported by ncdiag": __version__},
        files=len(found.results),
    )
    lines = sweep_lines(split, found.hosts, setting) if any(one.pairs for one in split) else None
    benches = _benches(split, found, wanted)
    several = len(benches) + (lines is not None) > 1
    top = prepare_directory(wanted.output, "import", force=wanted.force)
    reports: list[SweepReport | BenchReport] = []
    if lines is not None:
        reports.append(_links(lines, top / LINKS if several else top, found, wanted, results))
    for report in benches:
        folder = top / report.collective if several else top
        _bench(report, folder, found, wanted, results)
        reports.append(report)
    wanted.outlets.announce(*reports, command="import", where=top)
    worst = min(map(_verdict_of, reports), key=_WORST_FIRST.index)
    return worst.exit_code


def _verdict_of(report: SweepReport | BenchReport) -> Verdict:
    return report.verdict if isinstance(report, BenchReport) else report.diagnosis.verdict


def _check_formats(results: Sequence[ForeignResults]) -> None:
    tools = sorted({one.format for one in results})
    if len(tools) > 1:
        raise UsageError(
            f"results of several tools, which do not compare: {', '.join(tools)}; "
            "import each by itself"
        )


def _links(
    lines: list[Line], directory: Path, found: Found, wanted: Wanted, results: Console
) -> SweepReport:
    directory.mkdir(parents=True, exist_ok=True)
    with Journal(directory) as journal:
        journal.append(lines)
        journal.sync()
    report = SweepRecord.of(lines).report()
    sweep_files.write_all(report, directory)
    if wanted.as_json:
        consoles.write(json_report.render(presentable(report)))
    else:
        terminal.render_terminal(report, results, directory)
    _keep(report, directory, found, wanted)
    return report


def _bench(
    report: BenchReport, directory: Path, found: Found, wanted: Wanted, results: Console
) -> None:
    bench_files.write_all(report, directory)
    if wanted.as_json:
        consoles.write(bench_json.render(bench_presentable.presentable(report)))
    else:
        bench_text.render_terminal(report, results, directory)
    _keep(report, directory, found, wanted)


def _keep(report: SweepReport | BenchReport, directory: Path, found: Found, wanted: Wanted) -> None:
    if wanted.record:
        keep(
            report,
            wanted.store,
            directory=directory,
            kind="import",
            content=found.digest,
            quiet=wanted.quiet,
        )


def _benches(results: Sequence[ForeignResults], found: Found, wanted: Wanted) -> list[BenchReport]:
    runs = bench_runs(results, wanted.collective)
    reports = []
    for collective in sorted(runs):
        judged = judge(
            runs[collective],
            collective,
            expect=_expectation(wanted.machine, collective),
            faulty_below=wanted.faulty_below,
            whole=not any(one.cut or one.failed for one in results),
        )
        odd = odd_hosts(judged.curves, wanted.faulty_below)
        report = BenchReport(
            started=found.started,
            seconds=0.0,
            collective=collective.value,
            engine=results[0].format,
            launcher=LAUNCHER,
            verdict=_verdict(judged.verdict, odd),
            curves=judged.curves,
            findings=(*odd, *judged.findings),
            settings={
                "faulty below": f"{wanted.faulty_below:g} of the yardstick",
                "imported": f"{format_count(len(results), 'file')} of {results[0].format}",
                **({"machine": visible(wanted.machine.name)} if wanted.machine else {}),
            },
            versions={"imported by ncdiag": __version__},
            notes=(*_notes(results), *judged.notes),
        )
        reports.append(report)
    return reports


def _verdict(judged: Verdict, odd: Sequence[BenchFinding]) -> Verdict:
    """The worse of two: what was judged, and what odd hosts say."""
    if any(one.severity is BenchSeverity.FAULT for one in odd):
        return Verdict.FAULTY
    return Verdict.INCONCLUSIVE if odd and judged is Verdict.HEALTHY else judged


def _expectation(machine: Machine | None, collective: Collective) -> Expect:
    def expect(hosts: int, ranks_per_host: int) -> CollectiveExpectation | None:
        if machine is None or hosts * ranks_per_host < 2:
            return None
        return expect_collective(machine, collective, hosts, gpus_per_node=ranks_per_host)

    return expect


def _notes(results: Sequence[ForeignResults]) -> list[str]:
    notes = []
    for one in results:
        name = visible(os.path.basename(one.path))  # noqa: PTH119 - nothing is opened
        if one.unnamed:
            notes.append(
                f"{name} does not name its hosts; HOST,...={name} does, in the order of the ranks"
            )
        notes += [f"{name}: {note}" for note in one.notes]
        if one.cut:
            notes.append(f"{name} is cut short: what it has was used")
    kept = list(dict.fromkeys(notes))
    more = [f"and {len(kept) - _MAX_NOTES} more notes of its files"]
    return kept[:_MAX_NOTES] + (more if len(kept) > _MAX_NOTES else [])
