"""Which hosts are this machine itself."""

import ipaddress

from ncdiag.model.host import Host


def is_loopback(host: Host) -> bool:
    """Whether the host is this machine, reached by a loopback address."""
    if host.address == "localhost":
        return True
    try:
        return ipaddress.ip_address(host.address).is_loopback
    except ValueError:
        return False
