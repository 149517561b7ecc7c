"""Links inside a host, which are of several kinds: NVLink, PCIe, across sockets."""

from collections import defaultdict
from dataclasses import replace

from ncdiag.model.text import visible
from ncdiag.model.verdict import CulpritKind, Diagnosis, LinkStatus, Verdict

# Of two or three devices a single bad link touches nearly all.
_LEAST_DEVICES = 4


def without_topology(diagnosis: Diagnosis) -> Diagnosis:
    """``diagnosis`` without the links that are slow as all devices of their host have slow ones.

    A fault is at a link, or at one device. Where every device has links at fault that no device
    explains, they are of another kind by the way the host is built, as between sockets or without
    a bridge; figures alone cannot tell that from many faults, so it is undecided.
    """
    devices: defaultdict[str, set[str]] = defaultdict(set)
    for one in diagnosis.hosts:
        devices[_host(one.name)].add(one.name)
    blamed = {one.name for one in diagnosis.culprits if one.kind is not CulpritKind.LINK}
    alone = {one.name for one in diagnosis.culprits if one.kind is CulpritKind.LINK}
    touched = {end for name in alone for end in name.split("->")}
    built_so = {
        host
        for host, names in devices.items()
        if len(names) >= _LEAST_DEVICES and names - blamed and names - blamed <= touched
    }
    if not built_so:
        return diagnosis
    links = tuple(
        replace(link, status=LinkStatus.INCONCLUSIVE)
        if _host(link.source) in built_so and f"{link.source}->{link.target}" in alone
        else link
        for link in diagnosis.links
    )
    culprits = tuple(
        one
        for one in diagnosis.culprits
        if one.kind is not CulpritKind.LINK or _host(one.name) not in built_so
    )
    where = ", ".join(visible(host) or "the host" for host in sorted(built_so))
    note = (
        f"{where}: every GPU has slow links and fast ones, as where they are of several kinds "
        "(NVLink, PCIe, across sockets); none is blamed: compare with nvidia-smi topo -m"
    )
    return replace(
        diagnosis,
        verdict=diagnosis.verdict if culprits else Verdict.INCONCLUSIVE,
        links=links,
        culprits=culprits,
        notes=(note, *diagnosis.notes),
    )


def _host(device: str) -> str:
    return device.partition("->")[0].rpartition(":")[0]
