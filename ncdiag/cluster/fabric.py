"""What an InfiniBand fabric or Slurm's topology says of hosts, and asking the fabric for it."""

import os
import re
import shutil
import signal
import subprocess
import tempfile
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import BinaryIO, Final

from ncdiag.model.cables import Cable, cables
from ncdiag.model.errors import NcdiagError, UndecidedError, UsageError
from ncdiag.model.host import Host
from ncdiag.model.secrets import without_secrets
from ncdiag.model.text import visible
from ncdiag.model.topology import (
    IbFabric,
    IbNode,
    IbNodeKind,
    SlurmTopology,
    Topology,
    TruncatedTopologyError,
)
from ncdiag.read.topology.ib_descriptions import host_adapter, is_aggregation_node, switch_name
from ncdiag.read.topology.ib_rates import data_gbit_per_s
from ncdiag.read.topology.read_topology import read_topology

FABRIC_TOOLS: Final = ("ibnetdiscover", "iblinkinfo")
LIVE_DEADLINE_S: Final = 120.0

# About ten times what ibnetdiscover prints for 10,000 hosts of eight adapters.
_MAX_BYTES = 256 * 1024**2
_SBIN = ("/usr/sbin", "/sbin", "/usr/local/sbin")
_KILL_GRACE_S = 5.0
_SHOWN_CHARS = 200

# What a hosts file takes for leaf=.
_MAX_LABEL_CHARS = 64
_NO_LABEL = re.compile(r"[|,]|[^ -~]")
_NUMBERS = re.compile(r"(\d{1,9})")
_ADDRESS = re.compile(r"[\d.]+|.*:.*")


@dataclass(frozen=True, slots=True)
class Placing:
    """Hosts with the leaves that a fabric gives them, and the names of those it does not have."""

    hosts: tuple[Host, ...]
    missing: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class _Leaf:
    """A leaf and the rate of all its links to other switches, where that is known."""

    name: str
    uplink_gbit_per_s: float | None = None


def place_hosts(hosts: Sequence[Host], path: str) -> Placing:
    """``hosts`` with the leaves and uplinks that the dump at ``path`` shows.

    What the hosts say themselves stands. Raises :class:`UsageError` where the file cannot be read,
    is of another kind, or has none of the hosts, and :class:`UndecidedError` where it is cut short.
    """
    source = f"--fabric {visible(path)}"
    try:
        with open(path, "rb") as file:  # noqa: PTH123 - the path is used as it was typed
            data = file.read(_MAX_BYTES + 1)
        topology = read_topology(data)
    except OSError as error:
        raise UsageError(f"{source}: cannot be read: {error.strerror}") from None
    except TruncatedTopologyError as error:
        raise TruncatedTopologyError(f"{source}: {error}") from None
    except NcdiagError as error:
        raise UsageError(f"{source}: {error}") from None
    leaves = dict(_by_name(topology, source))
    for name in tuple(leaves):
        leaves.setdefault(_short(name), leaves[name])
    placed, missing = [], []
    for host in hosts:
        leaf = _find(host, leaves)
        if leaf is None:
            missing.append(host.name)
        placed.append(host if leaf is None else _placed(host, leaf))
    if len(missing) == len(hosts):
        raise UsageError(
            f"{source}: none of the {len(hosts)} hosts is in it; are its names those of --nodes?"
        )
    return Placing(tuple(placed), tuple(missing))


def _placed(host: Host, found: Sequence[tuple[str | None, _Leaf]]) -> Host:
    """``host`` on the leaf of its first rail: of the NIC it names first, else the first found."""
    by_device = dict(reversed(found))
    named = (
        by_device[nic.partition(":")[0]] for nic in host.nics if nic.partition(":")[0] in by_device
    )
    leaf = next(named, found[0][1])
    uplink = host.uplink_gbit_per_s
    if uplink is None and host.leaf in (None, leaf.name):
        uplink = leaf.uplink_gbit_per_s
    return replace(host, leaf=host.leaf or leaf.name, uplink_gbit_per_s=uplink)


_Leaves = Mapping[str, Sequence[tuple[str | None, _Leaf]]]


def _by_name(topology: Topology, source: str) -> _Leaves:
    """For each name of a host its leaves, with the adapter on each, in the order of the rails."""
    if isinstance(topology, IbFabric):
        return _leaves_of_fabric(topology)
    if isinstance(topology, SlurmTopology):
        leaves: dict[str, list[tuple[str | None, _Leaf]]] = {}
        for switch in topology.switches:
            leaf = _Leaf(_label(switch.name))
            for node in switch.nodes:
                leaves.setdefault(node.lower(), []).append((None, leaf))
        return leaves
    raise UsageError(
        f"{source}: {topology.kind.value}, which names no leaves; give the output of "
        "ibnetdiscover or iblinkinfo, or Slurm's topology.conf or topology.yaml"
    )


def _leaves_of_fabric(fabric: IbFabric) -> _Leaves:
    links = cables(fabric)
    names = _switch_names(fabric)
    uplinks = _uplinks(links)
    leaves: dict[str, list[tuple[str | None, _Leaf]]] = {}
    for switch, adapter in _attached(links):
        named = host_adapter(adapter.description)
        if named is not None:
            leaf = _Leaf(names[switch.guid], uplinks.get(switch.guid))
            leaves.setdefault(named.host.lower(), []).append((named.device, leaf))
    for found in leaves.values():
        found.sort(key=lambda pair: _natural(pair[0] or ""))
    return leaves


def _attached(links: Sequence[Cable]) -> Iterator[tuple[IbNode, IbNode]]:
    """Each switch with an adapter of a host on it."""
    for cable in links:
        for end, far in (cable.ends, cable.ends[::-1]):
            if (
                end.node.kind is IbNodeKind.SWITCH
                and far.node.kind is IbNodeKind.CA
                and not is_aggregation_node(far.node.description)
            ):
                yield end.node, far.node


def _uplinks(links: Sequence[Cable]) -> dict[str, float | None]:
    """By GUID, the Gbit/s of a switch's links to other switches; ``None`` where one says none."""
    found: dict[str, float | None] = {}
    for cable in links:
        if not cable.joins_switches:
            continue
        rates = [
            data_gbit_per_s(end.port.width, end.port.speed)
            for end in cable.ends
            if end.port is not None and end.port.width and end.port.speed
        ]
        known = [rate for rate in rates if rate is not None]
        for end in cable.ends:
            so_far = found.get(end.node.guid, 0.0)
            whole = so_far is not None and bool(known)
            found[end.node.guid] = (so_far or 0.0) + min(known) if whole else None
    return found


def _switch_names(fabric: IbFabric) -> dict[str, str]:
    """By GUID, names that differ: the short one of the description, with the GUID if need be."""
    switches = [node for node in fabric.nodes if node.kind is IbNodeKind.SWITCH]
    short = {node.guid: _label(switch_name(node.description) or node.guid) for node in switches}
    counts = Counter(short.values())
    return {
        guid: name if counts[name] == 1 else _label(f"{name[:40]} {guid}")
        for guid, name in short.items()
    }


def _label(name: str) -> str:
    """``name`` as a hosts file could hold it."""
    return _NO_LABEL.sub("_", name)[:_MAX_LABEL_CHARS]


def _natural(text: str) -> tuple[tuple[int, str], ...]:
    """Orders ``mlx5_2`` before ``mlx5_10``."""
    parts = _NUMBERS.split(text)
    return tuple((int(part), "") if place % 2 else (-1, part) for place, part in enumerate(parts))


def _find(host: Host, leaves: _Leaves) -> Sequence[tuple[str | None, _Leaf]] | None:
    """The leaves of ``host``: by its name, else by the name without its domain."""
    name = host.name.lower()
    names = [name] if _ADDRESS.fullmatch(name) else [name, _short(name)]
    return next((leaves[one] for one in names if one in leaves), None)


def _short(name: str) -> str:
    """The name without its domain."""
    return name.partition(".")[0]


def live_fabric(
    tool: str, deadline_s: float = LIVE_DEADLINE_S, options: Sequence[str] = ()
) -> bytes:
    """What ``ibnetdiscover`` or ``iblinkinfo`` prints of the fabric here, within ``deadline_s``.

    ``options`` are further arguments of the tool (``-C mlx5_0``). Raises :class:`UsageError` where
    there is no such tool, and :class:`UndecidedError` where it fails, hangs or says nothing.
    """
    if tool not in FABRIC_TOOLS:
        raise UsageError(f"{visible(tool)!r} cannot be asked; {' and '.join(FABRIC_TOOLS)} can")
    path = os.pathsep.join((os.environ.get("PATH", os.defpath), *_SBIN))
    program = shutil.which(tool, path=path)
    if program is None:
        raise UsageError(f"{tool} is not installed here; it comes with infiniband-diags")
    with tempfile.TemporaryFile() as said, tempfile.TemporaryFile() as complained:
        code = _run((program, *options), said, complained, deadline_s)
        complaint = _first_line(complained)
        size = said.seek(0, os.SEEK_END)
        if code is None:
            raise UndecidedError(
                f"{tool} did not end within {deadline_s:g} s{complaint}; give it more time, or "
                "another port with -C and -P"
            )
        if code:
            raise UndecidedError(f"{tool} failed with exit code {code}{complaint}")
        if size > _MAX_BYTES:
            raise UndecidedError(f"{tool} printed more than {_MAX_BYTES // 1024**2} MiB")
        if not size:
            raise UndecidedError(f"{tool} printed nothing{complaint}")
        said.seek(0)
        return said.read()


def _run(
    argv: Sequence[str], said: BinaryIO, complained: BinaryIO, deadline_s: float
) -> int | None:
    """The exit code; ``None`` where the time ran out."""
    try:
        process = subprocess.Popen(
            argv,
            stdin=subprocess.DEVNULL,
            stdout=said,
            stderr=complained,
            env=without_secrets(os.environ),
            start_new_session=True,
        )
    except OSError as error:
        raise UndecidedError(f"{argv[0]} cannot be started: {error.strerror}") from None
    try:
        return process.wait(deadline_s)
    except subprocess.TimeoutExpired:
        return None
    finally:
        if process.poll() is None:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            with suppress(subprocess.TimeoutExpired):
                process.wait(_KILL_GRACE_S)


def _first_line(complained: BinaryIO) -> str:
    complained.seek(0)
    lines = complained.read(64 * 1024).decode("utf-8", "replace").split("\n")
    line = next((line.strip() for line in lines if line.strip()), "")
    return f": {visible(line[:_SHOWN_CHARS])}" if line else ""
