"""A thousand fabrics with planted faults: nobody innocent is isolated, the guilty are named.

The generator knows nothing of the code under test: a link carries what the slowest part on its way
lets through, times noise; whatever looks slow is measured again, with noise of its own.
"""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import pytest

from ncdiag.diagnose.cases import Charges, charge
from ncdiag.diagnose.culprits import case_status
from ncdiag.diagnose.investigate import investigate_table
from ncdiag.diagnose.table import Fabric, LinkTable
from ncdiag.diagnose.thresholds import Thresholds
from ncdiag.model.verdict import LinkStatus

GRAPHS = 1000
NOISE = 0.05
RATE = 0.478
KINDS = ("send", "receive", "both", "nic", "link", "uplink")


@dataclass(frozen=True)
class Fault:
    """A planted fault: the links it touches, and the share of the rate that it lets through."""

    kind: str
    host: int | None
    share: float
    links: np.ndarray
    leaf: int | None = None


@dataclass(frozen=True)
class Graph:
    """A full mesh with faults; ``share`` is what each link could carry without noise."""

    seed: int
    fabric: Fabric
    faults: tuple[Fault, ...]
    share: np.ndarray
    rate_known: bool

    def without(self, fault: Fault) -> np.ndarray:
        """What each link could carry if ``fault`` were repaired."""
        return _slowest([one for one in self.faults if one is not fault], self.fabric)


def _slowest(faults: list[Fault], fabric: Fabric) -> np.ndarray:
    share = np.ones(fabric.links)
    for fault in faults:
        share[fault.links] = np.minimum(share[fault.links], fault.share)
    return share


def _hosts(random: np.random.Generator) -> int:
    """Mostly racks, some rows, a few halls."""
    low, high = ((4, 16), (17, 64), (65, 512))[random.choice(3, p=(0.85, 0.13, 0.02))]
    return int(random.integers(low, high + 1))


def _fabric(random: np.random.Generator) -> Fabric:
    hosts = _hosts(random)
    rails = 2 if random.random() < 0.3 and hosts <= 64 else 1
    leaves = int(random.integers(1, min(5, hosts // 2) + 1))
    source, target, rail = (
        axis.ravel() for axis in np.meshgrid(*map(np.arange, (hosts, hosts, rails)), indexing="ij")
    )
    real = source != target
    return Fabric(
        hosts=tuple(f"h{number}" for number in range(hosts)),
        leaves=tuple(f"leaf{number}" for number in range(leaves)),
        nics=(("eth0", "eth1")[:rails],) * hosts,
        leaf=random.integers(0, leaves, hosts),
        source=source[real],
        target=target[real],
        rail=rail[real],
    )


def _fault(random: np.random.Generator, fabric: Fabric) -> Fault:
    share = float(random.uniform(0.1, 0.7))
    host = int(random.integers(len(fabric.hosts)))
    sends, receives = fabric.source == host, fabric.target == host
    crossing = fabric.leaf[fabric.source] != fabric.leaf[fabric.target]
    kind = str(random.choice(KINDS))
    if kind == "send":
        return Fault(kind, host, share, sends)
    if kind == "receive":
        return Fault(kind, host, share, receives)
    if kind == "nic":
        on_rail = fabric.rail == random.integers(fabric.rails)
        return Fault(kind, host, share, (sends | receives) & on_rail)
    if kind == "link":
        one = np.arange(fabric.links) == random.integers(fabric.links)
        return Fault(kind, None, share, one)
    if kind == "uplink" and crossing.any():
        leaf = int(fabric.leaf[host])
        end = (fabric.leaf[fabric.source] == leaf) | (fabric.leaf[fabric.target] == leaf)
        return Fault(kind, None, share, crossing & end, leaf)
    return Fault("both", host, share, sends | receives)


def _graph(seed: int) -> Graph:
    random = np.random.default_rng(seed)
    fabric = _fabric(random)
    faults = tuple(_fault(random, fabric) for _ in range(random.integers(0, 4)))
    share = _slowest(list(faults), fabric)
    return Graph(seed, fabric, faults, share, rate_known=bool(random.random() < 0.5))


def _measured(graph: Graph) -> LinkTable:
    random = np.random.default_rng((graph.seed, 1))
    links = graph.fabric.links

    def measure() -> np.ndarray:
        return RATE * graph.share * np.maximum(random.normal(1, NOISE, links), 0.01)

    together, alone = measure(), measure()
    slow = together < 0.85 * RATE
    alone[~slow] = np.nan
    judged = np.where(slow, alone, together)
    nothing = np.zeros(links, dtype=bool)
    return LinkTable(
        fabric=graph.fabric,
        keys=(),
        shown=(),
        expectations=(),
        expected=np.full(links, RATE if graph.rate_known else np.nan),
        together=together,
        alone=alone,
        judged=judged,
        busy=nothing,
        together_busy=nothing,
        tests=slow + 1,
        tries=slow.astype(np.int64),
    )


def _isolated(table: LinkTable) -> tuple[set[int], Charges]:
    thresholds = Thresholds()
    found = investigate_table(table, np.ones(table.fabric.links, dtype=bool), thresholds)
    charges = charge(found)
    hosts = {
        case.host
        for case in charges.proven
        if case.host is not None and case_status(found, case.links, thresholds) is LinkStatus.FAULTY
    }
    return hosts, charges


def _has_own_trace(graph: Graph, fault: Fault) -> bool:
    """Whether links to two partners are slow for this fault and would not be without it.

    Otherwise the data are those of other faults and at most one slow link: nobody could tell.
    """
    own = fault.links & (graph.without(fault) > 0.8)
    ends = np.concatenate((graph.fabric.source[own], graph.fabric.target[own]))
    return len(set(ends.tolist()) - {fault.host}) >= 2


def _median_is_healthy(graph: Graph) -> bool:
    """Whether most hosts have a healthy quarter of links: without a rate the fleet must be sound."""
    fabric = graph.fabric
    upper = [
        np.quantile(graph.share[(fabric.source == host) | (fabric.target == host)], 0.75)
        for host in range(len(fabric.hosts))
    ]
    return float(np.median(upper)) > 0.99


def _looks_guilty(graph: Graph, host: int) -> bool:
    """Whether an innocent host has only slow links in one direction of one NIC."""
    fabric = graph.fabric
    return any(
        (graph.share[(end == host) & (fabric.rail == rail)] < 1).all()
        for end in (fabric.source, fabric.target)
        for rail in range(fabric.rails)
    )


@pytest.fixture(scope="module")
def results() -> list[tuple[Graph, set[int]]]:
    return [(graph, _isolated(_measured(graph))[0]) for graph in map(_graph, range(GRAPHS))]


def _guilty(graph: Graph) -> Iterator[Fault]:
    return (fault for fault in graph.faults if fault.host is not None)


def test_nobody_innocent_is_isolated(results: list[tuple[Graph, set[int]]]) -> None:
    wrong = [
        (graph.seed, sorted(isolated - {fault.host for fault in graph.faults}))
        for graph, isolated in results
        if isolated - {fault.host for fault in graph.faults}
    ]
    assert wrong == []


def test_faulty_hosts_are_named(results: list[tuple[Graph, set[int]]]) -> None:
    count: Counter[str] = Counter()
    missed = []
    for graph, isolated in results:
        for fault in _guilty(graph):
            traced = _has_own_trace(graph, fault) and (
                graph.rate_known or _median_is_healthy(graph)
            )
            count["traced" if traced else "no trace"] += 1
            if traced and fault.host not in isolated:
                missed.append((graph.seed, fault.kind, fault.host, round(fault.share, 2)))
    print(count, missed)
    assert count["traced"] > 800
    assert count["no trace"] < 0.03 * count["traced"]
    assert len(missed) <= 0.01 * count["traced"], missed
