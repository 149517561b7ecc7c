"""Links and ports that went down: which stayed down, which came back, how often."""

from ncdiag.diagnose.postmortem.case import Case
from ncdiag.diagnose.postmortem.draft import Draft
from ncdiag.diagnose.postmortem.fold import merge
from ncdiag.diagnose.postmortem.thresholds import BOOT_S, FLAP_AFTER_S
from ncdiag.diagnose.postmortem.timeline import last_place, seconds_between
from ncdiag.model.finding import FindingClass as C
from ncdiag.model.finding import Role, Severity
from ncdiag.model.log import Event
from ncdiag.model.place import Clock

_PORTS = frozenset({C.IB_PORT_ERROR, C.NIC_LINK_DOWN})


def settle_ports(drafts: list[Draft], case: Case) -> list[Draft]:
    """Take recoveries out of the drafts of ports; one that only comes up, or at boot, is none."""
    kept = []
    for draft in drafts:
        if draft.class_ in _PORTS and not _settle(draft, case):
            continue
        kept.append(draft)
    return kept


def _settle(draft: Draft, case: Case) -> bool:
    """Split the events of a port into losses and returns; false when nothing was lost."""
    returns = [event for event in draft.events if returned(event)]
    losses = [event for event in draft.events if not returned(event)]
    if not losses:
        return False
    draft.events = losses
    draft.returns = returns
    if came_back(draft, case) and all(booting(event) for event in losses):
        return False
    draft.first = next((event for event in losses if event.role is None), losses[0])
    draft.role = Role(draft.first.role) if draft.first.role else draft.rule.role
    merge(draft)
    if came_back(draft, case):
        draft.severity = Severity.DEGRADED
        draft.notes.append("The link came back afterwards: a flap.")
    return True


def returned(event: Event) -> bool:
    """Whether an event says that a link is up again, or on its way."""
    return event.details.get("recovered") == "yes" or event.details.get("state") in {"up", "init"}


def booting(event: Event) -> bool:
    """Whether a link is lost while the kernel boots, which brings it up for the first time."""
    time = last_place(event).time
    return time is not None and time.clock is Clock.UPTIME and time.seconds < BOOT_S


def came_back(draft: Draft, case: Case) -> bool:
    """Whether the last thing heard of a port is that it is up."""
    lost = max((last_place(event) for event in draft.events), key=case.timeline.key)
    return any(case.timeline.before(lost, last_place(event)) for event in draft.returns)


def losses(draft: Draft, case: Case) -> int:
    """How often a port was lost: again only after it had come back, or some time later."""
    moments = [(event.place, False) for event in draft.events]
    moments += [(event.last, False) for event in draft.events if event.last]
    moments += [(place, True) for e in draft.returns for place in (e.place, e.last) if place]
    moments.sort(key=lambda moment: case.timeline.key(moment[0]))
    count, down, before = 0, False, None
    for place, up in moments:
        gap = seconds_between(before, place)
        again = gap is not None and gap > FLAP_AFTER_S
        if not up and (not down or again):
            count += 1
        down, before = not up, place
    return count
