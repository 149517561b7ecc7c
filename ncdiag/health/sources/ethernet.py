"""Network interfaces with a device behind them: state, speed, flaps, errors, from sysfs."""

from typing import Final

from ncdiag.health.nics import PCI_ADDRESS, VIRTUAL_DRIVERS, natural
from ncdiag.health.sources.found import Found, absent, read
from ncdiag.health.sources.place import HostRoot
from ncdiag.health.sources.values import counters, whole_number
from ncdiag.model.health import EthernetPort

_CLASS: Final = "/sys/class/net"
_MOST_INTERFACES: Final = 512
_MOST_NAMES: Final = 4096  # of more, which one is missing is not told
# ARPHRD_ETHER of linux/if_arp.h; IPoIB is 32, and told of by its RDMA port.
_ETHERNET: Final = {"1", None}
_UNKNOWN_SPEED: Final = 0xFFFFFFFF  # SPEED_UNKNOWN as 32 bits, linux/ethtool.h


def collect(root: HostRoot) -> Found:
    """All interfaces that are more than software, in the natural order of their names."""
    there = sorted(root.names(_CLASS), key=natural)
    names = [
        name
        for name in there
        if root.exists(f"{_CLASS}/{name}/device")
        and root.text(f"{_CLASS}/{name}/type") in _ETHERNET
    ]
    if not names:
        return absent("no network interface has a device")
    return read(
        ethernet_ports=tuple(_port(root, name) for name in names[:_MOST_INTERFACES]),
        interfaces=tuple(there) if len(there) <= _MOST_NAMES else None,
    )


def _port(root: HostRoot, name: str) -> EthernetPort:
    folder = f"{_CLASS}/{name}"
    driver = root.target(f"{folder}/device/driver") or None
    address = root.target(f"{folder}/device")
    return EthernetPort(
        name=name,
        state=root.text(f"{folder}/operstate"),
        # What a device in software says of its speed is a guess.
        speed_gbit_per_s=None if driver in VIRTUAL_DRIVERS else _speed(root, folder),
        mtu=whole_number(root.text(f"{folder}/mtu")),
        driver=driver,
        pci_address=address if PCI_ADDRESS.fullmatch(address) else None,
        carrier_changes=whole_number(root.text(f"{folder}/carrier_changes")),
        counters=counters(root, f"{folder}/statistics"),
    )


def _speed(root: HostRoot, folder: str) -> float | None:
    # -1, or an error on reading, where the speed is not known; else Mbit/s.
    mbit_per_s = whole_number(root.text(f"{folder}/speed"))
    return None if not mbit_per_s or mbit_per_s == _UNKNOWN_SPEED else mbit_per_s / 1000
