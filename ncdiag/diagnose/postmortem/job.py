"""How large the job was and which library it ran, as far as the records tell."""

from collections.abc import Iterable, Iterator

from ncdiag.diagnose.postmortem.benchmarks import rank_count
from ncdiag.diagnose.postmortem.names import real_hosts
from ncdiag.model.benchmark import Benchmark
from ncdiag.model.finding import JobShape, Library
from ncdiag.model.log import CommunicatorState, LogEvidence


def job_shape(evidence: LogEvidence) -> JobShape:
    """Ranks, nodes and hosts of the job."""
    hosts = real_hosts(_hosts(evidence))
    ranks = max(_sizes(evidence), default=None)
    return JobShape(ranks=ranks, nodes=_nodes(evidence, ranks), hosts=tuple(hosts))


def library(evidence: LogEvidence) -> Library:
    """The communication library and its versions as printed, each once."""
    name = _library_name(evidence)
    printed = list(_printed_versions(evidence))
    of_headings = [b.library_version for b in evidence.benchmarks if b.library_version]
    known = _without_short_forms(dict.fromkeys(printed or of_headings))
    return Library(name=name or ("NCCL" if known else None), versions=known)


def _without_short_forms(versions: Iterable[str]) -> tuple[str, ...]:
    """What a framework quotes is the library's own ``2.21.5+cuda12.4`` without its build."""
    known = tuple(versions)
    whole = {version.split("+", 1)[0] for version in known if "+" in version}
    return tuple(version for version in known if version not in whole)


def _library_name(evidence: LogEvidence) -> str | None:
    named = [name for name, _ in evidence.versions]
    named += [process.library for process in evidence.processes if process.library]
    if "RCCL" in named:
        return "RCCL"
    if named or evidence.processes or evidence.ras:
        return "NCCL"
    return None


def _printed_versions(evidence: LogEvidence) -> Iterator[str]:
    for _, version in evidence.versions:
        yield version
    for process in evidence.processes:
        yield from process.versions
    for report in evidence.ras:
        if report.version:
            yield report.version
    for dump in evidence.dumps:
        if dump.library_version:
            yield dump.library_version


def _hosts(evidence: LogEvidence) -> Iterator[str | None]:
    for process in evidence.processes:
        yield process.host
    for benchmark in evidence.benchmarks:
        for rank in benchmark.ranks:
            yield rank.host
    yield from evidence.hosts
    for failure in evidence.failures:
        yield failure.host
    for record in evidence.inspector:
        yield record.host


def _sizes(evidence: LogEvidence) -> Iterator[int]:
    """Sizes of communicators and rank tables."""
    for process in evidence.processes:
        yield from (c.ranks for c in process.communicators if c.ranks)
    for benchmark in evidence.benchmarks:
        if size := rank_count(benchmark):
            yield size
    for report in evidence.ras:
        if size := report.largest or report.gpus:
            yield size
    for dump in evidence.dumps:
        yield from (len(ranks) for _, ranks in dump.groups.values() if ranks)
    yield from (record.ranks for record in evidence.inspector)


def _nodes(evidence: LogEvidence, ranks: int | None) -> int | None:
    """Nodes where a line counts them, or where every rank's host is known."""
    counted = [
        c.nodes
        for process in evidence.processes
        for c in process.communicators
        if c.nodes and c.ranks == ranks
    ]
    counted += [r.nodes for r in evidence.ras if r.nodes and (r.largest or r.gpus) == ranks]
    if counted:
        return max(counted)
    return _nodes_of_tables(evidence, ranks) or _nodes_of_ranks(evidence, ranks)


def _nodes_of_tables(evidence: LogEvidence, ranks: int | None) -> int | None:
    full = [b.ranks for b in evidence.benchmarks if b.ranks and _is_full(b, ranks)]
    return max((len({r.host for r in table}) for table in full), default=None)


def _is_full(benchmark: Benchmark, ranks: int | None) -> bool:
    """Whether no host of a job of this size can be missing in the table."""
    return ranks in {len({r.rank for r in benchmark.ranks}), benchmark.expected_ranks}


def _nodes_of_ranks(evidence: LogEvidence, ranks: int | None) -> int | None:
    """Hosts of the largest communicator, when their ranks leave no room for another host.

    A host holds all ranks between its lowest and its highest, or deals them out in turn.
    """
    held: dict[str, set[int]] = {}
    for process in evidence.processes:
        for rank in _ranks_in(process.communicators, ranks):
            held.setdefault(process.host, set()).add(rank)
    covered = {rank for own in held.values() for rank in range(min(own), max(own) + 1)}
    return len(real_hosts(held)) if ranks and len(covered) >= ranks else None


def _ranks_in(communicators: Iterable[CommunicatorState], size: int | None) -> Iterator[int]:
    return (c.rank for c in communicators if c.rank is not None and c.ranks == size)
