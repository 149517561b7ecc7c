"""``ncdiag report A B``: what changed between two sweeps, and what could not be told."""

import io
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from ncdiag.cli import main
from ncdiag.diagnose.comparison import Change, Comparison, Lines, compare
from ncdiag.model.errors import ExitCode
from ncdiag.model.verdict import (
    Culprit,
    CulpritKind,
    Diagnosis,
    Direction,
    HostStatus,
    HostVerdict,
    LinkStatus,
    LinkVerdict,
    SweepPlan,
    SweepReport,
    Verdict,
)
from ncdiag.report.comparison.json_report import render_json
from ncdiag.report.comparison.text import render_text

HOSTS = ("a", "b", "c")


def link(source: str, target: str, figure: float | None = 100.0, **more: Any) -> LinkVerdict:
    usual: dict[str, Any] = {"rail": 0, "status": LinkStatus.HEALTHY}
    if figure is not None:
        usual["efficiency"] = figure / 100
    return LinkVerdict(source=source, target=target, measured_gbit_per_s=figure, **(usual | more))


def sweep(
    *links: LinkVerdict, engine: str = "torch", verdict: Verdict = Verdict.HEALTHY, **more: Any
) -> SweepReport:
    """Three hosts whose links are all good, but for those given."""
    given = {(one.source, one.target): one for one in links}
    usual = [link(one, other) for one in HOSTS for other in HOSTS if one != other]
    hosts = {name: HostVerdict(name=name, status=HostStatus.HEALTHY) for name in HOSTS}
    hosts |= {host.name: host for host in more.pop("hosts", ())}
    return SweepReport(
        started=more.pop("started", "2026-01-01T00:00:00Z"),
        seconds=1.0,
        plan=SweepPlan(
            mode="full", hosts=len(hosts), rounds=3, pairs=3, engine=engine, launcher="ssh"
        ),
        diagnosis=Diagnosis(
            verdict=verdict,
            links=tuple(given.pop((one.source, one.target), one) for one in usual)
            + tuple(given.values()),
            hosts=tuple(hosts.values()),
            **more,
        ),
    )


def culprit(kind: CulpritKind, name: str, efficiency: float = 0.5) -> Culprit:
    return Culprit(
        kind=kind,
        name=name,
        direction=Direction.SEND,
        status=LinkStatus.FAULTY,
        confidence=0.99,
        efficiency=efficiency,
        explains=2,
        contradicts=0,
        reason=f"{name} is slow",
        next="look",
    )


def only(found: Comparison) -> Any:
    [one] = found.links
    return one


def text(found: Comparison) -> str:
    shown = io.StringIO()
    render_text(found, Console(width=80, file=shown))
    return shown.getvalue()


def test_two_sweeps_alike_are_the_same() -> None:
    found = compare(sweep(), sweep())
    assert (found.change, found.exit_code) == (Change.SAME, ExitCode.DONE)
    assert (found.links, found.hosts, found.culprits, found.notes) == ((), (), (), ())
    assert (found.compared, found.fleet_ratio) == (6, 1.0)
    assert "SAME: nothing changed" in text(found)


@pytest.mark.parametrize(
    ("figure", "change"),
    [
        (50.0, Change.WORSE),
        (87.9, Change.WORSE),
        (88.1, Change.SAME),
        (113.5, Change.SAME),
        (113.7, Change.BETTER),
    ],
)
def test_a_link_changes_by_more_than_sweeps_scatter(figure: float, change: Change) -> None:
    found = compare(sweep(), sweep(link("a", "b", figure)))
    assert {one.change for one in found.links} == ({change} - {Change.SAME})
    assert found.change is change
    assert (found.exit_code is ExitCode.WRONG) is (change is Change.WORSE)
    loose = compare(sweep(), sweep(link("a", "b", figure)), Lines(changed_by=0.6))
    assert loose.change is Change.SAME


def test_better_there_and_back() -> None:
    slow = sweep(link("a", "b", 50.0))
    assert compare(sweep(), slow).change is Change.WORSE
    assert compare(slow, sweep()).change is Change.BETTER


@pytest.mark.parametrize(
    "after",
    [
        link("a", "b", None, status=LinkStatus.ERROR, error="b was lost"),
        link("a", "b", 20.0, status=LinkStatus.INCONCLUSIVE),
    ],
    ids=["failed", "busy CPU"],
)
def test_what_could_not_be_measured_is_neither_worse_nor_the_same(after: LinkVerdict) -> None:
    for found in (compare(sweep(), sweep(after)), compare(sweep(after), sweep())):
        assert only(found).change is Change.UNDECIDED
        assert (found.change, found.exit_code) == (Change.UNDECIDED, ExitCode.UNDECIDED)


def test_links_that_only_one_sweep_tried_are_set_apart() -> None:
    more = sweep(link("a", "d"))
    assert only(compare(sweep(), more)).change is Change.NEW
    assert only(compare(more, sweep())).change is Change.GONE
    untested = sweep(link("a", "b", None, status=LinkStatus.UNTESTED))
    assert only(compare(sweep(), untested)).change is Change.GONE
    assert compare(sweep(), untested).exit_code is ExitCode.DONE
    assert "1 not tried again" in text(compare(sweep(), untested))


def test_sweeps_with_nothing_in_common_cannot_be_compared() -> None:
    other = sweep()
    renamed = tuple(
        replace(one, source=f"x{one.source}", target=f"x{one.target}")
        for one in other.diagnosis.links
    )
    found = compare(sweep(), replace(other, diagnosis=replace(other.diagnosis, links=renamed)))
    assert found.exit_code is ExitCode.UNDECIDED
    assert "no link was measured in both sweeps" in found.notes


def test_figures_of_different_engines_are_compared_as_shares() -> None:
    other = sweep(
        *(link(one, two, 50.0, efficiency=1.0) for one in HOSTS for two in HOSTS if one != two),
        engine="perftest",
    )
    found = compare(sweep(), other)
    assert (found.change, found.fleet_ratio) == (Change.SAME, 1.0)
    assert "measured with torch, then with perftest" in found.notes[0]


def test_a_fleet_that_became_slower_as_a_whole_is_noted() -> None:
    slower = [link(one, two, 92.0) for one in HOSTS for two in HOSTS if one != two]
    found = compare(sweep(), sweep(*slower))
    assert found.change is Change.SAME
    assert found.notes == ("the fleet as a whole reaches 92 % of what it reached before",)


def host(name: str, status: HostStatus) -> HostVerdict:
    return HostVerdict(name=name, status=status, reason="because")


def test_hosts_change_by_their_status() -> None:
    for status, change in (
        (HostStatus.FAULTY, Change.WORSE),
        (HostStatus.DEGRADED, Change.WORSE),
        (HostStatus.UNREACHABLE, Change.UNDECIDED),
        (HostStatus.INCONCLUSIVE, Change.UNDECIDED),
    ):
        found = compare(sweep(), sweep(hosts=[host("b", status)]))
        assert [(one.name, one.change) for one in found.hosts] == [("b", change)]
        assert found.change is change
    back = compare(sweep(hosts=[host("b", HostStatus.FAULTY)]), sweep())
    assert (back.hosts[0].change, back.change) == (Change.BETTER, Change.BETTER)
    new = compare(sweep(), sweep(hosts=[host("d", HostStatus.HEALTHY)]))
    assert (new.hosts[0].change, new.exit_code) == (Change.NEW, ExitCode.DONE)


def test_culprits_are_new_still_there_or_measured_again_and_good() -> None:
    blamed = sweep(culprits=(culprit(CulpritKind.HOST, "b"),), verdict=Verdict.FAULTY)
    found = compare(sweep(), blamed)
    assert (found.culprits[0].change, found.exit_code) == (Change.NEW, ExitCode.WRONG)
    assert "1 new culprit: b" in text(found)
    assert compare(blamed, blamed).culprits[0].change is Change.SAME
    assert compare(blamed, sweep()).culprits[0].change is Change.GONE
    lost = sweep(hosts=[host("b", HostStatus.UNREACHABLE)], verdict=Verdict.INCONCLUSIVE)
    unclear = compare(blamed, lost)
    assert unclear.culprits[0].change is Change.UNDECIDED
    assert unclear.exit_code is ExitCode.UNDECIDED


@pytest.mark.parametrize(
    ("kind", "name"),
    [
        (CulpritKind.LINK, "a->b"),
        (CulpritKind.NIC, "b:mlx5_0"),
        (CulpritKind.SWITCH, "leaf1"),
        (CulpritKind.RAIL, "0"),
    ],
)
def test_a_culprit_is_cleared_only_by_what_was_measured(kind: CulpritKind, name: str) -> None:
    before = sweep(culprits=(culprit(kind, name),), verdict=Verdict.FAULTY)
    assert compare(before, sweep()).culprits[0].change is Change.GONE
    unmeasured = sweep(
        link("a", "b", None, status=LinkStatus.ERROR),
        hosts=[host("b", HostStatus.INCONCLUSIVE)],
        verdict=Verdict.INCONCLUSIVE,
    )
    assert compare(before, unmeasured).culprits[0].change is Change.UNDECIDED


def test_json_holds_what_changed_and_counts_the_rest() -> None:
    found = compare(sweep(), sweep(link("a", "b", 50.0), started="2026-01-02T00:00:00Z"))
    document = json.loads(render_json(found))
    assert document["schema"] == "ncdiag/comparison/1"
    assert (document["change"], document["compared"]) == ("worse", 6)
    assert document["counts"]["same"] == 5
    [one] = document["links"]
    assert (one["source"], one["ratio"], one["change"]) == ("a", 0.5, "worse")
    assert document["after"]["started"] == "2026-01-02T00:00:00Z"


def test_the_text_fits_a_terminal_and_shows_no_control_characters() -> None:
    nasty = sweep(link("a", "b\x1b[2J", 50.0), culprits=(culprit(CulpritKind.HOST, "x\x1b"),))
    shown = text(compare(sweep(link("a", "b\x1b[2J")), nasty))
    assert "\x1b" not in shown
    assert "50 %" in shown


def test_the_command_compares_two_directories(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    from ncdiag.measure.engines.base import Timing
    from ncdiag.measure.journal import HostState, Journal, Plan, RunEnd
    from ncdiag.model.host import Host, HostFacts, Nic, NicKind
    from ncdiag.model.measurement import Measurement, Purpose

    nic = Nic(name="eth0", kind=NicKind.ETHERNET, interface="eth0", address="10.0.0.1", mtu=1500)
    for name, figure in (("one", 0.95), ("two", 0.5)):
        plan = Plan(
            started="2026-01-02T03:04:05Z",
            hosts=tuple(Host(name=host, address=host) for host in HOSTS),
            mode="full",
            engine="torch",
            launcher="ssh",
            seed=0,
            faulty_below=0.8,
            timing=Timing(),
        )
        (tmp_path / name).mkdir()
        with Journal(tmp_path / name) as journal:
            journal.append([plan])
            journal.append(
                HostState(name=host, facts=HostFacts(hostname=host, nics=(nic,))) for host in HOSTS
            )
            journal.append(
                Measurement(
                    source=source,
                    target=target,
                    rail=0,
                    round=0,
                    purpose=purpose,
                    engine="torch",
                    bytes=10**7,
                    seconds=0.4,
                    measured_gbit_per_s=figure if source == "a" else 0.95,
                    idle=0.9,
                )
                for purpose in Purpose
                for source in HOSTS
                for target in HOSTS
                if source != target
            )
            journal.append([RunEnd(seconds=1.0)])
    one, two = str(tmp_path / "one"), str(tmp_path / "two")
    files = sorted(tmp_path.rglob("*"))
    assert main.run(["report", one, one]) == 0
    assert main.run(["report", one, two]) in {1, 3}
    assert "a->b" in capsys.readouterr().out
    main.run(["report", one, two, "--format", "json"])
    assert json.loads(capsys.readouterr().out)["compared"] > 0
    assert sorted(tmp_path.rglob("*")) == files
    assert main.run(["report", one, "--format", "json"]) == ExitCode.USAGE
    assert "two sweeps" in capsys.readouterr().err
    assert main.run(["report", one, str(tmp_path / "three")]) == ExitCode.USAGE
