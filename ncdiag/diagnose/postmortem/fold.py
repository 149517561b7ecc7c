"""Events become drafts: one fault, one draft."""

from ncdiag.diagnose.postmortem.classes import RULES, Fold
from ncdiag.diagnose.postmortem.draft import Draft, role_of, severity_of
from ncdiag.diagnose.postmortem.hosts import HostBook
from ncdiag.diagnose.postmortem.timeline import Timeline
from ncdiag.model.finding import FindingClass, Role, Severity
from ncdiag.model.log import Event, LogEvidence

_ROLES = (Role.ROOT, Role.CONSEQUENCE, Role.WARNING)
_SEVERITIES = (Severity.FATAL, Severity.DEGRADED, Severity.INFO)
# What tells devices of a host apart, in the order in which it is looked for.
_DEVICE = ("pci", "device", "hca", "interface", "switch")


def fold(evidence: LogEvidence, hosts: HostBook, timeline: Timeline) -> list[Draft]:
    """Drafts of all events, in the order of their first events."""
    kept = sorted(evidence.events, key=lambda event: timeline.key(event.place))
    groups: dict[tuple[FindingClass, str | None, str | None], list[Event]] = {}
    for event in kept:
        class_ = FindingClass(event.class_name)
        host, device = _place_of(class_, event, hosts)
        groups.setdefault((class_, host, device), []).append(event)
    return [
        draft_of(class_, events, host=host, key=device)
        for (class_, host, device), events in groups.items()
    ]


def _place_of(class_: FindingClass, event: Event, hosts: HostBook) -> tuple[str | None, str | None]:
    """The host and device that an event belongs to, where its class tells them apart."""
    how = RULES[class_].fold
    if how is Fold.JOB:
        return None, None
    host = hosts.of_event(event)
    if how is Fold.HOST:
        return host, None
    return host, next((event.attributes[key] for key in _DEVICE if key in event.attributes), None)


def draft_of(
    class_: FindingClass, events: list[Event], *, host: str | None = None, key: str | None = None
) -> Draft:
    """A draft with the strongest role that any of its events has."""
    roles = {role_of(event) for event in events}
    role = next(role for role in _ROLES if role in roles)
    speaking = [event for event in events if role_of(event) is role]
    severities = {severity_of(event) for event in speaking}
    draft = Draft(
        class_=class_,
        events=events,
        role=role,
        severity=next(severity for severity in _SEVERITIES if severity in severities),
        first=speaking[0],
        confidence=RULES[class_].base,
        host=host,
        key=key,
    )
    merge(draft)
    return draft


def merge(draft: Draft) -> None:
    """Attributes and ranks: those of the first event, and what others add that agree with it."""
    attributes = dict(draft.first.attributes)
    for event in draft.events:
        shared = attributes.keys() & event.attributes.keys()
        if all(attributes[name] == event.attributes[name] for name in shared):
            attributes = {**event.attributes, **attributes}
    draft.attributes = attributes
    draft.ranks = sorted({rank for event in draft.events for rank in ranks_of(event)})


def ranks_of(event: Event) -> tuple[int, ...]:
    """The ranks that an event proves to be concerned."""
    own = () if event.speaker.rank is None or event.ranks else (event.speaker.rank,)
    return (*event.ranks, *own)
