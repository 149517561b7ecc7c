"""RDMA ports and network interfaces: up, fast, without errors, and steady."""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from ncdiag.health.checks.check import (
    Case,
    Check,
    Outcome,
    Silent,
    Trip,
    UsualPort,
    quoted,
    risen,
    rises,
    usual,
)
from ncdiag.health.checks.port_counters import (
    ETHERNET_COUNTERS,
    HW_COUNTERS,
    IB_COUNTERS,
    Counter,
)
from ncdiag.model.finding import FindingClass
from ncdiag.model.health import EthernetPort, IbPort, Severity, Source, SourceState
from ncdiag.model.units import format_rate

ACTIVE = "ACTIVE"
_RDMA = re.compile(r"(?:mlx[45]_|bnxt_re|irdma|hfi1_)\d")
_TELLS_ALL = frozenset((SourceState.READ, SourceState.ABSENT))
_LIKE_IT = "the ports like it are up"
# A port that is so on all hosts is unused or slower by design, or its switch is at fault: no host.
_EVERYWHERE = "; it is so on nearly all hosts"


def port_name(port: IbPort) -> str:
    """``mlx5_0``, or ``mlx5_0:2`` for any port but the first."""
    return port.hca if port.port == 1 else f"{port.hca}:{port.port}"


def _names(port: IbPort) -> set[str | None]:
    return {port_name(port), f"{port.hca}:{port.port}", port.interface}


def port_before(port: IbPort, case: Case) -> IbPort | None:
    """The same port in the earlier reading."""
    ports = case.before.ib_ports if case.before else ()
    return next((one for one in ports if (one.hca, one.port) == (port.hca, port.port)), None)


def _alike(port: IbPort) -> tuple[str | None, str | None, int, str | None]:
    """What ports that should be alike have in common: card, network, port number, function.

    The second port of a card, which is unused more often than not, is not like its first.
    """
    function = port.pci_address.rsplit(".", 1)[-1] if port.pci_address else None
    return port.board, port.link_layer, port.port, function


def _groups(ports: Sequence[IbPort]) -> list[list[IbPort]]:
    groups: dict[object, list[IbPort]] = {}
    for port in ports:
        groups.setdefault(_alike(port), []).append(port)
    return list(groups.values())


def _down(case: Case) -> Iterator[Outcome]:
    ports = [port for port in case.facts.ib_ports if port.state is not None]
    gone = _not_there(case)
    for name in gone:
        text = f"{case.expected.nics_from} names it, and there is no such adapter"
        yield Trip(text=text, device=quoted(name), limit=ACTIVE)
    if not ports and not gone:
        yield Silent("no RDMA port here")
        return
    for group in _groups(ports):
        most = usual((port.state or "" for port in group), case.limits)
        for port in group:
            if port.state != ACTIVE and (why := _expected_up(port, case, most)):
                physical = f", {quoted(port.physical_state)}" if port.physical_state else ""
                everywhere = why == _LIKE_IT and _usual(port, case).state not in {None, ACTIVE}
                text = f"the port is {quoted(port.state or '')}{physical}; {why}"
                yield Trip(
                    text=text + (_EVERYWHERE if everywhere else ""),
                    device=port_name(port),
                    severity=_less_if(Severity.FAULT, everywhere or case.is_booting),
                    measured=quoted(port.state or ""),
                    limit=ACTIVE,
                )


def _not_there(case: Case) -> list[str]:
    """Adapters that the hosts file names by what only RDMA devices are called."""
    told = case.facts.reading(Source.INFINIBAND)
    if told is None or told.state not in _TELLS_ALL:
        return []
    there = {name for port in case.facts.ib_ports for name in (port.hca, *_names(port))}
    return [name for name in case.expected.nics if _RDMA.match(name) and name not in there]


def _usual(port: IbPort, case: Case) -> UsualPort:
    return case.usual_ports.get(port_name(port), UsualPort())


def _less_if(severity: Severity, reason: bool) -> Severity:  # noqa: FBT001
    return Severity.WARNING if reason else severity


def _expected_up(port: IbPort, case: Case, most: str | None) -> str | None:
    """Why this port should be up; ``None`` where nothing says so: many a port is unused."""
    if _names(port) & set(case.expected.nics):
        return f"{case.expected.nics_from} names it"
    if most == ACTIVE:
        return _LIKE_IT
    earlier = port_before(port, case)
    if earlier is not None and earlier.state == ACTIVE:
        return "it was up in the earlier reading"
    return None


def _slow(case: Case) -> Iterator[Outcome]:
    up = [port for port in case.facts.ib_ports if port.state == ACTIVE]
    groups = [group for group in _groups(up) if len(group) >= case.limits.least_alike]
    told = [group for group in groups if any(port.rate_gbit_per_s for port in group)]
    if not told:
        yield Silent("too few ports alike to compare their rates")
        return
    for group in told:
        rates = [port.rate_gbit_per_s for port in group if port.rate_gbit_per_s]
        most = usual(map(str, rates), case.limits)
        wide = usual((str(port.width) for port in group if port.width), case.limits)
        for port in group:
            for trip in _slower(port, most, wide):
                fleet = _usual(port, case)
                everywhere = (fleet.rate, fleet.width) == _speed(port)
                severity = _less_if(Severity.FAULT, everywhere)
                text = trip.text + (_EVERYWHERE if everywhere else "")
                yield replace(trip, text=text, severity=severity)


def _speed(port: IbPort) -> tuple[str | None, str | None]:
    """Rate and width as fleets compare them."""
    rate, width = port.rate_gbit_per_s, port.width
    return str(rate) if rate else None, str(width) if width else None


def _slower(port: IbPort, most: str | None, wide: str | None) -> Iterator[Trip]:
    rate, width = port.rate_gbit_per_s, port.width
    if most and rate and rate < float(most):
        text = f"runs at {format_rate(rate)}, the ports like it at {format_rate(float(most))}"
        limit = format_rate(float(most))
        yield Trip(text=text, device=port_name(port), measured=format_rate(rate), limit=limit)
    elif wide and width and width < int(wide):
        text = f"runs at {width}X, the ports like it at {wide}X"
        yield Trip(text=text, device=port_name(port), measured=f"{width}X", limit=f"{wide}X")


def _ib_errors(case: Case) -> Iterator[Outcome]:
    told = False
    for port in case.facts.ib_ports:
        earlier = port_before(port, case)
        if earlier is None or not (port.counters or port.hw_counters):
            continue
        told = True
        tables = (
            (port.counters, earlier.counters, IB_COUNTERS),
            (port.hw_counters, earlier.hw_counters, HW_COUNTERS),
        )
        for now, before, rows in tables:
            for trip in rising_counters(now, before, rows, case):
                yield replace(trip, device=port_name(port))
    if not told:
        yield Silent("needs two readings of the counters of an RDMA port")


def rising_counters(
    now: Mapping[str, int], before: Mapping[str, int], rows: Mapping[str, Counter], case: Case
) -> Iterator[Trip]:
    """A finding for each counter of ``rows`` that rose between two readings."""
    for name, by in rises(now, before).items():
        row = rows.get(name)
        if row is None:
            continue
        rate = case.per_hour(by)
        small = by < case.limits.least_errors or rate <= case.limits.symbol_errors_per_h
        yield Trip(
            text=f"{name} rose by {by:,} between two readings: {row.meaning}",
            severity=Severity.NOTE if row.by_rate and small else row.severity,
            measured=f"{rate:,.0f}/h",
            limit=f"{case.limits.symbol_errors_per_h:.0f}/h" if row.by_rate else "0",
        )


def _flaps(case: Case) -> Iterator[Outcome]:
    """Losses of a link between two readings, by its own counter."""
    told = False
    for port in case.facts.ethernet_ports:
        earlier = _interface_before(port, case)
        if earlier is None or port.carrier_changes is None or earlier.carrier_changes is None:
            continue
        told = True
        lost = risen(port.carrier_changes, earlier.carrier_changes)
        if lost:
            yield Trip(
                text=f"the link changed {lost} times between two readings",
                device=port.name,
                severity=Severity.FAULT if _matters(port, case) else Severity.WARNING,
                measured=str(lost),
                limit="0",
            )
    if not told:
        yield Silent("needs two readings of a network interface")


def _matters(port: EthernetPort, case: Case) -> bool:
    """Whether jobs use this interface, as far as is known."""
    rdma = {one.interface for one in case.facts.ib_ports}
    return port.name in case.expected.nics or port.name in rdma


def _interface_before(port: EthernetPort, case: Case) -> EthernetPort | None:
    ports = case.before.ethernet_ports if case.before else ()
    return next((one for one in ports if one.name == port.name), None)


def _interface_down(case: Case) -> Iterator[Outcome]:
    named = [
        port
        for port in case.facts.ethernet_ports
        if port.name in case.expected.nics and port.state is not None
    ]
    gone = _no_interface(case)
    if not named and not gone:
        yield Silent("no network interface that is here was named")
    for name in gone:
        text = f"{case.expected.nics_from} names it, and there is no such interface"
        yield Trip(text=text, device=quoted(name), limit="up")
    for port in named:
        if port.state in {"down", "lowerlayerdown", "notpresent"}:
            text = f"{case.expected.nics_from} names it, and it is {quoted(port.state)}"
            yield Trip(
                text=text,
                device=port.name,
                severity=Severity.WARNING if case.is_booting else Severity.FAULT,
                measured=quoted(port.state),
                limit="up",
            )


def _no_interface(case: Case) -> list[str]:
    """What is named and is neither an interface, also one of software, nor an RDMA device."""
    facts, told = case.facts, case.facts.reading(Source.INFINIBAND)
    if facts.interfaces is None or not told or told.state not in _TELLS_ALL:
        return []
    there = {name for port in facts.ib_ports for name in (port.hca, *_names(port))}
    there.update(facts.interfaces, (port.name for port in facts.ethernet_ports))
    return [one for one in case.expected.nics if one not in there and not _RDMA.match(one)]


def _interface_errors(case: Case) -> Iterator[Outcome]:
    told = False
    for port in case.facts.ethernet_ports:
        earlier = _interface_before(port, case)
        if earlier is None or not port.counters:
            continue
        told = True
        for trip in rising_counters(port.counters, earlier.counters, ETHERNET_COUNTERS, case):
            yield replace(trip, device=port.name)
    if not told:
        yield Silent("needs two readings of a network interface")


CHECKS = (
    Check(
        id="ib_port_down",
        title="RDMA port down",
        severity=Severity.FAULT,
        meaning="A port that should be up is not, or not there: the hosts file or --nic names "
        "it, ports like it are up here or on the other hosts, or it was up before. An unused port "
        "is not accused; one that is down on nearly all hosts is a warning.",
        fix="ibstat NIC; mlxlink -d NIC -m; clean, reseat or swap the cable; another switch port",
        sources=(Source.INFINIBAND, Source.ETHERNET),
        also=(Source.PROC,),
        rule=_down,
        class_=FindingClass.NIC_LINK_DOWN,
    ),
    Check(
        id="ib_port_slow",
        title="RDMA port slow",
        severity=Severity.FAULT,
        meaning="The port came up slower or narrower than those like it, here or on the other "
        "hosts: everything waits for its rail.",
        fix="ibstat NIC; mlxlink -d NIC; reseat the cable and bring the port down and up",
        sources=(Source.INFINIBAND,),
        rule=_slow,
    ),
    Check(
        id="ib_errors_rising",
        title="RDMA errors rising",
        severity=Severity.FAULT,
        meaning="Error counters rise between two readings, so that the fault is there now. Symbol "
        "and receive errors weigh from the rate of the InfiniBand specification on; "
        "counters of congestion and of programs are notes.",
        fix="mlxlink -d NIC -m -c; clean, reseat or swap the cable, then the transceiver",
        sources=(Source.INFINIBAND,),
        rule=_ib_errors,
    ),
    Check(
        id="link_flaps",
        title="Link flaps",
        severity=Severity.FAULT,
        meaning="The link of a network interface came and went between two readings. It is a "
        "fault where RDMA or the hosts file uses it.",
        fix="dmesg -T | grep -iE 'link (up|down)'; ethtool -m IFACE; reseat or swap the cable",
        sources=(Source.ETHERNET,),
        also=(Source.INFINIBAND,),
        rule=_flaps,
        class_=FindingClass.NIC_LINK_DOWN,
    ),
    Check(
        id="ethernet_port_down",
        title="Network interface down",
        severity=Severity.FAULT,
        meaning="An interface that the hosts file (nic=) or --nic names is down, or not there. "
        "Others are not looked at.",
        fix="ip -br link; ethtool IFACE; check cable and switch port",
        sources=(Source.ETHERNET,),
        also=(Source.PROC,),
        rule=_interface_down,
        class_=FindingClass.NIC_LINK_DOWN,
    ),
    Check(
        id="ethernet_errors_rising",
        title="Network errors rising",
        severity=Severity.WARNING,
        meaning="Error counters of an interface rise between two readings, faster than a link "
        "within specification makes errors.",
        fix="ethtool -S IFACE; ethtool -m IFACE; clean, reseat or swap the cable",
        sources=(Source.ETHERNET,),
        rule=_interface_errors,
    ),
)
