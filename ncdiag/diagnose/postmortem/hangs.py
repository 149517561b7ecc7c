"""Silences: a start-up that does not end, a first collective, a run that stops."""

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from ncdiag.diagnose.postmortem.case import Case
from ncdiag.diagnose.postmortem.differences import settings_that_differ
from ncdiag.diagnose.postmortem.draft import Draft, derived
from ncdiag.diagnose.postmortem.silence import call_silence, log_silence, row_silence
from ncdiag.diagnose.postmortem.speech import listed
from ncdiag.model.benchmark import Benchmark
from ncdiag.model.finding import FindingClass as C
from ncdiag.model.finding import Suspect, SuspectKind
from ncdiag.model.log import CommunicatorState, NcclProcess
from ncdiag.model.place import Place
from ncdiag.model.units import format_count

# Lines of a launcher that may stand between the last word of the library and the end.
_LINES_AFTER = 3


@dataclass(slots=True)
class _Member:
    process: NcclProcess
    state: CommunicatorState


def hangs(case: Case, killed: Place | None) -> list[Draft]:
    """The first kind of hang that the records show, if any.

    ``killed`` is where the job was ended from outside. Only for logs in which nothing failed.
    """
    for find in (_init, _first_collective, _mid_run):
        found = find(case, killed)
        if found:
            # A silence in the midst of a run is one only by the kill that ends it.
            found.signs = 1 if killed and found.class_ is not C.HANG_MID_RUN else 0
            mixed = _mixed_versions(case) if found.class_ is C.HANG_INIT else None
            return [mixed, found] if mixed else [found]
    return []


def timed_before_first_row(drafts: Iterable[Draft], case: Case) -> None:
    """A test whose own timer ran out before its first row hung in its first collective."""
    tests = case.evidence.benchmarks
    if not tests or tests[-1].rows or not tests[-1].heading:
        return
    for draft in drafts:
        if draft.class_ is C.HANG_MID_RUN:
            draft.class_ = C.HANG_FIRST_COLLECTIVE
            draft.confidence = draft.rule.base


def _mixed_versions(case: Case) -> Draft | None:
    """Libraries of different versions in one communicator that does not start."""
    for group in _communicators(case):
        known = [m for m in group if m.state.comm_id and m.process.versions]
        counts = Counter(m.process.versions[-1] for m in known)
        if len(counts) > 1:
            usual = counts.most_common(1)[0][0]
            odd = next(m for m in known if m.process.versions[-1] != usual)
            place = odd.state.started or odd.process.first
            if place:
                versions = {"expected": usual, "got": odd.process.versions[-1]}
                text = f"{odd.process.host} runs {versions['got']}, others {usual}"
                return derived(C.BOOTSTRAP_MISMATCH, place, text, attributes=versions)
    return None


def _init(case: Case, killed: Place | None) -> Draft | None:
    """Ranks that started a communicator and neither completed it nor took any later step."""
    stuck = [group for group in _communicators(case) if _never_completed(group)]
    if not stuck:
        return None
    group = max(stuck, key=len)
    first = min((m.state.started for m in group if m.state.started), key=case.timeline.key)
    if _went_on(case, first) and not killed:
        return None
    started = {m.state.rank for m in group if m.state.started}
    completed = [m for m in group if m.state.completed]
    expected = next((m.state.ranks for m in group if m.state.ranks), None)
    attributes = {"started": str(len(started)), "completed": str(len(completed))}
    if expected:
        attributes["expected"] = str(expected)
    draft = derived(C.HANG_INIT, first, "Init START, and no Init COMPLETE", attributes=attributes)
    _name_missing(draft, group, expected)
    _note_layout(draft, group)
    return draft


def _communicators(case: Case) -> Iterable[list[_Member]]:
    """Members of each communicator; where it has no number, those of its size."""
    groups: dict[object, list[_Member]] = {}
    for process in case.evidence.processes:
        for state in process.communicators:
            key = state.comm_id or ("size", state.ranks, state.parent is None)
            groups.setdefault(key, []).append(_Member(process, state))
    return groups.values()


def _never_completed(group: list[_Member]) -> bool:
    """Whether some rank started and nobody, or only others, went any further."""
    waiting = [m for m in group if m.state.started and not _moved(m)]
    moved = [m for m in group if _moved(m)]
    return bool(waiting) and not (moved and all(m.process.connected for m in moved))


def _moved(member: _Member) -> bool:
    state = member.state
    return bool(state.completed or state.progressed or state.ended or state.last_call)


def _went_on(case: Case, place: Place) -> bool:
    """Whether results, calls or another start-up came later: lines are missing, not steps."""
    later: list[Place | None] = [row.place for b in case.evidence.benchmarks for row in b.rows]
    for process in case.evidence.processes:
        later += [state.last_call for state in process.communicators]
        later += [state.completed for state in process.communicators]
    return any(step and case.timeline.before(place, step) for step in later)


def _name_missing(draft: Draft, group: list[_Member], expected: int | None) -> None:
    """Ranks that never started, while most did."""
    started = {m.state.rank for m in group if m.state.started and m.state.rank is not None}
    if not expected or not started:
        return
    missing = sorted(set(range(expected)) - started)
    if missing and len(missing) < len(started):
        draft.ranks = missing
        named = listed([str(rank) for rank in missing])
        draft.notes.append(f"{format_count(len(missing), 'rank')} never started: {named}.")
    elif not missing:
        behind = sorted({m.state.rank for m in group if m.state.rank is not None and not _moved(m)})
        if len(behind) < expected:
            draft.ranks = behind


def _note_layout(draft: Draft, group: list[_Member]) -> None:
    """Differences between the processes that are known to make start-ups hang."""
    versions = {v for m in group for v in m.process.versions}
    if len(versions) > 1:
        draft.notes.append(f"The processes run different versions: {listed(sorted(versions))}.")
        draft.suspects.append(Suspect(kind=SuspectKind.CONFIG, name="library versions"))
    for name in settings_that_differ(m.process for m in group):
        draft.notes.append(f"{name} differs between processes.")
        draft.suspects.append(Suspect(kind=SuspectKind.CONFIG, name=name))
    networks = {name for m in group for name in m.process.networks}
    if len(networks) > 1:
        draft.notes.append(f"They chose different networks: {listed(sorted(networks))}.")
        draft.suspects.append(Suspect(kind=SuspectKind.CONFIG, name="network selection"))


def _first_collective(case: Case, killed: Place | None) -> Draft | None:
    """A table without rows at the end, or rings that are connected and nothing after them."""
    benchmarks = case.evidence.benchmarks
    if benchmarks and _empty(last := benchmarks[-1]) and last.heading:
        return derived(
            C.HANG_FIRST_COLLECTIVE, last.heading, "the heading of a table and no row after it"
        )
    if any(benchmark.rows for benchmark in benchmarks):
        return None
    connected = [p for p in case.evidence.processes if p.connected]
    if not connected or any(_beyond(process) for process in case.evidence.processes):
        return None
    words = [place for p in connected if (place := p.last or p.connected)]
    if not (killed or _is_end(case, max(words, key=case.timeline.key))):
        return None
    place = next(p.connected for p in connected if p.connected)
    return derived(C.HANG_FIRST_COLLECTIVE, place, "all rings connected, and nothing after it")


def _empty(benchmark: Benchmark) -> bool:
    return not benchmark.rows and not benchmark.complete and not benchmark.failed


def _beyond(process: NcclProcess) -> bool:
    """Whether a process is known to be past its start-up."""
    return any(s.completed or s.ended or s.last_call for s in process.communicators)


def _is_end(case: Case, place: Place) -> bool:
    end = case.evidence.ends.get(place.path)
    return end is None or end.line - place.line <= _LINES_AFTER


def _mid_run(case: Case, killed: Place | None) -> Draft | None:
    """Rows or calls, then a silence that is long against their pace, or that a kill ends."""
    rows = next(row_silence(case, killed), None)
    if rows:
        return derived(C.HANG_MID_RUN, rows, "the last row before the silence")
    found = next(_call_hangs(case, killed), None)
    quiet = None if found else log_silence(case, killed)
    if quiet:
        return derived(C.HANG_MID_RUN, quiet, "the last line before the silence")
    return found


def _call_hangs(case: Case, killed: Place | None) -> Iterator[Draft]:
    for process, state in call_silence(case, killed):
        attributes = {}
        if state.calls:
            number = max(state.calls)
            attributes = {"op": state.calls[number][0], "seq": f"{number:x}"}
        if state.last_call:
            draft = derived(
                C.HANG_MID_RUN,
                state.last_call,
                f"the last call of {process.host}:{process.pid}",
                attributes=attributes,
            )
            _name_behind(draft, case)
            yield draft


def _name_behind(draft: Draft, case: Case) -> None:
    """Ranks whose last call of the same communicator lies before that of the others."""
    groups = [g for g in _communicators(case) if all(m.state.calls for m in g) and len(g) > 1]
    for group in groups:
        newest = {m.state.rank: max(m.state.calls) for m in group if m.state.rank is not None}
        most = max(newest.values(), default=0)
        behind = sorted(rank for rank, number in newest.items() if number < most)
        if behind and len(behind) < len(newest):
            draft.ranks = behind
            draft.suspects += [Suspect(kind=SuspectKind.RANK, name=str(r)) for r in behind]
            return
