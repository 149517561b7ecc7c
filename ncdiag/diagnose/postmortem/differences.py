"""Processes that differ from their peers: GPUDirect, network, NICs, speeds."""

from collections import Counter
from collections.abc import Iterable

from ncdiag.diagnose.postmortem.case import Case
from ncdiag.diagnose.postmortem.draft import Draft, derived
from ncdiag.diagnose.postmortem.ranks import hosts_of_ranks
from ncdiag.diagnose.postmortem.speech import listed
from ncdiag.model.finding import FindingClass as C
from ncdiag.model.log import LogEvidence, NcclProcess
from ncdiag.model.place import Place
from ncdiag.model.units import format_count

_VERBS = "IB"
_SOCKET = "Socket"
# Set by people who have such devices.
_VERBS_SETTINGS = ("NCCL_IB_HCA", "NCCL_IB_GID_INDEX", "NCCL_IB_TC", "NCCL_IB_TIMEOUT")

# These differ between processes by their nature.
_OWN_TO_EACH = frozenset({"NCCL_DEBUG_FILE", "NCCL_DEBUG", "NCCL_HOSTID", "NCCL_TOPO_DUMP_FILE"})


def differences(case: Case) -> list[Draft]:
    """Findings that come of comparing processes with one another."""
    narrow = _missing_nic(case) or _fewer_devices(case) or _slow_nic(case)
    found = (_one_sided(case), _gdr_disabled(case), _fallback(case) or narrow)
    return [draft for draft in found if draft]


def _one_sided(case: Case) -> Draft | None:
    """Hosts whose network channels all lack GPUDirect, while another host's have it."""
    hosts = case.processes_on
    direct = {h: sum(p.gdr_channels for p in ps) for h, ps in hosts.items()}
    plain = {h: sum(p.plain_channels for p in ps) for h, ps in hosts.items()}
    without = {h for h in hosts if plain[h] and not direct[h]}
    having = {h for h in hosts if direct[h]}
    if not without or not having:
        without, having = _by_device(hosts, direct)
    if not without or not having:
        return None
    host = min(without)
    draft = derived(
        C.LOW_BANDWIDTH_GDR_ONE_SIDED,
        _place(hosts[host]),
        f"no network channel of {host} uses GPUDirect RDMA",
        attributes={"host": host},
    )
    lacking, others = sorted(without), sorted(having - without)
    draft.notes.append(f"On for {listed(others)}, off for {listed(lacking)}.")
    draft.also_hosts += lacking
    return draft


def _by_device(
    hosts: dict[str, list[NcclProcess]], direct: dict[str, int]
) -> tuple[set[str], set[str]]:
    """By what is said of each adapter, where the channels do not tell.

    That it is off is said of the few; a host on verbs of which nothing is said has it.
    """
    told = {h: [on for p in ps for on in p.hca_gdr.values()] for h, ps in hosts.items()}
    without = {h for h, each in told.items() if each and not any(each) and not direct[h]}
    having = {h for h in hosts if direct[h] or any(told[h])}
    silent = {
        h
        for h, ps in hosts.items()
        if not told[h] and any(_VERBS in p.networks and not p.plain_channels for p in ps)
    }
    return without, (having or silent) - without


def _gdr_disabled(case: Case) -> Draft | None:
    """Verbs in use, and no channel with GPUDirect anywhere."""
    processes = [p for p in case.evidence.processes if _VERBS in p.networks]
    plain = [p for p in processes if p.plain_channels]
    if not plain or any(p.gdr_channels for p in case.evidence.processes):
        return None
    return derived(C.GDR_DISABLED, _place(plain), "no network channel uses GPUDirect RDMA")


def _fallback(case: Case) -> Draft | None:
    """Sockets in use, where something faster is there, was asked for or was refused."""
    slow = [p for p in case.evidence.processes if _SOCKET in p.networks]
    if not slow or not _several_nodes(case.evidence):
        return None
    fast = [p for p in case.evidence.processes if _VERBS in p.networks]
    asked = [p for p in slow if "refused" in p.ofi or _asks_for_verbs(p)]
    suspects = slow if fast else asked
    if not suspects:
        return None
    draft = derived(
        C.NETWORK_FALLBACK,
        _place(suspects),
        f"{format_count(len(suspects), 'process')} on sockets",
        attributes={"network": _SOCKET},
    )
    draft.also_hosts += sorted({case.hosts.resolve(p.host) for p in suspects})
    return draft


def _asks_for_verbs(process: NcclProcess) -> bool:
    environment = process.environment
    if environment.get("NCCL_IB_DISABLE", "0").strip(".") not in {"0", ""}:
        return False
    wanted = environment.get("NCCL_NET", "").upper() == _VERBS
    return wanted or any(name in environment for name in _VERBS_SETTINGS)


def _several_nodes(evidence: LogEvidence) -> bool:
    nodes = [c.nodes for p in evidence.processes for c in p.communicators if c.nodes]
    if nodes:
        return max(nodes) > 1
    return len({process.host for process in evidence.processes}) > 1


def _missing_nic(case: Case) -> Draft | None:
    """A host with fewer verbs adapters than its peers, all others being alike."""
    counts = {
        host: max(len(process.nics) for process in processes)
        for host, processes in case.processes_on.items()
        if any(_VERBS in process.networks for process in processes)
    }
    usual = Counter(counts.values()).most_common(1)
    if len(counts) < 3 or not usual or usual[0][1] <= len(counts) / 2:
        return None
    fewer = sorted(host for host, count in counts.items() if count < usual[0][0])
    if not fewer:
        return None
    host = fewer[0]
    draft = derived(
        C.NETWORK_FALLBACK,
        _place(case.processes_on[host]),
        f"{host} uses {format_count(counts[host], 'adapter')}, the others {usual[0][0]}",
        attributes={"network": _VERBS},
    )
    draft.notes.append(f"Fewer adapters than its peers on {listed(fewer)}.")
    draft.also_hosts += fewer
    return draft


def _fewer_devices(case: Case) -> Draft | None:
    """What rank 0 counts: ranks with fewer network devices than the others."""
    for process in case.evidence.processes:
        most = process.net_devices_max
        fewer = [rank for rank, count in process.net_devices.items() if most and count < most]
        if fewer:
            draft = derived(
                C.NETWORK_FALLBACK,
                _place([process]),
                f"{format_count(len(fewer), 'rank')} with fewer than {most} network devices",
                ranks=sorted(fewer),
            )
            hosts = hosts_of_ranks(case.evidence)
            draft.also_hosts += sorted({hosts[rank] for rank in fewer if rank in hosts})
            return draft
    return None


def _slow_nic(case: Case) -> Draft | None:
    """An adapter that runs slower than the one of that name does on most hosts."""
    speeds: dict[str, dict[str, str]] = {}
    for process in case.evidence.processes:
        for nic, speed in process.nic_speeds_mbit_per_s.items():
            if not speed.isdecimal():
                continue
            speeds.setdefault(nic, {})[case.hosts.resolve(process.host)] = speed
    for nic, hosts in speeds.items():
        usual, count = Counter(hosts.values()).most_common(1)[0]
        slow = sorted(h for h, s in hosts.items() if int(s) < int(usual))
        if slow and len(hosts) > 2 and 2 * count > len(hosts):
            place = _place(case.processes_on[slow[0]])
            text = f"{nic} runs at {hosts[slow[0]]} Mbit/s on {slow[0]}, at {usual} elsewhere"
            draft = derived(C.NETWORK_FALLBACK, place, text, attributes={"network": _VERBS})
            draft.notes.append(text[0].upper() + text[1:] + ".")
            draft.also_hosts += slow
            return draft
    return None


def settings_that_differ(processes: Iterable[NcclProcess]) -> list[str]:
    """Variables of the library that processes of one job have with different values."""
    values: dict[str, set[str]] = {}
    for process in processes:
        for name, value in process.environment.items():
            if name.startswith(("NCCL_", "RCCL_")) and name not in _OWN_TO_EACH:
                values.setdefault(name, set()).add(value.rstrip("."))
    return sorted(name for name, known in values.items() if len(known) > 1)


def _place(processes: Iterable[NcclProcess]) -> Place:
    places = (p.connected or p.first or p.last for p in processes)
    return next((place for place in places if place), Place("", 0))
