"""What a topology dump says of a host's NICs, and how that replaces what the host says itself."""

from dataclasses import replace

from ncdiag.expect.machine_of_dump import adapter_slot, plausible_speed
from ncdiag.model.errors import UsageError
from ncdiag.model.host import HostDump, Nic, NicKind
from ncdiag.model.text import visible
from ncdiag.model.topology import Adapter, NcclTopology

_MAX_NICS = 256
_MAX_NAME_CHARS = 255


def read_host_dump(topology: object, host: str, file: str) -> HostDump:
    """The NICs of one dump that have a name; ``host`` is empty for a dump of all hosts alike.

    Raises :class:`UsageError` for what is no NCCL topology or names no NIC.
    """
    shown = visible(file)
    if not isinstance(topology, NcclTopology):
        raise UsageError(f"{shown} is no NCCL topology (XML)")
    nics = {(one.name, one.port): _nic(topology, one) for one in topology.adapters if one.name}
    if not nics:
        raise UsageError(f"{shown} names no NIC, so it says nothing of links between hosts")
    if len(nics) > _MAX_NICS:
        raise UsageError(f"{shown} names {len(nics)} NICs; {_MAX_NICS} are the most")
    return HostDump(host=host, file=shown, nics=tuple(nics.values()))


def _nic(topology: NcclTopology, adapter: Adapter) -> Nic:
    return Nic(
        name=visible(adapter.name or "")[:_MAX_NAME_CHARS],
        kind=NicKind.ETHERNET,  # not told; what the host says of it stands
        hca_port=adapter.port,
        speed_gbit_per_s=plausible_speed(adapter),
        pcie=adapter_slot(topology, adapter),
    )


def as_dumped(nic: Nic, dump: HostDump | None) -> Nic:
    """``nic`` with the speed and the PCIe link of its dump, where that has them."""
    described = None if dump is None else _find(nic, dump)
    if dump is None or described is None:
        return nic
    if described.speed_gbit_per_s is None and described.pcie is None:
        return nic
    return replace(
        nic,
        speed_gbit_per_s=described.speed_gbit_per_s or nic.speed_gbit_per_s,
        pcie=described.pcie or nic.pcie,
        described_in=dump.file,
    )


def _find(nic: Nic, dump: HostDump) -> Nic | None:
    """The port of the dump that ``nic`` is: by its HCA and port, else by its interface."""
    for one in dump.nics:
        if nic.hca is not None and one.name == nic.hca and _same_port(nic, one):
            return one
    return next((one for one in dump.nics if one.name in {nic.name, nic.interface}), None)


def _same_port(nic: Nic, described: Nic) -> bool:
    return None in {nic.hca_port, described.hca_port} or nic.hca_port == described.hca_port
