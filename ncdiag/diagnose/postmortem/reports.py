"""What RAS reports say of ranks that differ or gave no data."""

from collections.abc import Iterator

from ncdiag.diagnose.postmortem.case import Case
from ncdiag.diagnose.postmortem.draft import Draft, derived
from ncdiag.diagnose.postmortem.speech import listed
from ncdiag.diagnose.postmortem.thresholds import ECHO_CONFIDENCE
from ncdiag.model.finding import FindingClass as C
from ncdiag.model.finding import Role
from ncdiag.model.log import RasIssue, RasMember
from ncdiag.model.units import format_count
from ncdiag.read.ras.parts import RESULTS
from ncdiag.read.signatures.results import CLASS_OF_CODE

# A rank's result in the words of the reports, and of releases that quote the library itself.
_RESULTS = (
    *((text.lower(), CLASS_OF_CODE[code]) for code, text in RESULTS.items()),
    ("remote process exited", C.REMOTE_ERROR),
    ("remote error", C.REMOTE_ERROR),
)
_MISSING = frozenset({"INCOMPLETE", "DEAD"})


def ras_drafts(case: Case) -> list[Draft]:
    """Drafts of the sections of all reports; an issue that two reports share is one."""
    missing: Draft | None = None
    parted: dict[str, Draft] = {}
    errors: list[Draft] = []
    late: list[Draft] = []
    for issue in _issues(case):
        if issue.kind in _MISSING:
            missing = _add_missing(missing, issue, case)
        elif issue.kind == "ERROR":
            errors += _errors(issue, case)
        elif issue.kind == "TIMEOUT":
            late.append(_late(issue))
        elif issue.kind == "MISMATCH" and (draft := _mismatch(issue, case)):
            parted.setdefault(f"{issue.group} {issue.op}", draft)
    drafts = [*each_class_once(errors), *parted.values()]
    if missing or late:
        drafts.insert(0, missing or late[0])
    return drafts


def each_class_once(drafts: list[Draft]) -> list[Draft]:
    """The first draft of each class."""
    found: dict[C, Draft] = {}
    for draft in drafts:
        found.setdefault(draft.class_, draft)
    return list(found.values())


def _errors(issue: RasIssue, case: Case) -> Iterator[Draft]:
    """What ranks report of themselves: a result of the library, and no more."""
    by_class: dict[C, list[RasMember]] = {}
    for member in issue.members:
        class_ = _result_class(member.status)
        if class_ and _valid(member, issue):
            by_class.setdefault(class_, []).append(member)
    for status in issue.statuses:
        if class_ := _result_class(status):
            by_class.setdefault(class_, [])
    for class_, members in by_class.items():
        draft = derived(
            class_,
            issue.place,
            issue.text or issue.kind,
            ranks=sorted({m.rank for m in members if m.rank is not None}),
        )
        draft.confidence = ECHO_CONFIDENCE
        draft.also_hosts += dict.fromkeys(case.hosts.resolve(m.host) for m in members if m.host)
        yield draft


def _result_class(text: str | None) -> C | None:
    return next((class_ for said, class_ in _RESULTS if said in (text or "").lower()), None)


def _late(issue: RasIssue) -> Draft:
    """Answers that did not come in time while the report was made: a hint, no failure."""
    draft = derived(C.RAS_INCOMPLETE, issue.place, issue.text or issue.kind, role=Role.WARNING)
    draft.confidence = ECHO_CONFIDENCE
    return draft


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
            f"{format_count(count, 'rank')} at {'none' if number < 0 else number}"
            for number, count in sorted(issue.counts.items())
        ]
        draft.notes.append(f"{issue.op or 'Operations'}: {listed(told)}.")
    elif issue.kind == "MISMATCH":
        _name_apart(draft, issue, case)
    return draft


def _name_apart(draft: Draft, issue: RasIssue, case: Case) -> None:
    """Ranks whose status is not that of most; a report lists the few."""
    usual = max(issue.statuses, key=lambda status: issue.statuses[status], default=None)
    apart = [m for m in issue.members if _valid(m, issue) and m.status and m.status != usual]
    draft.ranks = sorted({m.rank for m in apart if m.rank is not None})
    draft.also_hosts += dict.fromkeys(case.hosts.resolve(m.host) for m in apart if m.host)
    told = [f"rank {m.rank} is at {m.status}" for m in apart if m.rank is not None]
    if told:
        draft.notes.append(f"The others are at {usual}, {listed(told)}." if usual else "")


def _is_behind(member: RasMember, most: int) -> bool:
    return member.operation is not None and member.operation < most
