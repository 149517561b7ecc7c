"""Where hosts reach this machine, for launchers whose remote parts call back."""

import ipaddress
import socket
from collections.abc import Sequence

from ncdiag.cluster.loopback import is_loopback
from ncdiag.model.host import Host

# A connected UDP socket sends nothing; any port will do.
_ANY_PORT = 9


def own_address(hosts: Sequence[Host]) -> str | None:
    """Our IPv4 address on the way to the first host that is known by one; ``None`` without."""
    for host in hosts:
        if is_loopback(host):
            continue
        try:
            address = ipaddress.IPv4Address(host.address)
        except ValueError:
            continue
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sock:
            try:
                sock.connect((str(address), _ANY_PORT))
            except OSError:
                continue
            return str(sock.getsockname()[0])
    return None
