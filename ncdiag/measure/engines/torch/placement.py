"""What to measure on each host, with which backend, in which process: decided from facts, pure."""

from collections.abc import Mapping
from dataclasses import dataclass, replace

from ncdiag.measure.engines.torch.messages import Backend, Collected
from ncdiag.measure.engines.torch.processes import (
    SHARED_PROCESS,
    nccl_settings,
    rail_process_name,
)
from ncdiag.model.host import Host, HostFacts, Nic, NicKind

NO_GPU = "it has no GPU that torch can use, and the fleet is measured over NCCL"
_NO_ADDRESS = "it has no IP address, and without GPUs only IP can be measured"


@dataclass(frozen=True, slots=True)
class Place:
    """Where one NIC of a host is measured: the process, and where peers find its store."""

    host: str
    process: str
    address: str
    port: int = 0
    settings: tuple[str, ...] = ()


def choose_backend(
    collected: Mapping[str, Collected], wanted: Backend | None
) -> tuple[Backend, dict[str, str]]:
    """The backend of the whole fleet, and the hosts that cannot be measured with it.

    Figures of both kinds would not compare: NCCL, where at least half of the hosts can.
    """
    without = {host: NO_GPU for host, one in collected.items() if not one.ready.gpus}
    most = wanted or (Backend.GLOO if 2 * len(without) > len(collected) else Backend.NCCL)
    if most is Backend.GLOO or not collected:
        return Backend.GLOO, {}
    return Backend.NCCL, without


def place(host: Host, collected: Collected, backend: Backend) -> tuple[HostFacts, dict[str, Place]]:
    """The facts of a host with the NICs as they will be driven, and the place of each."""
    if backend is Backend.NCCL:
        return collected.facts, {
            nic.name: _rail(host.name, nic, collected)
            for nic in collected.facts.nics
            if nic.address or collected.own_address
        }
    facts = _over_ip(collected.facts)
    if not facts.nics and not host.nics and collected.routed_nic:
        facts = replace(facts, nics=(collected.routed_nic,))
    return facts, {
        nic.name: Place(host.name, SHARED_PROCESS, nic.address) for nic in facts.nics if nic.address
    }


def without_nics(facts: HostFacts, failed: Mapping[str, str]) -> HostFacts:
    """The facts of a host some of whose NICs turned out to be of no use."""
    nics = tuple(nic for nic in facts.nics if nic.name not in failed)
    return replace(facts, nics=nics, missing_nics={**facts.missing_nics, **failed})


def _rail(host: str, nic: Nic, collected: Collected) -> Place:
    routed = collected.routed_nic.interface if collected.routed_nic else None
    return Place(
        host=host,
        process=rail_process_name(nic),
        address=nic.address or collected.own_address or "",
        settings=nccl_settings(nic, collected.nearest_gpu.get(nic.name), routed),
    )


def _over_ip(facts: HostFacts) -> HostFacts:
    """Gloo knows IP only: an RDMA port is driven, and counted, as the interface it carries."""
    usable = without_nics(facts, {nic.name: _NO_ADDRESS for nic in facts.nics if not nic.address})
    nics = tuple(
        replace(nic, kind=NicKind.ETHERNET, hca=None, hca_port=None) if nic.hca else nic
        for nic in usable.nics
    )
    return replace(usable, nics=nics)
