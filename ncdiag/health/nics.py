"""Which NICs of this host carry the traffic between hosts, and what they are, from sysfs."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from ncdiag.health.addresses import Addresses, interface_addresses, is_loopback
from ncdiag.health.sysfs import read_text
from ncdiag.model.host import Nic, NicKind, PcieLink

# Drivers of devices that exist in software only: what they say of their speed is a guess.
VIRTUAL_DRIVERS = frozenset(
    {"veth", "tun", "virtio_net", "vif", "xen_netfront", "hv_netvsc", "vmxnet3", "e1000"}
)
PCI_ADDRESS = re.compile(r"[0-9a-f]{4,8}:[0-9a-f]{2}:[0-9a-f]{2}\.[0-7]")
# No name of a device holds anything else; it becomes part of a path below /sys.
_DEVICE_NAME = re.compile(r"(?!\.)[\w.\-@]{1,64}", re.ASCII)
_HCA_NAME = re.compile(r"(?P<hca>(?!\.)[\w.\-]{1,64})(?::(?P<port>\d{1,3}))?", re.ASCII)


def find_nics(
    requested: Sequence[str],
    address_hint: str | None,
    root: Path = Path("/"),
    addresses: Addresses | None = None,
) -> tuple[tuple[Nic, ...], dict[str, str]]:
    """Return this host's NICs in rail order, and what is missing with the reason.

    ``requested`` are names an operator gave (``eth0``, ``mlx5_0``, ``mlx5_0:2``). Without any,
    these are all active RDMA ports, else the one interface that carries ``address_hint``.
    ``root`` and ``addresses`` stand in for the real system in tests.
    """
    system = _System(root, interface_addresses() if addresses is None else addresses, address_hint)
    if requested:
        return _requested(system, requested)
    if ports := system.active_rdma_ports():
        return tuple(ports), {}
    return routed_nic(address_hint, root, system.addresses)


def routed_nic(
    address_hint: str | None, root: Path = Path("/"), addresses: Addresses | None = None
) -> tuple[tuple[Nic, ...], dict[str, str]]:
    """The one interface that carries ``address_hint``, in the form of :func:`find_nics`."""
    system = _System(root, interface_addresses() if addresses is None else addresses, address_hint)
    if address_hint is None:
        return (), {"default": "no route to the driver, and no nic= in the hosts file"}
    for name, carried in system.addresses.items():
        if address_hint in carried:
            return (system.ethernet(name),), {}
    if is_loopback(address_hint):
        return (system.ethernet("lo"),), {}
    return (), {"default": f"no interface carries {address_hint}"}


def _requested(
    system: "_System", requested: Sequence[str]
) -> tuple[tuple[Nic, ...], dict[str, str]]:
    found: list[Nic] = []
    missing: dict[str, str] = {}
    for name in requested:
        try:
            found.append(system.named(name))
        except _UnusableError as error:
            missing[name] = str(error)
    return tuple(found), missing


class _UnusableError(Exception):
    """A NIC that was asked for is not there or cannot be used; the message is the reason."""


def _number(path: Path) -> int | None:
    text = read_text(path) or ""
    return int(text) if re.fullmatch(r"\d{1,18}", text, re.ASCII) else None


@dataclass(frozen=True, slots=True)
class _System:
    """The parts of sysfs that describe NICs, below ``root``."""

    root: Path
    addresses: Addresses
    address_hint: str | None

    @property
    def _net(self) -> Path:
        return self.root / "sys/class/net"

    @property
    def _infiniband(self) -> Path:
        return self.root / "sys/class/infiniband"

    def named(self, name: str) -> Nic:
        """The NIC an operator calls ``name``; raises :class:`_UnusableError`."""
        if _DEVICE_NAME.fullmatch(name) and (self._net / name).is_dir():
            return self._usable_interface(name)
        match = _HCA_NAME.fullmatch(name)
        if match and (self._infiniband / match["hca"]).is_dir():
            return self._usable_port(name, match["hca"], match["port"])
        raise _UnusableError("not found on the host")

    def active_rdma_ports(self) -> list[Nic]:
        """All RDMA ports whose state is active, in the natural order of their names."""
        return [
            self._rdma(hca.name if only else f"{hca.name}:{port}", hca.name, port)
            for hca in sorted(_entries(self._infiniband), key=_natural)
            for ports in [self._ports(hca.name)]
            for only in [len(ports) == 1]
            for port in ports
            if self._is_active(hca.name, port)
        ]

    def ethernet(self, name: str) -> Nic:
        """A network interface, driven as plain Ethernet."""
        device = self._net / name / "device"
        return Nic(
            name=name,
            kind=NicKind.ETHERNET,
            interface=name,
            address=self._address(name),
            mtu=_number(self._net / name / "mtu"),
            speed_gbit_per_s=self._ethernet_speed(name),
            pcie=_pcie(device),
            pci_address=_pci_address(device),
        )

    def _usable_interface(self, name: str) -> Nic:
        state = read_text(self._net / name / "operstate")
        if state in {"down", "lowerlayerdown", "notpresent"}:
            raise _UnusableError(f"its state is {state}")
        nic = self.ethernet(name)
        if nic.address is None:
            raise _UnusableError("it has no IP address")
        return nic

    def _usable_port(self, name: str, hca: str, port: str | None) -> Nic:
        ports = self._ports(hca)
        if port is not None and int(port) not in ports:
            raise _UnusableError(f"{hca} has no port {port}")
        wanted = ports if port is None else [int(port)]
        active = [number for number in wanted if self._is_active(hca, number)]
        if not active:
            states = {
                read_text(self._port(hca, number) / "state") or "unknown" for number in wanted
            }
            raise _UnusableError(f"its state is {', '.join(sorted(states)) or 'unknown'}")
        return self._rdma(name, hca, active[0])

    def _rdma(self, name: str, hca: str, port: int) -> Nic:
        path = self._port(hca, port)
        interface = self._interface_of(hca, port)
        device = self._infiniband / hca / "device"
        roce = read_text(path / "link_layer") == "Ethernet"
        return Nic(
            name=name,
            kind=NicKind.ETHERNET if roce else NicKind.INFINIBAND,
            interface=interface,
            address=self._address(interface) if interface else None,
            hca=hca,
            hca_port=port,
            mtu=_number(self._net / interface / "mtu") if interface else None,
            speed_gbit_per_s=rate_gbit_per_s(read_text(path / "rate")),
            pcie=_pcie(device),
            pci_address=_pci_address(device),
        )

    def _port(self, hca: str, port: int) -> Path:
        return self._infiniband / hca / "ports" / str(port)

    def _ports(self, hca: str) -> list[int]:
        entries = _entries(self._infiniband / hca / "ports")
        return sorted(int(entry.name) for entry in entries if entry.name.isdigit())

    def _is_active(self, hca: str, port: int) -> bool:
        # "4: ACTIVE" (Documentation/ABI/stable/sysfs-class-infiniband).
        return (read_text(self._port(hca, port) / "state") or "").startswith("4:")

    def _interface_of(self, hca: str, port: int) -> str | None:
        """The network interface of an RDMA port: by its address table, else by its device."""
        table = self._port(hca, port) / "gid_attrs/ndevs"
        for entry in sorted(_entries(table), key=_natural):
            if name := read_text(entry):
                return name
        for entry in sorted(_entries(self._infiniband / hca / "device/net"), key=_natural):
            # dev_port counts from 0, RDMA ports from 1.
            if _number(entry / "dev_port") in {port - 1, None}:
                return entry.name
        return None

    def _address(self, interface: str) -> str | None:
        carried = self.addresses.get(interface, ())
        hint = self.address_hint
        if hint and (hint in carried or (interface == "lo" and is_loopback(hint))):
            return hint
        return carried[0] if carried else None

    def _ethernet_speed(self, name: str) -> float | None:
        device = self._net / name / "device"
        # A bond has no device of its own, and knows the sum of its members.
        if not device.exists() and not (self._net / name / "bonding").is_dir():
            return None
        if (device / "driver").resolve().name in VIRTUAL_DRIVERS:
            return None
        # -1, or an error on reading, where the speed is not known; else Mbit/s.
        mbit_per_s = _number(self._net / name / "speed")
        if not mbit_per_s or mbit_per_s == 0xFFFFFFFF:  # SPEED_UNKNOWN as 32 bits, linux/ethtool.h
            return None
        return mbit_per_s / 1000


def _entries(folder: Path) -> list[Path]:
    try:
        return list(folder.iterdir())
    except OSError:
        return []


def natural(name: str) -> list[tuple[int, str]]:
    """A key that sorts mlx5_2 before mlx5_10."""
    return [(int(digits or 0), rest) for digits, rest in re.findall(r"(\d*)(\D*)", name)]


def _natural(path: Path) -> list[tuple[int, str]]:
    return natural(path.name)


def rate_gbit_per_s(text: str | None) -> float | None:
    """``400 Gb/sec (4X NDR)`` is 400."""
    match = re.match(r"(\d{1,5}(?:\.\d{1,3})?) Gb/sec", text or "", re.ASCII)
    return float(match[1]) or None if match else None


def _pcie(device: Path) -> PcieLink | None:
    # "16.0 GT/s PCIe", in older kernels "16 GT/s"; "Unknown" for a virtual function.
    speed = re.match(r"(\d{1,3}(?:\.\d)?) GT/s", read_text(device / "current_link_speed") or "")
    lanes = _number(device / "current_link_width")
    if speed is None or not lanes or lanes > 32:  # an unknown width reads as 255
        return None
    return PcieLink(gigatransfers_per_s=float(speed[1]), lanes=lanes)


def _pci_address(device: Path) -> str | None:
    name = device.resolve().name
    return name if PCI_ADDRESS.fullmatch(name) else None
