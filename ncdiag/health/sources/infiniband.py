"""RDMA ports: state, rate, counters, firmware, from sysfs."""

import re
from collections.abc import Iterator
from typing import Final

from ncdiag.health.nics import PCI_ADDRESS, natural, rate_gbit_per_s
from ncdiag.health.sources.found import Found, absent, read
from ncdiag.health.sources.place import HostRoot
from ncdiag.health.sources.values import counters, whole_number
from ncdiag.model.health import IbPort

_CLASS: Final = "/sys/class/infiniband"
# No host has more adapters, also where each is split into virtual functions.
_MOST_HCAS: Final = 512
# Of hundreds of addresses of a port the first ones tell its interface.
_ADDRESSES_TRIED: Final = 8


def collect(root: HostRoot) -> Found:
    """All RDMA ports, in the natural order of their names."""
    hcas = sorted(root.names(_CLASS), key=natural)[:_MOST_HCAS]
    if not hcas:
        return absent("no RDMA devices")
    return read(ib_ports=tuple(port for hca in hcas for port in _ports(root, hca)))


def _ports(root: HostRoot, hca: str) -> Iterator[IbPort]:
    folder = f"{_CLASS}/{hca}"
    firmware, board = root.text(f"{folder}/fw_ver"), root.text(f"{folder}/board_id")
    address = root.target(f"{folder}/device")
    numbers = [number for name in root.names(f"{folder}/ports") if (number := whole_number(name))]
    for number in sorted(numbers):
        port = f"{folder}/ports/{number}"
        rate = root.text(f"{port}/rate")
        yield IbPort(
            hca=hca,
            port=number,
            link_layer=root.text(f"{port}/link_layer"),
            state=_word(root.text(f"{port}/state")),
            physical_state=_word(root.text(f"{port}/phys_state")),
            rate_gbit_per_s=rate_gbit_per_s(rate),
            width=_width(rate),
            interface=_interface(root, hca, number),
            firmware=firmware,
            board=board,
            pci_address=address if PCI_ADDRESS.fullmatch(address) else None,
            counters=counters(root, f"{port}/counters"),
            hw_counters=counters(root, f"{port}/hw_counters"),
        )


def _word(text: str | None) -> str | None:
    """``4: ACTIVE`` is ``ACTIVE``."""
    return re.sub(r"^\d{1,2}: ", "", text)[:32] or None if text else None


def _width(rate: str | None) -> int | None:
    """``400 Gb/sec (4X NDR)`` has 4 lanes."""
    found = re.search(r"\((\d{1,2})X", rate or "", re.ASCII)
    return int(found[1]) if found else None


def _interface(root: HostRoot, hca: str, port: int) -> str | None:
    """The network interface of a port: by its address table, else by its device."""
    table = f"{_CLASS}/{hca}/ports/{port}/gid_attrs/ndevs"
    for entry in sorted(root.names(table), key=natural)[:_ADDRESSES_TRIED]:
        if name := root.text(f"{table}/{entry}"):
            return name
    net = f"{_CLASS}/{hca}/device/net"
    for name in sorted(root.names(net), key=natural):
        # dev_port counts from 0, RDMA ports from 1.
        if whole_number(root.text(f"{net}/{name}/dev_port")) in {port - 1, None}:
            return name
    return None
