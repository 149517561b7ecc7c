"""Plans, and carrying them out: whole, interrupted at every step, refused, and undone."""

import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest

from ncdiag.isolate import apply as applying
from ncdiag.isolate.apply import Rules, Who, apply, plan, plan_undo, undo
from ncdiag.isolate.places.base import (
    Asked,
    LeftAloneError,
    Standing,
    given_reason,
    with_aliases,
)
from ncdiag.isolate.policy import Budget
from ncdiag.model.errors import NcdiagError, UndecidedError, UsageError
from ncdiag.model.isolation import (
    Action,
    Decision,
    EvidenceKind,
    EvidencePiece,
    IsolationPlan,
    PlaceState,
)
from ncdiag.store.ledger import Ledger
from ncdiag.store.ledger_records import ActionRecord, ActionState

WIDE = Budget(hosts=10, per_cent=33.0, per_leaf=10)
REASON = given_reason("slow host")


class KilledError(BaseException):
    """The process ends here, as by SIGKILL."""


@dataclass
class Cluster:
    """A place in memory; ``trouble`` is called before each change, ``after`` behind it."""

    standings: dict[str, Standing]
    key: str = "slurm"
    changed: list[str] = field(default_factory=list)
    trouble: Callable[[str], None] = lambda _: None
    after: Callable[[str], None] = lambda _: None

    def ask(self) -> Asked:
        return with_aliases(dict(self.standings))

    def isolate(self, name: str, reason: str, run: str) -> None:
        assert run
        self._change(name, Standing(state=PlaceState.OURS, name=name, reason=reason))

    def release(self, name: str, reason: str) -> None:
        now = self.standings[name]
        if now.state is PlaceState.OURS and now.reason != reason:
            raise LeftAloneError("changed since")
        self._change(name, Standing(state=PlaceState.AVAILABLE, name=name))

    def states(self) -> dict[str, str]:
        return {name: standing.state.name for name, standing in self.standings.items()}

    def _change(self, name: str, standing: Standing) -> None:
        self.trouble(name)
        if self.standings[name] != standing:
            self.standings[name] = standing
            self.changed.append(name)
        self.after(name)


def standing(name: str, state: PlaceState, reason: str | None = None) -> Standing:
    return Standing(state=state, name=name, reason=reason, why=reason)


def cluster(count: int = 30, **others: Standing) -> Cluster:
    names = [f"n{number:02}" for number in range(1, count + 1)]
    free = {name: standing(name, PlaceState.AVAILABLE) for name in names}
    return Cluster({**free, **others})


def decision(host: str, action: Action = Action.ISOLATE, seen_s: float = 1.0) -> Decision:
    piece = EvidencePiece(
        host=host,
        kind=EvidenceKind.HEALTH,
        class_="gpu_fell_off_bus",
        source="health",
        run="r1",
        seen_s=seen_s,
        text="slow host",
    )
    return Decision(host=host, action=action, reason="slow host", confidence=1.0, evidence=(piece,))


def rules(*decisions: Decision, budget: Budget = WIDE, **more: Any) -> Rules:
    def decide(isolated: Mapping[str, ActionRecord]) -> Sequence[Decision]:
        assert all(action.isolate for action in isolated.values())
        return decisions

    return Rules(decide=decide, budget=budget, **more)


def who(plan: str = "p1") -> Who:
    return Who(plan=plan, user="eve", machine="login1", command="ncdiag isolate apply")


@pytest.fixture
def ledger(tmp_path: Path) -> Iterator[Ledger]:
    with Ledger.open(tmp_path / "store.sqlite", write=True) as opened:
        yield opened


def done(made: IsolationPlan) -> list[str]:
    return [change.host for change in made.changes if change.done]


def test_exactly_what_is_decided_is_isolated_and_written_down(ledger: Ledger) -> None:
    place = cluster()
    wanted = rules(decision("n03"), decision("n01"), decision("n05", Action.WATCH))
    made = apply(ledger, place, wanted, who())
    assert done(made) == ["n01", "n03"]
    assert place.changed == ["n01", "n03"]
    assert place.standings["n01"].reason == REASON
    assert [*ledger.isolated("slurm")] == ["n01", "n03"]
    assert {action.state for action in ledger.actions()} == {ActionState.DONE}
    assert [entry.about for entry in ledger.audit()] == ["slurm: isolated n[01,03]"]


def test_applying_again_changes_nothing(ledger: Ledger) -> None:
    place = cluster()
    apply(ledger, place, rules(decision("n01")), who("p1"))
    again = apply(ledger, place, rules(decision("n01", Action.KEEP)), who("p2"))
    assert again.changes == ()
    assert place.changed == ["n01"]
    assert len(ledger.actions()) == 1


def test_planning_writes_nothing_and_touches_nothing(ledger: Ledger) -> None:
    place = cluster()
    made = plan(ledger, place, rules(decision("n01")))
    assert [(one.host, one.isolate, one.skipped) for one in made.changes] == [("n01", True, None)]
    assert (place.changed, ledger.actions(), ledger.audit()) == ([], [], [])


def test_others_hosts_unknown_hosts_and_held_back_ones_are_not_touched(ledger: Ledger) -> None:
    place = cluster(n02=standing("n02", PlaceState.THEIRS, "drained: bad DIMM"))
    grace = Decision(
        host="n04", action=Action.ISOLATE, reason="x", confidence=1.0, held_back="just booted"
    )
    wanted = rules(decision("n02"), decision("gone"), grace, decision("n07"))
    made = apply(ledger, place, wanted, who())
    assert {one.host: one.skipped for one in made.changes} == {
        "gone": "no host of that name there",
        "n02": "drained: bad DIMM",
        "n07": None,
    }
    assert place.changed == ["n07"]


def test_what_another_store_isolated_is_told_and_not_touched(ledger: Ledger) -> None:
    place = cluster(n01=standing("n01", PlaceState.OURS, REASON))
    made = apply(ledger, place, rules(decision("n01")), who())
    assert made.changes[0].skipped == "it is isolated already, by an ncdiag with another store"
    assert (place.changed, ledger.isolated()) == ([], {})


def test_a_host_outside_of_the_given_fleet_is_not_touched(ledger: Ledger) -> None:
    place = cluster()
    fleet = [f"n{number:02}.example.org" for number in range(1, 11)] + ["gone", "typo"]
    made = apply(ledger, place, rules(decision("n20"), decision("n01"), fleet=fleet), who())
    assert made.hosts == 10
    assert {one.host: one.skipped for one in made.changes} == {
        "n01": None,
        "n20": "it is not among --nodes",
    }


def test_a_release_takes_back_what_ncdiag_did_and_nothing_else(ledger: Ledger) -> None:
    place = cluster()
    apply(ledger, place, rules(decision("n01"), decision("n02"), decision("n03")), who("p1"))
    place.standings["n02"] = standing("n02", PlaceState.THEIRS, "drained: mine now")
    place.standings["n09"] = standing("n09", PlaceState.OURS, REASON)
    place.changed.clear()
    released = [decision(host, Action.RELEASE) for host in ("n01", "n02", "n09")]
    made = apply(ledger, place, rules(*released), who("p2"))
    assert place.changed == ["n01"]
    assert [(one.host, one.skipped) for one in made.changes] == [("n01", None)]
    assert sorted(ledger.isolated()) == ["n03"]


class TestBudget:
    def test_one_host_too_many_and_nobody_is_isolated(self, ledger: Ledger) -> None:
        place = cluster(30)
        few = Budget(hosts=2, per_cent=33.0, per_leaf=10)
        three = [decision(f"n{number:02}") for number in (1, 2, 3)]
        made = apply(ledger, place, rules(*three, budget=few), who())
        assert made.refused is not None
        assert "2 hosts of 30 at a time" in made.refused
        assert (place.changed, ledger.actions()) == ([], [])
        assert ledger.audit()[0].about.startswith("slurm: refused: the safety budget is 2 hosts")
        assert done(apply(ledger, place, rules(*three[:2], budget=few), who())) == ["n01", "n02"]

    def test_what_others_took_out_counts(self, ledger: Ledger) -> None:
        place = cluster(30, n30=standing("n30", PlaceState.THEIRS, "down"))
        one = Budget(hosts=1, per_cent=33.0, per_leaf=10)
        assert apply(ledger, place, rules(decision("n01"), budget=one), who()).refused
        assert place.changed == []

    def test_ten_runs_that_accuse_one_more_each_do_not_get_further(self, ledger: Ledger) -> None:
        place = cluster(60)
        few = Budget(hosts=10, per_cent=5.0, per_leaf=10)
        accused: list[Decision] = []
        for number in range(1, 11):
            accused.append(decision(f"n{number:02}"))
            apply(ledger, place, rules(*accused, budget=few), who(f"p{number}"))
        assert place.changed == ["n01", "n02", "n03"]
        alone = rules(decision("n20"), budget=few)
        assert apply(ledger, place, alone, who("p11")).refused
        assert place.changed == ["n01", "n02", "n03"]

    def test_ten_runs_over_ten_parts_of_a_fleet_do_not_get_further(self, ledger: Ledger) -> None:
        place = cluster(60)
        few = Budget(hosts=4, per_cent=33.0, per_leaf=10)
        refused = []
        for part in range(10):
            names = [f"n{part * 6 + number:02}" for number in range(1, 7)]
            wanted = rules(decision(names[0]), budget=few, fleet=names)
            refused.append(apply(ledger, place, wanted, who(f"p{part}")).refused)
        assert place.changed == ["n01", "n07", "n13", "n19"]
        assert refused[:4] == [None] * 4
        assert all(
            "5 would be out, 4 of them not among --nodes" in (why or "") for why in refused[4:]
        )

    def test_hosts_beside_the_fleet_are_no_share_of_it(self, ledger: Ledger) -> None:
        others = {name: standing(name, PlaceState.THEIRS, "down") for name in ("n57", "n58", "n59")}
        place = cluster(60, **others)
        wanted = rules(decision("n01"), fleet=[f"n{number:02}" for number in range(1, 4)])
        assert done(apply(ledger, place, wanted, who())) == ["n01"]

    def test_a_host_that_is_released_makes_room(self, ledger: Ledger) -> None:
        place = cluster(30)
        one = Budget(hosts=1, per_cent=33.0, per_leaf=10)
        apply(ledger, place, rules(decision("n01"), budget=one), who("p1"))
        both = rules(decision("n01", Action.RELEASE), decision("n02"), budget=one)
        made = apply(ledger, place, both, who("p2"))
        assert done(made) == ["n01", "n02"]

    def test_room_is_made_before_it_is_taken(self, ledger: Ledger) -> None:
        place = cluster(30)
        one = Budget(hosts=1, per_cent=33.0, per_leaf=10)
        apply(ledger, place, rules(decision("n09"), budget=one), who("p1"))
        both = rules(decision("n09", Action.RELEASE), decision("n02"), budget=one)
        most: list[int] = []
        place.after = lambda _: most.append([*place.states().values()].count("OURS"))
        assert done(apply(ledger, place, both, who("p2"))) == ["n09", "n02"]
        assert most == [0, 1]

    @pytest.mark.parametrize(
        ("trouble", "not_tried"),
        [
            (UsageError("refused"), applying._NO_ROOM),
            (LeftAloneError("changed since"), applying._NO_ROOM),
            (UndecidedError("no answer"), applying._NOT_TRIED),
        ],
    )
    def test_where_no_room_is_made_nobody_takes_it(
        self, ledger: Ledger, trouble: NcdiagError, not_tried: str
    ) -> None:
        place = cluster(30)
        one = Budget(hosts=1, per_cent=33.0, per_leaf=10)
        apply(ledger, place, rules(decision("n09"), budget=one), who("p1"))

        def refuse(_: str) -> None:
            raise trouble

        place.trouble = refuse
        both = rules(decision("n09", Action.RELEASE), decision("n02"), budget=one)
        made = apply(ledger, place, both, who("p2"))
        assert done(made) == []
        assert [one.error for one in made.changes if one.host == "n02"] == [not_tried]
        assert place.states()["n09"] == "OURS"
        assert place.states()["n02"] == "AVAILABLE"

    def test_leaves_count_by_whatever_name_a_host_is_given(self, ledger: Ledger) -> None:
        place = cluster(30)
        budget = Budget(hosts=10, per_cent=33.0, per_leaf=1)
        leaves = {"n01.example.org": "leaf1", "n02.example.org": "leaf1", "n03": "leaf2"}
        two = rules(decision("n01"), decision("n02"), budget=budget, leaves=leaves)
        assert "of leaf leaf1" in (apply(ledger, place, two, who()).refused or "")
        apart = rules(decision("n01"), decision("n03"), budget=budget, leaves=leaves)
        assert done(apply(ledger, place, apart, who())) == ["n01", "n03"]

    def test_two_at_once_keep_to_it_together(self, tmp_path: Path) -> None:
        place = cluster(30)
        one = Budget(hosts=1, per_cent=33.0, per_leaf=10)
        store = tmp_path / "store.sqlite"
        Ledger.open(store, write=True).close()
        first_is_at_it, second_waits = threading.Event(), threading.Event()
        made: dict[str, IsolationPlan] = {}

        def wait(_: str) -> None:
            first_is_at_it.set()
            assert second_waits.wait(30)

        place.trouble = wait

        def run(host: str) -> None:
            with Ledger.open(store, write=True) as mine:
                made[host] = apply(mine, place, rules(decision(host), budget=one), who(host))

        threads = [threading.Thread(target=run, args=(host,)) for host in ("n01", "n02")]
        threads[0].start()
        assert first_is_at_it.wait(30)
        threads[1].start()
        second_waits.set()
        for thread in threads:
            thread.join(60)
        assert made["n01"].refused is None
        assert made["n02"].refused is not None
        assert place.changed == ["n01"]


class TestNames:
    """A host that evidence calls by several names is one host at the place."""

    def test_what_one_name_is_isolated_for_is_not_released_by_another(self, ledger: Ledger) -> None:
        place = cluster()
        full = "N01.example.org"
        apply(ledger, place, rules(decision("n01"), decision(full)), who("p1"))
        assert place.changed == ["n01"]
        both = rules(decision("n01", Action.RELEASE), decision(full))
        assert plan(ledger, place, both).changes == ()
        grace = replace(decision(full), held_back="just booted")
        held = rules(decision("n01", Action.RELEASE), grace)
        assert plan(ledger, place, held).changes == ()
        none = rules(decision("n01", Action.RELEASE), decision(full, Action.WATCH))
        assert done(apply(ledger, place, none, who("p2"))) == [full]
        assert ledger.isolated() == {}
        assert place.states()["n01"] == "AVAILABLE"

    def test_an_undo_takes_either_name(self, ledger: Ledger) -> None:
        place = cluster()
        apply(ledger, place, rules(decision("n01.example.org")), who("p1"))
        (change,) = undo(ledger, place, ["N01"], who("p2"))
        assert (change.host, change.done) == ("n01.example.org", True)
        assert ledger.isolated() == {}


class TestKilled:
    """A run that is killed at any step, and repeated, ends as one that was not killed."""

    DECISIONS = (
        decision("n01", Action.RELEASE),
        decision("n03"),
        decision("n04"),
        decision("n05"),
    )

    def start(self, ledger: Ledger) -> Cluster:
        place = cluster()
        apply(ledger, place, rules(decision("n01"), decision("n02")), who("before"))
        return place

    def end(self, ledger: Ledger, place: Cluster) -> tuple[Any, ...]:
        isolated = ledger.isolated("slurm")
        assert all(action.state is ActionState.DONE for action in isolated.values())
        return place.states(), sorted(isolated)

    @pytest.mark.parametrize("step", range(1, 17))
    def test_repeated_it_ends_right(
        self, ledger: Ledger, step: int, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
    ) -> None:
        with Ledger.open(tmp_path / "other.sqlite", write=True) as other:
            unharmed = self.start(other)
            apply(other, unharmed, rules(*self.DECISIONS), who("p1"))
            expected = self.end(other, unharmed)
        place = self.start(ledger)
        steps = 0

        def count(*_: Any) -> None:
            nonlocal steps
            steps += 1
            if steps == step:
                raise KilledError

        place.trouble = place.after = count
        record, finish = Ledger.record_action, Ledger.finish_action

        def recorded(self: Ledger, action: ActionRecord) -> int:
            count()
            return record(self, action)

        def finished(self: Ledger, *given: Any, **named: Any) -> None:
            count()
            finish(self, *given, **named)

        with monkeypatch.context() as patched:
            patched.setattr(Ledger, "record_action", recorded)
            patched.setattr(Ledger, "finish_action", finished)
            with pytest.raises(KilledError):
                apply(ledger, place, rules(*self.DECISIONS), who("p1"))
        place.trouble = place.after = lambda _: None
        again = apply(ledger, place, rules(*self.DECISIONS), who("p2"))
        assert self.end(ledger, place) == expected
        assert not [change for change in again.changes if change.error or change.skipped]
        assert place.changed.count("n03") == 1
        assert apply(ledger, place, rules(*self.DECISIONS[1:]), who("p3")).changes == ()
        undone = undo(ledger, place, sorted(expected[1]), who("p4"))
        assert all(change.done for change in undone)
        assert set(place.states().values()) == {"AVAILABLE"}

    def test_a_plan_after_a_kill_tells_what_is_really_there(self, ledger: Ledger) -> None:
        place = cluster()

        def kill(_: str) -> None:
            raise KilledError

        place.after = kill
        with pytest.raises(KilledError):
            apply(ledger, place, rules(decision("n01"), decision("n02")), who("p1"))
        assert place.states()["n01"] == "OURS"
        made = plan(ledger, place, rules(decision("n01"), decision("n02")))
        assert [change.host for change in made.changes] == ["n02"]
        assert [change.host for change in plan_undo(ledger, place, None)] == ["n01"]
        assert {action.state for action in ledger.actions()} == {ActionState.INTENDED}


class TestTrouble:
    def test_a_refused_host_is_told_and_the_others_go_on(self, ledger: Ledger) -> None:
        place = cluster()

        def refuse(name: str) -> None:
            if name == "n01":
                raise UsageError("scontrol update: Invalid node name specified")

        place.trouble = refuse
        made = apply(ledger, place, rules(decision("n01"), decision("n02")), who())
        assert [(one.host, one.done, one.error) for one in made.changes] == [
            ("n01", False, "scontrol update: Invalid node name specified"),
            ("n02", True, None),
        ]
        assert [action.state for action in ledger.actions()] == [
            ActionState.FAILED,
            ActionState.DONE,
        ]

    def test_a_place_that_no_longer_answers_is_not_asked_a_hundred_times(
        self, ledger: Ledger
    ) -> None:
        place = cluster()
        asked = []

        def silent(name: str) -> None:
            asked.append(name)
            raise UndecidedError("scontrol update: no answer within 30 s")

        place.after = silent
        made = apply(ledger, place, rules(*(decision(f"n0{n}") for n in (1, 2, 3))), who())
        assert asked == ["n01"]
        assert [one.error for one in made.changes] == [
            "scontrol update: no answer within 30 s",
            applying._NOT_TRIED,
            applying._NOT_TRIED,
        ]
        place.after = lambda _: None
        apply(ledger, place, rules(decision("n01"), decision("n02")), who("p2"))
        assert sorted(ledger.isolated()) == ["n01", "n02"]
        assert place.changed == ["n01", "n02"]

    def test_a_place_that_cannot_be_asked_changes_nothing(self, ledger: Ledger) -> None:
        class Silent(Cluster):
            def ask(self) -> Asked:
                raise UndecidedError("scontrol show: no answer within 30 s")

        with pytest.raises(UndecidedError):
            apply(ledger, Silent({}), rules(decision("n01")), who())
        assert (ledger.actions(), ledger.audit()) == ([], [])

    def test_an_admin_who_is_faster_is_left_alone(self, ledger: Ledger) -> None:
        place = cluster()

        def drained(_: str) -> None:
            raise LeftAloneError("Slurm says it is idle+drain: mine")

        place.trouble = drained
        made = apply(ledger, place, rules(decision("n01")), who())
        assert [(one.skipped, one.error) for one in made.changes] == [
            ("Slurm says it is idle+drain: mine", None)
        ]
        assert ledger.isolated() == {}


class TestTakenBack:
    """What somebody put back in, or an undo, is isolated again only for something new."""

    def test_a_host_that_an_admin_resumed_stays_in(self, ledger: Ledger) -> None:
        place = cluster()
        apply(ledger, place, rules(decision("n01")), who("p1"))
        place.standings["n01"] = standing("n01", PlaceState.AVAILABLE)
        place.changed.clear()
        made = apply(ledger, place, rules(decision("n01")), who("p2"))
        assert made.changes[0].skipped == (
            "somebody else took it back in, and nothing new speaks against it"
        )
        assert ledger.isolated() == {}
        later = max(action.changed_s or 0 for action in ledger.actions()) + 1
        new = apply(ledger, place, rules(decision("n01", seen_s=later)), who("p3"))
        assert done(new) == ["n01"]

    def test_decisions_know_only_hosts_that_are_still_out_as_isolated(self, ledger: Ledger) -> None:
        place = cluster()
        apply(ledger, place, rules(decision("n01"), decision("n02")), who("p1"))
        place.standings["n01"] = standing("n01", PlaceState.AVAILABLE)
        known: list[list[str]] = []

        def decide(isolated: Mapping[str, ActionRecord]) -> Sequence[Decision]:
            known.append([*isolated])
            return ()

        plan(ledger, place, Rules(decide=decide, budget=WIDE))
        assert len(ledger.actions()) == 2
        apply(ledger, place, Rules(decide=decide, budget=WIDE), who("p2"))
        assert known == [["n02"], ["n02"]]

    def test_an_undo_is_not_undone_by_the_next_apply(self, ledger: Ledger) -> None:
        place = cluster()
        apply(ledger, place, rules(decision("n01")), who("p1"))
        undo(ledger, place, None, who("p2"))
        made = apply(ledger, place, rules(decision("n01")), who("p3"))
        assert done(made) == []
        assert (made.changes[0].skipped or "").startswith("eve@login1 took it back in")


class TestUndo:
    def test_it_takes_back_the_newest_plan_and_then_the_one_before(self, ledger: Ledger) -> None:
        place = cluster(n30=standing("n30", PlaceState.THEIRS, "mine"))
        before = place.states()
        apply(ledger, place, rules(decision("n01")), who("p1"))
        between = place.states()
        apply(ledger, place, rules(decision("n02"), decision("n03")), who("p2"))
        assert [one.host for one in undo(ledger, place, None, who("u1"))] == ["n02", "n03"]
        assert place.states() == between
        assert [one.host for one in undo(ledger, place, None, who("u2"))] == ["n01"]
        assert place.states() == before
        assert undo(ledger, place, None, who("u3")) == ()

    def test_given_hosts_are_taken_back_and_no_others(self, ledger: Ledger) -> None:
        place = cluster()
        apply(ledger, place, rules(decision("n01"), decision("n02")), who("p1"))
        undo(ledger, place, ["n02"], who("u1"))
        assert sorted(ledger.isolated()) == ["n01"]
        with pytest.raises(UsageError, match="n02: ncdiag has not isolated it at slurm"):
            undo(ledger, place, ["n02"], who("u2"))

    def test_what_somebody_changed_since_is_left_alone_and_no_longer_ours(
        self, ledger: Ledger
    ) -> None:
        place = cluster()
        apply(ledger, place, rules(decision("n01"), decision("n02")), who("p1"))
        theirs = standing("n01", PlaceState.THEIRS, "bad DIMM")
        place.standings["n01"] = theirs
        changes = undo(ledger, place, None, who("u1"))
        assert [(one.host, one.done, one.skipped) for one in changes] == [
            ("n01", False, "changed since: bad DIMM"),
            ("n02", True, None),
        ]
        assert place.standings["n01"] == theirs
        assert ledger.isolated() == {}
        assert undo(ledger, place, None, who("u2")) == ()
