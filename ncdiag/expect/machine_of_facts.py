"""The machine that hosts describe themselves as: what they are compared with where nobody says.

Only what is known for sure makes a machine, as a wrong one would accuse healthy hosts: GPUs whose
links do not depend on the server or the rack they are in, and NICs that tell their rate.
"""

import re
from collections.abc import Sequence
from dataclasses import replace

from ncdiag.expect.gpus import GPUS
from ncdiag.expect.hardware import MACHINES
from ncdiag.expect.machine import LinkLayer, Machine, Rail
from ncdiag.model.host import HostFacts, Nic, NicKind, PcieLink
from ncdiag.model.units import format_rate

# What nvidia-smi calls them, and the catalogue. Left out are those that bridges may join or not,
# those that only a PCIe topology tells of, and those that reach as far as their rack does.
_GPUS = (
    (re.compile(r"\bA100-SXM4\b"), "A100 SXM"),
    (re.compile(r"\bA800-SXM4\b"), "A800 SXM"),
    (re.compile(r"\bH100 \d+GB HBM3\Z"), "H100 SXM"),
    (re.compile(r"\bH200\Z"), "H200 SXM"),
    (re.compile(r"\bB200\Z"), "B200"),
    (re.compile(r"\bB300 SXM6\b"), "B300"),
)
# A whole board: how the GPUs of a part of one are joined, as in virtual machines, nobody says.
_WHOLE_BOARD = 8
_EFA = re.compile(r"(?:rdmap|efa_)")
_SAID = "as the hosts say"
_Ports = tuple[Nic, ...]


def machine_of_facts(facts: Sequence[HostFacts]) -> Machine | None:
    """The machine that all these hosts are; ``None`` where they differ, or it is not known.

    It is one of the catalogue where that fits, else made of the GPUs and the NICs' line rates.
    """
    if not facts or not alike(facts):
        return None
    gpu, gpus = _gpu(facts[0]), len(facts[0].gpus)
    ports = _ports(facts[0].nics)
    rates = {port.speed_gbit_per_s for port in ports}
    if gpu is None or gpus != _WHOLE_BOARD or None in rates or (not ports and len(facts) > 1):
        return None
    rails = _rails([_ports(one.nics) for one in facts])
    for known in MACHINES.values():
        if (known.gpu, known.gpus) == (gpu, gpus) and _lines(known.rails) == _lines(rails):
            return replace(known, name=f"{known.name}, {_SAID}")
    return _made(gpu, gpus, rails[:gpus])


def alike(facts: Sequence[HostFacts]) -> bool:
    """Whether all hosts have the same GPUs, and NICs of the same rates."""
    return len({_description(one) for one in facts}) <= 1


def _description(one: HostFacts) -> tuple[object, ...]:
    ports = _ports(one.nics)
    return tuple(gpu.name for gpu in one.gpus), tuple(port.speed_gbit_per_s for port in ports)


def _gpu(one: HostFacts) -> str | None:
    names = {gpu.name for gpu in one.gpus}
    if len(names) != 1:
        return None
    name = names.pop()
    return next((known for pattern, known in _GPUS if pattern.search(name)), None)


def _ports(nics: _Ports) -> _Ports:
    """What carries a job's traffic: InfiniBand where there is any, and of all the fastest."""
    ports = [nic for nic in nics if nic.hca]
    chosen = [nic for nic in ports if nic.kind is NicKind.INFINIBAND] or ports
    fastest = max((nic.speed_gbit_per_s or 0.0 for nic in chosen), default=0.0)
    return tuple(nic for nic in chosen if (nic.speed_gbit_per_s or 0.0) == fastest)


def _rails(of_hosts: Sequence[_Ports]) -> tuple[Rail, ...]:
    """The best slot of the fleet counts: one that runs slow is a fault."""
    return tuple(
        Rail(
            name=f"rail{number}",
            gbit_per_s=port.speed_gbit_per_s or 0.0,
            layer=_layer(port),
            slot=_best_slot([host[number].pcie for host in of_hosts]),
        )
        for number, port in enumerate(of_hosts[0])
    )


def _layer(port: Nic) -> LinkLayer:
    if _EFA.match(port.hca or ""):
        return LinkLayer.EFA
    return LinkLayer.INFINIBAND if port.kind is NicKind.INFINIBAND else LinkLayer.ROCE


def _best_slot(slots: Sequence[PcieLink | None]) -> PcieLink | None:
    known = [slot for slot in slots if slot is not None]
    return max(known, key=lambda one: one.gigatransfers_per_s * one.lanes, default=None)


def _lines(rails: Sequence[Rail]) -> list[tuple[float, LinkLayer]]:
    return [(rail.gbit_per_s, rail.layer) for rail in rails]


def _made(gpu: str, gpus: int, rails: tuple[Rail, ...]) -> Machine:
    """More ports than GPUs are for storage, too: NCCL gives each GPU its nearest."""
    kind = GPUS[gpu]
    ports = f", {len(rails)} x {format_rate(rails[0].gbit_per_s)} {rails[0].layer}" if rails else ""
    return Machine(
        name=f"{gpus} {gpu}{ports}, {_SAID}",
        gpu=kind.name,
        generation=kind.generation,
        gpus=gpus,
        rails=rails,
        gpu_slot=kind.slot,
        fabric=kind.fabric,
        c2c_gb_per_s=kind.c2c_gb_per_s,
        sharp=bool(rails) and rails[0].layer is LinkLayer.INFINIBAND,
        sources={**kind.sources, "gpus": _SAID, "rails": _SAID},
    )
