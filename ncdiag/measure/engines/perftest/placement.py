"""Which hosts can be measured, on which RDMA ports, and out of which memory; pure."""

from collections.abc import Mapping
from dataclasses import dataclass, replace

from ncdiag.measure.engines.perftest.messages import Build, Prepared
from ncdiag.model.host import HostFacts, Nic

_NO_PORT = "it is no RDMA port, and perftest measures RDMA alone"
_NO_ADDRESS = "it has no IP address at which the programs could find each other"


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """Where one NIC of a host is measured; ``variables`` stand in the program's environment."""

    nic: Nic
    build: Build
    address: str
    variables: Mapping[str, str]


def why_not(prepared: Prepared) -> str | None:
    """Why a host cannot be measured at all, in one line."""
    facts = rdma_facts(prepared)
    if not facts.nics:
        missing = "; ".join(f"{name}: {why}" for name, why in facts.missing_nics.items())
        return "no RDMA port" + (f": {missing}" if missing else " is active")
    if prepared.build is None:
        return prepared.problem or "it has no program of perftest"
    if not any(_address(nic, prepared) for nic in facts.nics):
        return _NO_ADDRESS
    return None


def rdma_facts(prepared: Prepared) -> HostFacts:
    """The facts of a host with its NICs as RDMA ports; what is none is missing, with the reason.

    An interface that an operator named stands for the port that carries it.
    """
    facts = prepared.report.facts
    ports = {port.interface: port for port in prepared.rdma_ports if port.interface}
    nics, missing = [], dict(facts.missing_nics)
    for nic in facts.nics:
        port = nic if nic.hca else ports.get(nic.interface or "")
        if port is None:
            missing[nic.name] = _NO_PORT
        else:
            nics.append(replace(port, name=nic.name))
    versions = dict(facts.versions)
    if prepared.build and prepared.build.version:
        versions["perftest"] = prepared.build.version
    return replace(facts, nics=tuple(nics), missing_nics=missing, versions=versions)


def placed_facts(prepared: Prepared) -> HostFacts:
    """The facts of a host with those of its RDMA ports alone that have a place."""
    facts = rdma_facts(prepared)
    nowhere = {nic.name: _NO_ADDRESS for nic in facts.nics if not _address(nic, prepared)}
    nics = tuple(nic for nic in facts.nics if nic.name not in nowhere)
    return replace(facts, nics=nics, missing_nics={**facts.missing_nics, **nowhere})


def can_use_gpus(prepared: Prepared) -> bool:
    """Whether payload can come from GPU memory and go there, without a copy in the host's."""
    build = prepared.build
    if build is None or not build.cuda or not prepared.report.facts.gpus:
        return False
    return prepared.peer_memory or (prepared.open_driver and build.cuda_dmabuf)


def places(
    prepared: Prepared, variables: Mapping[str, str], *, gpu_memory: bool
) -> dict[str, Place]:
    """The place of each NIC, by its name."""
    build = prepared.build
    if build is None:
        return {}
    if prepared.peer_memory:  # the older way, which needs nothing of the kernel's own
        build = _without_dmabuf(build)
    found = {}
    for nic in rdma_facts(prepared).nics:
        own = dict(variables)
        if gpu_memory:
            own["CUDA_DEVICE_ORDER"] = "PCI_BUS_ID"  # the order of nvidia-smi
            own["CUDA_VISIBLE_DEVICES"] = str(prepared.report.nearest_gpu.get(nic.name, 0))
        address = _address(nic, prepared)
        if address:
            found[nic.name] = Place(nic=nic, build=build, address=address, variables=own)
    return found


def _without_dmabuf(build: Build) -> Build:
    return Build(
        path=build.path, version=build.version, cuda=build.cuda, cuda_dmabuf=False, ipv6=build.ipv6
    )


def _address(nic: Nic, prepared: Prepared) -> str | None:
    """Where the two programs meet to exchange what RDMA needs to know; no payload goes there."""
    return nic.address or prepared.report.own_address
