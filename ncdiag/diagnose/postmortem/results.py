"""What benchmark tables show: wrong values, one rank, a cliff, a slow host."""

from collections.abc import Iterator, Sequence
from statistics import median

from ncdiag.diagnose.postmortem.benchmarks import peak_busbw, rank_count
from ncdiag.diagnose.postmortem.case import Case
from ncdiag.diagnose.postmortem.draft import Draft, derived
from ncdiag.diagnose.postmortem.thresholds import (
    CLIFF_BACK_SHARE,
    CLIFF_FLOOR_GB_PER_S,
    CLIFF_SHARE,
    REPORTING_HOSTS,
    SLOW_PAIR_SHARE,
)
from ncdiag.model.benchmark import Benchmark, TableRow
from ncdiag.model.finding import FindingClass as C
from ncdiag.model.finding import Suspect, SuspectKind
from ncdiag.model.log import TABLE_FORM
from ncdiag.model.units import format_share


def results(case: Case) -> list[Draft]:
    """Findings of all tables."""
    benchmarks = case.evidence.benchmarks
    found = (
        _wrong_values(benchmarks, case),
        _single_rank(benchmarks),
        _cliff(benchmarks),
        *_slow_nodes(benchmarks, case),
    )
    return [draft for draft in found if draft]


def _wrong_values(benchmarks: Sequence[Benchmark], case: Case) -> Draft | None:
    """Wrong elements in a row, or a footer that counts them."""
    bad = [b for b in benchmarks if b.out_of_bounds or any(_wrong(row) for row in b.rows)]
    if not bad:
        return None
    row = next((row for row in bad[0].rows if _wrong(row)), None)
    told = next((e.attributes for e in case.evidence.events if e.form == TABLE_FORM), {})
    attributes = {"size": str(row.size), "wrong": _number(_wrong(row))} if row else dict(told)
    place = (row.place if row else None) or bad[0].end or bad[0].place
    draft = derived(C.DATA_CORRUPTION, place, "wrong values", attributes=attributes)
    draft.count_as(len(bad))
    clean = {h for b in benchmarks if b.complete and b not in bad for h in _hosts(b, case)}
    shared = set.intersection(*(_hosts(b, case) for b in bad)) - clean
    for host in sorted(shared) if len(shared) == 1 else ():
        draft.suspects.append(Suspect(kind=SuspectKind.HOST, name=host))
        if len(bad) >= REPORTING_HOSTS:
            draft.isolate[host] = f"{C.DATA_CORRUPTION} in every run with {host}"
    return draft


def _wrong(row: TableRow) -> float:
    return (row.out_of_place_wrong or 0) + (row.in_place_wrong or 0) and (
        row.out_of_place_wrong or row.in_place_wrong or 0
    )


def _number(value: float) -> str:
    return str(int(value)) if value == int(value) else f"{value:g}"


def _hosts(benchmark: Benchmark, case: Case) -> set[str]:
    return {case.hosts.resolve(rank.host) for rank in benchmark.ranks if rank.host}


def _single_rank(benchmarks: Sequence[Benchmark]) -> Draft | None:
    """A table over one rank: its bus bandwidth is 0 by definition."""
    alone = [b for b in benchmarks if (rank_count(b) or b.expected_ranks) == 1 and b.rows]
    alone = [b for b in alone if not peak_busbw(b)]
    if not alone:
        return None
    draft = derived(C.SINGLE_RANK_RUN, alone[0].place, "its bus bandwidth is 0 by definition")
    draft.count_as(len(alone))
    if len(alone) > 1:
        draft.notes.append(
            f"{len(alone)} such tables: the program was built, or launched, without MPI."
        )
    return draft


def _cliff(benchmarks: Sequence[Benchmark]) -> Draft | None:
    for benchmark in benchmarks:
        for rows in _series(benchmark):
            row = next(_cliffs(rows), None)
            if row:
                draft = derived(
                    C.BANDWIDTH_CLIFF,
                    row.place or benchmark.place,
                    f"bandwidth falls to half or less at {row.size} bytes",
                    attributes={"size": str(row.size)},
                )
                if benchmark.test:
                    draft.notes.append(f"In {benchmark.test}, from {row.size} bytes on.")
                return draft
    return None


def _series(benchmark: Benchmark) -> Iterator[list[TableRow]]:
    """Rows of one kind by growing size; a table may hold several types or operations."""
    rows: dict[tuple[str, str], list[TableRow]] = {}
    for row in benchmark.rows:
        known = rows.setdefault((row.type, row.redop), [])
        if known and row.size <= known[-1].size:
            if row.size == known[-1].size:
                continue
            yield known
            known = rows[row.type, row.redop] = []
        known.append(row)
    yield from rows.values()


def _cliffs(rows: Sequence[TableRow]) -> Iterator[TableRow]:
    for before, at, after in zip(rows, rows[1:], rows[2:], strict=False):
        halves = [
            half
            for half in ("out_of_place_busbw", "in_place_busbw")
            if getattr(before, half) is not None and getattr(at, half) is not None
        ]
        if halves and all(_falls(before, at, after, half) for half in halves):
            yield at


def _falls(before: TableRow, at: TableRow, after: TableRow, half: str) -> bool:
    """Whether bandwidth falls by half from one size to the next and is not back at the third."""
    level: float = getattr(before, half)
    if level < CLIFF_FLOOR_GB_PER_S or getattr(at, half) > CLIFF_SHARE * level:
        return False
    later: float | None = getattr(after, half)
    return later is not None and later < CLIFF_BACK_SHARE * level


def _slow_nodes(benchmarks: Sequence[Benchmark], case: Case) -> list[Draft]:
    """Hosts that are slow with every partner, while the partners are fast with others."""
    tests: dict[str | None, dict[frozenset[str], float]] = {}
    for benchmark in benchmarks:
        hosts, peak = frozenset(_hosts(benchmark, case)), peak_busbw(benchmark)
        if len(hosts) == 2 and peak:
            pairs = tests.setdefault(benchmark.test, {})
            pairs[hosts] = max(peak, pairs.get(hosts, 0.0))
    places = {frozenset(_hosts(b, case)): b for b in benchmarks}
    return [
        _slow_node(host, pairs, usual, places)
        for pairs in tests.values()
        for usual in [_usual(pairs)]
        for host in _slow_hosts(pairs, usual)
    ]


def _usual(pairs: dict[frozenset[str], float]) -> float:
    """What a pair reaches: the median of the better half, since slow pairs share a host."""
    ranked = sorted(pairs.values(), reverse=True)
    return median(ranked[: max(1, (len(ranked) + 1) // 2)])


def _slow_hosts(pairs: dict[frozenset[str], float], usual: float) -> list[str]:
    slow = {pair for pair, peak in pairs.items() if peak < SLOW_PAIR_SHARE * usual}
    fast_hosts = {host for pair in pairs.keys() - slow for host in pair}
    suspected = {host for pair in slow for host in pair} - fast_hosts
    return sorted(
        host
        for host in suspected
        if all(pair - {host} <= fast_hosts for pair in slow if host in pair)
    )


def _slow_node(
    host: str,
    pairs: dict[frozenset[str], float],
    usual: float,
    places: dict[frozenset[str], Benchmark],
) -> Draft:
    own = {pair: peak for pair, peak in pairs.items() if host in pair}
    worst = min(own, key=lambda pair: own[pair])
    ratio = own[worst] / usual
    draft = derived(
        C.SLOW_NODE,
        places[worst].place,
        f"{' and '.join(sorted(worst))}: {own[worst]:g} GB/s, where others reach {usual:g}",
        attributes={"ratio": f"{ratio:.2f}"},
    )
    draft.suspects.append(Suspect(kind=SuspectKind.HOST, name=host))
    draft.notes.append(f"{host} is slow in each of its {len(own)} pairs, its partners are not.")
    if len(own) >= REPORTING_HOSTS:
        draft.isolate[host] = (
            f"{C.SLOW_NODE}: {format_share(ratio)} of the others, with every partner"
        )
    return draft
