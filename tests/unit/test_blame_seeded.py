"""A thousand fabrics with planted faults: nobody innocent is isolated, the guilty are named.

The generator knows nothing of the code under test: a link carries what the slowest part on its way
lets through, times noise; whatever looks slow is measured again, with noise of its own.
"""

from collections import Counter
from dataclasses import dataclass

import numpy as np
import pytest

from ncdiag.diagnose.cases import charge
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

    @property
    def guilty(self) -> set[int]:
        """Hosts with a fault of their own."""
        return {fault.host for fault in self.faults if fault.host is not None}

    @property
    def behind_a_slow_uplink(self) -> set[int]:
        """Single hosts that a slow uplink cuts from all others: nobody could tell them apart."""
        cut = set()
        for fault in self.faults:
            if fault.kind == "uplink":
                inside = self.fabric.leaf == fault.leaf
                cut |= {int(np.argmax(side)) for side in (inside, ~inside) if side.sum() == 1}
        return cut

    def repaired(self, host: int) -> np.ndarray:
        """What each link could carry if ``host`` had no fault."""
        return _slowest([one for one in self.faults if one.host != host], self.fabric)


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
    return Graph(seed, fabric, faults, share)


def _measured(graph: Graph, *, rate_known: bool) -> LinkTable:
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
        expected=np.full(links, RATE if rate_known else np.nan),
        together=together,
        alone=alone,
        judged=judged,
        busy=nothing,
        together_busy=nothing,
        tests=slow + 1,
        tries=slow.astype(np.int64),
        wrong=np.zeros(links, dtype=np.int64),
    )


def _isolated(table: LinkTable) -> set[int]:
    thresholds = Thresholds()
    found = investigate_table(table, np.ones(table.fabric.links, dtype=bool), thresholds)
    return {
        case.host
        for case in charge(found).proven
        if case.host is not None and case_status(found, case.links, thresholds) is LinkStatus.FAULTY
    }


def _has_own_trace(graph: Graph, host: int) -> bool:
    """Whether links to two partners would be clearly faster if this host were repaired.

    Otherwise the data are those of other faults and at most one slow link: nobody could tell.
    """
    own = graph.repaired(host) > 1.4 * graph.share
    ends = np.concatenate((graph.fabric.source[own], graph.fabric.target[own]))
    return len(set(ends.tolist()) - {host}) >= 2


def _median_is_healthy(graph: Graph) -> bool:
    """Whether most hosts have a healthy quarter of links: the yardstick where no rate is given."""
    fabric = graph.fabric
    upper = [
        np.quantile(graph.share[(fabric.source == host) | (fabric.target == host)], 0.75)
        for host in range(len(fabric.hosts))
    ]
    return float(np.median(upper)) > 0.99


@pytest.fixture(scope="module")
def graphs() -> list[Graph]:
    return [_graph(seed) for seed in range(GRAPHS)]


@pytest.fixture(scope="module", params=[True, False], ids=["rate", "no-rate"])
def results(request: pytest.FixtureRequest, graphs: list[Graph]) -> list[tuple[Graph, set[int]]]:
    """Each graph with the hosts that are isolated for it."""
    known: bool = request.param
    return [(graph, _isolated(_measured(graph, rate_known=known))) for graph in graphs]


def test_nobody_innocent_is_isolated(results: list[tuple[Graph, set[int]]]) -> None:
    wrong = {
        graph.seed: isolated - graph.guilty - graph.behind_a_slow_uplink
        for graph, isolated in results
        if isolated - graph.guilty - graph.behind_a_slow_uplink
    }
    assert wrong == {}


def test_faulty_hosts_are_named(
    results: list[tuple[Graph, set[int]]], request: pytest.FixtureRequest
) -> None:
    rate_known = "no-rate" not in request.node.name
    count: Counter[str] = Counter()
    missed = []
    for graph, isolated in results:
        yardstick = rate_known or _median_is_healthy(graph)
        for host in sorted(graph.guilty):
            trace = _has_own_trace(graph, host)
            count["no trace" if not trace else "no yardstick" if not yardstick else "clear"] += 1
            if trace and yardstick and host not in isolated:
                missed.append((graph.seed, host))
    assert count["clear"] > 900
    assert count["no trace"] <= 0.03 * count["clear"]
    assert count["no yardstick"] <= 0.08 * count["clear"]
    assert len(missed) <= 0.01 * count["clear"], missed
