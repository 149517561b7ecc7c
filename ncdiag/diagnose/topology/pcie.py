"""PCIe links narrower or slower than those of like devices, and bridges that hold devices back."""

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from ncdiag.diagnose.topology.findings import degraded, info, sides
from ncdiag.diagnose.topology.machine import Machine, is_fabric, port_speed
from ncdiag.diagnose.topology.peers import below_the_usual, by, listed, split
from ncdiag.model.host import IDLE_GIGATRANSFERS_PER_S
from ncdiag.model.topology import Adapter, Gpu, PciDevice, TopologyFinding

_WIDTH = "pcie_downgraded_width"
_SPEED = "pcie_downgraded_speed"
_UPLINK = "pcie_uplink_narrow"
# Share of raw signalling that is left after line coding (PCI Express Base Specification: 8b/10b
# up to 5 GT/s, 128b/130b from 8 GT/s), in GB/s a lane.
_GB_PER_S_A_LANE = {
    2.5: 0.25,
    5.0: 0.5,
    8.0: 0.985,
    16.0: 1.969,
    32.0: 3.938,
    64.0: 7.563,
}
# A bridge is narrow below this share of what the device needs: 400 Gbit/s ports ask for 50 GB/s.
_ENOUGH = 0.9


@dataclass(frozen=True, slots=True)
class _Endpoint:
    """A GPU or an adapter's card with what the rules compare."""

    pci: int
    device: PciDevice
    where: str
    label: str
    gpu: Gpu | None
    ports: tuple[Adapter, ...] = ()

    @property
    def port_gbit_per_s(self) -> float | None:
        """The sum of the card's ports."""
        speeds = [port.speed_gbit_per_s for port in self.ports]
        return None if None in speeds or not speeds else sum(speed or 0 for speed in speeds)


def check_pcie(machine: Machine) -> Iterator[TopologyFinding]:
    """Yield what is wrong with the PCIe links of GPUs and adapters."""
    gpus = _gpus(machine)
    cards = _cards(machine)
    for group in (*by(gpus, _gpu_kind).values(), *by(cards, _card_kind).values()):
        yield from _narrower(group)
        yield from _slower(group)
    told: set[str] = set()
    for group in (*by(gpus, _gpu_kind).values(), *by(cards, _card_kind).values()):
        for finding in _held_back(machine, group):
            # One bridge may hold back a GPU and an adapter.
            if finding.where not in told:
                told.add(finding.where)
                yield finding
    yield from _unknown("GPUs", gpus)
    yield from _unknown("adapters", [card for card in cards if any(map(is_fabric, card.ports))])


def _gpus(machine: Machine) -> list[_Endpoint]:
    return [
        _Endpoint(
            gpu.pci,
            machine.topology.pci[gpu.pci],
            machine.gpu_where(gpu),
            machine.gpu_label(gpu),
            gpu,
        )
        for gpu in {gpu.pci: gpu for gpu in reversed(machine.topology.gpus)}.values()
    ][::-1]


def _cards(machine: Machine) -> list[_Endpoint]:
    ports = [port for port in machine.topology.adapters if port.pci is not None]
    cards = by(sorted(ports, key=lambda a: (a.port or 0, a.name or "")), lambda a: a.pci)
    return [
        _Endpoint(
            pci,
            machine.topology.pci[pci],
            machine.adapter_where(ports[0]),
            machine.adapter_label(ports[0]),
            None,
            ports,
        )
        for pci, ports in cards.items()
        if pci is not None
    ]


def _gpu_kind(end: _Endpoint) -> tuple[object, ...]:
    gpu = end.gpu
    sm = (gpu.sm, gpu.gcn) if gpu else None
    return "gpu", end.device.vendor, end.device.device, sm


def _card_kind(end: _Endpoint) -> tuple[object, ...]:
    if end.device.vendor and end.device.device:
        return "card", end.device.vendor, end.device.device, any(map(is_fabric, end.ports))
    return "card", end.device.pci_class, tuple(sorted(port_speed(p) or 0 for p in end.ports))


def _narrower(group: Sequence[_Endpoint]) -> Iterator[TopologyFinding]:
    known = [(end, float(end.device.lanes)) for end in group if end.device.lanes]
    yield from _lower(_WIDTH, known, lambda lanes: f"x{lanes:g}")


def _slower(group: Sequence[_Endpoint]) -> Iterator[TopologyFinding]:
    known = [(end, rate) for end in group if (rate := end.device.gigatransfers_per_s)]
    yield from _lower(_SPEED, known, lambda rate: f"{rate:g} GT/s")


def _lower(
    name: str, known: Sequence[tuple[_Endpoint, float]], write: Callable[[float], str]
) -> Iterator[TopologyFinding]:
    result = below_the_usual(known)
    if result is None:
        return
    others = {other.port_gbit_per_s for other, seen in known if seen >= result.usual}
    for end, value in result.odd:
        text = (
            f"{end.label} is at {write(value)}; {result.agree} of the {result.total} "
            f"{_kind_of(end)} like it are at {write(result.usual)}"
        )
        if name == _SPEED and end.gpu and value == IDLE_GIGATRANSFERS_PER_S:
            yield info(name, end.where, f"{text} (an idle GPU falls back so: look under load)")
        elif _of_another_use(end, others):
            yield info(name, end.where, f"{text}, and have ports of another speed")
        elif end.gpu and end.gpu.c2c_gb_per_s:
            yield info(name, end.where, f"{text}; its data goes through C2C")
        else:
            yield degraded(name, end.where, text)
    if not result.odd:
        end = min(known, key=lambda pair: pair[1])[0]
        told = sides(result.groups, write, lambda other: other.label)
        yield info(
            name,
            end.where,
            f"{_kind_of(end)} of one kind differ and no majority says what is right: {told}",
        )


def _of_another_use(end: _Endpoint, others: set[float | None]) -> bool:
    """Whether the ports' speed tells that a card of the same model serves something else."""
    return end.port_gbit_per_s is not None and not {None, end.port_gbit_per_s} & others


def _kind_of(end: _Endpoint) -> str:
    return "GPUs" if end.gpu else "adapters"


@dataclass(frozen=True, slots=True)
class _Path:
    """An endpoint, the narrowest bridge above it, what that gives and what the endpoint needs."""

    end: _Endpoint
    bridge: int
    gives_gb_per_s: float
    needs_gb_per_s: float

    @property
    def held_back(self) -> bool:
        """Whether the bridge gives clearly less than the endpoint needs."""
        return self.gives_gb_per_s < self.needs_gb_per_s * _ENOUGH


def _held_back(machine: Machine, group: Sequence[_Endpoint]) -> Iterator[TopologyFinding]:
    """Yield bridges with less bandwidth than a device below them needs."""
    paths = [
        path
        for end in group
        if end.gpu or any(map(is_fabric, end.ports))
        if (path := _path(machine, end)) is not None
    ]
    result = split((path, path.held_back) for path in paths)
    narrow = [path for path in paths if path.held_back]
    kind = _kind_of(paths[0].end) if paths else ""
    if result is not None and result.odd and not result.usual:
        for bridge, held in by(narrow, lambda path: path.bridge).items():
            yield degraded(
                _UPLINK,
                _bridge_name(machine, bridge),
                f"{_told(machine, held[0])}, as it does for {listed([p.end.label for p in held])}; "
                f"{result.agree} of the {result.total} {kind} like it are not held back",
            )
    elif narrow:
        yield info(
            _UPLINK,
            _bridge_name(machine, narrow[0].bridge),
            f"{_told(machine, narrow[0])}; so it is for {len(narrow)} of the {len(paths)} {kind} "
            "like it",
        )


def _path(machine: Machine, end: _Endpoint) -> _Path | None:
    """Return the narrowest bridge above ``end``; ``None`` where its rate or need is not known."""
    needs = _gb_per_s(end.device)
    if needs is None:
        return None
    if end.port_gbit_per_s:
        needs = min(needs, end.port_gbit_per_s / 8)
    rates = [
        (rate, bridge)
        for bridge in machine.bridges_above(end.pci)
        if (rate := _gb_per_s(machine.topology.pci[bridge])) is not None
    ]
    gives, bridge = min(rates, default=(math.inf, end.pci))
    return _Path(end, bridge, gives, needs)


def _gb_per_s(device: PciDevice) -> float | None:
    rate = _GB_PER_S_A_LANE.get(device.gigatransfers_per_s or 0)
    return None if rate is None or not device.lanes else rate * device.lanes


def _bridge_name(machine: Machine, bridge: int) -> str:
    return machine.topology.pci[bridge].busid or f"PCI device {bridge}"


def _told(machine: Machine, path: _Path) -> str:
    device = machine.topology.pci[path.bridge]
    return (
        f"bridge {_bridge_name(machine, path.bridge)} ({device.gigatransfers_per_s:g} GT/s "
        f"x{device.lanes}) gives {path.gives_gb_per_s:.1f} of the {path.needs_gb_per_s:.1f} GB/s "
        f"that {path.end.label} can take"
    )


def _unknown(what: str, ends: Sequence[_Endpoint]) -> Iterator[TopologyFinding]:
    """Yield one finding for all GPUs, or adapters, whose link the file does not tell."""
    silent = [end for end in ends if not end.device.lanes or end.device.gigatransfers_per_s is None]
    if silent:
        yield info(
            "pcie_unknown",
            silent[0].where,
            f"no PCIe speed or width for {len(silent)} of {len(ends)} {what}: "
            f"{listed([end.label for end in silent])}",
        )
