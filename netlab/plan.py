"""What a lab is made of in the kernel: names, addresses, and who is shaped how. Pure.

Bridges and the switch ends of all cables stand in one namespace of the lab's own, its fabric, so
nothing of a lab is seen outside its namespaces but the driver's one cable, ``nl-LAB``.
"""

from collections.abc import Iterator
from ipaddress import IPv4Address, IPv4Network
from typing import NamedTuple

from netlab.config import Host, LabConfig

# Depth of a shaper's queue and its burst. iperf3 then reads 95.5 % of the rate, which is what TCP
# and IP headers leave at MTU 1500. A burst must hold one offloaded segment of 64 KiB.
_LATENCY_MS = 50
_BURST_BYTES = 256 * 1024
_DRIVER_NUMBER = 254


class Interface(NamedTuple):
    """A network interface and the namespace it stands in."""

    namespace: str
    device: str


def namespace(lab: str, host: str) -> str:
    """The network namespace of a host."""
    return f"{lab}-{host}"


def fabric(lab: str) -> str:
    """The network namespace of a lab's switches."""
    return f"{lab}-fabric"


def namespaces(config: LabConfig) -> list[str]:
    """Every namespace of a lab."""
    return [fabric(config.name), *(namespace(config.name, host.name) for host in config.hosts)]


def driver_device(lab: str) -> str:
    """The driver's end of its cable to the spine, in the root namespace."""
    return f"nl-{lab}"


def address(subnet: IPv4Network, number: int, rail: int = 0) -> IPv4Address:
    """The address of host ``number`` on a rail: each rail is a /24 of the lab's subnet."""
    return subnet.network_address + 256 * rail + number


def driver_address(subnet: IPv4Network) -> IPv4Address:
    """The driver's address, on rail 0."""
    return address(subnet, _DRIVER_NUMBER)


def port(host: str, rail: int) -> str:
    """The switch end of a host's cable, in the fabric."""
    return f"{host}-eth{rail}"


def links(config: LabConfig) -> tuple[list[str], list[str]]:
    """``ip`` lines that lay all cables, and those to run in the fabric to plug them together."""
    lab, switches = config.name, fabric(config.name)
    cables = [f"link add {driver_device(lab)} type veth peer name driver netns {switches}"]
    plugs = []
    for rail in range(config.rails):
        plugs += _bridge(f"spine-{rail}")
        for leaf in config.leaves:
            up, down = f"{leaf}-up{rail}", f"{leaf}-dn{rail}"
            plugs += _bridge(f"{leaf}-{rail}")
            plugs.append(f"link add {up} type veth peer name {down}")
            plugs += _plug(up, f"{leaf}-{rail}") + _plug(down, f"spine-{rail}")
    plugs += _plug("driver", "spine-0")
    for host in config.hosts:
        for rail in range(host.nics):
            cables.append(
                f"link add {port(host.name, rail)} netns {switches}"
                f" type veth peer name eth{rail} netns {namespace(lab, host.name)}"
            )
            plugs += _plug(port(host.name, rail), f"{host.leaf}-{rail}")
    return cables, plugs


def _bridge(name: str) -> list[str]:
    # Without IPv6 and multicast snooping a switch sends nothing of its own.
    return [
        f"link add {name} type bridge mcast_snooping 0",
        f"link set {name} addrgenmode none up",
    ]


def _plug(device: str, bridge: str) -> list[str]:
    return [f"link set {device} addrgenmode none master {bridge} up"]


def host_network(host: Host, subnet: IPv4Network) -> list[str]:
    """``ip`` lines to run in a host's namespace."""
    lines = ["link set lo up"]
    for rail in range(host.nics):
        lines.append(f"address add {address(subnet, host.number, rail)}/24 dev eth{rail}")
        lines.append(f"link set eth{rail} addrgenmode none up")
    return lines


def unplugged(config: LabConfig) -> set[Interface]:
    """The switch ports that are down."""
    return {
        Interface(fabric(config.name), port(host.name, rail))
        for host in config.hosts
        for rail in range(host.nics)
        if any(fault.down and fault.applies_to(host.name, rail) for fault in config.faults)
    }


def without_sshd(config: LabConfig) -> set[str]:
    """Hosts that start without an sshd: those told so, and those nobody could reach anyway."""
    down = unplugged(config)
    refusing = {fault.host for fault in config.faults if not fault.sshd}
    return {
        host.name
        for host in config.hosts
        if host.name in refusing or Interface(fabric(config.name), port(host.name, 0)) in down
    }


def shaping(config: LabConfig, subnet: IPv4Network) -> dict[Interface, list[str]]:
    """``tc`` lines for every shaped interface, each setting it up from nothing.

    A host's own interface shapes what it sends, the switch end of its cable what it receives.
    """
    switches = fabric(config.name)
    lines: dict[Interface, list[str]] = {}
    for host in config.hosts:
        for rail in range(host.nics):
            send = _slowest(config, host, rail, "send_bit_per_s")
            pairs = {
                str(address(subnet, other.number, rail)): rate
                for other, rate in _slow_pairs(config, host, rail)
            }
            own = f"eth{rail}"
            lines[Interface(namespace(config.name, host.name), own)] = (
                _htb(own, send, pairs) if pairs else [_tbf(own, send)]
            )
            switch_end = port(host.name, rail)
            receive = _slowest(config, host, rail, "receive_bit_per_s")
            lines[Interface(switches, switch_end)] = [_tbf(switch_end, receive)]
    for leaf in config.leaves:
        for rail in range(config.rails):
            uplink = _uplink(config, leaf, rail)
            if uplink is not None:
                for device in (f"{leaf}-up{rail}", f"{leaf}-dn{rail}"):
                    lines[Interface(switches, device)] = [_tbf(device, uplink)]
    return lines


def _slowest(config: LabConfig, host: Host, rail: int, field: str) -> int:
    rates: list[int | None] = [
        getattr(fault, field)
        for fault in config.faults
        if fault.to is None and fault.applies_to(host.name, rail)
    ]
    return min([host.rate_bit_per_s, *filter(None, rates)])


def _slow_pairs(config: LabConfig, host: Host, rail: int) -> Iterator[tuple[Host, int]]:
    for fault in config.faults:
        other = config.host(fault.to) if fault.to else None
        if other and fault.send_bit_per_s and fault.applies_to(host.name, rail):
            yield other, fault.send_bit_per_s


def _uplink(config: LabConfig, leaf: str, rail: int) -> int | None:
    rates = [config.uplink_bit_per_s] + [
        fault.uplink_bit_per_s
        for fault in config.faults
        if fault.leaf == leaf and fault.rail in (None, rail)
    ]
    return min(filter(None, rates), default=None)


def _tbf(device: str, rate: int) -> str:
    return (
        f"qdisc add dev {device} root tbf rate {rate}bit"
        f" burst {_BURST_BYTES} latency {_LATENCY_MS}ms"
    )


def _htb(device: str, rate: int, pairs: dict[str, int]) -> list[str]:
    """One class for each slow pair and one for the rest, all together within the host's rate.

    A class may always send at its guaranteed rate, whatever its parent has left, so the guarantees
    must not add up to more than the host's rate; the rest up to the ceiling is borrowed.
    """
    share = rate // (len(pairs) + 1)
    lines = [
        f"qdisc add dev {device} root handle 1: htb default 2",
        _htb_class(device, "1:", "1:1", rate, rate),
        *_htb_leaf(device, 2, share, rate),
    ]
    for minor, (destination, pair_rate) in enumerate(pairs.items(), start=0x10):
        ceiling = min(pair_rate, rate)
        lines += _htb_leaf(device, minor, min(share, ceiling), ceiling)
        lines.append(
            f"filter add dev {device} parent 1: protocol ip prio 1"
            f" u32 match ip dst {destination}/32 flowid 1:{minor:x}"
        )
    return lines


def _htb_leaf(device: str, minor: int, guaranteed: int, ceiling: int) -> list[str]:
    # The queue holds as much as tbf's would; the default of 1000 packets could hold 64 MB.
    limit = ceiling * _LATENCY_MS // 8000 + _BURST_BYTES
    return [
        _htb_class(device, "1:1", f"1:{minor:x}", guaranteed, ceiling),
        f"qdisc add dev {device} parent 1:{minor:x} handle {minor:x}: bfifo limit {limit}",
    ]


def _htb_class(device: str, parent: str, name: str, guaranteed: int, ceiling: int) -> str:
    # One offloaded segment of 64 KiB a turn; what htb derives from such rates it calls too big.
    return (
        f"class add dev {device} parent {parent} classid {name} htb rate {guaranteed}bit"
        f" ceil {ceiling}bit burst {_BURST_BYTES} cburst {_BURST_BYTES} quantum 65536"
    )
