"""What was read, as tables: inputs, hosts, communicators, environments, benchmarks."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from ncdiag.model.finding import BenchmarkSummary, Postmortem
from ncdiag.model.log import CommunicatorState, LogEvidence, NcclProcess
from ncdiag.model.nodes import fold
from ncdiag.model.text import visible

# Differ between processes by design.
_OWN_VARIABLES = frozenset({"NCCL_DEBUG_FILE", "NCCL_HOSTID", "NCCL_TOPO_DUMP_FILE"})
_LONGEST_CELL = 300


class Table(NamedTuple):
    """A titled table; ``numbers`` are the columns that hold figures."""

    title: str
    columns: tuple[str, ...]
    rows: Sequence[tuple[str, ...]]
    numbers: frozenset[int] = frozenset()


def tables(postmortem: Postmortem, evidence: LogEvidence) -> list[Table]:
    """Every table that has a row, in the order in which they are asked for."""
    made = (
        Table(
            "Hosts",
            ("hosts", "procs", "library", "network", "NICs", "channels", "GPUDirect"),
            _printable(_hosts(evidence.processes)),
            frozenset({1}),
        ),
        Table(
            "Communicators",
            ("communicator", "ranks", "seen", "started", "completed", "ended", "aborted"),
            _printable(_communicators(evidence.processes)),
            frozenset({1, 2, 3, 4, 5, 6}),
        ),
        Table(
            "Environment that differs",
            ("variable", "value", "hosts"),
            _printable(_differences(evidence.processes)),
        ),
        Table(
            "Benchmarks",
            ("test", "ranks", "average GB/s", "peak GB/s", "out of bounds", "complete"),
            _printable(map(_benchmark, postmortem.benchmarks)),
            frozenset({1, 2, 3, 4}),
        ),
        Table(
            "Read",
            ("file", "lines", "bytes", "holds", "trouble"),
            _printable(_inputs(postmortem)),
            frozenset({1, 2}),
        ),
    )
    return [_without_empty_columns(table) for table in made if table.rows]


def _without_empty_columns(table: Table) -> Table:
    kept = [n for n in range(len(table.columns)) if any(row[n] for row in table.rows)]
    return Table(
        table.title,
        tuple(table.columns[n] for n in kept),
        [tuple(row[n] for n in kept) for row in table.rows],
        frozenset(kept.index(n) for n in table.numbers if n in kept),
    )


def _printable(rows: Iterable[Sequence[object]]) -> list[tuple[str, ...]]:
    return [tuple(_cell(value) for value in row) for row in rows]


def _cell(value: object) -> str:
    text = "" if value is None else f"{value:,}" if isinstance(value, int) else str(value)
    text = text if len(text) <= _LONGEST_CELL else f"{text[:_LONGEST_CELL]}..."
    return visible(text)


def _hosts(processes: Sequence[NcclProcess]) -> Iterator[Sequence[object]]:
    """A row for all hosts that are alike: the odd one out stands alone."""
    by_host: defaultdict[str, list[NcclProcess]] = defaultdict(list)
    for process in processes:
        by_host[process.host].append(process)
    alike: defaultdict[tuple[object, ...], list[str]] = defaultdict(list)
    for host, group in by_host.items():
        alike[_host(group)].append(host)
    for facts, hosts in sorted(alike.items(), key=lambda item: -len(item[1])):
        yield fold(hosts), *facts


def _host(group: Sequence[NcclProcess]) -> tuple[object, ...]:
    transports: Counter[str] = Counter()
    for process in group:
        transports.update(process.transports)
    return (
        len(group),
        _once(f"{one.library or ''} {version}" for one in group for version in one.versions),
        _once(name for one in group for name in one.networks),
        _once(name for one in group for name in one.nics),
        ", ".join(f"{name} {number}" for name, number in transports.most_common()),
        _gpudirect(group),
    )


def _gpudirect(group: Sequence[NcclProcess]) -> str:
    direct = sum(one.gdr_channels for one in group)
    plain = sum(one.plain_channels for one in group)
    if not direct and not plain:
        return ""
    return "some" if direct and plain else "on" if direct else "off"


def _communicators(processes: Sequence[NcclProcess]) -> Iterator[Sequence[object]]:
    groups: defaultdict[tuple[str, int | None], list[CommunicatorState]] = defaultdict(list)
    for process in processes:
        for one in process.communicators:
            name = one.comm_id or f"{one.pointer} of {process.host}"
            groups[name, one.ranks].append(one)
    for (name, ranks), states in groups.items():
        yield (
            name,
            ranks,
            len(states),
            sum(one.started is not None for one in states),
            sum(one.completed is not None for one in states),
            sum(one.ended is not None for one in states),
            sum(one.aborted for one in states),
        )


def _differences(processes: Sequence[NcclProcess]) -> Iterator[Sequence[object]]:
    """Variables that processes have with different values, or only some of them at all."""
    telling = [one for one in processes if one.environment]
    names = dict.fromkeys(name for one in telling for name in one.environment)
    for name in names:
        values: defaultdict[str | None, list[str]] = defaultdict(list)
        for one in telling:
            values[one.environment.get(name)].append(one.host)
        if len(values) > 1 and name not in _OWN_VARIABLES:
            for value, hosts in values.items():
                shown = "(not set)" if value is None else value
                yield name, shown, f"{fold(dict.fromkeys(hosts))} ({_processes(len(hosts))})"


def _processes(number: int) -> str:
    return "1 process" if number == 1 else f"{number:,} processes"


def _benchmark(one: BenchmarkSummary) -> Sequence[object]:
    return (
        one.test or "?",
        one.ranks,
        _figure(one.avg_busbw_gb_per_s),
        _figure(one.peak_busbw_gb_per_s),
        one.out_of_bounds,
        "yes" if one.complete else "no",
    )


def _figure(value: float | None) -> str | None:
    return None if value is None else f"{value:.2f}"


def _inputs(postmortem: Postmortem) -> Iterator[Sequence[object]]:
    for one in postmortem.inputs:
        trouble = one.error or ("not read to its end" if one.truncated else "")
        yield one.path, one.lines, one.bytes, ", ".join(one.kinds), trouble


def _once(texts: Iterable[str]) -> str:
    return ", ".join(dict.fromkeys(text.strip() for text in texts))
