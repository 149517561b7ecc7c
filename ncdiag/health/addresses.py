"""The IP addresses of this host's network interfaces, as the C library lists them."""

import ctypes
import ctypes.util
import ipaddress
import socket
from collections.abc import Iterator, Mapping

Addresses = Mapping[str, tuple[str, ...]]


class _Ifaddrs(ctypes.Structure):
    """The beginning of ``struct ifaddrs`` (getifaddrs(3)), as far as it is needed."""


_Ifaddrs._fields_ = [
    ("next", ctypes.POINTER(_Ifaddrs)),
    ("name", ctypes.c_char_p),
    ("flags", ctypes.c_uint),
    ("address", ctypes.c_void_p),
]

# Where the address stands in sockaddr_in and sockaddr_in6, and how long it is (ip(7), ipv6(7)).
_PLACES = {socket.AF_INET: (4, 4), socket.AF_INET6: (8, 16)}


def interface_addresses() -> dict[str, tuple[str, ...]]:
    """Addresses by interface, IPv4 first, without link-local ones.

    Other hosts reach a link-local address only with their own interface's name added.
    Raises :class:`OSError`.
    """
    found: dict[str, list[str]] = {}
    for name, address in _listed():
        if not address.is_link_local:
            found.setdefault(name, []).append(str(address))
    return {name: tuple(sorted(some, key=_ipv6_last)) for name, some in found.items()}


def is_loopback(address: str) -> bool:
    """Whether ``address`` stays on its own host."""
    return address.startswith("127.") or address == "::1"


def _ipv6_last(address: str) -> bool:
    return ":" in address


def _listed() -> Iterator[tuple[str, ipaddress.IPv4Address | ipaddress.IPv6Address]]:
    libc = ctypes.CDLL(None, use_errno=True)
    head = ctypes.POINTER(_Ifaddrs)()
    if libc.getifaddrs(ctypes.byref(head)):
        raise OSError(ctypes.get_errno(), "the interfaces' addresses cannot be listed")
    try:
        entry = head
        while entry:
            fields = entry.contents
            if fields.address:
                family = ctypes.c_ushort.from_address(fields.address).value
                if family in _PLACES:
                    start, length = _PLACES[socket.AddressFamily(family)]
                    packed = ctypes.string_at(fields.address + start, length)
                    yield fields.name.decode(), ipaddress.ip_address(packed)
            entry = fields.next
    finally:
        libc.freeifaddrs(head)


def source_address_towards(target: str) -> str | None:
    """The address this host would use to reach ``target``, by its routes; sends nothing."""
    try:
        family, kind, protocol, _, sockaddr = socket.getaddrinfo(target, 9, type=socket.SOCK_DGRAM)[
            0
        ]
        with socket.socket(family, kind, protocol) as probe:
            probe.connect(sockaddr)
            return str(probe.getsockname()[0])
    except OSError:
        return None
