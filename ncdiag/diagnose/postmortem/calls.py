"""The library's own call lines, compared between the ranks of one communicator."""

from collections import Counter

from ncdiag.diagnose.postmortem.case import Case
from ncdiag.diagnose.postmortem.differences import settings_that_differ
from ncdiag.diagnose.postmortem.draft import Draft, derived
from ncdiag.model.finding import FindingClass as C
from ncdiag.model.log import CommunicatorState, NcclProcess
from ncdiag.model.place import Place

_Members = list[tuple[NcclProcess, CommunicatorState]]


def call_mismatches(case: Case) -> list[Draft]:
    """Collectives with one number that differ in operation, count or type."""
    for members in _communicators(case):
        for number in _shared(members):
            calls = {
                id(state): state.calls[number] for _, state in members if number in state.calls
            }
            if len(set(calls.values())) > 1:
                return [_draft(number, members)]
    return []


def _communicators(case: Case) -> list[_Members]:
    """Members of each communicator that can be joined: by its number, else as the only one."""
    groups: dict[object, _Members] = {}
    for process in case.evidence.processes:
        called = [state for state in process.communicators if state.calls]
        for state in called:
            key = state.comm_id or ((state.ranks, "only") if len(called) == 1 else None)
            if key:
                groups.setdefault(key, []).append((process, state))
    return [members for members in groups.values() if len(members) > 1]


def _shared(members: _Members) -> list[int]:
    seen = Counter(number for _, state in members for number in state.calls)
    return sorted(number for number, count in seen.items() if count > 1)


def _draft(number: int, members: _Members) -> Draft:
    calls = Counter(state.calls[number] for _, state in members if number in state.calls)
    usual, _ = calls.most_common(1)[0]
    odd = [(p, s) for p, s in members if number in s.calls and s.calls[number] != usual]
    process, state = odd[0]
    place = state.last_call or process.last or Place("", 0)
    expected, got = " ".join(usual), " ".join(state.calls[number])
    draft = derived(
        C.COLLECTIVE_MISMATCH,
        place,
        f"call {number:x}: {got}, where others call {expected}",
        attributes={"got": got, "expected": expected},
    )
    if len(calls) == 2 and len(odd) * 2 < len(members):
        draft.ranks = sorted(s.rank for _, s in odd if s.rank is not None)
    for name in settings_that_differ(process for process, _ in members):
        draft.notes.append(f"{name} differs between them.")
    draft.notes.append(f"At call {number:x} of one communicator: {got}, and {expected}.")
    return draft
