"""A lab's life: up, changes while something runs, down."""

import json
import os
import shutil
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from ipaddress import IPv4Network
from pathlib import Path
from typing import Any, Self

from netlab import plan, shell, system
from netlab.config import Host, LabConfig, lab_name, parse
from netlab.errors import COULD_NOT, NetlabError
from netlab.rates import format_rate


@dataclass(frozen=True, slots=True, kw_only=True)
class Lab:
    """A lab on this machine. ``tables`` is its TOML, with the faults as they are now."""

    tables: dict[str, Any]
    config: LabConfig
    subnet: IPv4Network
    ready: bool = False

    @property
    def name(self) -> str:
        """What the lab is called."""
        return self.config.name

    @property
    def directory(self) -> Path:
        """Everything of the lab that is a file."""
        return system.RUN_DIRECTORY / self.name

    @classmethod
    def find(cls, name: str) -> Self:
        """The lab of this name that is up; raises :class:`NetlabError`."""
        state = _read_state(lab_name(name))
        if state is None:
            raise NetlabError(f"no lab called {name} is up (netlab status lists them)")
        return cls(
            tables=state["tables"],
            config=parse(state["tables"]),
            subnet=IPv4Network(state["subnet"]),
            ready=state["ready"],
        )

    def host(self, name: str) -> Host:
        """The host of this name; raises :class:`NetlabError`."""
        host = self.config.host(name)
        if host is None:
            raise NetlabError(f"lab {self.name} has no host called {name!r}")
        return host

    def save(self) -> None:
        """Write the state file, whole or not at all: it is what ``down`` goes by."""
        state = {
            "tables": self.tables,
            "subnet": str(self.subnet),
            "namespaces": plan.namespaces(self.config),
            "device": plan.driver_device(self.name),
            "ready": self.ready,
        }
        self.directory.mkdir(mode=0o755, exist_ok=True)
        new = self.directory / "state.new"
        new.write_text(json.dumps(state, indent=1))
        new.replace(self.directory / "state.json")


def _read_state(name: str) -> dict[str, Any] | None:
    try:
        state: dict[str, Any] = json.loads((system.RUN_DIRECTORY / name / "state.json").read_text())
    except FileNotFoundError:
        return None
    return state


def lab_names() -> list[str]:
    """Every lab that left anything on this machine, up or half up."""
    if not system.RUN_DIRECTORY.is_dir():
        return []
    return sorted(path.name for path in system.RUN_DIRECTORY.iterdir() if path.is_dir())


def up(tables: dict[str, Any]) -> Lab:
    """Bring a lab up, or leave nothing; raises :class:`NetlabError`."""
    config = parse(tables)
    for host in config.hosts:
        if host.root is not None and not Path(host.root).is_dir():
            raise NetlabError(f"hosts.{host.name}.root is no directory: {host.root}")
    with system.exclusive():
        _refuse_foreign(config)
        lab = Lab(tables=tables, config=config, subnet=_free_subnet(config))
        try:
            lab.save()
            return _build(lab)
        except BaseException:
            _remove(lab.name)
            raise


def _build(lab: Lab) -> Lab:
    config, subnet, directory = lab.config, lab.subnet, lab.directory
    system.batch("ip", [f"netns add {name}" for name in plan.namespaces(config)])
    cables, plugs = plan.links(config)
    down = plan.unplugged(config)
    system.batch("ip", cables)
    plugs += [f"link set {interface.device} down" for interface in sorted(down)]
    system.batch("ip", plugs, namespace=plan.fabric(config.name))
    for host in config.hosts:
        lines = plan.host_network(host, subnet)
        system.batch("ip", lines, namespace=plan.namespace(config.name, host.name))
    device = plan.driver_device(config.name)
    address = f"address add {plan.driver_address(subnet)}/24 dev {device}"
    system.batch("ip", [address, f"link set {device} addrgenmode none up"])
    _shape({}, plan.shaping(config, subnet))

    shell.write_keys(config, directory)
    shell.write_configs(config, subnet, directory)
    (directory / "hosts.txt").write_text(hosts_file(config, subnet))
    silent = plan.without_sshd(config)
    hosts = [host for host in config.hosts if host.name not in silent]
    shell.start_sshds(config, hosts, directory)
    plugged = [host for host in hosts if host.name not in silent]
    shell.wait_for_sshds(plugged, subnet, directory)
    ready = Lab(tables=lab.tables, config=config, subnet=subnet, ready=True)
    ready.save()
    return ready


def _refuse_foreign(config: LabConfig) -> None:
    name = config.name
    if name in lab_names():
        raise NetlabError(f"a lab called {name} is there already (netlab down {name})")
    for namespace in plan.namespaces(config):
        if namespace in system.existing_namespaces():
            raise NetlabError(
                f"network namespace {namespace} is there and belongs to no lab: choose another name"
            )
    device = plan.driver_device(name)
    if system.device_exists(device):
        raise NetlabError(f"interface {device} is there and belongs to no lab: choose another name")


def _free_subnet(config: LabConfig) -> IPv4Network:
    taken = system.routed_networks()
    taken += [IPv4Network(s["subnet"]) for s in map(_read_state, lab_names()) if s]
    if config.subnet is not None:
        clash = next((network for network in taken if network.overlaps(config.subnet)), None)
        if clash is not None:
            raise NetlabError(f"subnet {config.subnet} is not free: {clash} is routed here already")
        return config.subnet
    # The upper half of 10/8 first, then the other private ranges where 10/8 is the site's own.
    candidates = [f"10.{i}.0.0/16" for i in range(128, 255)]
    candidates += [f"172.{i}.0.0/16" for i in range(16, 32)] + ["192.168.0.0/16"]
    for candidate in map(IPv4Network, candidates):
        if not any(network.overlaps(candidate) for network in taken):
            return candidate
    raise NetlabError("no private /16 is free here: give one with subnet = ", COULD_NOT)


def hosts_file(config: LabConfig, subnet: IPv4Network) -> str:
    """The lab's hosts as ncdiag reads them: what the lab claims to be, without its faults."""
    lines = []
    for host in config.hosts:
        values = {
            "leaf": host.leaf,
            "nic": ",".join(f"eth{rail}" for rail in range(host.nics)),
            "rate": format_rate(host.rate_bit_per_s),
            "uplink": format_rate(config.uplink_bit_per_s) if config.uplink_bit_per_s else None,
        }
        chosen = [f"{k}={v}" for k, v in values.items() if v and k in config.hosts_file]
        words = [host.name, f"address={plan.address(subnet, host.number)}", *chosen]
        lines.append(" ".join(words) + "\n")
    return "".join(lines)


def _shape(old: dict[plan.Interface, list[str]], new: dict[plan.Interface, list[str]]) -> None:
    """Go from one way of shaping to another, touching only what differs."""
    changes: dict[str, list[str]] = {}
    for interface in old.keys() | new.keys():
        if old.get(interface) == new.get(interface):
            continue
        lines = changes.setdefault(interface.namespace, [])
        if interface in old:
            lines.append(f"qdisc del dev {interface.device} root")
        lines += new.get(interface, [])
    for namespace, lines in changes.items():
        system.batch("tc", lines, namespace=namespace)


def down(name: str) -> bool:
    """Remove everything of a lab; ``False`` when there was nothing. Whole, half up or half down."""
    with system.exclusive():
        return _remove(lab_name(name))


def _remove(name: str) -> bool:
    directory = system.RUN_DIRECTORY / name
    if not directory.is_dir():
        return False
    # Without a state file nothing but the directory was made.
    state = _read_state(name) or {"namespaces": [], "device": plan.driver_device(name)}
    system.kill_all(state["namespaces"])
    if state["namespaces"] and system.device_exists(state["device"]):
        system.batch("ip", [f"link del {state['device']}"])
    there = [n for n in state["namespaces"] if n in system.existing_namespaces()]
    system.batch("ip", [f"netns del {namespace}" for namespace in there])
    shutil.rmtree(directory)
    return True


def change_faults(
    name: str, change: Callable[[Lab, list[dict[str, Any]]], list[dict[str, Any]]]
) -> Lab:
    """Turn a lab's faults into others while it runs, and bring links, shapers and sshds along."""
    with system.exclusive():
        old = Lab.find(name)
        if not old.ready:
            raise NetlabError(f"lab {name} did not come up whole (netlab down {name})", COULD_NOT)
        tables = {**old.tables, "faults": change(old, old.tables.get("faults", []))}
        new = Lab(tables=tables, config=parse(tables), subnet=old.subnet, ready=True)
        new.save()
        _shape(plan.shaping(old.config, old.subnet), plan.shaping(new.config, new.subnet))
        before, after = plan.unplugged(old.config), plan.unplugged(new.config)
        lines = [f"link set {interface.device} down" for interface in sorted(after - before)]
        lines += [f"link set {interface.device} up" for interface in sorted(before - after)]
        system.batch("ip", lines, namespace=plan.fabric(name))
        _start_missing_sshds(new)
    return new


def _start_missing_sshds(lab: Lab) -> None:
    silent = plan.without_sshd(lab.config)
    hosts = [
        host
        for host in lab.config.hosts
        if host.name not in silent and shell.sshd_pid(lab.directory, lab.config, host.name) is None
    ]
    if hosts:
        shell.start_sshds(lab.config, hosts, lab.directory)
        shell.wait_for_sshds(hosts, lab.subnet, lab.directory)


def break_host(name: str, host: str, rail: int | None) -> None:
    """Unplug a host's cables, or one of them. What runs on the host goes on running."""
    fault = {"host": host} | ({} if rail is None else {"rail": rail}) | {"down": True}
    change_faults(name, lambda _lab, faults: [f for f in faults if f != fault] + [fault])


def slow(name: str, fault: dict[str, Any]) -> None:
    """Plant a slow host, pair or uplink; its rates replace earlier ones of the same place."""

    def planted(_lab: Lab, faults: list[dict[str, Any]]) -> list[dict[str, Any]]:
        place = _place(fault)
        same = [f for f in faults if _place(f) == place and not f.keys() & {"down", "sshd"}]
        merged = {key: value for f in [*same, fault] for key, value in f.items()}
        return [*(f for f in faults if f not in same), merged]

    change_faults(name, planted)


def _place(fault: dict[str, Any]) -> dict[str, Any]:
    return {key: fault.get(key) for key in ("host", "to", "leaf", "rail")}


def heal(name: str, places: Sequence[str]) -> None:
    """Take away every fault of these hosts and leaves (of the whole lab without any)."""

    def healed(lab: Lab, faults: list[dict[str, Any]]) -> list[dict[str, Any]]:
        for place in places:
            if place not in lab.config.leaves:
                lab.host(place)
        return [f for f in faults if places and f.get("host", f.get("leaf")) not in places]

    change_faults(name, healed)


def kill(name: str, host: str) -> int:
    """Kill all that runs on a host but its sshd, as a crash would; returns how many processes."""
    with system.exclusive():
        lab = Lab.find(name)
        lab.host(host)
        listening = shell.sshd_pid(lab.directory, lab.config, host)
        return system.kill_all([plan.namespace(name, host)], spare=listening)


def execute(name: str, host: str, argv: Sequence[str]) -> None:
    """Become ``argv``, run as if on a host: never returns."""
    lab = Lab.find(name)
    target = lab.host(host)
    command = shell.on_host(lab.config, target, lab.directory, argv)
    os.execvpe(command[0], command, shell.environment(target))  # noqa: S606 - no shell is wanted


def describe(lab: Lab) -> Iterator[str]:
    """Lines that tell an operator what a lab is and how to use it."""
    state = "up" if lab.ready else f"not whole: netlab down {lab.name}"
    yield f"lab {lab.name}: {state}, {len(lab.config.hosts)} hosts, {lab.subnet}, {lab.directory}"
    running = system.processes(plan.namespaces(lab.config))
    unplugged = {interface.device for interface in plan.unplugged(lab.config)}
    for host in lab.config.hosts:
        processes = list(running.values()).count(plan.namespace(lab.name, host.name))
        links = " ".join(
            f"eth{rail} {'down' if plan.port(host.name, rail) in unplugged else 'up'}"
            for rail in range(host.nics)
        )
        address = plan.address(lab.subnet, host.number)
        rate = format_rate(host.rate_bit_per_s)
        place = f"  {host.name:10} {address!s:15} {host.leaf:10} {rate:8}"
        yield f"{place} {links}, {processes} processes"
    for fault in lab.tables.get("faults", []):
        yield "  fault: " + ", ".join(f"{k} = {json.dumps(v)}" for k, v in fault.items())
    yield (
        f"  ncdiag sweep --nodes {lab.directory}/hosts.txt"
        f" --ssh-option=-F{lab.directory}/ssh_config"
        f" --driver-address {plan.driver_address(lab.subnet)}"
    )
