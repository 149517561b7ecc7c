"""Events become drafts: one fault, one draft."""

from collections.abc import Iterable, Mapping

from ncdiag.diagnose.postmortem.classes import RULES, Fold
from ncdiag.diagnose.postmortem.devices import canonical
from ncdiag.diagnose.postmortem.draft import Draft, role_of, severity_of
from ncdiag.diagnose.postmortem.hosts import HostBook
from ncdiag.diagnose.postmortem.timeline import Timeline
from ncdiag.model.finding import FindingClass, Role, Severity
from ncdiag.model.log import NOBODY, Event

_ROLES = (Role.ROOT, Role.CONSEQUENCE, Role.WARNING)
_SEVERITIES = (Severity.FATAL, Severity.DEGRADED, Severity.INFO)
# What tells devices of a host apart, in the order in which it is looked for.
_DEVICE = ("pci", "device", "hca", "interface", "switch")

# So close a library's own record stands behind what its provider or driver prints bare.
_BESIDE_LINES = 2

_Groups = dict[tuple[FindingClass, str | None, str | None], list[Event]]


def fold(events: Iterable[Event], hosts: HostBook, timeline: Timeline) -> list[Draft]:
    """Drafts of all events, in the order of their first events."""
    kept = sorted(events, key=lambda event: timeline.key(event.place))
    groups: _Groups = {}
    for event in kept:
        class_ = FindingClass(event.class_name)
        host, device = _place_of(class_, event, hosts)
        groups.setdefault((class_, host, device), []).append(event)
    _adopt_placeless(groups, timeline)
    return [
        draft_of(class_, events, host=host, key=device)
        for (class_, host, device), events in groups.items()
    ]


def _adopt_placeless(groups: _Groups, timeline: Timeline) -> None:
    """Give what names neither host nor device to the one place of which the class is told."""
    for class_ in {class_ for class_, _, _ in groups}:
        key = (class_, None, None)
        others = [other for other in groups if other[0] is class_ and other != key]
        if key in groups and len(others) == 1 and not any(_device(e) for e in groups[key]):
            groups[others[0]] += groups.pop(key)
            groups[others[0]].sort(key=lambda event: timeline.key(event.place))


def _device(event: Event) -> str | None:
    names = (event.attributes[key] for key in _DEVICE if key in event.attributes)
    return next(map(canonical, names), None)


def _place_of(class_: FindingClass, event: Event, hosts: HostBook) -> tuple[str | None, str | None]:
    """The host and device that an event belongs to, where its class tells them apart."""
    how = RULES[class_].fold
    if how is Fold.JOB:
        return None, None
    host = hosts.of_event(event)
    if how is Fold.HOST:
        return host, None
    return host, _device(event)


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
        first=_spokesman(speaking),
        confidence=RULES[class_].base,
        host=host,
        key=key,
    )
    merge(draft)
    return draft


def _spokesman(events: list[Event]) -> Event:
    """The first event; of a bare line and the process's own record right after it, the record."""
    first, *later = events[:2]
    if later and first.speaker == NOBODY != later[0].speaker and _right_after(first, later[0]):
        fuller = first.attributes.keys() < later[0].attributes.keys()
        return later[0] if fuller else first
    return first


def _right_after(one: Event, other: Event) -> bool:
    same = one.place.path == other.place.path
    return same and 0 <= other.place.line - one.place.line <= _BESIDE_LINES


def merge(draft: Draft) -> None:
    """Attributes and ranks: those of the first event, and what others add that agree with it.

    A device has the name that the one that says more gives it.
    """
    attributes = dict(draft.first.attributes)
    for event in draft.events:
        told = event.attributes
        if _agree(attributes, told):
            fuller = attributes.keys() < told.keys()
            attributes = {**attributes, **told} if fuller else {**told, **attributes}
    draft.attributes = attributes
    draft.ranks = sorted({rank for event in draft.events for rank in ranks_of(event)})


def _agree(one: Mapping[str, str], other: Mapping[str, str]) -> bool:
    """Whether what both tell is the same, a device under any of its names."""
    return all(
        one[name] == other[name]
        or (name in _DEVICE and canonical(one[name]) == canonical(other[name]))
        for name in one.keys() & other.keys()
    )


def ranks_of(event: Event) -> tuple[int, ...]:
    """The ranks that an event proves to be concerned."""
    own = () if event.speaker.rank is None or event.ranks else (event.speaker.rank,)
    return (*event.ranks, *own)
