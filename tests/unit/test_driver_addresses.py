import socket
from collections.abc import Sequence

import psutil
import pytest

from ncdiag.cluster.fleet.addresses import LOOPBACK, driver_addresses, listen_address
from ncdiag.model.host import Host

INTERFACES = {
    "lo": ["127.0.0.1", "::1"],
    "eth0": ["10.1.0.5", "fe80::1%eth0", "2001:db8::5"],
    "ib0": ["192.168.9.5"],
}


@pytest.fixture(autouse=True)
def interfaces(monkeypatch: pytest.MonkeyPatch) -> None:
    def net_if_addrs() -> dict[str, list[object]]:
        family = {False: socket.AF_INET, True: socket.AF_INET6}
        make = psutil._ntuples.snicaddr
        return {
            name: [make(family[":" in address], address, None, None, None) for address in addresses]
            for name, addresses in INTERFACES.items()
        }

    monkeypatch.setattr(psutil, "net_if_addrs", net_if_addrs)


def hosts(*addresses: str) -> Sequence[Host]:
    return [Host(name=address, address=address) for address in addresses]


def test_hosts_on_this_machine_alone_need_loopback_only() -> None:
    addresses = driver_addresses(hosts("127.0.0.2", "::1"))
    assert addresses == (LOOPBACK,)
    assert listen_address(addresses) == LOOPBACK


def test_other_hosts_may_use_every_address_that_means_us_and_no_other() -> None:
    addresses = driver_addresses(hosts("gpu1", "127.0.0.2"))
    assert addresses == ("10.1.0.5", "2001:db8::5", "192.168.9.5")
    assert listen_address(addresses) == ""


def test_an_address_that_is_not_ours_is_listened_for_everywhere() -> None:
    assert listen_address(("192.0.2.1",)) == ""
    assert listen_address(("no-such-host.invalid",)) == ""
