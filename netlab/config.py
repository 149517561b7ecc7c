"""A lab as its TOML file describes it, read and checked."""

import ipaddress
import re
import tomllib
from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from netlab.errors import NetlabError
from netlab.rates import parse_rate_bit_per_s

MAX_HOSTS = 200  # a host's number is the last byte of its address, and 254 is the driver
MAX_NICS = 2
HOSTS_FILE_KEYS = ("leaf", "nic", "rate", "uplink")

# Linux allows 15 characters for an interface: "nl-" + lab, host + "-eth0", leaf + "-up0".
_LAB_NAME = re.compile(r"[a-z][a-z0-9]{0,11}")
_NAME = re.compile(r"[a-z](?:[a-z0-9-]{0,8}[a-z0-9])?")
_RANGE = re.compile(r"([a-z0-9-]*)\[(\d{1,3})-(\d{1,3})\]([a-z0-9-]*)")
_RESERVED = ("fabric", "spine")


@dataclass(frozen=True, slots=True, kw_only=True)
class Host:
    """One host. ``number`` counts from 1; ``root`` is the NCDIAG_ROOT its sshd hands on."""

    name: str
    number: int
    leaf: str
    rate_bit_per_s: int
    nics: int
    root: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Fault:
    """Something planted: what it applies to, and what is wrong with it.

    Without ``host`` and ``leaf`` it applies to every host; without ``rail`` to every rail. With
    ``to`` it is one pair in one direction. ``down`` is an unplugged cable, ``sshd`` set to
    ``False`` a host that refuses connections.
    """

    host: str | None = None
    to: str | None = None
    leaf: str | None = None
    rail: int | None = None
    send_bit_per_s: int | None = None
    receive_bit_per_s: int | None = None
    uplink_bit_per_s: int | None = None
    down: bool = False
    sshd: bool = True

    def applies_to(self, host: str, rail: int) -> bool:
        """Whether this fault concerns NIC ``rail`` of ``host``."""
        return self.leaf is None and self.host in (None, host) and self.rail in (None, rail)


@dataclass(frozen=True, slots=True, kw_only=True)
class LabConfig:
    """A whole lab. ``subnet`` is a private /16, or ``None`` to pick a free one."""

    name: str
    hosts: tuple[Host, ...]
    leaves: tuple[str, ...]
    subnet: ipaddress.IPv4Network | None = None
    uplink_bit_per_s: int | None = None
    faults: tuple[Fault, ...] = ()
    hosts_file: tuple[str, ...] = HOSTS_FILE_KEYS

    @property
    def rails(self) -> int:
        """How many rails the lab has."""
        return max(host.nics for host in self.hosts)

    def host(self, name: str) -> Host | None:
        """The host called ``name``."""
        return next((host for host in self.hosts if host.name == name), None)


def load(path: Path) -> dict[str, Any]:
    """Read a lab file into the plain tables that :func:`parse` takes.

    The name defaults to the file's own, and ``root`` folders are made absolute, so that the
    tables mean the same from any directory. Raises :class:`NetlabError`.
    """
    try:
        tables = tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise NetlabError(f"cannot read {path}: {error.strerror}") from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise NetlabError(f"{path} is not valid TOML: {error}") from error
    tables.setdefault("name", path.stem)
    hosts = tables.get("hosts")
    for host in hosts.values() if isinstance(hosts, dict) else ():
        if isinstance(host, dict) and isinstance(host.get("root"), str):
            host["root"] = str(path.parent.resolve() / host["root"])
    return tables


def lab_name(name: object) -> str:
    """Return ``name`` if a lab may be called so; raises :class:`NetlabError`."""
    if not isinstance(name, str) or not _LAB_NAME.fullmatch(name):
        raise NetlabError(
            f"a lab cannot be called {name!r}: use 1 to 12 lower case letters and digits,"
            " a letter first"
        )
    return name


def parse(tables: Mapping[str, Any]) -> LabConfig:
    """Check a lab's tables; raises :class:`NetlabError` for the first thing that is wrong."""
    known = ("name", "subnet", "rate", "uplink", "nics", "hosts_file", "leaves", "hosts", "faults")
    _only(tables, known, "the lab file")
    hosts = _hosts(tables)
    config = LabConfig(
        name=lab_name(tables.get("name")),
        hosts=hosts,
        leaves=tuple(tables["leaves"]),
        subnet=_subnet(tables.get("subnet")),
        uplink_bit_per_s=_optional_rate(tables, "uplink", "uplink"),
        hosts_file=_hosts_file(tables.get("hosts_file", list(HOSTS_FILE_KEYS))),
    )
    faults = tables.get("faults", [])
    if not isinstance(faults, list):
        raise NetlabError("write each fault as its own [[faults]] table")
    parsed = (_fault(fault, f"fault {i}", config) for i, fault in enumerate(faults, start=1))
    return replace(config, faults=tuple(parsed))


def _table(value: object, where: str) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise NetlabError(f"{where} must be a table, not {value!r}")
    return value


def _only(table: Mapping[str, Any], known: Collection[str], where: str) -> None:
    for key in table:
        if key not in known:
            raise NetlabError(f"unknown key {key!r} in {where} (known: {', '.join(sorted(known))})")


def _optional_rate(table: Mapping[str, Any], key: str, where: str) -> int | None:
    return parse_rate_bit_per_s(table[key], where) if key in table else None


def _subnet(value: object) -> ipaddress.IPv4Network | None:
    if value is None:
        return None
    try:
        if not isinstance(value, str):
            raise ipaddress.AddressValueError
        subnet = ipaddress.IPv4Network(value)
    except ValueError as error:
        raise NetlabError(f"subnet is not a network: {value!r} (example: 10.77.0.0/16)") from error
    if subnet.prefixlen != 16 or not subnet.is_private:
        raise NetlabError(f"subnet must be a private /16, such as 10.77.0.0/16, not {value}")
    return subnet


def _hosts_file(value: object) -> tuple[str, ...]:
    if not isinstance(value, list) or any(key not in HOSTS_FILE_KEYS for key in value):
        known = ", ".join(HOSTS_FILE_KEYS)
        raise NetlabError(f"hosts_file must be a list of some of {known}, not {value!r}")
    return tuple(value)


def _nics(value: object, where: str) -> int:
    if value is True or not isinstance(value, int) or not 1 <= value <= MAX_NICS:
        raise NetlabError(f"{where} must be 1 or {MAX_NICS}, not {value!r}")
    return value


def _hosts(tables: Mapping[str, Any]) -> tuple[Host, ...]:
    rate = parse_rate_bit_per_s(tables.get("rate"), "rate")
    nics = _nics(tables.get("nics", 1), "nics")
    leaf_of = _leaf_of_each_host(_table(tables.get("leaves"), "leaves"))
    own = _table(tables.get("hosts", {}), "hosts")
    for name in own.keys() - leaf_of.keys():
        raise NetlabError(f"hosts.{name} stands on no leaf: add it to one under [leaves]")
    hosts = []
    for number, (name, leaf) in enumerate(leaf_of.items(), start=1):
        where = f"hosts.{name}"
        table = _table(own.get(name, {}), where)
        _only(table, ("rate", "nics", "root"), where)
        hosts.append(
            Host(
                name=name,
                number=number,
                leaf=leaf,
                rate_bit_per_s=_optional_rate(table, "rate", f"{where}.rate") or rate,
                nics=_nics(table.get("nics", nics), f"{where}.nics"),
                root=_root(table.get("root"), f"{where}.root"),
            )
        )
    return tuple(hosts)


def _leaf_of_each_host(leaves: Mapping[str, Any]) -> dict[str, str]:
    leaf_of: dict[str, str] = {}
    for leaf, names in leaves.items():
        _name(leaf, "leaf")
        if not isinstance(names, list):
            raise NetlabError(f'leaves.{leaf} must be a list of hosts, such as ["h[1-4]"]')
        for name in (name for text in names for name in _expanded(text, f"leaves.{leaf}")):
            if name in leaf_of or name in leaves:
                raise NetlabError(f"the name {name} stands twice under [leaves]")
            leaf_of[_name(name, "host")] = leaf
    if not 2 <= len(leaf_of) <= MAX_HOSTS:
        raise NetlabError(f"a lab has 2 to {MAX_HOSTS} hosts, not {len(leaf_of)}: see [leaves]")
    return leaf_of


def _expanded(text: object, where: str) -> list[str]:
    match = isinstance(text, str) and _RANGE.fullmatch(text)
    if not match:
        return [str(text)] if isinstance(text, str) else [repr(text)]
    before, first, last, after = match.groups()
    if int(first) > int(last):
        raise NetlabError(f"{where}: the range {text!r} counts down")
    width = len(first)
    return [f"{before}{i:0{width}d}{after}" for i in range(int(first), int(last) + 1)]


def _name(name: str, what: str) -> str:
    if not _NAME.fullmatch(name) or name in _RESERVED:
        raise NetlabError(
            f"a {what} cannot be called {name!r}: 1 to 10 lower case letters, digits and dashes,"
            f" a letter first, and not {' or '.join(_RESERVED)}"
        )
    return name


def _root(value: object, where: str) -> str | None:
    if value is None:
        return None
    if not isinstance(value, str) or not value.isprintable() or '"' in value or "\\" in value:
        raise NetlabError(f"{where} must be a plain path, not {value!r}")
    return value


# What a fault may hold beside what it applies to. The first set that fits decides.
_FORMS = (
    ({"host", "to", "rail", "send"}, {"host", "to", "send"}),
    ({"host", "rail", "send", "receive"}, {"host"}),
    ({"host", "rail", "down"}, {"host", "down"}),
    ({"host", "sshd"}, {"host", "sshd"}),
    ({"leaf", "rail", "uplink"}, {"leaf", "uplink"}),
    ({"rail", "send", "receive"}, {"rail"}),
)


def _fault(value: object, where: str, config: LabConfig) -> Fault:
    table = _table(value, where)
    _only(table, set().union(*(allowed for allowed, _ in _FORMS)), where)
    effects = table.keys() - {"host", "to", "leaf", "rail"}
    if not effects or not any(needed <= table.keys() <= allowed for allowed, needed in _FORMS):
        raise NetlabError(
            f"{where} is none that netlab knows: {', '.join(table) or 'it is empty'}"
            " (docs/netlab.md lists them)"
        )
    for key in ("host", "to"):
        if key in table and config.host(table[key]) is None:
            raise NetlabError(f"{where}: no host is called {table[key]!r}")
    if table.get("to", "") == table.get("host"):
        raise NetlabError(f"{where}: a pair needs two different hosts")
    if "leaf" in table and table["leaf"] not in config.leaves:
        raise NetlabError(f"{where}: no leaf is called {table['leaf']!r}")
    if table.get("down", True) is not True or table.get("sshd", False) is not False:
        raise NetlabError(f"{where}: write down = true or sshd = false, or leave it out")
    return Fault(
        host=table.get("host"),
        to=table.get("to"),
        leaf=table.get("leaf"),
        rail=_rail(table, where, config),
        send_bit_per_s=_optional_rate(table, "send", f"{where}: send"),
        receive_bit_per_s=_optional_rate(table, "receive", f"{where}: receive"),
        uplink_bit_per_s=_optional_rate(table, "uplink", f"{where}: uplink"),
        down="down" in table,
        sshd="sshd" not in table,
    )


def _rail(table: Mapping[str, Any], where: str, config: LabConfig) -> int | None:
    rail = table.get("rail")
    if rail is None:
        return None
    hosts = [host for host in config.hosts if host.name in (table.get("host"), table.get("to"))]
    rails = min((host.nics for host in hosts), default=config.rails)
    if isinstance(rail, bool) or not isinstance(rail, int) or not 0 <= rail < rails:
        raise NetlabError(f"{where}: there is no rail {rail!r} (rails count from 0)")
    return rail
