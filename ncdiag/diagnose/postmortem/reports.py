"""What RAS reports say of ranks that differ or gave no data."""

from collections.abc import Iterator

from ncdiag.diagnose.postmortem.case import Case
from ncdiag.diagnose.postmortem.draft import Draft, derived
from ncdiag.diagnose.postmortem.speech import listed, plural
from ncdiag.model.finding import FindingClass as C
from ncdiag.model.log import RasIssue, RasMember

_MISSING = frozenset({"INCOMPLETE", "DEAD"})


def ras_drafts(case: Case) -> list[Draft]:
    """Drafts of the sections of all reports; an issue that two reports share is one."""
    missing: Draft | None = None
    parted: dict[str, Draft] = {}
    for issue in _issues(case):
        if issue.kind in _MISSING:
            missing = _add_missing(missing, issue, case)
        elif issue.kind == "MISMATCH" and (draft := _mismatch(issue, case)):
            parted.setdefault(f"{issue.group} {issue.op}", draft)
    drafts = [*parted.values()]
    return [missing, *drafts] if missing else drafts


def _issues(case: Case) -> Iterator[RasIssue]:
    for report in case.evidence.ras:
        yield from report.issues


def _valid(member: RasMember, issue: RasIssue) -> bool:
    """Whether a rank can exist: one not below the size of its communicator is rubbish."""
    return member.rank is None or issue.ranks is None or member.rank < issue.ranks


def _add_missing(draft: Draft | None, issue: RasIssue, case: Case) -> Draft:
    members = [member for member in issue.members if _valid(member, issue)]
    first = next(iter(members), None)
    if draft is None:
        attributes = {}
        if first and first.pid:
            attributes["process"] = first.pid
        if first and first.host:
            attributes["peer"] = first.host
        draft = derived(
            C.RAS_INCOMPLETE, issue.place, issue.text or issue.kind, attributes=attributes
        )
    elif draft.first.place != issue.place:
        draft.signs += 1
    draft.ranks = sorted({*draft.ranks, *(m.rank for m in members if m.rank is not None)})
    hosts = [case.hosts.resolve(member.host) for member in members if member.host]
    draft.also_hosts += [host for host in dict.fromkeys(hosts) if host not in draft.also_hosts]
    return draft


def _mismatch(issue: RasIssue, case: Case) -> Draft | None:
    """Ranks with fewer operations than others are behind, however many they are."""
    draft = derived(
        C.RAS_MISMATCH,
        issue.place,
        issue.text or f"{issue.group or ''} {issue.kind}".strip(),
        attributes={k: v for k, v in (("op", issue.op), ("group", issue.group)) if v},
    )
    if issue.counts:
        most, least = max(issue.counts), min(issue.counts)
        behind = [m for m in issue.members if _valid(m, issue) and _is_behind(m, most)]
        draft.ranks = sorted({m.rank for m in behind if m.rank is not None})
        draft.also_hosts += dict.fromkeys(case.hosts.resolve(m.host) for m in behind if m.host)
        draft.confidence = 0.3 if most - least <= 1 else draft.confidence
        told = [
            f"{plural(count, 'rank')} at {'none' if number < 0 else number}"
            for number, count in sorted(issue.counts.items())
        ]
        draft.notes.append(f"{issue.op or 'Operations'}: {listed(told)}.")
    return draft


def _is_behind(member: RasMember, most: int) -> bool:
    return member.operation is not None and member.operation < most
