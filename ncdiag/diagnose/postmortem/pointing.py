"""Failed calls that point at a host on which a surer cause stands."""

from itertools import chain

from ncdiag.diagnose.postmortem.case import Case
from ncdiag.diagnose.postmortem.classes import Tier
from ncdiag.diagnose.postmortem.docket import Docket
from ncdiag.diagnose.postmortem.draft import Draft
from ncdiag.diagnose.postmortem.kernel_log import GPU_FAULTS
from ncdiag.diagnose.postmortem.thresholds import (
    CAUSE_AFTER_EFFECT_S,
    CAUSE_BEFORE_EFFECT_S,
)
from ncdiag.diagnose.postmortem.timeline import seconds_between
from ncdiag.model.finding import FindingClass as C

_Link = tuple[str | None, str | None]
_NOWHERE: set[_Link] = {(None, None)}

_NIC_FAULTS = frozenset(
    {
        C.IB_PORT_ERROR,
        C.IB_DEVICE_FATAL,
        C.IB_QP_FATAL_EVENT,
        C.NIC_FIRMWARE_FAULT,
        C.NIC_LINK_DOWN,
        C.PCIE_ERROR,
    }
)
_GPU_CALLS = frozenset(
    {
        C.CUDA_ERROR,
        C.NVLS_MULTICAST_FAILED,
        C.MNNVL_FAILED,
        C.P2P_DISABLED,
        C.TORCH_WATCHDOG_STUCK,
        C.UNHANDLED_SYSTEM_ERROR,
    }
)
_NIC_CALLS = frozenset(
    {
        C.IB_COMPLETION_ERROR,
        C.IB_MODIFY_QP_FAILED,
        C.IB_VERBS_CALL_FAILED,
        C.OFI_COMPLETION_ERROR,
        C.SOCKET_ERROR,
        C.SOCKET_CONNECT_FAILED,
        C.BOOTSTRAP_CONNECT_FAILED,
        C.UNHANDLED_SYSTEM_ERROR,
    }
)
# A setting is what they accuse, unless the device is broken.
_CALLS_OF_SETTINGS = frozenset({C.IB_VERBS_CALL_FAILED, C.CUDA_INVALID_DEVICE})
# The row of the driver that could not bring a GPU up: like one off the bus, it is not there at all.
_NOT_BROUGHT_UP = "adapter_init"
_CONNECTS = frozenset({C.SOCKET_CONNECT_FAILED, C.BOOTSTRAP_CONNECT_FAILED, C.STORE_FAILURE})


def local_hardware(draft: Draft, drafts: Docket, case: Case) -> Draft | None:
    """The fault of the GPU or NIC under the failed call, on the host that reports it."""
    if draft.tier < Tier.CALL and draft.class_ not in _CALLS_OF_SETTINGS:
        return None
    links = _links(draft, case)
    for other in drafts.surer_on({None, *chain.from_iterable(links)}):
        if other is draft or not other.root or not _fits(draft.class_, other):
            continue
        if not _plausible(other, draft):
            continue
        if _concerned(links, other, case) or _pasted_beside(draft, other, case):
            return other
    return _only_one(draft, drafts, case) if links == _NOWHERE else None


def _only_one(draft: Draft, drafts: Docket, case: Case) -> Draft | None:
    """The fault of the one host that has any of its kind, to which a nameless program belongs."""
    for class_ in sorted(GPU_FAULTS | _NIC_FAULTS):
        alike = [d for d in drafts.of(class_) if d.root and d is not draft]
        if not alike or not _fits(draft.class_, alike[0]) or not _plausible(alike[0], draft):
            continue
        if len({case.hosts.of_event(event) for d in alike for event in d.accusing}) == 1:
            return alike[0]
    return None


def _pasted_beside(draft: Draft, fault: Draft, case: Case) -> bool:
    """Whether a kernel log without a host stands in the same input: it is put there for that."""
    if any(case.hosts.of_event(event) for event in fault.accusing):
        return False
    return all(event.place.path == fault.first.place.path for event in draft.accusing)


def _fits(call: C, fault: Draft) -> bool:
    if call is C.CUDA_INVALID_DEVICE:
        return _is_gone(fault)
    return (call in _GPU_CALLS and fault.class_ in GPU_FAULTS) or (
        call in _NIC_CALLS and fault.class_ in _NIC_FAULTS
    )


def _is_gone(fault: Draft) -> bool:
    """Whether a GPU is off the bus, or was never brought up: devices are fewer than were set up."""
    if fault.class_ is C.GPU_FELL_OFF_BUS:
        return True
    return any(event.form == _NOT_BROUGHT_UP for event in fault.strong)


def points_at(draft: Draft, drafts: Docket, case: Case) -> Draft | None:
    """The surer cause on the host, or rank, that this failed call or time-out points at."""
    if draft.tier < Tier.CALL:
        return None
    links = _links(draft, case)
    for other in drafts.surer_on(peer for _, peer in links if peer):
        if other is draft or not other.root:
            continue
        if not _plausible(other, draft):
            continue
        if _concerned(links, other, case, peers_only=True) or _same_ranks(draft, other):
            return other
        if _gave_up_before(draft, other, case):
            return other
    return None


def _plausible(cause: Draft, effect: Draft) -> bool:
    """Whether the times allow it: not long after, and not days before."""
    gap = seconds_between(cause.first.place, effect.first.place)
    return gap is None or -CAUSE_AFTER_EFFECT_S <= gap <= CAUSE_BEFORE_EFFECT_S


def _concerned(links: set[_Link], cause: Draft, case: Case, *, peers_only: bool = False) -> bool:
    """Whether most of the failed calls begin or end at the host on which the cause stands."""
    places = {case.hosts.of_event(event) for event in cause.accusing} - {None}
    if not places:
        return False
    touched = [link for link in links if places & set(link[1:] if peers_only else link)]
    return bool(touched) and 2 * len(touched) >= len(links)


def _links(draft: Draft, case: Case) -> set[_Link]:
    """Who failed to reach whom."""
    hosts = case.hosts
    return {(hosts.of_speaker(e.speaker), hosts.peer_of(e)) for e in draft.accusing}


def _same_ranks(draft: Draft, cause: Draft) -> bool:
    """A desync of the very ranks that ended."""
    return draft.class_ is C.TORCH_DESYNC and bool(set(draft.ranks) & set(cause.ranks))


def _gave_up_before(draft: Draft, cause: Draft, case: Case) -> bool:
    """A connection that is refused after somebody else gave up."""
    if draft.class_ not in _CONNECTS:
        return False
    refused = all("refused" in e.attributes.get("error", "").lower() for e in draft.accusing)
    if not refused or not case.timeline.before(cause.first.place, draft.first.place):
        return False
    return all(cause.first.speaker != event.speaker for event in draft.accusing)
