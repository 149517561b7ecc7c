"""Cases into words: who is blamed, on what evidence, and what to do next."""

import numpy as np

from ncdiag.diagnose import damage
from ncdiag.diagnose.blame import Part
from ncdiag.diagnose.cases import Case, nic_of
from ncdiag.diagnose.investigate import Findings, pair_count
from ncdiag.diagnose.table import Fabric, Floats, Mask
from ncdiag.diagnose.thresholds import Thresholds
from ncdiag.model.units import format_rate, format_share
from ncdiag.model.verdict import Culprit, CulpritKind, Direction, LinkStatus

# Nothing measured from outside is certain.
_MOST_SURE = 0.99
_VERBS = {
    Direction.SEND: "sends",
    Direction.RECEIVE: "receives",
    Direction.BOTH: "sends and receives",
}


def culprit(found: Findings, case: Case, thresholds: Thresholds) -> Culprit:
    """Return the culprit that a proven case makes."""
    damaged = _is_damaged(found, case.links)
    share = 0.0 if damaged else _median(found.judged.sticks.share, case.links)
    explains, against = int(case.links.sum()), int(case.against.sum())
    return Culprit(
        kind=case.kind,
        name=case.name,
        direction=case.direction,
        status=case_status(found, case.links, thresholds),
        confidence=_confidence(case.confirmed, explains, against),
        efficiency=share,
        explains=explains,
        contradicts=against,
        reason=reason(found, case),
        next=_next(found, case),
        damaged=damaged,
    )


def fleet_culprit(found: Findings) -> Culprit:
    """Return the culprit that stands for everything being slow alike."""
    share = _median(found.judged.sticks.share, found.fleet)
    rows = np.flatnonzero(found.fleet & found.judged.confirmed)
    pairs = pair_count(found.judged.table.fabric, rows)
    return Culprit(
        kind=CulpritKind.FLEET,
        name="fleet",
        direction=Direction.BOTH,
        status=LinkStatus.FAULTY,
        confidence=_confidence(pairs, int(found.fleet.sum()), 0),
        efficiency=share,
        explains=int(found.fleet.sum()),
        contradicts=0,
        reason=(
            f"everything reaches only {format_share(share)} of its expectation alike, also alone"
            f" ({pairs} pairs measured again in quiet): the configuration or the expectation is"
            " wrong, no single host"
        ),
        next=(
            "check rate= in the hosts file, MTU and link speed (ethtool), and the transport:"
            " one TCP stream does not fill a fast NIC"
        ),
    )


def link_culprit(found: Findings, row: int, thresholds: Thresholds) -> Culprit:
    """Return the culprit of one slow or damaged link that nothing else explains."""
    table = found.judged.table
    damaged = bool(found.judged.damaged[row])
    share = 0.0 if damaged else float(found.judged.sticks.share[row])
    link = np.arange(table.fabric.links) == row
    pair = damaged and damage.is_of_the_pair(found, row)
    source, target = table.keys[row].source, table.keys[row].target
    where = f" on rail {table.keys[row].rail}" if table.fabric.rails > 1 else ""
    return Culprit(
        kind=CulpritKind.LINK,
        name=table.fabric.link_name(row),
        direction=Direction.BOTH if pair else Direction.SEND,
        status=case_status(found, link, thresholds),
        confidence=_confidence(int((table.wrong if damaged else table.tests)[row]), 1, 0),
        efficiency=share,
        explains=2 if pair else 1,
        contradicts=0,
        reason=(
            damage.link_reason(found, row, where)
            if damaged
            else f"reaches {format_rate(table.judged[row])}{where}, {format_share(share)} of"
            f" {_yardstick(found, link)}, with the fabric quiet; no component explains it"
        ),
        next=(
            damage.link_next(found, row)
            if damaged
            else f"check the path from {source} to {target}: ecmp hashing, cables between their"
            " leaves"
        ),
        damaged=damaged,
    )


def reason(found: Findings, case: Case) -> str:
    """Return one sentence with the figures, damage before slowness."""
    table = found.judged.table
    slow = case.links & ~found.judged.damaged
    if _is_damaged(found, case.links):
        told = damage.host_reason(found, case)
        return (
            f"{told}; {_slowness(found, slow)} on {slow.sum()} more links" if slow.any() else told
        )
    what = _slowness(found, slow)
    if case.host is None:
        told = f"{_where(found, case)} run at {what}, {case.confirmed} of them also in quiet"
    else:
        told = (
            f"{_VERBS[case.direction]} at {what} with {_other_hosts(table.fabric, case)} partners,"
            f" {case.confirmed} of them measured again in quiet"
        )
    if case.host is not None and _leaf_to_itself(table.fabric, case.host):
        told += "; it has its leaf to itself, whose uplink would look the same"
    elif "|" in case.name and case.kind is CulpritKind.SWITCH:
        told += "; the data cannot tell which end"
    against = int(case.against.sum())
    return f"{told}; {against} faster links speak against it" if against else told


def _is_damaged(found: Findings, links: Mask) -> bool:
    return bool((found.judged.damaged & links).any())


def _slowness(found: Findings, links: Mask) -> str:
    share = _median(found.judged.sticks.share, links)
    rate = format_rate(float(np.median(found.judged.table.judged[links])))
    return f"{format_share(share)} of {_yardstick(found, links)} ({rate})"


def _where(found: Findings, case: Case) -> str:
    """Return which pairs a switch or rail is blamed for."""
    pairs = pair_count(found.judged.table.fabric, np.flatnonzero(case.links))
    if case.kind is CulpritKind.RAIL:
        return f"{pairs} pairs on this rail"
    if "|" in case.name:
        return f"{pairs} pairs between these leaves, but none inside them,"
    if case.part is Part.LEAF:
        return f"{pairs} pairs with a host of this leaf"
    return f"{pairs} pairs that leave this leaf, but none inside it,"


def _other_hosts(fabric: Fabric, case: Case) -> int:
    ends = np.concatenate((fabric.source[case.links], fabric.target[case.links]))
    return len(np.unique(ends)) - 1


def _leaf_to_itself(fabric: Fabric, host: int) -> bool:
    leaf = fabric.leaf[host]
    return bool(leaf >= 0 and (fabric.leaf == leaf).sum() == 1 and (fabric.leaf >= 0).sum() > 1)


def _next(found: Findings, case: Case) -> str:
    """Return the command to run or the action to take."""
    fabric = found.judged.table.fabric
    if case.host is not None:
        name, rows = fabric.hosts[case.host], np.flatnonzero(case.links)
        ends = np.unique(np.concatenate((fabric.source[rows], fabric.target[rows])))
        partners = [fabric.hosts[end] for end in ends if end != case.host][:2]
        nics = {nic_of(fabric, case.host, rail) for rail in np.unique(fabric.rail[rows]).tolist()}
        again = f"ncdiag sweep --nodes {','.join((name, *partners))}"
        counters = _counters(min(nics))
        if _is_damaged(found, case.links):
            return damage.host_next(name, counters, again)
        return f"on {name}: {counters}, check cable and optics; then {again}"
    if case.kind is CulpritKind.RAIL:
        return f"check the switches of rail {case.name} and the NICs' speed on it"
    if case.part is Part.LEAF:
        return f"check switch {case.name}: port errors, speed, buffers"
    return f"check the uplinks of {case.name.replace('|', ' and ')}: port errors, failed members"


def _counters(nic: str) -> str:
    """Return the command that shows a NIC's counters; RDMA ports have a number in their name."""
    if "_" in nic:
        device, _, port = nic.partition(":")
        return f"rdma statistic show link {device}/{port or 1}"
    return f"ethtool -S {nic}"


def _median(shares: Floats, links: Mask) -> float:
    return float(np.median(shares[links]))


def case_status(found: Findings, links: Mask, thresholds: Thresholds) -> LinkStatus:
    """Return faulty or degraded; by the fleet's median where everything misses its expectation."""
    if _is_damaged(found, links):
        return LinkStatus.FAULTY
    shares = found.judged.sticks.ratio if found.fleet.any() else found.judged.sticks.share
    slow = _median(shares, links) < thresholds.faulty_below
    return LinkStatus.FAULTY if slow else LinkStatus.DEGRADED


def _yardstick(found: Findings, links: Mask) -> str:
    """Name what the links were compared with."""
    expected = ~np.isnan(found.judged.table.expected[links])
    return "the expected rate" if expected.all() else "the fleet's median"


def _confidence(confirmed: int, explains: int, against: int) -> float:
    """Each confirmation halves the doubt; each contradiction takes its share."""
    sure = min(_MOST_SURE, 1 - 0.5**confirmed)
    return round(sure * explains / (explains + against), 3)
