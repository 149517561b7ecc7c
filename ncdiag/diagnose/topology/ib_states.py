"""Ports that are not up, in a fabric and on one host."""

from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from ncdiag.diagnose.topology.findings import degraded, info
from ncdiag.diagnose.topology.ib_names import NodeNames
from ncdiag.diagnose.topology.peers import LEAST_ALIKE, listed
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
    """The findings of one host's ports: those not up, and one slower than all others."""
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
    """The one port that is slower than all others of its link layer, which are alike."""
    layers: dict[str, list[IbLocalPort]] = defaultdict(list)
    for port in ports:
        if (port.state or "").casefold() == "active" and port.rate_gbit_per_s is not None:
            layers[(port.link_layer or "").casefold()].append(port)
    for like in layers.values():
        rates = Counter(port.rate_gbit_per_s for port in like)
        usual, count = rates.most_common(1)[0]
        odd = [port for port in like if (port.rate_gbit_per_s or 0) < (usual or 0)]
        if count >= LEAST_ALIKE and len(odd) == 1 and count == len(like) - 1:
            names = [f"{port.ca}:{port.port}" for port in like if port is not odd[0]]
            yield info(
                "ib_link_speed_mismatch",
                f"{odd[0].ca}:{odd[0].port}",
                f"{odd[0].ca}:{odd[0].port} runs at {odd[0].rate_gbit_per_s:g} Gbit/s; "
                f"{listed(names)} at {usual:g}: a fault, or an adapter for something else",
            )
