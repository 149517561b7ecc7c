"""The names of a host's devices that environment variables choose among, from sysfs and procfs."""

import re
import socket
from dataclasses import replace
from pathlib import Path

import msgspec

from ncdiag.health.addresses import Addresses, interface_addresses
from ncdiag.health.nics import find_nics
from ncdiag.model.host import Host, Nic, NicKind
from ncdiag.profiles.context import HostDevices
from ncdiag.profiles.placeholders import COMPUTE_HCAS, SOCKET_NIC, HostValues

# Interfaces of containers and virtual machines, which lead to no other host.
_INNER = re.compile(r"(?:lo\Z|docker|virbr|veth|br-|cni|flannel|cali|tun\d|tap\d)")
# How the kernel's drivers and rdma-core's persistent names call RDMA devices (rdma-core,
# kernel-boot/rdma_rename.c, and the drivers' own names).
_RDMA = re.compile(
    r"(?:mlx[45]_|mlx5_bond_|rocep|rdmap|bnxt_re|irdma|efa_|hfi1_|qedr|erdma_|mana_|hns_|iwp)"
)


def devices_here(root: Path = Path("/")) -> HostDevices:
    """What this host has. ``root`` stands in for the real system in tests."""
    nics, _ = find_nics((), None, root, {})
    gpus = root / "proc/driver/nvidia/gpus"
    return HostDevices(
        host=socket.gethostname(),
        hcas=tuple(dict.fromkeys(nic.hca for nic in nics if nic.hca)),
        interfaces=tuple(sorted(_entries(root / "sys/class/net"))),
        # Only machines with NVSwitches say so without a GPU being asked.
        nvlink=True if _entries(root / "proc/driver/nvidia-nvswitch/devices") else None,
        gpus=len(_entries(gpus)) if gpus.is_dir() else None,
    )


def devices_task(payload: bytes) -> bytes:
    """The same as JSON, for a fleet's worker to call; ``payload`` is the name of the host."""
    return msgspec.json.encode(replace(devices_here(), host=payload.decode()))


def values_here(root: Path = Path("/"), addresses: Addresses | None = None) -> HostValues:
    """What placeholders in profiles stand for on this host."""
    known = interface_addresses() if addresses is None else addresses
    values: dict[str, str] = {}
    missing: dict[str, str] = {}
    nics, _ = find_nics((), None, root, known)
    routed = _default_interface(root)
    hcas = compute_hcas(nics, routed)
    if hcas:
        values[COMPUTE_HCAS] = ",".join(hcas)
    else:
        missing[COMPUTE_HCAS] = "it has no RDMA device with an active port"
    interface = routed or _only_interface(known)
    if interface:
        values[SOCKET_NIC] = interface
    else:
        missing[SOCKET_NIC] = "it has no default route, and not just one interface with an address"
    return HostValues(socket.gethostname(), values, missing)


def values_of(host: Host) -> HostValues:
    """What placeholders stand for on a host of the inventory, by its ``nic=``; contacts nobody."""
    hcas = [nic for nic in host.nics if ":" in nic or _RDMA.match(nic)]
    interfaces = [nic for nic in host.nics if nic not in hcas]
    found = {COMPUTE_HCAS: hcas, SOCKET_NIC: interfaces}
    missing = "nic= of the hosts file names none" if host.nics else "no nic= is given for it"
    return HostValues(
        host.name,
        {name: ",".join(some) for name, some in found.items() if some},
        {name: missing for name, some in found.items() if not some},
    )


def compute_hcas(nics: tuple[Nic, ...], routed: str | None) -> tuple[str, ...]:
    """The RDMA ports that carry a job's traffic: not those for management or storage.

    InfiniBand where there is any; else Ethernet but for the port of the default route. Of these
    the fastest, since ports for storage are slower, in the order of ``nics``.
    """
    ports = [nic for nic in nics if nic.hca]
    infiniband = [nic for nic in ports if nic.kind is NicKind.INFINIBAND]
    chosen = infiniband or [nic for nic in ports if nic.interface != routed] or ports
    fastest = max((nic.speed_gbit_per_s or 0 for nic in chosen), default=0)
    return tuple(nic.name for nic in chosen if (nic.speed_gbit_per_s or 0) == fastest)


def _default_interface(root: Path) -> str | None:
    """The interface of the default route with the lowest metric (proc(5), /proc/net/route)."""
    try:
        lines = (root / "proc/net/route").read_text(errors="replace").splitlines()[1:]
    except OSError:
        return None
    # Interface, destination, gateway, flags, references, use, metric, mask.
    rows = [row for line in lines if len(row := line.split()) >= 8]
    ways = [
        (int(row[6]), row[0])
        for row in rows
        if row[6].isdecimal() and row[1] == row[7] == "00000000"
    ]
    return min(ways)[1] if ways else None


def _only_interface(addresses: Addresses) -> str | None:
    found = [name for name, some in addresses.items() if some and not _INNER.match(name)]
    return found[0] if len(found) == 1 else None


def _entries(folder: Path) -> list[str]:
    try:
        return [entry.name for entry in folder.iterdir()]
    except OSError:
        return []
