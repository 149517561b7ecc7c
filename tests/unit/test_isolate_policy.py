"""The policy file, the safety budget and the lemon score."""

import random
from dataclasses import replace
from pathlib import Path

import pytest
from evidence_pieces import DAY_S, NOW_S, crash, health, piece, word
from hypothesis import given, settings
from hypothesis import strategies as st

from ncdiag.isolate.budget import hold_back, most_out, over_budget
from ncdiag.isolate.decide import decide
from ncdiag.isolate.policy import MAX_PER_CENT, Budget, Policy, default_policy, read_policy
from ncdiag.model.errors import UsageError
from ncdiag.model.isolation import Action, Decision, EvidenceKind

POLICY = default_policy()
BUDGET = Budget(hosts=10, per_cent=5.0, per_leaf=2)


def read(tmp_path: Path, text: str) -> Policy:
    path = tmp_path / "policy.toml"
    path.write_text(text)
    return read_policy(path)


def test_a_policy_holds_what_differs(tmp_path: Path) -> None:
    found = read(
        tmp_path,
        '[budget]\nhosts = 3\n[kind.bandwidth]\nconfirmations = 3\nof = 5\nwithin = "2d"\n'
        "[class.slow_nic]\npartners = 4\n[lemon.weights]\nstraggler = 0\n",
    )
    assert found.budget == replace(POLICY.budget, hosts=3)
    rule = found.rule(EvidenceKind.BANDWIDTH, "slow_host")
    assert (rule.confirmations, rule.of, rule.within_s, rule.partners) == (3, 5, 2 * DAY_S, 2)
    assert found.rule(EvidenceKind.BANDWIDTH, "slow_nic").partners == 4
    assert found.rule(EvidenceKind.CRASH, "gpu_fell_off_bus").sticky
    assert found.lemon.weight(EvidenceKind.STRAGGLER, "slow_rank") == 0
    assert found.lemon.weight(EvidenceKind.CRASH, "gpu_fell_off_bus") == 3.0
    assert read(tmp_path, "") == POLICY


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("[budgets]\nhosts = 1", "budgets is not known here; did you mean budget?"),
        ("[budget]\nhost = 1", "budget: host is not known here; did you mean hosts?"),
        ("[budget]\nper_cent = 100", "budget.per_cent: 100 is not above 0 and 33 at most"),
        ("[budget]\nper_cent = nan", "budget.per_cent: nan is not"),
        ("[budget]\nper_cent = 0", "budget.per_cent: 0 is not"),
        ("[budget]\nhosts = -1", "budget.hosts: -1 is not from 0"),
        ("[budget]\nhosts = 'all'", "budget.hosts: Expected `int`, got `str`"),
        ("[budget]\nper_leaf = 0", "budget.per_leaf: 0 is not from 1"),
        ("budget = 3", "budget: a table is wanted here"),
        ("[every]\nconfirmations = 0", ": every.confirmations: 0 is not from 1 to of (3)"),
        ("[kind.crash]\nconfirmations = 4", "kind.crash.confirmations: 4 is not from 1 to of"),
        ("[class.operator]\nconfirmations = 2\nof = 3", "class.operator.confirmations: 2 is not 1"),
        ("[kind.operator]\nconfirmations = 2\nof = 3", "kind.operator.confirmations: 2 is not 1"),
        ("[kind.crash]\nof = 999", "kind.crash.of: 999 is not from 1 to 20"),
        ("[kind.crashes]\nof = 3", "kind: crashes is not known here; did you mean crash?"),
        ("[kind.health]\nconfidence = 0", "kind.health.confidence: 0 is not from 0.5 to 1"),
        ("[kind.bandwidth]\npartners = 1", "kind.bandwidth.partners: 1 is not from 2 to 16"),
        ("[class.slow_host]\npartners = 0", "class.slow_host.partners: 0 is not from 2"),
        ("[class.gpu_fel_off_bus]\nof = 1", "did you mean gpu_fell_off_bus?"),
        ("[kind.health]\nwithin = '0s'", "kind.health.within: 0s is not from"),
        ("[kind.health]\nwithin = 'soon'", "kind.health.within: "),
        ("[kind.health]\ncounts_for = '400d'", "kind.health.counts_for: "),
        ("[kind.health]\ngrace = '3d'", "kind.health.grace: 3d is not from"),
        ("[lemon]\nthreshold = 2.0", "lemon.threshold: 2 is not above the heaviest weight (3)"),
        ("[lemon]\nthreshold = inf", "lemon.threshold: inf"),
        ("[lemon]\naction = 'isolat'", "isolat is not watch or isolate; did you mean isolate?"),
        ("[lemon]\ndays = 1", "lemon.days: 1 is not from 2"),
        ("[lemon.weights]\nhealth = -1", "lemon.weights.health: -1 is not from 0"),
        ("[lemon.weights]\ntickets = 1", "lemon.weights: tickets is not known here"),
        ("[lemon]\nweights = 1", "lemon.weights: a table is wanted here"),
        ("[budget", "this is no TOML"),
        ("x = " + "[" * 300 + "]" * 300, "no policy needs tables more than"),
        ('"\\u001b[2J" = 1', "x1b[2J is not known here"),
    ],
)
def test_what_cannot_be_used_is_one_clear_line(tmp_path: Path, text: str, told: str) -> None:
    with pytest.raises(UsageError) as caught:
        read(tmp_path, text)
    assert told in f"{caught.value}"
    assert f"{tmp_path / 'policy.toml'}" in f"{caught.value}"
    assert "\n" not in f"{caught.value}"


def test_a_policy_that_cannot_be_read_is_one_line(tmp_path: Path) -> None:
    (tmp_path / "big").write_bytes(b"#" * 300_000)
    (tmp_path / "latin").write_bytes(b"# \xff")
    for name, told in (("none", "no such file"), ("big", "larger"), ("latin", "no UTF-8")):
        with pytest.raises(UsageError, match=told):
            read_policy(tmp_path / name)


def decisions(names: list[str]) -> list[Decision]:
    return [
        Decision(host=name, action=Action.ISOLATE, reason="slow", confidence=0.9) for name in names
    ]


@pytest.mark.parametrize(
    ("hosts", "most"), [(0, 0), (1, 0), (2, 0), (3, 1), (39, 1), (40, 2), (100, 5), (5000, 10)]
)
def test_how_many_of_a_fleet_may_be_out(hosts: int, most: int) -> None:
    assert most_out(BUDGET, hosts) == most


def test_nobody_is_out_where_the_budget_is_no_host() -> None:
    assert most_out(replace(BUDGET, hosts=0), 1000) == 0


def test_beyond_the_budget_nothing_at_all_is_carried_out() -> None:
    names = [f"h{n}" for n in range(6)]
    within = hold_back(decisions(names[:5]), BUDGET, (), hosts=100)
    assert [one.held_back for one in within] == [None] * 5
    beyond = hold_back(decisions(names), BUDGET, (), hosts=100)
    assert all(one.held_back for one in beyond)
    assert "5 hosts of 100" in (beyond[0].held_back or "")
    assert "6 would be out: nothing is carried out" in (beyond[0].held_back or "")


def test_hosts_that_are_out_already_count_whoever_took_them_out() -> None:
    out = [f"o{n}" for n in range(4)]
    assert hold_back(decisions(["h1"]), BUDGET, out, hosts=100)[0].held_back is None
    assert all(one.held_back for one in hold_back(decisions(["h1", "h2"]), BUDGET, out, hosts=100))
    released = Decision(host="o0", action=Action.RELEASE, reason="", confidence=0)
    freed = hold_back([*decisions(["h1", "h2"]), released], BUDGET, out, hosts=100)
    assert [one.held_back for one in freed] == [None] * 3


def test_many_hosts_of_one_leaf_point_at_the_leaf() -> None:
    leaves = {f"h{n}": "leaf\x1b1" if n < 3 else "leaf2" for n in range(100)}
    names = ["h0", "h1", "h3"]
    assert over_budget(names, BUDGET, hosts=100, leaves=leaves) is None
    why = over_budget(["h0", "h1", "h2"], BUDGET, hosts=100, leaves=leaves)
    assert why
    assert "3 of leaf leaf\\x1b1 would be out" in why


def test_a_fleet_of_unknown_size_has_no_budget() -> None:
    assert "not known" in (over_budget(["h1"], BUDGET, hosts=0) or "")
    assert over_budget([], BUDGET, hosts=0) is None


def test_a_report_that_accuses_half_the_fleet_takes_nobody_out() -> None:
    pieces = [piece(f"h{n}", run) for n in range(50) for run in ("r1", "r2")]
    found = hold_back(decide(pieces, POLICY, NOW_S), POLICY.budget, (), hosts=100)
    assert len(found) == 50
    assert all(one.action is Action.ISOLATE and one.held_back for one in found)


def test_ten_reports_that_accuse_a_little_each_end_at_the_budget() -> None:
    out: set[str] = set()
    pieces = []
    for report in range(10):
        pieces += [crash(f"h{report}-{n}", "gpu_fell_off_bus", f"e{report}") for n in range(2)]
        told = decide(pieces, POLICY, NOW_S, out)
        found = hold_back(told, POLICY.budget, out, hosts=100)
        out |= {one.host for one in found if one.action is Action.ISOLATE and one.held_back is None}
    assert len(out) == 4


@given(
    st.integers(0, 300),
    st.sets(st.integers(0, 299)),
    st.sets(st.integers(0, 299)),
    st.builds(
        Budget,
        hosts=st.integers(0, 50),
        per_cent=st.floats(0.1, MAX_PER_CENT),
        per_leaf=st.integers(1, 5),
    ),
)
@settings(max_examples=100, deadline=None)
def test_the_budget_is_never_exceeded(
    hosts: int, accused: set[int], out: set[int], budget: Budget
) -> None:
    leaves = {f"h{n}": f"leaf{n // 16}" for n in range(300)}
    before = {f"h{n}" for n in out}
    found = hold_back(
        decisions([f"h{n}" for n in sorted(accused)]), budget, before, hosts=hosts, leaves=leaves
    )
    new = {one.host for one in found if one.held_back is None} - before
    if new:
        after = before | new
        assert len(after) <= max(hosts * budget.per_cent / 100, 1)
        assert len(after) <= budget.hosts
        names = [leaves[name] for name in after]
        assert max(names.count(leaf) for leaf in names) <= budget.per_leaf
        assert len(after) < hosts / 2


def test_a_lemon_is_a_host_that_fails_on_several_days() -> None:
    bad = [
        crash("h1", "process_crash", f"e{n}", ago_s=n * 4 * DAY_S, confidence=0.5) for n in range(5)
    ]
    found = decide(bad, POLICY, NOW_S)
    assert [one.action for one in found] == [Action.WATCH]
    expected = sum(2.0 * 0.5 ** (n * 4 / 14) for n in range(5))
    assert found[0].lemon_score == pytest.approx(expected, abs=0.02)
    assert found[0].reason.startswith(f"lemon, score {expected:.1f} of 6 over weeks")
    isolating = replace(POLICY, lemon=replace(POLICY.lemon, action=Action.ISOLATE))
    assert decide(bad, isolating, NOW_S)[0].action is Action.ISOLATE
    assert decide(bad, isolating, NOW_S, ["h1"])[0].action is Action.KEEP
    assert decide(bad, isolating, NOW_S + 30 * DAY_S, ["h1"])[0].action is Action.RELEASE
    cleared = decide([*bad, word("h1", ago_s=0.0)], isolating, NOW_S, (), {"h1": [NOW_S - 5]})
    assert cleared == ()


@pytest.mark.parametrize(
    ("class_", "hosts", "lemons"),
    [("nic_link_down", 3, 3), ("nic_link_down", 4, 0), ("storage_error", 1, 0)],
)
def test_a_cause_that_hosts_share_makes_no_lemon(class_: str, hosts: int, lemons: int) -> None:
    """A switch or a file server that fails every other day for two weeks."""
    seen = [
        crash(f"h{host}", class_, f"e{day}", ago_s=day * 2 * DAY_S)
        for day in range(7)
        for host in range(hosts)
    ]
    good = [crash(f"good{n}", "process_crash", conclusive=False) for n in range(50)]
    found = decide([*seen, *good], POLICY, NOW_S)
    assert sum(one.lemon_score >= POLICY.lemon.threshold for one in found) == lemons


def test_a_fault_that_goes_on_counts_once_a_day() -> None:
    every = [health("h1", "pcie_error", f"c{n}", ago_s=n * 300.0) for n in range(100)]
    found = decide(every, POLICY, NOW_S)
    assert found[0].lemon_score <= 2.0


def test_being_taken_out_again_and_again_counts() -> None:
    outs = {"h1": [NOW_S - n * DAY_S for n in range(4)], "elsewhere": [NOW_S]}
    seen = [health("h1", "pcie_error", ago_s=60, conclusive=False)]
    found = decide(seen, POLICY, NOW_S, (), outs)
    expected = sum(0.5 ** (n / 14) for n in range(4))
    assert found[0].lemon_score == pytest.approx(expected, abs=0.01)


def test_one_bad_day_makes_no_lemon() -> None:
    classes = ["pcie_error", "nvlink_error", "process_crash", "ib_port_error", "thermal_power"]
    isolating = replace(POLICY, lemon=replace(POLICY.lemon, action=Action.ISOLATE))
    day = [crash("h1", class_, ago_s=60.0 * n) for n, class_ in enumerate(classes)]
    found = decide(day, isolating, NOW_S)
    assert found[0].lemon_score > POLICY.lemon.threshold
    assert found[0].action is Action.WATCH


def test_good_hosts_of_a_large_fleet_are_hardly_ever_lemons() -> None:
    """Every host has a fault about twice a year; three have one every other day."""
    chance = random.Random(3)
    pieces = []
    for host in range(1000):
        often = 0.5 if host < 3 else 2 / 365
        pieces += [
            crash(f"h{host:03}", "process_crash", f"e{day}", ago_s=day * DAY_S)
            for day in range(60)
            if chance.random() < often
        ]
    told = decide(pieces, POLICY, NOW_S)
    lemons = {one.host for one in told if one.lemon_score >= POLICY.lemon.threshold}
    assert {"h000", "h001", "h002"} <= lemons
    assert len(lemons) <= 4


def test_the_example_and_the_defaults_of_the_page_are_those_of_the_program(tmp_path: Path) -> None:
    page = (Path(__file__).parents[2] / "docs" / "isolation-policy.md").read_text()
    example = page.partition("```\n# policy.toml\n")[2].partition("```")[0]
    found = read(tmp_path, example)
    assert found.budget.hosts == 4
    assert found.rule(EvidenceKind.CRASH, "nvlink_error").confirmations == 1
    budget = page.partition("```\n[budget]\nhosts = 10")[2].partition("```")[0]
    assert read(tmp_path, f"[budget]\nhosts = 10{budget}") == POLICY
    for line in (
        f"| `threshold` | {POLICY.lemon.threshold} |",
        f"| `half_life` | {POLICY.lemon.half_life_s / DAY_S:g} days |",
        f"| `days` | {POLICY.lemon.days} |",
        f"| `action` | `{POLICY.lemon.action}` |",
        *(
            f"| `weights.{name}` | {POLICY.lemon.weights[name]} |"
            for name in ("health", "crash", "data", "straggler", "operator", "out")
        ),
        f"more than {MAX_PER_CENT:g} % of the fleet",
    ):
        assert line in page
