"""At which addresses the hosts may reach the driver, best first."""

import ipaddress
import socket
from collections.abc import Iterable, Sequence

import psutil

from ncdiag.cluster.launchers import is_loopback
from ncdiag.model.host import Host

LOOPBACK = "127.0.0.1"
# Each is tried by every worker; a machine with hundreds of addresses (containers) has enough here.
_MAX_ADDRESSES = 16
# A connected UDP socket sends nothing; any port will do.
_ANY_PORT = 9


def driver_addresses(hosts: Sequence[Host]) -> tuple[str, ...]:
    """Our addresses on the way to the hosts, then all others; loopback if the hosts are."""
    if all(map(is_loopback, hosts)):
        return (LOOPBACK,)
    addresses = dict.fromkeys(_sources(hosts))
    addresses.update(dict.fromkeys(_own_addresses()))
    return tuple(addresses)[:_MAX_ADDRESSES]


def listen_address(addresses: Sequence[str]) -> str:
    """What to listen on so that all ``addresses`` work: one alone, else every interface."""
    if len(addresses) == 1 and _is_own(addresses[0]):
        return addresses[0]
    return ""


def bracketed(address: str) -> str:
    """The address as it stands in a URL, where IPv6 has brackets."""
    return f"[{address}]" if ":" in address else address


def _sources(hosts: Iterable[Host]) -> Iterable[str]:
    for host in hosts:
        # Names are left to the list of all addresses: looking up hundreds could take minutes.
        try:
            ip = ipaddress.ip_address(host.address)
        except ValueError:
            continue
        family = socket.AF_INET6 if ip.version == 6 else socket.AF_INET
        with socket.socket(family, socket.SOCK_DGRAM) as sock:
            try:
                sock.connect((str(ip), _ANY_PORT))
            except OSError:
                continue
            own = sock.getsockname()[0]
        if _usable(own):
            yield own


def _own_addresses() -> Iterable[str]:
    for entries in psutil.net_if_addrs().values():
        for entry in entries:
            if entry.family in (socket.AF_INET, socket.AF_INET6) and _usable(entry.address):
                yield entry.address


def _usable(address: str) -> bool:
    # A link-local address means another host on each interface.
    ip = ipaddress.ip_address(address)
    return not (ip.is_loopback or ip.is_link_local or ip.is_unspecified)


def _is_own(address: str) -> bool:
    try:
        family = socket.AF_INET6 if ":" in address else socket.AF_INET
        with socket.socket(family, socket.SOCK_STREAM) as sock:
            sock.bind((address, 0))
    except OSError:
        return False
    return True
