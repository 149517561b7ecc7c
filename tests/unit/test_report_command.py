"""``ncdiag report``: from a journal to the files that other programs rely on."""

import json
from pathlib import Path

import pytest

from ncdiag.cli import main
from ncdiag.measure.engines.base import Timing
from ncdiag.measure.journal import HostState, Journal, Plan, RunEnd
from ncdiag.model.errors import ExitCode
from ncdiag.model.host import Host, HostFacts, Nic, NicKind
from ncdiag.model.measurement import Measurement, Purpose

HOSTS = ("h1", "h2", "h3", "h4", "h5")
COLUMNS = (
    "source,target,rail,round,engine,bytes,measured_gbit_per_s,expected_gbit_per_s,"
    "efficiency,fleet_ratio,idle,status,error"
)


def write_sweep(directory: Path) -> None:
    """The journal of five hosts, of which h5 sends at a fifth."""
    nic = Nic(name="eth0", kind=NicKind.ETHERNET, interface="eth0", address="10.0.0.1", mtu=1500)
    plan = Plan(
        started="2026-01-02T03:04:05Z",
        hosts=tuple(Host(name=name, address=name, rate_gbit_per_s=1) for name in HOSTS),
        mode="full",
        engine="torch",
        launcher="ssh",
        seed=0,
        faulty_below=0.8,
        timing=Timing(),
    )
    rate = {"h5": 0.2}
    with Journal(directory) as journal:
        journal.append([plan])
        journal.append(
            HostState(name=name, facts=HostFacts(hostname=name, nics=(nic,))) for name in HOSTS
        )
        for purpose in Purpose:
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
                    measured_gbit_per_s=rate.get(source, 0.95),
                    min_gbit_per_s=rate.get(source, 0.94),
                    idle=0.9,
                )
                for source in HOSTS
                for target in HOSTS
                if source != target
            )
        journal.append([RunEnd(seconds=12.3)])


def test_a_journal_becomes_a_report_and_an_exit_code(tmp_path: Path) -> None:
    write_sweep(tmp_path)

    assert main.run(["report", str(tmp_path)]) == 1

    report = json.loads((tmp_path / "report.json").read_bytes())
    assert (report["schema"], report["verdict"]) == ("ncdiag/sweep/1", "faulty")
    assert [(one["kind"], one["name"], one["direction"]) for one in report["culprits"]] == [
        ("host", "h5", "send")
    ]
    assert (report["good"], report["isolate"]) == (["h1", "h2", "h3", "h4"], ["h5"])
    assert report["contention"] == report["untested"] == []


def test_the_table_and_the_lists_are_as_the_contract_says(tmp_path: Path) -> None:
    write_sweep(tmp_path)

    main.run(["report", str(tmp_path)])

    first, *rows = (tmp_path / "links.csv").read_text().splitlines()
    assert (first, len(rows)) == (COLUMNS, 20)
    assert (tmp_path / "hosts.good.txt").read_text() == "h1\nh2\nh3\nh4\n"
    assert (tmp_path / "hosts.isolate.txt").read_text() == "h5\n"
    assert len((tmp_path / "summary.txt").read_text().splitlines()) <= 10


def test_a_resumed_sweep_takes_no_other_plan(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write_sweep(tmp_path)
    resume = ["sweep", "--resume", str(tmp_path), "--dry-run"]

    same = ["--mode", "full", "--seed", "0", "--measure-time", "400ms", "--output", str(tmp_path)]
    assert main.run([*resume, *same]) == 0
    capsys.readouterr()
    for other in (
        ["--mode", "quick"],
        ["--seed", "1"],
        ["--faulty-below", "0.9"],
        ["--measure-time", "2s"],
        ["--output", "elsewhere"],
    ):
        assert main.run([*resume, *other]) == ExitCode.USAGE
        assert capsys.readouterr().err.startswith(f"ncdiag: {other[0]} cannot change when")


def test_a_sweep_of_an_unknown_engine_is_not_resumed(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write_sweep(tmp_path)
    path = tmp_path / "journal.jsonl"
    path.write_bytes(path.read_bytes().replace(b'"engine":"torch"', b'"engine":"\\u001b[31m"'))

    assert main.run(["sweep", "--resume", str(tmp_path), "--dry-run"]) == ExitCode.USAGE
    assert capsys.readouterr().err.startswith("ncdiag: unknown engine '\\x1b[31m'")


def test_the_report_of_a_benchmark_is_told_as_such(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "bench.json").write_text("{}")
    assert main.run(["report", str(tmp_path)]) == 2
    assert "holds the report of a benchmark, not of a sweep" in capsys.readouterr().err
