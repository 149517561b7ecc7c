"""Faults of hardware that follow from one another on one host."""

from ncdiag.diagnose.postmortem.case import Case
from ncdiag.diagnose.postmortem.classes import Tier
from ncdiag.diagnose.postmortem.devices import canonical
from ncdiag.diagnose.postmortem.docket import Docket
from ncdiag.diagnose.postmortem.draft import Draft
from ncdiag.diagnose.postmortem.thresholds import CASCADE_S, CAUSE_AFTER_EFFECT_S
from ncdiag.diagnose.postmortem.timeline import seconds_between
from ncdiag.model.finding import FindingClass as C

# A GPU that has one of these goes on to report others.
_GPU_CAUSES = frozenset(
    {C.GPU_MEMORY_ERROR, C.GPU_FELL_OFF_BUS, C.GSP_TIMEOUT, C.NVLINK_ERROR, C.GPU_INTERNAL_FAULT}
)
_GPU_FOLLOWERS = _GPU_CAUSES | {C.XID_APPLICATION_FAULT}
# A lost GPU takes its links, and every later attempt to start it, with it.
_HOST_WIDE = {C.GPU_FELL_OFF_BUS: frozenset({C.NVLINK_ERROR, C.GPU_INTERNAL_FAULT, C.GSP_TIMEOUT})}
# What the driver of the adapter, or of the switch, says stands before what follows from it.
_DRIVER_CAUSES = {
    C.NIC_FIRMWARE_FAULT: frozenset(
        {C.NIC_LINK_DOWN, C.IB_PORT_ERROR, C.IB_DEVICE_FATAL, C.IB_QP_FATAL_EVENT}
    ),
    C.NIC_LINK_DOWN: frozenset({C.IB_PORT_ERROR}),
    C.IB_DEVICE_FATAL: frozenset({C.IB_PORT_ERROR, C.IB_QP_FATAL_EVENT}),
    C.NVSWITCH_FATAL: frozenset({C.NVLINK_ERROR}),
}


def cascade(draft: Draft, drafts: Docket, case: Case) -> Draft | None:
    """The fault of the same GPU, adapter or host that this one follows from."""
    if draft.tier is not Tier.HARDWARE:
        return None
    for other in drafts.hardware_like(draft):
        if other is draft or not other.root:
            continue
        if _gpu_follows(draft, other, case) or _driver_follows(draft, other):
            return other
    return None


def _gpu_follows(draft: Draft, cause: Draft, case: Case) -> bool:
    if cause.class_ not in _GPU_CAUSES or draft.class_ not in _GPU_FOLLOWERS:
        return False
    gap = seconds_between(cause.first.place, draft.first.place)
    if gap is not None and not 0 <= gap <= CASCADE_S:
        return False
    if not case.timeline.before(cause.first.place, draft.first.place):
        return False
    shared = _gpus(cause) & _gpus(draft)
    return bool(shared) or draft.class_ in _HOST_WIDE.get(cause.class_, frozenset())


def _gpus(draft: Draft) -> set[str]:
    return {canonical(e.attributes["pci"]) for e in draft.events if "pci" in e.attributes}


def _driver_follows(draft: Draft, cause: Draft) -> bool:
    if draft.class_ not in _DRIVER_CAUSES.get(cause.class_, frozenset()):
        return False
    gap = seconds_between(cause.first.place, draft.first.place)
    return gap is None or abs(gap) <= CAUSE_AFTER_EFFECT_S
