import json
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from ncdiag.cli import burn_in, main
from ncdiag.measure.burn_in import burn_in as running
from ncdiag.measure.burn_in.plan import BurnInPlan, Level
from ncdiag.measure.burn_in.result import BurnInResult
from ncdiag.model.burn_in import Outcome, Stage, StageFinding, StageRun, StageState
from ncdiag.store.ledger import Ledger

HOSTS = "127.0.0.[2-5]"
NAMES = tuple(f"127.0.0.{number}" for number in range(2, 6))

Plans = list[BurnInPlan]


def result(*findings: StageFinding, interrupted: bool = False) -> BurnInResult:
    """All hosts went through all stages, but for what is found."""
    out = {one.host for one in findings}
    return BurnInResult(
        started="2026-11-30T03:12:45Z",
        seconds=3.0,
        stages=tuple(
            StageRun(
                stage=stage,
                state=StageState.DONE,
                hosts=4,
                seconds=0.5,
                findings=tuple(one for one in findings if one.stage is stage),
                passed=tuple(name for name in NAMES if name not in out),
            )
            for stage in Stage
        ),
        interrupted=interrupted,
        notes=("a note",),
    )


def finding(host: str, **more: object) -> StageFinding:
    return StageFinding(
        **{"host": host, "stage": Stage.LOAD, "outcome": Outcome.REJECTED, "reason": "slow"}
        | {"confidence": 0.9, "confirmed": True, "isolates": True}
        | more
    )


@pytest.fixture
def fake(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Callable[[BurnInResult], Plans]:
    """Have a burn-in end with a result of ours; the plans that it was given."""
    monkeypatch.chdir(tmp_path)

    def install(found: BurnInResult) -> Plans:
        plans: Plans = []

        class Fake:
            def __init__(self, plan: BurnInPlan, *_: object, **__: object) -> None:
                plans.append(plan)

            def run(self) -> BurnInResult:
                return found

        monkeypatch.setattr(running, "BurnIn", Fake)
        return plans

    return install


@pytest.mark.parametrize(
    ("arguments", "part"),
    [
        (["--need", "5"], "--need 5 is more than the 4 hosts of --nodes"),
        (["--need", "0"], "it must be 1 or more"),
        (["--need", "-3"], "it must be 1 or more"),
        (["--spares", "-1"], "it must be 0 or more"),
        (["--need", "x"], "no whole number"),
        (["--engine", "mpi"], "only torch can"),
        (["--level", "long"], "is not one of 'quick', 'normal', 'soak'"),
        (["--budget", "0s"], "above zero"),
        (["--budget", "2h", "--duration", "1h"], "--duration how long passes are repeated"),
        (["--profile", "/nowhere.toml"], "/nowhere.toml"),
        (["--fabric", "/nowhere"], "/nowhere"),
        (["--store", "x.sqlite"], "--record"),
        (["--pair-test", "alltoall"], "no such option"),
    ],
)
def test_what_is_asked_for_wrongly_is_one_line_before_anything_starts(
    arguments: list[str],
    part: str,
    fake: Callable[[BurnInResult], Plans],
    capsys: pytest.CaptureFixture[str],
    tmp_path: Path,
) -> None:
    plans = fake(result())
    assert main.run(["burn-in", "--nodes", HOSTS, *arguments]) == 2
    lines = capsys.readouterr().err.splitlines()
    assert len(lines) == 1
    assert part in lines[0]
    assert plans == []
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("findings", "need", "code"),
    [
        ([], [], 0),
        ([], ["--need", "3", "--spares", "4"], 0),
        ([finding(NAMES[0])], [], 1),
        ([finding(NAMES[0], confirmed=False)], [], 3),
        ([finding(NAMES[0])], ["--need", "3"], 0),
    ],
)
def test_the_exit_code_is_that_of_the_verdict(
    findings: list[StageFinding],
    need: list[str],
    code: int,
    fake: Callable[[BurnInResult], Plans],
    capsys: pytest.CaptureFixture[str],
) -> None:
    fake(result(*findings))
    assert main.run(["burn-in", "--nodes", HOSTS, "--output", "out", *need]) == code
    assert capsys.readouterr().out.split(":")[0] in {"MET", "SHORT", "UNDECIDED"}
    assert Path("out", "hosts.good.txt").read_text().split() == [
        name for name in NAMES if name not in {one.host for one in findings}
    ]


def test_an_interrupted_burn_in_leaves_its_report_and_ends_with_130(
    fake: Callable[[BurnInResult], Plans], capsys: pytest.CaptureFixture[str]
) -> None:
    fake(result(interrupted=True))
    assert main.run(["burn-in", "--nodes", HOSTS, "--output", "out"]) == 130
    assert "(interrupted: as known so far)" in capsys.readouterr().out
    assert json.loads(Path("out", "report.json").read_bytes())["interrupted"] is True


@pytest.mark.parametrize("in_the_way", ["report.json", "links.csv"])
def test_a_report_that_cannot_be_written_is_printed_recorded_and_told_all_the_same(
    in_the_way: str, fake: Callable[[BurnInResult], Plans], capsys: pytest.CaptureFixture[str]
) -> None:
    fake(result(finding(NAMES[0])))
    Path("out", in_the_way).mkdir(parents=True)
    arguments = ["--nodes", HOSTS, "--output", "out", "--force", "--junit", "junit.xml"]
    arguments += ["--record", "--store", "store.sqlite"]
    assert main.run(["burn-in", *arguments]) == 3
    printed = capsys.readouterr()
    assert printed.out.startswith("SHORT: 3 of 4 good hosts")
    assert "report.html" not in printed.out
    assert f"out/{in_the_way}" in printed.err.splitlines()[-1]
    assert NAMES[0] in Path("junit.xml").read_text()
    with Ledger.open(Path("store.sqlite")) as ledger:
        assert NAMES[0] in {one.host for one in ledger.evidence() if not one.clears}


def test_json_is_all_that_goes_to_standard_output(
    fake: Callable[[BurnInResult], Plans], capfdbinary: pytest.CaptureFixture[bytes]
) -> None:
    fake(result())
    arguments = ["--nodes", HOSTS, "--output", "out", "--format", "json"]
    assert main.run(["burn-in", *arguments]) == 0
    printed = capfdbinary.readouterr().out
    assert json.loads(printed)["chosen"] == list(NAMES)
    assert printed == Path("out", "report.json").read_bytes()


def test_the_plan_says_what_was_asked_for(fake: Callable[[BurnInResult], Plans]) -> None:
    plans = fake(result())
    Path("hosts.txt").write_text("127.0.0.[2-5] leaf=a\n127.0.0.3 leaf=a\n")
    options = ["--need", "2", "--spares", "1", "--level", "soak", "--duration", "30m", "--seed=7"]
    assert main.run(["burn-in", "--nodes", "hosts.txt", "--output", "out", *options]) == 0
    (plan,) = plans
    assert [host.name for host in plan.hosts] == list(NAMES)
    assert (plan.need, plan.spares, plan.level, plan.seed) == (2, 1, Level.SOAK, 7)
    assert (plan.budget_s, plan.duration_s) == (1800.0, 1800.0)
    report = json.loads(Path("out", "report.json").read_bytes())
    assert report["leaves"] == {"a": 3}
    assert report["notes"] == ["a note"]


def test_without_need_all_hosts_are_needed(fake: Callable[[BurnInResult], Plans]) -> None:
    plans = fake(result())
    main.run(["burn-in", "--nodes", HOSTS, "--output", "out"])
    assert (plans[0].need, plans[0].spares, plans[0].budget_s) == (4, 0, 600.0)


def test_a_dry_run_shows_the_shares_and_starts_nothing(
    fake: Callable[[BurnInResult], Plans], capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    plans = fake(result())
    arguments = ["--nodes", HOSTS, "--budget", "10s", "--dry-run"]
    assert main.run(["burn-in", *arguments]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[0] for line in lines[4:10]] == list(Stage)
    assert lines[9].endswith("no time is left for it")
    assert plans == []
    assert list(tmp_path.iterdir()) == []


def test_the_levels_are_those_that_can_be_measured() -> None:
    assert [one.value for one in burn_in.Level] == [one.value for one in Level]


def test_what_speaks_against_hosts_is_kept_as_evidence(
    fake: Callable[[BurnInResult], Plans], capsys: pytest.CaptureFixture[str]
) -> None:
    found = result(finding(NAMES[0], partners=NAMES[1:3]), finding(NAMES[1], confirmed=False))
    fake(found)
    arguments = ["--nodes", HOSTS, "--output", "out", "--need", "2", "--record"]
    for _ in range(2):
        assert main.run(["burn-in", *arguments, "--store", "store.sqlite", "--force"]) == 0
    assert "store.sqlite" in capsys.readouterr().err
    with Ledger.open(Path("store.sqlite")) as ledger:
        against = {one.host: one for one in ledger.evidence() if not one.clears}
        clean = {one.host for one in ledger.evidence() if one.clears}
    assert set(against) == set(NAMES[:2])
    assert [against[name].conclusive for name in NAMES[:2]] == [True, False]
    assert clean == set(NAMES[2:])


def test_help_fits_a_terminal_and_names_the_gate(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    main.run(["burn-in", "--help"])
    shown = capsys.readouterr().out
    assert "--need" in shown
    assert max(map(len, shown.splitlines())) <= 80
    assert "ncdiag.cli.burn_in" in sys.modules
