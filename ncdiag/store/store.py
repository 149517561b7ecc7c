"""The store: records runs, and answers what a host, a link or a collective did over time.

>>> with Store.open(path, write=True) as store:
...     store.add(report, directory=directory)
>>> with Store.open(path) as store:
...     past = store.bench_history("all_reduce", hosts=8)
"""

import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Literal

import msgspec

from ncdiag.model.bench import BenchReport
from ncdiag.model.json_text import encode
from ncdiag.model.verdict import SweepReport
from ncdiag.store import benches, reading
from ncdiag.store.connection import told
from ncdiag.store.numbering import storable
from ncdiag.store.open_file import OpenFile
from ncdiag.store.records import HostPoint, LinkPoint, LinkTable, PastCurve, Run
from ncdiag.store.redact import redacted

Kind = Literal["sweep", "bench", "import"]

# More than anybody reads, and than any trend needs.
ALL: Final = 1_000_000


@dataclass(frozen=True, slots=True)
class Added:
    """The number that a run got, and whether the store had it before."""

    number: int
    again: bool


class Store(OpenFile):
    """An open store; close it, or use it in a ``with`` statement.

    Every method raises :class:`UsageError` or :class:`UndecidedError` with one line where the file
    fails. Times are UTC in ISO 8601 as text, of which a beginning will do: ``2026-11``. Histories
    have the oldest first, and are of the newest ``last`` runs.
    """

    def add(
        self,
        report: SweepReport | BenchReport,
        *,
        directory: Path | None = None,
        kind: Kind | None = None,
        content: str | None = None,
    ) -> Added:
        """Record ``report``, whole or not at all; returns when it is safely in the file.

        The same run counts once: whoever records it again, as a sweep that was resumed, replaces
        it. ``content`` tells runs apart that were imported, such as a digest of what was read;
        without it the time of its start, hosts and settings do. ``directory`` is where the report
        is.
        """
        kind = kind or _kind(report)
        identity = identity_of(report, kind, content)
        with told(self.path), self._transaction():
            found = self._database.execute(
                "SELECT id FROM runs WHERE identity = ?", (identity,)
            ).fetchone()
            number = self._put_run(report, kind, identity, directory, found and found[0])
            if isinstance(report, BenchReport):
                benches.add_bench(self._database, number, report)
            else:
                # numpy, which no reader of benchmarks needs
                from ncdiag.store.sweeps import add_sweep

                add_sweep(self._database, number, report)
        return Added(number, found is not None)

    def runs(
        self, *, kind: Kind | None = None, since: str | None = None, last: int = ALL
    ) -> list[Run]:
        """The recorded runs."""
        with told(self.path):
            return reading.runs(self._database, kind=kind, since=since, last=last)

    def host_history(
        self, host: str, *, since: str | None = None, last: int = ALL
    ) -> list[HostPoint]:
        """``host`` in each sweep (or import) that it took part in."""
        with told(self.path):
            return reading.host_history(self._database, host, since=since, last=last)

    def link_history(
        self,
        source: str,
        target: str,
        *,
        rail: int | None = None,
        since: str | None = None,
        last: int = ALL,
    ) -> list[LinkPoint]:
        """What was measured from ``source`` to ``target``; of each run, one a rail."""
        with told(self.path):
            return reading.link_history(
                self._database, source, target, rail=rail, since=since, last=last
            )

    def bench_history(
        self,
        collective: str,
        *,
        hosts: int | None = None,
        engine: str | None = None,
        since: str | None = None,
        before: str | None = None,
        last: int = 20,
    ) -> list[PastCurve]:
        """The recorded curves of ``collective``, each with its plateau and all its points.

        ``hosts`` is their number: curves of other sizes do not compare. ``before`` leaves out
        benchmarks that started then or later, as the one that is drawn right now.
        """
        with told(self.path):
            return benches.past_curves(
                self._database,
                collective,
                hosts=hosts,
                engine=engine,
                since=since,
                before=before,
                last=last,
            )

    def collectives(self) -> list[str]:
        """All collectives that there are curves of."""
        with told(self.path):
            return benches.collectives(self._database)

    def host_names(self) -> list[str]:
        """Every host that there is a verdict of, by name."""
        with told(self.path):
            return reading.host_names(self._database)

    def links_of(self, run: int) -> Iterator[LinkTable]:
        """All links of the run with that number, those of one source and rail at a time."""
        with told(self.path):
            yield from reading.links_of(self._database, run)

    def curves_of(self, run: int) -> list[PastCurve]:
        """All curves of the benchmark with that number."""
        with told(self.path):
            return benches.curves_of(self._database, run)

    def hosts_of(self, run: int) -> Iterator[tuple[str, HostPoint]]:
        """All hosts of the run with that number, with their names."""
        with told(self.path):
            yield from reading.hosts_of(self._database, run)

    def _put_run(
        self,
        report: SweepReport | BenchReport,
        kind: Kind,
        identity: str,
        directory: Path | None,
        number: int | None,
    ) -> int:
        """The run's row; of what was recorded before under this ``number``, nothing remains."""
        if number is not None:
            self._database.execute("DELETE FROM runs WHERE id = ?", (number,))
        engine, launcher, mode, verdict, collective = _about(report)
        where = None if directory is None else storable(str(directory.absolute()))
        added = self._database.execute(
            "INSERT INTO runs (id, identity, kind, started, seconds, verdict, interrupted, engine,"
            " launcher, mode, hosts, directory, settings, versions, collective)"
            " VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
            (
                number,
                identity,
                kind,
                storable(report.started),
                report.seconds,
                verdict,
                report.interrupted,
                storable(engine),
                storable(launcher),
                mode and storable(mode),
                len(_hosts(report)),
                where,
                _json(redacted(report.settings)),
                _json(redacted(report.versions)),
                collective and storable(collective),
            ),
        ).lastrowid
        return int(added or 0)


def _kind(report: SweepReport | BenchReport) -> Kind:
    return "bench" if isinstance(report, BenchReport) else "sweep"


def _about(report: SweepReport | BenchReport) -> tuple[str, str, str | None, str, str | None]:
    """Engine, launcher, mode, verdict and collective."""
    if isinstance(report, BenchReport):
        return report.engine, report.launcher, None, report.verdict.value, report.collective
    plan = report.plan
    return plan.engine, plan.launcher, plan.mode, report.diagnosis.verdict.value, None


def _hosts(report: SweepReport | BenchReport) -> Sequence[str]:
    if isinstance(report, BenchReport):
        return sorted({name for curve in report.curves for name in curve.hosts})
    return sorted(host.name for host in report.diagnosis.hosts)


def identity_of(
    report: SweepReport | BenchReport, kind: Kind | None = None, content: str | None = None
) -> str:
    """The same for one run whenever and from wherever it is recorded, as :meth:`Store.add` says."""
    kind = kind or _kind(report)
    own = [report.started, sorted(report.settings.items())]
    told_apart = own if content is None else [content]
    engine, launcher, mode, _verdict, collective = _about(report)
    data = encode([kind, *told_apart, engine, launcher, mode, collective, _hosts(report)])
    return hashlib.sha256(data).hexdigest()


def _json(texts: dict[str, str]) -> str:
    return msgspec.json.encode(
        {storable(name): storable(value) for name, value in texts.items()}
    ).decode()
