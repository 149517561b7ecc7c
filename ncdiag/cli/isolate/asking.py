"""What all commands of ``ncdiag isolate`` do first: open the ledger, decide, find the place."""

import getpass
import secrets
import shlex
import socket
import sys
import time
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

from ncdiag.cli.isolate.arguments import PlaceKind
from ncdiag.isolate.apply import Rules, Who
from ncdiag.isolate.places.base import Place
from ncdiag.isolate.policy import Policy, read_policy
from ncdiag.model.errors import UsageError
from ncdiag.model.isolation import Decision
from ncdiag.model.text import did_you_mean, visible
from ncdiag.store.ledger import Ledger
from ncdiag.store.location import default_store


def open_ledger(path: Path | None, *, write: bool = False) -> Ledger:
    """The ledger in the store at ``path``, which has to be there; by default the user's own.

    Raises :class:`UsageError` or :class:`UndecidedError`.
    """
    path = default_store() if path is None else path
    if _is_missing(path):
        raise UsageError(
            f"there is no store {visible(str(path))}; 'ncdiag isolate add' makes one, and so does "
            "--record with other commands; --store names one"
        )
    if write:  # which would make it
        Ledger.open(path).close()
    return Ledger.open(path, write=write)


def _is_missing(path: Path) -> bool:
    try:
        return not path.exists()
    except OSError:  # which whoever opens it tells
        return False


def open_or_make_ledger(path: Path | None) -> Ledger:
    """As :func:`open_ledger`, to write; made where it is missing."""
    from ncdiag.cli.keeping import open_to_write

    with open_to_write(path) as store:
        where = store.path
    return Ledger.open(where, write=True)


def decide_now(ledger: Ledger, policy: Policy, isolated: Collection[str]) -> Sequence[Decision]:
    """What the evidence comes to at this moment."""
    from ncdiag.isolate.decide import decide
    from ncdiag.isolate.taken_back import acted_upon, hold_taken_back

    decisions = decide(ledger.table(), policy, time.time(), isolated, ledger.outs())
    actions = ledger.actions()
    after = ledger.recorded_after(acted_upon(decisions, actions))
    decisions = tuple(replace(one, accused_after=after.get(one.host)) for one in decisions)
    return hold_taken_back(decisions, actions)


def rules_of(ledger: Ledger, policy_file: Path | None, nodes: str | None) -> Rules:
    """The policy in force, over the fleet of ``--nodes``. Raises :class:`UsageError`."""
    policy = read_policy(policy_file)
    fleet, leaves = fleet_of(nodes)
    return Rules(
        decide=lambda isolated: decide_now(ledger, policy, isolated),
        budget=policy.budget,
        fleet=fleet,
        leaves=leaves,
    )


def fleet_of(nodes: str | None) -> tuple[Sequence[str] | None, Mapping[str, str]]:
    """The hosts of ``--nodes`` with their leaves. Raises :class:`UsageError`."""
    if nodes is None:
        return None, {}
    from ncdiag.cluster.inventory import read_hosts

    hosts = read_hosts(nodes)
    leaves = {host.name: host.leaf for host in hosts if host.leaf is not None}
    return [host.name for host in hosts], leaves


def place_of(kind: PlaceKind, file: Path | None, context: str | None) -> Place:
    """The place of these options. Raises :class:`UsageError`."""
    if file is not None and kind is not PlaceKind.HOSTFILE:
        raise UsageError(f"--file is for --to hostfile, not for {kind}")
    if context is not None and kind is not PlaceKind.KUBERNETES:
        raise UsageError(f"--context is for --to kubernetes, not for {kind}")
    match kind:
        case PlaceKind.SLURM:
            from ncdiag.isolate.places.slurm import SlurmPlace

            return SlurmPlace()
        case PlaceKind.KUBERNETES:
            from ncdiag.isolate.places.kubernetes import KubernetesPlace

            if context is not None and context.startswith("-"):
                raise UsageError(f"--context {visible(context)}: this is no context")
            return KubernetesPlace(context)
        case PlaceKind.HOSTFILE:
            from ncdiag.isolate.places.hostfile import HostfilePlace

            if file is None:
                raise UsageError("--to hostfile needs --file, the hosts file to change")
            return HostfilePlace(file)


def place_of_key(key: str) -> Place:
    """The place that the ledger calls ``key``. Raises :class:`UsageError`."""
    name, _, more = key.partition(":")
    try:
        kind = PlaceKind(name)
    except ValueError:
        raise UsageError(f"the ledger names a place that is none: {visible(key)}") from None
    if kind is PlaceKind.HOSTFILE:
        from ncdiag.isolate.places.hostfile import HostfilePlace

        return HostfilePlace(Path(more), remembered=True)
    return place_of(kind, None, (more or None) if kind is PlaceKind.KUBERNETES else None)


def expand_all(names: Sequence[str]) -> list[str]:
    """The hosts of node sets, each once. Raises :class:`UsageError`."""
    from ncdiag.cluster.names import expand, parted

    parts = [part for name in names for part in parted(name)]
    return list(dict.fromkeys(host for part in parts for host in expand(part)))


def known_hosts(ledger: Ledger) -> list[str]:
    """The hosts that there is evidence of, or that ncdiag did anything to."""
    return sorted({*ledger.hosts(), *(action.host for action in ledger.actions())})


def near(host: str, known: Collection[str]) -> str:
    """The end of a complaint of a host that is not ``known``: the one that may be meant."""
    from ncdiag.isolate.places.base import namesakes

    same = namesakes([host], known)
    return f"; did you mean {visible(same[0])}?" if same else visible(did_you_mean(host, known))


def who() -> Who:
    """Who calls this command, and a name for what it does."""
    now = datetime.now(UTC)
    return Who(
        plan=f"{now:%Y%m%dT%H%M%SZ}-{secrets.token_hex(3)}",
        user=_user(),
        machine=socket.gethostname(),
        command=shlex.join(["ncdiag", *sys.argv[1:]]),
    )


def _user() -> str:
    try:
        return getpass.getuser()
    except (KeyError, OSError):  # an account that nothing knows, as in a container
        return "unknown"
