"""Decisions: what isolates, what does not, what clears, and that no order matters."""

import random
from collections.abc import Sequence
from dataclasses import replace

import pytest
from evidence_pieces import DAY_S, NOW_S, clean, crash, health, piece, word
from hypothesis import given, settings
from hypothesis import strategies as st

from ncdiag.isolate.decide import SHOWN, decide
from ncdiag.isolate.policy import default_policy, read_policy
from ncdiag.model.isolation import Action, Decision, EvidenceKind, EvidencePiece
from ncdiag.store.ledger import Ledger

POLICY = default_policy()


def one(
    pieces: Sequence[EvidencePiece], isolated: Sequence[str] = (), now_s: float = NOW_S
) -> Decision | None:
    found = decide(pieces, POLICY, now_s, isolated)
    assert len(found) <= 1
    return found[0] if found else None


def action(pieces: Sequence[EvidencePiece], isolated: Sequence[str] = ()) -> Action | None:
    found = one(pieces, isolated)
    return found.action if found else None


def test_two_of_three_sweeps_isolate_and_one_does_not() -> None:
    assert action([piece("h1", "r1")]) is Action.WATCH
    found = one([piece("h1", "r1"), piece("h1", "r2", ago_s=30)])
    assert found
    assert found.action is Action.ISOLATE
    assert found.held_back is None
    assert found.reason == "slow_host, 2 of 2 runs: sends at a tenth"
    assert found.until_s == pytest.approx(NOW_S - 30 + 7 * DAY_S)
    assert 0.95 < found.confidence < 1
    assert [shown.run for shown in found.evidence] == ["r2", "r1"]


def test_several_pieces_of_one_run_confirm_each_other_only_once() -> None:
    assert action([piece("h1", component=f"eth{n}") for n in range(5)]) is Action.WATCH


def test_runs_that_lie_too_far_apart_do_not_confirm_each_other() -> None:
    rule = replace(POLICY.rules[EvidenceKind.BANDWIDTH], within_s=3600.0)
    policy = replace(POLICY, rules={**POLICY.rules, EvidenceKind.BANDWIDTH: rule}, classes={})
    pieces = [piece("h1", "r1", ago_s=7300), piece("h1", "r2")]
    assert decide(pieces, policy, NOW_S)[0].action is Action.WATCH
    near = [piece("h1", "r1", ago_s=3000), piece("h1", "r2")]
    assert decide(near, policy, NOW_S)[0].action is Action.ISOLATE


def test_bandwidth_needs_two_different_partners_over_all_runs() -> None:
    alone = [piece("h1", run, partners=("p1",)) for run in ("r1", "r2")]
    assert action(alone) is Action.WATCH
    assert "with 1 partner where it takes 2" in decide(alone, POLICY, NOW_S)[0].reason
    assert action([alone[0], replace(alone[1], partners=("p2",))]) is Action.ISOLATE
    assert action([piece("h1", run, partners=()) for run in ("r1", "r2")]) is Action.WATCH


def test_inconclusive_evidence_isolates_nobody_however_much_there_is() -> None:
    pieces = [
        crash("h1", "gpu_fell_off_bus", f"e{n}", conclusive=False, confidence=1.0)
        for n in range(50)
    ]
    found = one(pieces)
    assert found
    assert found.action is Action.WATCH
    assert found.reason.startswith("gpu_fell_off_bus, inconclusive")
    assert found.lemon_score == 0.0


def test_what_is_not_sure_enough_does_not_count() -> None:
    assert action([piece("h1", f"r{n}", confidence=0.79) for n in range(9)]) is Action.WATCH
    assert action([piece("h1", f"r{n}", confidence=0.8) for n in range(2)]) is Action.ISOLATE


def test_a_class_that_isolates_nobody_is_watched() -> None:
    slow = [piece("h1", f"r{n}", kind=EvidenceKind.STRAGGLER, class_="slow_rank") for n in range(9)]
    found = one(slow)
    assert found
    assert found.action is Action.WATCH
    assert "isolates nobody by itself" in found.reason


@pytest.mark.parametrize(
    "class_", ["gpu_fell_off_bus", "gpu_memory_error", "nic_firmware_fault", "host_memory_error"]
)
def test_broken_hardware_is_sticky_and_seen_once_is_enough(class_: str) -> None:
    old = crash("h1", class_, ago_s=200 * DAY_S, uptime_s=5.0)
    later_boot = clean("h1", "c1", EvidenceKind.HEALTH, uptime_s=60.0)
    found = one([old, later_boot, *(clean("h1", f"r{n}") for n in range(5))])
    assert found
    assert (found.action, found.sticky, found.until_s) == (Action.ISOLATE, True, None)


def test_an_operators_word_ends_even_what_is_sticky() -> None:
    bad = crash("h1", "gpu_fell_off_bus", ago_s=100)
    assert action([bad, word("h1", ago_s=50)]) is None
    assert action([bad, word("h1", ago_s=50)], ["h1"]) is Action.RELEASE
    again = crash("h1", "gpu_fell_off_bus", "e2", ago_s=10)
    assert action([bad, word("h1", ago_s=50), again]) is Action.ISOLATE


def test_an_operator_isolates_until_the_time_given() -> None:
    added = piece("h1", kind=EvidenceKind.OPERATOR, class_="operator", partners=())
    assert action([added]) is Action.ISOLATE
    found = one([replace(added, until_s=NOW_S + 60)])
    assert found
    assert (found.action, found.sticky, found.until_s) == (Action.ISOLATE, False, NOW_S + 60)
    assert action([replace(added, until_s=NOW_S - 1)]) is None


def test_evidence_grows_too_old() -> None:
    old = [piece("h1", f"r{n}", ago_s=7 * DAY_S + n) for n in range(3)]
    assert action(old) is None
    assert action(old, ["h1"]) is Action.RELEASE
    assert action([replace(old[0], until_s=NOW_S + 5)]) is Action.WATCH


def test_later_clean_runs_clear_and_only_of_their_kind() -> None:
    bad = [piece("h1", "r1", ago_s=500), piece("h1", "r2", ago_s=400)]
    once = clean("h1", "r3", ago_s=300)
    assert action([*bad, once]) is Action.ISOLATE
    assert action([*bad, once, clean("h1", "r4", ago_s=200)]) is Action.WATCH
    thrice = [clean("h1", f"r{n}", ago_s=300 - n) for n in range(3, 6)]
    assert action([*bad, *thrice]) is None
    assert action([*bad, *thrice], ["h1"]) is Action.RELEASE
    other = [replace(run, kind=EvidenceKind.HEALTH) for run in thrice]
    assert action([*bad, *other]) is Action.ISOLATE
    before = [clean("h1", f"b{n}", ago_s=900 + n) for n in range(9)]
    assert action([*bad, *before]) is Action.ISOLATE


def test_who_is_bad_every_other_time_is_found() -> None:
    runs = [piece("h1", "r1", ago_s=300), clean("h1", "r2", ago_s=200), piece("h1", "r3")]
    assert action(runs) is Action.ISOLATE


def test_a_clean_check_clears_only_what_it_covers() -> None:
    bad = [health("h1", "pcie_error", f"c{n}", ago_s=300 - n) for n in range(2)]
    covering = [clean("h1", f"d{n}", EvidenceKind.HEALTH, covers=("pcie_error",)) for n in range(3)]
    assert action([*bad, *covering]) is None
    other = [replace(run, covers=("gpu-count",)) for run in covering]
    assert action([*bad, *other]) is Action.ISOLATE


def test_a_boot_clears_what_health_checks_saw_before_it() -> None:
    bad = [health("h1", "nvlink_error", f"c{n}", ago_s=5000 - n) for n in range(2)]
    assert action(bad) is Action.ISOLATE
    assert action([*bad, clean("h1", "r1", uptime_s=3000.0)]) is None
    assert action([*bad, clean("h1", "r1", uptime_s=9000.0)]) is Action.ISOLATE


def test_what_is_seen_right_after_a_boot_is_held_back() -> None:
    early = [health("h1", "nvlink_error", f"c{n}", uptime_s=100.0 + n) for n in range(2)]
    found = one(early)
    assert found
    assert (found.action, found.held_back) == (
        Action.ISOLATE,
        "seen within the grace period after a boot",
    )
    ready = [health("h1", "nvlink_error", f"d{n}", ago_s=5, uptime_s=700.0) for n in range(2)]
    after = one([*early, *ready])
    assert after
    assert (after.action, after.held_back) == (Action.ISOLATE, None)
    assert action(early, ["h1"]) is Action.KEEP


def test_who_is_isolated_is_kept_while_anything_could_isolate_it_again() -> None:
    bad = [piece("h1", "r1", ago_s=500), piece("h1", "r2", ago_s=400)]
    assert action(bad, ["h1"]) is Action.KEEP
    good = [clean("h1", f"g{n}", ago_s=300 - n) for n in range(2)]
    assert action([*bad, *good], ["h1"]) is Action.KEEP
    assert action([*bad, *good, clean("h1", "g9")], ["h1"]) is Action.RELEASE


def test_a_host_that_nothing_is_known_of_is_released() -> None:
    found = decide([], POLICY, NOW_S, ["h9", "h8"])
    assert [(one.host, one.action) for one in found] == [
        ("h8", Action.RELEASE),
        ("h9", Action.RELEASE),
    ]


def test_clean_hosts_get_no_decision() -> None:
    assert action([clean("h1", "r1")]) is None


def test_a_clock_that_went_back_makes_no_negative_age() -> None:
    ahead = [piece("h1", f"r{n}", ago_s=-90 * DAY_S - n) for n in range(2)]
    found = one(ahead)
    assert found
    assert found.action is Action.ISOLATE
    assert "2 pieces of evidence dated later than now, counted as seen now" in found.reason
    assert found.until_s == pytest.approx(NOW_S + 7 * DAY_S)
    assert 0.0 < found.lemon_score <= 1.0


def test_the_newest_pieces_are_shown_and_one_of_what_decided() -> None:
    pieces = [crash("h1", "gpu_fell_off_bus", ago_s=50 * DAY_S)]
    pieces += [piece("h1", f"r{n}", ago_s=10 + n, conclusive=False) for n in range(20)]
    found = one(pieces)
    assert found
    assert len(found.evidence) == SHOWN
    assert found.evidence[-1].class_ == "gpu_fell_off_bus"
    times = [shown.seen_s for shown in found.evidence]
    assert times == sorted(times, reverse=True)


def test_text_from_outside_is_made_visible_and_cut_in_reasons() -> None:
    found = one([piece("h1", text="\x1b[2J" + "x" * 900)])
    assert found
    assert "\x1b" not in found.reason
    assert len(found.reason) < 400


HOSTS = st.sampled_from(["h1", "h2", "h3"])
PIECES = st.lists(
    st.builds(
        piece,
        HOSTS,
        st.sampled_from([f"r{n}" for n in range(6)]),
        ago_s=st.one_of(
            st.floats(-10 * DAY_S, 40 * DAY_S), st.sampled_from([1.0, 2.0, 600.0, 7 * DAY_S])
        ),
        kind=st.sampled_from(list(EvidenceKind)),
        class_=st.sampled_from(["slow_host", "gpu_fell_off_bus", "pcie_error", "operator"]),
        confidence=st.sampled_from([0.3, 0.8, 0.9, 1.0]),
        conclusive=st.booleans(),
        clears=st.booleans(),
        partners=st.sampled_from([(), ("p1",), ("p2",), ("p1", "p2")]),
        component=st.sampled_from([None, "gpu0", "gpu1"]),
        uptime_s=st.sampled_from([None, 10.0, 1000.0, 1e6]),
        until_s=st.sampled_from([None, NOW_S - 1, NOW_S + 1]),
        covers=st.sampled_from([(), ("pcie_error",)]),
    ),
    max_size=25,
)


@given(PIECES, st.randoms(use_true_random=False))
@settings(max_examples=40, deadline=None)
def test_decisions_do_not_depend_on_order(
    pieces: list[EvidencePiece], chance: random.Random
) -> None:
    told = decide(pieces, POLICY, NOW_S, ["h2"])
    chance.shuffle(pieces)
    assert decide(pieces, POLICY, NOW_S, ["h2"]) == told
    assert [one.host for one in told] == sorted(one.host for one in told)


@pytest.mark.parametrize(
    "differing",
    [
        {"kind": EvidenceKind.OPERATOR},
        {"until_s": NOW_S - 1},
        {"uptime_s": 10.0},
        {"covers": ("pcie_error",)},
    ],
)
@pytest.mark.parametrize("clears", [False, True])
def test_of_two_pieces_that_differ_by_anything_the_same_one_counts(
    differing: dict[str, object], *, clears: bool
) -> None:
    first = piece("h1", "r0", ago_s=1.0, kind=EvidenceKind.HEALTH, clears=clears)
    second = replace(first, **differing)
    told = decide([first, second], POLICY, NOW_S, ["h1"])
    assert decide([second, first], POLICY, NOW_S, ["h1"]) == told


@given(PIECES)
@settings(max_examples=40, deadline=None)
def test_hosts_with_only_inconclusive_evidence_are_never_isolated(
    pieces: list[EvidencePiece],
) -> None:
    vague = [replace(one, conclusive=False) for one in pieces]
    assert all(one.action is Action.WATCH for one in decide(vague, POLICY, NOW_S))
    accused = {one.host for one in pieces if one.conclusive and not one.clears}
    for found in decide(pieces, POLICY, NOW_S):
        assert found.action in (Action.ISOLATE, Action.WATCH)
        if found.action is Action.ISOLATE:
            assert found.host in accused
            assert any(shown.conclusive for shown in found.evidence)


@given(PIECES)
@settings(max_examples=6, deadline=None)
def test_the_file_and_the_list_lead_to_the_same_decisions(
    tmp_path_factory: pytest.TempPathFactory, pieces: list[EvidencePiece]
) -> None:
    seen = {(one.host, one.run, one.class_, one.component): one for one in pieces}
    kept = [replace(one, seen_s=min(one.seen_s, NOW_S)) for one in seen.values()]
    path = tmp_path_factory.mktemp("ledger") / "s.sqlite"
    with Ledger.open(path, write=True) as ledger:
        ledger.add(kept, now_s=NOW_S)
        assert decide(ledger.table(), POLICY, NOW_S) == decide(kept, POLICY, NOW_S)


@pytest.mark.parametrize("seed", range(5))
def test_a_fleet_measured_by_noisy_sweeps_loses_hardly_anybody_who_is_good(seed: int) -> None:
    """Sweeps that accuse 1 % of good hosts each time, wrongly; five are bad nine times of ten."""
    chance = random.Random(seed)
    hosts = [f"h{n:04}" for n in range(1000)]
    bad = set(chance.sample(hosts, 5))
    pieces = []
    for run in range(3):
        for host in hosts:
            accused = chance.random() < (0.9 if host in bad else 0.01)
            name, ago_s = f"r{run}", (3 - run) * 3600.0
            pieces.append(
                piece(host, name, ago_s=ago_s) if accused else clean(host, name, ago_s=ago_s)
            )
    isolated = {one.host for one in decide(pieces, POLICY, NOW_S) if one.action is Action.ISOLATE}
    # Three choose two times 1e-4 of a thousand: 0.3 expected.
    assert len(isolated - bad) <= 3
    assert len(isolated & bad) >= 4


def test_the_shipped_policy_is_what_the_file_says() -> None:
    assert read_policy(None) == POLICY
