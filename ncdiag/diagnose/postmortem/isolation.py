"""Whom to leave out: hosts with hard evidence, or with a second, independent sign."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace

from ncdiag.diagnose.postmortem.blame import hosts_of
from ncdiag.diagnose.postmortem.case import Case
from ncdiag.diagnose.postmortem.classes import Isolate, Tier
from ncdiag.diagnose.postmortem.docket import Docket
from ncdiag.diagnose.postmortem.draft import Draft
from ncdiag.diagnose.postmortem.ports import came_back, losses
from ncdiag.diagnose.postmortem.thresholds import AGAIN_AFTER_S, REPORTING_HOSTS, STALL_AFTER_S
from ncdiag.diagnose.postmortem.timeline import spread
from ncdiag.diagnose.postmortem.transfers import CONVICTING, LOCAL_ADAPTER, LOCAL_MEMORY, status_of
from ncdiag.diagnose.postmortem.votes import tally
from ncdiag.model.finding import FindingClass as C
from ncdiag.model.finding import Isolation, Role
from ncdiag.model.nodes import is_host_name

# Memory errors that the driver contained, or took note of.
_CONTAINED = frozenset({"63", "92", "94", "156"})
# Several hosts that say so at once share a setting, a file system or a room.
_SHARED_WHEN_SEVERAL = frozenset(
    {
        C.CUDA_ERROR,
        C.MNNVL_FAILED,
        C.NVLS_MULTICAST_FAILED,
        C.OFI_COMPLETION_ERROR,
        C.PROCESS_CRASH,
        C.STORAGE_ERROR,
        C.THERMAL_POWER,
        C.TORCH_WATCHDOG_STUCK,
    }
)
_ENDINGS = frozenset(
    {
        C.APPLICATION_EXCEPTION,
        C.CUDA_OUT_OF_MEMORY,
        C.ELASTIC_WORKER_FAILED,
        C.OOM_KILL,
        C.PROCESS_CRASH,
        C.PROCESS_DIED,
    }
)
_POINTING = frozenset({C.BOOTSTRAP_CONNECT_FAILED, C.SOCKET_ERROR, C.OFI_COMPLETION_ERROR})
_UNREACHABLE = ("no route", "timed out", "host is down", "unreachable")


def isolate(drafts: Docket, case: Case) -> list[Isolation]:
    """The hosts to leave out, each once, the surest first."""
    found: dict[str, list[Isolation]] = {}
    for draft in drafts:
        follows = draft.role is Role.CONSEQUENCE and not _of_unplaced_hardware(draft, case)
        if follows or draft.rule.isolate is Isolate.NO:
            _follow_driver(draft, case)
        else:
            for host in _hosts(draft, drafts, case):
                draft.isolate[host] = _because(draft, host)
        for host, because in draft.isolate.items():
            if not is_host_name(host):
                continue
            entry = Isolation(host=host, confidence=round(draft.confidence, 2), because=because)
            found.setdefault(host, []).append(entry)
    broken = _broken_besides(drafts, case)
    listed = [_surest(entries, broken.get(host, ())) for host, entries in found.items()]
    return sorted(listed, key=lambda entry: -entry.confidence)


def _of_unplaced_hardware(draft: Draft, case: Case) -> bool:
    """Whether hardware is behind it that names no host: whom the reporters name is still named."""
    cause = draft.cause
    if cause is None or not cause.root or cause.tier is not Tier.HARDWARE:
        return False
    return cause.rule.isolate is not Isolate.NO and not hosts_of(cause.accusing, case)


def _surest(entries: Sequence[Isolation], besides: Iterable[str]) -> Isolation:
    """The surest of several reasons against a host, with the others."""
    first = max(entries, key=lambda entry: entry.confidence)
    reasons = dict.fromkeys((*(entry.because for entry in entries), *besides))
    return replace(first, also=tuple(one for one in reasons if one != first.because))


def _broken_besides(drafts: Docket, case: Case) -> dict[str, list[str]]:
    """What broke as a consequence of a fault: a GPU that is gone is gone, whatever came before."""
    found: dict[str, list[str]] = {}
    for draft in drafts:
        hardware = draft.tier is Tier.HARDWARE and draft.rule.isolate is Isolate.YES
        if draft.role is Role.CONSEQUENCE and hardware:
            for host in _hosts(draft, drafts, case):
                found.setdefault(host, []).append(_because(draft, host))
    return found


def _because(draft: Draft, host: str) -> str:
    device = next(
        (draft.attributes[k] for k in ("pci", "hca", "device") if k in draft.attributes), ""
    )
    return f"{draft.class_} on {host}" + (f", {device}" if device else "")


def _follow_driver(draft: Draft, case: Case) -> None:
    """A driver that asks for a reset of the GPU or host names its host, whatever came before."""
    if draft.class_ is C.XID_FOLLOWUP:
        asked = [e for e in draft.events if e.details.get("action", "0").strip("0")]
        for host in hosts_of(asked, case):
            draft.isolate[host] = f"{draft.class_} on {host}: the driver asks for a reset"


def _hosts(draft: Draft, drafts: Docket, case: Case) -> list[str]:
    special = _SPECIAL.get(draft.class_)
    if special:
        return special(draft, drafts, case)
    if draft.rule.isolate is Isolate.YES:
        return _certain(draft, case)
    return _repeated(draft, drafts, case)


def _certain(draft: Draft, case: Case) -> list[str]:
    """Hosts with an event of the full role; what the class reports as a warning accuses nobody."""
    if draft.role is Role.WARNING:
        return []
    return hosts_of(draft.accusing, case)


def _repeated(draft: Draft, drafts: Docket, case: Case) -> list[str]:
    """Hosts with a second sign: again some time later, or another fault of the host."""
    if draft.role is Role.WARNING and draft.class_ is not C.NVSWITCH_NONFATAL:
        return []
    hosts = hosts_of(draft.accusing, case)
    if draft.class_ in _SHARED_WHEN_SEVERAL and len(drafts.hosts_of(draft.class_)) > 1:
        return []
    return [h for h in hosts if _again(draft, h, case) or _kernel_agrees(draft, h, drafts)]


def _again(draft: Draft, host: str, case: Case) -> bool:
    """Whether the host shows it twice, far enough apart to be two signs."""
    apart = STALL_AFTER_S if draft.class_ is C.KERNEL_STALL else AGAIN_AFTER_S
    events = [event for event in draft.accusing if case.hosts.of_event(event) == host]
    return spread(events) > apart


def _kernel_agrees(draft: Draft, host: str, drafts: Docket) -> bool:
    """Whether another fault of hardware stands on the host."""
    return any(
        other is not draft
        and other.rule.isolate is not Isolate.NO
        and other.role is not Role.WARNING
        and not _shared(other)
        for other in drafts.hardware_on(host)
    )


def _shared(draft: Draft) -> bool:
    """Whether it is a file system that others use, too: no sign against the host."""
    return draft.class_ is C.STORAGE_ERROR and any(
        event.details.get("scope") != "disk" for event in draft.accusing
    )


def _by_transfers(draft: Draft, drafts: Docket, case: Case) -> list[str]:
    """The one host that several hosts name; a local status on one host that repeats itself."""
    convicting = [event for event in draft.accusing if status_of(event) in CONVICTING]
    host = tally(convicting, case).convicted()
    if host:
        return [] if _ended_somewhere(drafts, case) else [host]
    own = [e for e in draft.accusing if status_of(e) in LOCAL_MEMORY | LOCAL_ADAPTER]
    hosts = hosts_of(own, case)
    if len(hosts) != 1:
        return []
    agreed = _kernel_agrees(draft, hosts[0], drafts)
    return hosts if agreed or spread(own) > AGAIN_AFTER_S else []


def _ended_somewhere(drafts: Docket, case: Case) -> bool:
    """Whether a process ended by itself, nobody knows where: perhaps that is why all wait."""
    return any(
        draft.root and draft.class_ in _ENDINGS and not hosts_of(draft.accusing, case)
        for draft in drafts
    )


def _by_peers(draft: Draft, drafts: Docket, case: Case) -> list[str]:
    """The one host that several hosts cannot reach; a refusal comes from a host that is there."""
    unreached = [
        event
        for event in draft.accusing
        if any(word in event.attributes.get("error", "").lower() for word in _UNREACHABLE)
        and "network is unreachable" not in event.attributes.get("error", "").lower()
    ]
    if draft.class_ is C.OFI_COMPLETION_ERROR:
        unreached = draft.accusing
    host = tally(unreached, case).convicted()
    if host:
        return [] if _ended_somewhere(drafts, case) else [host]
    return _repeated(draft, drafts, case) if draft.class_ is C.OFI_COMPLETION_ERROR else []


def _by_qp(draft: Draft, drafts: Docket, case: Case) -> list[str]:
    """Two adapters that cannot be connected: nobody, unless one NIC fails with several others."""
    del drafts
    failed: dict[tuple[str, str], set[str]] = {}
    for event in draft.accusing:
        host, hca = case.hosts.of_event(event), event.attributes.get("hca")
        if host and hca:
            far = event.attributes.get("remote_gid", "")
            failed.setdefault((host, hca), set()).add(far)
    bad = [key for key, far in failed.items() if len(far - {""}) >= REPORTING_HOSTS]
    return [bad[0][0]] if len(bad) == 1 and len(failed) == 1 else []


def _by_port(draft: Draft, drafts: Docket, case: Case) -> list[str]:
    """A port that all ranks of its host report, that others time out against, or that repeats."""
    if draft.role is Role.WARNING or not draft.host or _everywhere(draft, drafts, case):
        return []
    speaking = {event.speaker for event in draft.accusing}
    known = _processes_on(draft.host, case)
    everyone = len(speaking) >= max(known, 2)
    against = draft.host in drafts.named
    again = losses(draft, case) > 1 or _again(draft, draft.host, case)
    agreed = _kernel_agrees(draft, draft.host, drafts)
    return [draft.host] if everyone or against or again or agreed else []


def _everywhere(draft: Draft, drafts: Docket, case: Case) -> bool:
    """Whether most of several hosts lost a port: the switch they share, not each of them."""
    lost, known = drafts.places_of(draft.class_), case.processes_on
    others = len(lost - known.keys())
    return len(lost) > REPORTING_HOSTS and 2 * len(lost) > len(known) + others


def _processes_on(host: str, case: Case) -> int:
    """How many processes the host has, as far as any line tells."""
    processes = case.processes_on.get(host, [])
    local = [c.local_ranks or 0 for p in processes for c in p.communicators]
    return max(len(processes), *local, 0)


def _by_link(draft: Draft, drafts: Docket, case: Case) -> list[str]:
    """A link that was lost again, or that was down when the job failed."""
    if not draft.host or draft.role is Role.WARNING:
        return []
    if losses(draft, case) > 1 or _again(draft, draft.host, case):
        return [draft.host]
    if _kernel_agrees(draft, draft.host, drafts):
        return [draft.host]
    down = not came_back(draft, case)
    failed = any(
        other.tier in {Tier.CALL, Tier.TIMEOUT, Tier.HARDWARE} for other in drafts.effects_of(draft)
    )
    return [draft.host] if down and failed else []


def _by_memory(draft: Draft, drafts: Docket, case: Case) -> list[str]:
    """GPU memory: what the driver contained or only took note of isolates nobody."""
    del drafts
    events = [e for e in draft.accusing if e.attributes.get("xid") not in _CONTAINED]
    return hosts_of(events, case) if draft.role is not Role.WARNING else []


def _by_nvlink(draft: Draft, drafts: Docket, case: Case) -> list[str]:
    """NVLink: fatal, or the link is down."""
    del drafts
    fatal = [e for e in draft.accusing if e.details.get("fatal") != "no" or e.details.get("down")]
    return hosts_of(fatal, case) if draft.role is not Role.WARNING else []


def _by_disk(draft: Draft, drafts: Docket, case: Case) -> list[str]:
    """A host's own disk that fails repeatedly; a file system that several use accuses no host."""
    return [] if _shared(draft) else _repeated(draft, drafts, case)


def _by_scheduler(draft: Draft, drafts: Docket, case: Case) -> list[str]:
    """A node that the scheduler lost, if anything else speaks against it."""
    lost = [e for e in draft.accusing if "NODE" in e.attributes.get("reason", "").upper()]
    jobs = {job for event in lost if (job := event.details.get("job"))}
    named = [event for event in lost if event.details.get("node")]
    hosts = hosts_of(named or lost, case)
    if len(jobs) >= REPORTING_HOSTS and len(hosts) == 1:
        # One node lost, by several jobs, as often as there are jobs.
        return hosts if sum(event.count for event in named) >= len(jobs) else []
    return [h for h in hosts if _kernel_agrees(draft, h, drafts) or _again(draft, h, case)]


_SPECIAL: dict[C, Callable[[Draft, Docket, Case], list[str]]] = {
    C.IB_COMPLETION_ERROR: _by_transfers,
    C.IB_MODIFY_QP_FAILED: _by_qp,
    C.IB_PORT_ERROR: _by_port,
    C.NIC_LINK_DOWN: _by_link,
    C.GPU_MEMORY_ERROR: _by_memory,
    C.NVLINK_ERROR: _by_nvlink,
    C.JOB_CANCELLED: _by_scheduler,
    C.STORAGE_ERROR: _by_disk,
    **dict.fromkeys(_POINTING, _by_peers),
}
