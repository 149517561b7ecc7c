"""What hosts are called in the results of other tools, and what the operator calls them."""

import ipaddress
import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from pathlib import PurePath

from ncdiag.model.benchmark import Benchmark
from ncdiag.model.errors import UsageError
from ncdiag.model.host import Host
from ncdiag.model.imported import ForeignResults
from ncdiag.model.text import visible

# What perftest calls a port of InfiniBand, which has no other address.
_LID = re.compile(r"lid\d{1,10}")


def hosts_of(run: Benchmark) -> tuple[str, ...]:
    """The hosts of a run in the order of their first ranks."""
    return tuple(dict.fromkeys(rank.host for rank in run.ranks if rank.host))


def name_ends(results: ForeignResults, names: Sequence[str]) -> ForeignResults:
    """``results`` with ``names`` for what it leaves unnamed, or for the host it is inside of.

    Raises :class:`UsageError` for another number of names than it takes.
    """
    path = visible(results.path)
    if results.inside is not None:
        if len(names) != 1:
            raise UsageError(f"{path}: it is about one host; name one: HOST={path}")
        return replace(results, inside=names[0])
    nameless = results.unnamed or _addresses(results)
    if not nameless:
        raise UsageError(f"{path}: it names its hosts itself; give the path alone")
    if len(names) != len(nameless):
        raise UsageError(
            f"{path}: {len(names)} hosts are named, it takes {len(nameless)}, "
            "in the order of their ranks"
        )
    if len(set(names)) < len(names):
        raise UsageError(f"{path}: a host is named twice")
    return _renamed(results, dict(zip(nameless, names, strict=True)))


def _addresses(results: ForeignResults) -> list[str]:
    """The two ends of a file that tells addresses in place of names, the sending one first."""
    ends = results.endpoints
    return ends if len(ends) == 2 and all(map(_is_address, ends)) else []


def _is_address(name: str) -> bool:
    try:
        ipaddress.ip_address(name)
    except ValueError:
        return _LID.fullmatch(name) is not None
    return True


def _renamed(results: ForeignResults, names: dict[str, str]) -> ForeignResults:
    def named(name: str) -> str:
        return names.get(name, name)

    for run in results.benchmarks:
        run.ranks = [rank._replace(host=named(rank.host)) for rank in run.ranks]
    return replace(
        results,
        endpoints=[named(end) for end in results.endpoints],
        unnamed=[end for end in results.unnamed if end not in names],
        pairs=[
            replace(pair, source=named(pair.source), target=named(pair.target))
            for pair in results.pairs
        ],
    )


def with_unnamed_ends(results: ForeignResults) -> ForeignResults:
    """``results`` with those ends marked that perftest calls after the file, for want of a name."""
    if results.format != "perftest":
        return results
    file = PurePath(results.path).name or results.format
    ends = [
        end
        for end in results.endpoints
        if end.startswith(file) and end.endswith((".own", ".other"))
    ]
    return replace(results, unnamed=ends)


def with_names_of(results: ForeignResults, hosts: Sequence[Host]) -> ForeignResults:
    """``results`` with the hosts file's names for what it calls by address or by longer names.

    Ends without a name, or with addresses that the hosts file does not tell of, take those that
    stand in the file's name, if there are as many.
    """
    known: dict[str, str] = {}
    short: Counter[str] = Counter(host.name.partition(".")[0] for host in hosts)
    for host in hosts:
        known |= {host.address: host.name, host.name: host.name}
        first = host.name.partition(".")[0]
        if short[first] == 1:
            known.setdefault(first, host.name)
    told = {*results.endpoints, *(name for run in results.benchmarks for name in hosts_of(run))}
    names = {
        name: known.get(name) or known.get(name.partition(".")[0], name)
        for name in told - set(results.unnamed)
    }
    found = _renamed(results, names)
    nameless = found.unnamed or _addresses(found)
    if nameless:
        here = _in_file_name(found.path, hosts)
        if len(here) == len(nameless):
            return name_ends(found, here)
    return found


def _in_file_name(path: str, hosts: Sequence[Host]) -> list[str]:
    """Hosts whose names stand in a file's name, in order; longer names before those in them."""
    name = PurePath(path).name
    places: dict[int, str] = {}
    for host in sorted(hosts, key=lambda one: -len(one.name)):
        at = name.find(host.name)
        while at >= 0:
            end = at + len(host.name)
            whole = not name[at - 1 : at].isalnum() and not name[end : end + 1].isalnum()
            if whole and not any(at <= other < end for other in places):
                places[at] = host.name
                name = name[:at] + " " * len(host.name) + name[end:]
            at = name.find(host.name, at + 1)
    return [places[at] for at in sorted(places)]
