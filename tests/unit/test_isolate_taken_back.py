"""Whom somebody took back in: one decision everywhere, until something new is seen."""

from dataclasses import replace

import pytest

from ncdiag.isolate.taken_back import SOMEBODY, hold_taken_back
from ncdiag.model.isolation import Action, Decision, EvidenceKind, EvidencePiece
from ncdiag.store.ledger_records import ActionRecord, ActionState

SEEN_S = 1_790_000_000.0


def decision(host: str, seen_s: float = SEEN_S, **more: object) -> Decision:
    piece = EvidencePiece(
        host=host,
        kind=EvidenceKind.CRASH,
        class_="gpu_fell_off_bus",
        source="parse-log",
        run="r1",
        seen_s=seen_s,
        text="Xid 79",
    )
    found = Decision(
        host=host, action=Action.ISOLATE, reason="Xid 79", confidence=1.0, evidence=(piece,)
    )
    return replace(found, **more)  # type: ignore[arg-type]


def action(host: str, number: int, *, isolate: bool, place: str = "slurm") -> ActionRecord:
    return ActionRecord(
        place=place,
        host=host,
        isolate=isolate,
        reason="ncdiag: Xid 79",
        plan=f"p{number}",
        by="eve@login1",
        intended_s=SEEN_S + number,
        state=ActionState.DONE,
        number=number,
    )


def held(one: Decision, *actions: ActionRecord) -> str | None:
    return hold_taken_back([one], actions)[0].held_back


UNDONE = (action("gpu007", 1, isolate=True), action("gpu007", 2, isolate=False))


def test_whom_an_undo_took_back_in_is_held_back_with_who_and_when() -> None:
    assert held(decision("gpu007"), *UNDONE) == (
        "eve@login1 took it back in on 2026-09-21 14:13 UTC, and nothing new speaks against it"
    )
    assert held(decision("gpu008"), *UNDONE) is None


def test_new_evidence_isolates_again() -> None:
    assert held(decision("gpu007", SEEN_S + 3), *UNDONE) is None


def test_who_is_isolated_again_or_elsewhere_since_is_not_held_back() -> None:
    assert held(decision("gpu007"), *UNDONE, action("gpu007", 3, isolate=True)) is None


@pytest.mark.parametrize(
    ("named", "acted", "is_held"),
    [
        ("GPU007.cluster.example", "gpu007", True),
        ("gpu007", "GPU007.cluster.example", True),
        ("gpu007.a", "gpu007.b", False),
        ("10.0.0.1", "10.0.0.2", False),
    ],
)
def test_a_host_is_known_by_its_short_name(named: str, acted: str, *, is_held: bool) -> None:
    found = held(decision(named), action(acted, 1, isolate=False))
    assert (found is not None) is is_held


def test_only_what_would_isolate_is_held_back_and_for_its_own_reason() -> None:
    assert held(decision("gpu007", action=Action.WATCH), *UNDONE) is None
    assert held(decision("gpu007", action=Action.KEEP), *UNDONE) is None
    assert held(decision("gpu007", held_back="a boot"), *UNDONE) == "a boot"


def test_what_was_told_after_the_undo_is_new_also_where_the_clock_went_back() -> None:
    before = SEEN_S - 3600
    assert held(decision("gpu007", before, accused_after=2), *UNDONE) is None
    assert held(decision("gpu007", SEEN_S + 3, accused_after=1), *UNDONE) is not None


def test_of_whom_somebody_else_took_back_in_all_is_new_since_ncdiag_isolated_it() -> None:
    isolated = action("gpu007", 3, isolate=True)
    noticed = replace(isolated, isolate=False, by=SOMEBODY, number=9)
    assert held(decision("gpu007", accused_after=3), isolated, noticed) is None
    assert held(decision("gpu007", accused_after=2), isolated, noticed) == (
        "somebody else took it back in, and nothing new speaks against it"
    )
