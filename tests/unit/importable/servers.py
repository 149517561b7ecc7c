"""Servers made up for the topology tests: switches with GPUs and adapters, healthy as made."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from random import Random
from typing import Any

from ncdiag.diagnose.topology.check import check
from ncdiag.model.topology import (
    Adapter,
    Cpu,
    Gpu,
    GpuLink,
    GpuLinkKind,
    GpuMatrix,
    MatrixCell,
    NcclTopology,
    PciDevice,
    Topology,
)

GPU, BRIDGE, CARD, NVSWITCH = 0x030200, 0x060400, 0x020700, 0x068000
HIDDEN_SWITCH = "fffffff:ff:ff.0"


def server(
    *,
    sockets: int = 2,
    switches: int = 4,
    gpus: int = 1,
    cards: int = 1,
    ports: int = 1,
    gbit_per_s: float = 400.0,
    nvlinks: int = 18,
    sm: str = "90",
    first_bus: int = 0x10,
) -> NcclTopology:
    """``sockets`` with ``switches`` each, each with ``gpus`` and ``cards`` of ``ports``."""
    cpus = tuple(
        Cpu(numa=socket, arch="x86_64", vendor="GenuineIntel") for socket in range(sockets)
    )
    devices: list[PciDevice] = []
    made: list[Gpu] = []
    adapters: list[Adapter] = []
    bus = iter(range(first_bus, 0x10000))

    def device(cpu: int, parent: int | None, pci_class: int, model: str) -> int:
        number = next(bus)
        busid = f"{number >> 8:04x}:{number & 0xFF:02x}:00.0"
        vendor = {GPU: "0x10de", CARD: "0x15b3"}.get(pci_class, "0x1000")
        devices.append(
            PciDevice(
                cpu, parent, busid, pci_class, vendor, model,
                link_speed="32.0 GT/s PCIe", gigatransfers_per_s=32.0, lanes=16,
            )
        )  # fmt: skip
        return len(devices) - 1

    for socket in range(sockets):
        for _ in range(switches):
            above = device(socket, None, BRIDGE, "0xc030")
            for _ in range(gpus):
                links = (GpuLink(GpuLinkKind.NVLINK, HIDDEN_SWITCH, nvlinks, NVSWITCH),)
                number = len(made)
                made.append(
                    Gpu(
                        device(socket, above, GPU, "0x2330"),
                        index=number, rank=number, sm=sm, gdr=True,
                        links=links if nvlinks else (),
                    )
                )  # fmt: skip
            for _ in range(cards):
                card = device(socket, above, CARD, "0x1021")
                for port in range(1, ports + 1):
                    number = len(adapters)
                    adapters.append(
                        Adapter(
                            f"mlx5_{number}", socket, card, index=number, port=port,
                            speed_gbit_per_s=gbit_per_s, guid=f"0x{number}", gdr=True,
                        )
                    )  # fmt: skip
    return NcclTopology(cpus, tuple(devices), tuple(made), tuple(adapters))


def flat(gpus: int = 4, cards: int = 4, **changed: Any) -> NcclTopology:
    """A server whose GPUs and cards hang on the sockets, one of each a socket."""
    made = server(sockets=max(gpus, cards), switches=1, **changed)
    kept = [index for index, device in enumerate(made.pci) if device.pci_class != BRIDGE]
    at = {old: new for new, old in enumerate(kept)}
    return replace(
        made,
        pci=tuple(replace(made.pci[index], parent=None) for index in kept),
        gpus=tuple(replace(gpu, pci=at[gpu.pci]) for gpu in made.gpus[:gpus]),
        adapters=tuple(replace(a, pci=at[a.pci or 0]) for a in made.adapters[:cards]),
    )


def meshed(
    topology: NcclTopology,
    counts: Callable[[int, int], int],
    kind: GpuLinkKind = GpuLinkKind.NVLINK,
) -> NcclTopology:
    """The server with links from GPU to GPU: ``counts(a, b)`` of them, by place."""
    gpus = topology.gpus
    return replace(
        topology,
        gpus=tuple(
            replace(
                gpu,
                links=tuple(
                    GpuLink(kind, topology.busid(other), counts(a, b), GPU)
                    for b, other in enumerate(gpus)
                    if a != b and counts(a, b)
                ),
            )
            for a, gpu in enumerate(gpus)
        ),
    )


def with_gpu(topology: NcclTopology, at: int, **changed: Any) -> NcclTopology:
    """The server with one GPU changed."""
    gpus = list(topology.gpus)
    gpus[at] = replace(gpus[at], **changed)
    return replace(topology, gpus=tuple(gpus))


def with_adapter(topology: NcclTopology, at: int, **changed: Any) -> NcclTopology:
    """The server with one port changed."""
    adapters = list(topology.adapters)
    adapters[at] = replace(adapters[at], **changed)
    return replace(topology, adapters=tuple(adapters))


def with_device(topology: NcclTopology, at: int | None, **changed: Any) -> NcclTopology:
    """The server with one PCI device changed."""
    pci = list(topology.pci)
    pci[at or 0] = replace(pci[at or 0], **changed)
    return replace(topology, pci=tuple(pci))


def with_all_devices(topology: NcclTopology, pci_class: int, **changed: Any) -> NcclTopology:
    """The server with all PCI devices of a class changed."""
    pci = tuple(replace(d, **changed) if d.pci_class == pci_class else d for d in topology.pci)
    return replace(topology, pci=pci)


def without_gpu(topology: NcclTopology, at: int) -> NcclTopology:
    """The server without one GPU, as its element goes; its PCI device goes with it."""
    gone = topology.gpus[at].pci
    return _without_device(replace(topology, gpus=_but(topology.gpus, at)), gone)


def without_card(topology: NcclTopology, at: int) -> NcclTopology:
    """The server without the card of one port."""
    gone = topology.adapters[at].pci
    kept = tuple(adapter for adapter in topology.adapters if adapter.pci != gone)
    return _without_device(replace(topology, adapters=kept), gone or 0)


def with_port(topology: NcclTopology, **of: Any) -> NcclTopology:
    """The server with one more port, on a card of its own at the first socket unless said."""
    device = PciDevice(
        0, None, f"0000:{0xFF - len(topology.adapters):02x}:00.0", CARD, "0x15b3", "0x1021",
        link_speed="32.0 GT/s PCIe", gigatransfers_per_s=32.0, lanes=16,
    )  # fmt: skip
    device = replace(device, **of.pop("device", {}))
    settings = {"pci": len(topology.pci), "port": 1, "speed_gbit_per_s": 400.0, "gdr": True} | of
    adapter = Adapter(settings.pop("name", "mlx5_extra"), settings.pop("cpu", 0), **settings)
    pci = (*topology.pci, device) if adapter.pci == len(topology.pci) else topology.pci
    return replace(topology, pci=pci, adapters=(*topology.adapters, adapter))


def shuffled(topology: NcclTopology, random: Random) -> NcclTopology:
    """The same server with its devices, GPUs, ports and link rows in another order."""
    order = list(range(len(topology.pci)))
    random.shuffle(order)
    at = {old: new for new, old in enumerate(order)}

    def moved(pci: int | None) -> int | None:
        return None if pci is None else at[pci]

    gpus = [
        replace(gpu, pci=at[gpu.pci], links=tuple(random.sample(gpu.links, len(gpu.links))))
        for gpu in topology.gpus
    ]
    adapters = [replace(adapter, pci=moved(adapter.pci)) for adapter in topology.adapters]
    random.shuffle(gpus)
    random.shuffle(adapters)
    return replace(
        topology,
        pci=tuple(replace(topology.pci[i], parent=moved(topology.pci[i].parent)) for i in order),
        gpus=tuple(gpus),
        adapters=tuple(adapters),
    )


def renumbered(topology: NcclTopology, random: Random) -> NcclTopology:
    """The same server with other bus ids."""
    old = list(dict.fromkeys(device.busid for device in topology.pci if device.busid))
    numbers = random.sample(range(0x100, 0xFFFF), len(old))
    new = {
        busid: f"{number >> 8:04x}:{number & 0xFF:02x}:00.0"
        for busid, number in zip(old, numbers, strict=True)
    }
    return replace(
        topology,
        pci=tuple(replace(d, busid=new.get(d.busid or "")) for d in topology.pci),
        gpus=tuple(
            replace(
                gpu,
                links=tuple(
                    replace(link, target=new.get(link.target or "", link.target))
                    for link in gpu.links
                ),
            )
            for gpu in topology.gpus
        ),
    )


def matrix(
    paths: Sequence[Sequence[str]], nics: Sequence[Sequence[str]] = (), **of: Any
) -> GpuMatrix:
    """A table of GPUs by rows of cells, and of NICs by their cells towards the GPUs."""
    gpus = tuple(f"GPU{at}" for at in range(len(paths)))
    names = tuple(f"NIC{at}" for at in range(len(nics)))
    cells = [
        MatrixCell(a, b, path)
        for a, row in zip(gpus, paths, strict=True)
        for b, path in zip(gpus, row, strict=True)
    ]
    for nic, row in zip(names, nics, strict=True):
        for gpu, path in zip(gpus, row, strict=True):
            cells += [MatrixCell(nic, gpu, path), MatrixCell(gpu, nic, path)]
    return GpuMatrix(gpus, names, tuple(cells), **of)


def classes(topology: Topology) -> dict[str, str]:
    """Classes found, each with its worst severity."""
    found: dict[str, str] = {}
    for finding in check(topology):
        found.setdefault(finding.name, str(finding.severity))
    return found


def faults(topology: Topology) -> list[tuple[str, str]]:
    """Class and place of all that is not ``info``."""
    return [(f.name, f.where) for f in check(topology) if f.severity != "info"]


def _without_device(topology: NcclTopology, gone: int) -> NcclTopology:
    def moved(index: int | None) -> int | None:
        return index - (index > gone) if index is not None else None

    return replace(
        topology,
        pci=tuple(replace(d, parent=moved(d.parent)) for d in _but(topology.pci, gone)),
        gpus=tuple(replace(gpu, pci=gpu.pci - (gpu.pci > gone)) for gpu in topology.gpus),
        adapters=tuple(replace(a, pci=moved(a.pci)) for a in topology.adapters),
    )


def _but(items: tuple[Any, ...], at: int) -> tuple[Any, ...]:
    return items[:at] + items[at + 1 :]
