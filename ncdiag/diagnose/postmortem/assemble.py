"""Drafts become findings."""

from collections.abc import Iterable

from ncdiag.diagnose.postmortem.draft import Draft
from ncdiag.diagnose.postmortem.guide import guide_of
from ncdiag.diagnose.postmortem.thresholds import MAX_EVIDENCE
from ncdiag.model.finding import EvidenceLine, Finding, FirstSeen
from ncdiag.model.log import Event


def findings(drafts: Iterable[Draft]) -> list[Finding]:
    """The findings, in the order of the drafts."""
    return [finding(draft) for draft in drafts]


def finding(draft: Draft) -> Finding:
    """What stays of a draft for the answer."""
    guide = guide_of(draft.class_, draft.attributes)
    place = draft.first.place
    return Finding(
        class_=draft.class_,
        role=draft.role,
        severity=draft.severity,
        confidence=round(draft.confidence, 2),
        suspects=tuple(dict.fromkeys(draft.suspects)),
        victims=tuple(dict.fromkeys(draft.victims)),
        ranks=tuple(draft.ranks),
        attributes=dict(draft.attributes),
        count=draft.count,
        first_seen=FirstSeen(
            path=place.path, line=place.line, time=place.time.text if place.time else None
        ),
        evidence=tuple(_quote(event) for event in _shown(draft)),
        explanation=" ".join((guide.meaning, *draft.notes)).strip(),
        actions=guide.actions,
    )


def _shown(draft: Draft) -> list[Event]:
    """The event that speaks for all and the first ones beside it."""
    others = [event for event in draft.strong if event is not draft.first]
    return [draft.first, *others[: MAX_EVIDENCE - 1]]


def _quote(event: Event) -> EvidenceLine:
    return EvidenceLine(path=event.place.path, line=event.place.line, text=event.text)
