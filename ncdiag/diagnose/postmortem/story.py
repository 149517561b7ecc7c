"""What happened, in a few plain sentences, in order of time."""

from collections.abc import Iterable, Sequence

from ncdiag.diagnose.postmortem.case import Case
from ncdiag.diagnose.postmortem.classes import Tier
from ncdiag.diagnose.postmortem.draft import Draft
from ncdiag.diagnose.postmortem.explain import is_echo
from ncdiag.diagnose.postmortem.phrases import moment, phrase, whom
from ncdiag.diagnose.postmortem.speech import capital, listed
from ncdiag.diagnose.postmortem.thresholds import CLOCK_SKEW_S
from ncdiag.diagnose.postmortem.timeline import seconds_between
from ncdiag.diagnose.postmortem.verdict import recognised
from ncdiag.model.finding import Isolation, JobShape, Library, PostmortemVerdict, Role
from ncdiag.model.units import format_count

_MOST_SENTENCES = 4


def story(
    drafts: Sequence[Draft],
    case: Case,
    *,
    verdict: PostmortemVerdict,
    job: JobShape,
    library: Library,
    isolate: Sequence[Isolation],
) -> list[str]:
    """The sentences."""
    told = [_setting(job, library)] if job.ranks or library.versions else []
    if not recognised(case.evidence):
        return ["Nothing of NCCL's, nor of a framework, launcher or kernel, was recognised here."]
    roots = [draft for draft in drafts if draft.root]
    in_time = sorted(roots, key=lambda draft: case.timeline.key(draft.first.place))
    shown = in_time[:_MOST_SENTENCES]
    told += [_sentence(d, first=len(in_time) > 1 and d is shown[0]) for d in shown]
    if len(in_time) > _MOST_SENTENCES:
        told.append(f"{format_count(len(in_time) - _MOST_SENTENCES, 'more finding')} may be roots.")
    told += _echoed(drafts, roots, case)
    told += _unsure(in_time, case)
    told += _ending(verdict, roots, isolate)
    return told


def _setting(job: JobShape, library: Library) -> str:
    parts = []
    if job.ranks:
        parts.append(format_count(job.ranks, "rank"))
    nodes = job.nodes or len(job.hosts)
    if nodes:
        parts.append(f"on {format_count(nodes, 'host')}")
    if library.versions:
        parts.append(f"with {library.name or 'NCCL'} {listed(list(library.versions))}")
    return f"{capital(' '.join(parts))}."


def _sentence(draft: Draft, *, first: bool) -> str:
    place = draft.first.place
    when = f"{moment(place.time)}: " if place.time else ""
    exception = draft.attributes.get("exception")
    names = whom(one for one in draft.suspects if one.name != exception)
    suspects = f"; suspect: {names}" if names else ""
    times = f", {draft.count} messages" if draft.count > 1 else ""
    seen = f": {draft.first.text}" if draft.derived else ""
    told = f"{'first ' if first else ''}{phrase(draft.class_, draft.attributes)}{times}"
    return f"{when}{told if when else capital(told)}{seen}{suspects}."


def _echoed(drafts: Iterable[Draft], roots: Iterable[Draft], case: Case) -> list[str]:
    """What came of it, and who only suffered."""
    echoes = [draft for draft in drafts if draft.role is Role.CONSEQUENCE]
    if not echoes:
        return []
    echoes.sort(key=lambda draft: case.timeline.key(draft.first.place))
    told = dict.fromkeys(phrase(draft.class_, {}) for draft in echoes)
    suspected = {suspect.name for draft in roots for suspect in draft.suspects}
    victims = dict.fromkeys(victim for draft in echoes for victim in draft.victims)
    only = [victim for victim in victims if victim not in suspected]
    sentences = [f"What followed from it: {listed(list(told))}."]
    return [*sentences, f"Only victims of it: {listed(only)}."] if only else sentences


def _unsure(roots: Sequence[Draft], case: Case) -> list[str]:
    """Say so where the cause is not told here, or the order of the first roots is not certain."""
    if roots and all(is_echo(draft) for draft in roots):
        return ["These are echoes: the cause is in the log of the side that went first."]
    close = [draft for draft in roots if draft.tier < Tier.RESULT][:2]
    if len(close) < 2:
        return []
    one, other = (draft.first for draft in close)
    hosts = {case.hosts.of_event(one), case.hosts.of_event(other)}
    if one.place.path == other.place.path and len(hosts - {None}) < 2:
        return []
    gap = seconds_between(one.place, other.place)
    if gap is None:
        return ["Which came first is not certain: the lines carry no common clock."]
    if abs(gap) < CLOCK_SKEW_S:
        return [
            "Which came first is not certain: clocks of hosts differ by more than lies between."
        ]
    return []


def _ending(
    verdict: PostmortemVerdict, roots: Sequence[Draft], isolate: Sequence[Isolation]
) -> list[str]:
    if verdict is PostmortemVerdict.OK:
        return ["Nothing failed."]
    if verdict is PostmortemVerdict.INCONCLUSIVE:
        return ["Nothing certainly failed, but the log does not tell how it ended."]
    if isolate:
        return [f"To isolate: {listed([entry.host for entry in isolate])}."]
    return ["No host is to be isolated on this evidence."] if roots else []
