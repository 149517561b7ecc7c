"""Ports that are not up, in a fabric and on one host, and a host's ports that are slow."""

from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from ncdiag.diagnose.topology.findings import degraded, info
from ncdiag.diagnose.topology.ib_names import NodeNames
from ncdiag.diagnose.topology.peers import LEAST_ALIKE, below_the_usual, by, listed
from ncdiag.model.topology import (
    IbFabric,
    IbLocalPort,
    IbNodeKind,
    IbPorts,
    TopologyFinding,
)

_ETHERNET = "ethernet"


@dataclass(frozen=True, slots=True)
class _State:
    """The state of one port of one adapter."""

    where: str
    adapter: str
    number: int
    state: str
    physical: str | None

    @property
    def is_up(self) -> bool:
        return self.state.casefold() == "active" and (
            self.physical is None or self.physical.casefold() == "linkup"
        )

    def __str__(self) -> str:
        return "/".join(filter(None, (self.state, self.physical)))


def check_ports(ports: IbPorts) -> tuple[TopologyFinding, ...]:
    """The findings of one host's ports: those not up, and those slower or narrower than most."""
    states = [
        _State(f"{port.ca}:{port.port}", port.ca, port.port, port.state, port.physical)
        for port in ports.ports
        if port.state is not None
    ]
    off = {
        f"{port.ca}:{port.port}"
        for port in ports.ports
        if (port.link_layer or "").casefold() == _ETHERNET
        and (port.physical or "").casefold() == "disabled"
    }
    return (*_down(states, off), *_slower(ports.ports))


def check_adapter_states(fabric: IbFabric, names: NodeNames) -> Iterator[TopologyFinding]:
    """Ports of adapters, and connected ports of switches, that are not up.

    Switch ports without a peer are unused, whatever state they are in.
    """
    states = [
        _State(f"{names.of(node)}", node.guid, port.number, port.state, port.physical)
        for node in fabric.nodes
        for port in node.ports
        if port.state is not None and (node.kind is IbNodeKind.CA or port.peer_guid is not None)
    ]
    connected = [one for one in states if one.physical and one.physical.casefold() == "linkup"]
    if len(connected) > 1 and not any(one.is_up for one in connected):
        yield info(
            "ib_port_down",
            "fabric",
            f"none of {len(connected)} connected ports is Active ({connected[0]} and the like): "
            "no subnet manager has set this fabric up",
        )
        states = [one for one in states if one not in set(connected)]
    yield from _down(states, set())


def _down(states: Sequence[_State], off: set[str]) -> Iterator[TopologyFinding]:
    """Ports that are not up; ``off`` names those that somebody switched off."""
    unused = _unused_numbers(states)
    up = sum(one.is_up for one in states)
    for one in states:
        if one.is_up:
            continue
        text = f"port {one.number} of {one.where} is {one}; {up} of {len(states)} ports are up"
        if one.where in off:
            yield info("ib_port_down", one.where, f"{text}; it is switched off")
        elif one.number in unused:
            others = f"port {one.number} is down on every adapter, and their other ports are up"
            yield info("ib_port_down", one.where, f"{text}; {others}")
        else:
            yield degraded("ib_port_down", one.where, text)


def _unused_numbers(states: Sequence[_State]) -> set[int]:
    """Numbers of ports that no adapter uses, while each of them is up on another port."""
    adapters: dict[str, list[_State]] = defaultdict(list)
    for one in states:
        adapters[one.adapter].append(one)
    unused = {one.number for one in states} - {one.number for one in states if one.is_up}
    lonely = {
        one.number
        for ports in adapters.values()
        if not any(one.is_up for one in ports)
        for one in ports
    }
    return unused - lonely


def _slower(ports: Sequence[IbLocalPort]) -> Iterator[TopologyFinding]:
    """Ports slower than their like: those of one part, else the one odd port of a link layer."""
    running = [port for port in ports if (port.state or "").casefold() == "active"]
    told: set[str] = set()
    for finding in (*_narrow(running), *_slow_of_part(running)):
        # A port with a lane of four is slow because it is narrow.
        if finding.where not in told:
            told.add(finding.where)
            yield finding
    for like in by(running, _link_layer).values():
        for finding in _slow_of_layer(like):
            if finding.where not in told:
                yield finding


def _name(port: IbLocalPort) -> str:
    return f"{port.ca}:{port.port}"


def _link_layer(port: IbLocalPort) -> str:
    return (port.link_layer or "").casefold()


def _narrow(ports: Sequence[IbLocalPort]) -> Iterator[TopologyFinding]:
    """Ports with fewer lanes than most of their generation have; Ethernet states none."""
    stated = [port for port in ports if port.width and _link_layer(port) != _ETHERNET]
    for like in by(stated, lambda port: (_link_layer(port), port.speed, port.part)).values():
        result = below_the_usual([(port, float(port.width or 0)) for port in like])
        for port, width in result.odd if result else ():
            assert result is not None  # noqa: S101 - it has odd ones
            yield degraded(
                "ib_link_width_mismatch",
                _name(port),
                f"{_name(port)} runs at {width:g}X {port.speed or ''}".rstrip()
                + f"; {result.agree} of the {result.total} ports like it run at {result.usual:g}X",
            )


def _slow_of_part(ports: Sequence[IbLocalPort]) -> Iterator[TopologyFinding]:
    """InfiniBand ports slower than most of the adapters of the same part."""
    stated = [
        port
        for port in ports
        if port.part and port.rate_gbit_per_s is not None and _link_layer(port) != _ETHERNET
    ]
    for like in by(stated, lambda port: (_link_layer(port), port.part)).values():
        result = below_the_usual([(port, port.rate_gbit_per_s or 0.0) for port in like])
        slow = by(result.odd, lambda pair: pair[1]) if result else {}
        for rate, several in slow.items():
            assert result is not None  # noqa: S101 - it has odd ones
            for port, _ in several:
                text = (
                    f"{_name(port)} runs at {rate:g} Gbit/s; {result.agree} of the {result.total} "
                    f"ports of {port.part} adapters run at {result.usual:g}"
                )
                if len(several) > 1:
                    text += "; there are several of them, so probably for storage or management"
                report = info if len(several) > 1 else degraded
                yield report("ib_link_speed_mismatch", _name(port), text)


def _slow_of_layer(like: Sequence[IbLocalPort]) -> Iterator[TopologyFinding]:
    """The one port that is slower than all others of its link layer, which are alike."""
    known = [port for port in like if port.rate_gbit_per_s is not None]
    rates = Counter(port.rate_gbit_per_s for port in known)
    if not rates:
        return
    usual, count = rates.most_common(1)[0]
    odd = [port for port in known if (port.rate_gbit_per_s or 0) < (usual or 0)]
    if count >= LEAST_ALIKE and len(odd) == 1 and count == len(known) - 1:
        names = [_name(port) for port in known if port is not odd[0]]
        yield info(
            "ib_link_speed_mismatch",
            _name(odd[0]),
            f"{_name(odd[0])} runs at {odd[0].rate_gbit_per_s:g} Gbit/s; "
            f"{listed(names)} at {usual:g}: a fault, or an adapter for something else",
        )
