"""``ncdiag isolate`` as an operator calls it, over a hosts file and a kubectl of our own."""

import csv
import io
import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from ncdiag.cli import main
from ncdiag.isolate.exporting import as_slurm_writes_it
from ncdiag.isolate.policy import read_policy
from ncdiag.isolate.policy_text import as_text
from ncdiag.model.isolation import EvidenceKind, EvidencePiece
from ncdiag.store.ledger import Ledger

KUBECTL = Path(__file__).parents[1] / "data" / "kubectl"
HOSTS = "gpu[001-040] slots=8\n"
Run = Callable[..., tuple[int, str, str]]


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> Run:
    """Call ``ncdiag isolate`` with a store in an empty folder: code, stdout, stderr."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "80")
    Path("hosts.txt").write_text(HOSTS)

    def call(command: str, *more: str, store: bool = True) -> tuple[int, str, str]:
        where = ("--store", "list.sqlite") if store else ()
        code = main.run(["isolate", command, *more, *where])
        return code, *capfd.readouterr()

    return call


TO_FILE = ("--to", "hostfile", "--file", "hosts.txt")


def test_an_operators_word_becomes_a_plan_and_the_plan_a_changed_file(run: Run) -> None:
    assert run("add", "gpu003", "--reason", "fan", "--for", "2d")[0] == 0
    code, out, _ = run("plan", *TO_FILE)
    assert code == 1
    assert "to isolate: gpu003 (of 40 hosts)" in out
    code, out, err = run("apply", *TO_FILE)
    assert code == 1
    assert Path("hosts.txt").read_text() == HOSTS
    assert err == "nothing was changed; --yes carries it out\n"
    assert run("apply", *TO_FILE, "--yes")[0] == 0
    assert "| gpu003 slots=8\n" in Path("hosts.txt").read_text()
    assert run("apply", *TO_FILE, "--yes")[0] == run("plan", *TO_FILE)[0] == 0
    assert run("remove", "gpu003")[0] == 0
    code, out, _ = run("plan", *TO_FILE)
    assert (code, "to release: gpu003" in out) == (0, True)
    assert run("apply", *TO_FILE, "--yes")[0] == 0
    assert "ncdiag" not in Path("hosts.txt").read_text()


def test_to_remove_one_name_of_a_host_tells_the_others(run: Run) -> None:
    run("add", "gpu003,GPU003.example.org,gpu004", "--reason", "fan")
    assert run("remove", "gpu003")[2].splitlines() == [
        "gpu003 taken off the list in list.sqlite",
        "not taken off: GPU003.example.org; name it as well where it is the same host",
    ]
    assert run("remove", "gpu004")[2] == "gpu004 taken off the list in list.sqlite\n"


def test_beyond_the_budget_nothing_is_changed_and_the_code_is_1(run: Run) -> None:
    run("add", "gpu[001-020]", "--reason", "half the fleet")
    code, out, _ = run("apply", *TO_FILE, "--yes")
    assert code == 1
    assert "REFUSED     the safety budget is 2 hosts of 40 at a time" in out
    assert "not isolated: gpu[001-020] (of 40 hosts)" in out
    assert Path("hosts.txt").read_text() == HOSTS
    code, out, err = run("export", "--as", "srun-exclude", "--nodes", "hosts.txt")
    assert (code, out) == (1, "")
    assert err.startswith("refused: the safety budget is 2 hosts of 40")
    code, out, err = run("export")
    assert (code, out) == (1, "")
    assert "10 hosts" in err


def test_inconclusive_evidence_touches_nobody(run: Run) -> None:
    piece = EvidencePiece(
        host="gpu001",
        kind=EvidenceKind.BANDWIDTH,
        class_="slow_host",
        source="sweep",
        run="r1",
        seen_s=1e9,
        text="could not be told",
        conclusive=False,
    )
    with Ledger.open(Path("list.sqlite"), write=True) as ledger:
        ledger.add([piece])
    assert run("apply", *TO_FILE, "--yes")[0] == 0
    assert run("export")[:2] == (0, "")
    assert Path("hosts.txt").read_text() == HOSTS


def test_one_host_is_shown_with_all_evidence_where_it_is_from_and_what_was_done(run: Run) -> None:
    with Ledger.open(Path("list.sqlite"), write=True) as ledger:
        piece = EvidencePiece(
            host="gpu001",
            kind=EvidenceKind.CRASH,
            class_="gpu_fell_off_bus",
            source="parse-log",
            run="job 7",
            seen_s=1.79e9,
            text="Xid 79 \x1b[2J",
            component="GPU 3",
            report="reports/job7.html",
        )
        ledger.add([piece])
    run("apply", *TO_FILE, "--yes")
    code, out, _ = run("show", "gpu001")
    assert code == 0
    lines = out.splitlines()
    assert lines[0].startswith("gpu001: isolated, gpu_fell_off_bus: Xid 79 \\x1b[2J")
    assert "  until repaired" in lines
    since = f"  isolated at hostfile:{Path('hosts.txt').absolute()} since 20"
    assert any(line.startswith(since) for line in lines)
    next_step = lines.index(
        "  next: once repaired, ncdiag isolate remove gpu001, and the next apply takes it"
    )
    assert lines[next_step + 1] == "  back in"
    assert "  2026-09-21 14:13  parse-log: gpu_fell_off_bus (GPU 3), sure 100 %" in lines
    assert "    see reports/job7.html" in lines
    assert "isolated at hostfile:" in lines[-1]
    table = run("show")[1].splitlines()
    assert table[0].split() == ["host", "what", "sure", "last", "seen", "until", "(UTC)", "why"]
    assert table[1].split()[:6] == ["gpu001", "keep", "100", "%", "2026-09-21", "repaired"]
    assert table[-1] == "next: ncdiag isolate show HOST tells the evidence, and what to do"
    listed = json.loads(run("show", "gpu001", "--format", "json")[1])
    assert listed["schema"] == "ncdiag/isolation/1"
    assert listed["evidence"][0]["report"] == "reports/job7.html"
    assert listed["actions"][0]["state"] == "done"
    assert listed["hosts"][0]["action"] == "keep"


def test_a_host_is_shown_at_every_place_that_it_is_isolated_at(run: Run) -> None:
    Path("more.txt").write_text(HOSTS)
    run("add", "gpu001", "--reason", "fan")
    for name in ("hosts.txt", "more.txt"):
        assert run("apply", "--to", "hostfile", "--file", name, "--yes")[0] == 0
    (found,) = json.loads(run("show", "--format", "json")[1])["hosts"]
    assert [place.rpartition("/")[2] for place in found["isolated_at"]] == ["hosts.txt", "more.txt"]
    assert run("undo", "--yes")[0] == run("undo", "--yes")[0] == 0
    assert Path("hosts.txt").read_text().count("#") == Path("more.txt").read_text().count("#") == 0


def test_lists_and_plans_come_as_json_and_csv_and_nothing_else_is_on_stdout(run: Run) -> None:
    run("add", "gpu003", "--reason", "=cmd()")
    plan = json.loads(run("plan", *TO_FILE, "--format", "json")[1])
    assert plan["schema"] == "ncdiag/isolation/1"
    assert [(one["host"], one["step"], one["done"]) for one in plan["changes"]] == [
        ("gpu003", "isolate", False)
    ]
    assert (plan["carried_out"], plan["fleet_hosts"], plan["refused"]) == (False, 40, None)
    (row,) = csv.DictReader(io.StringIO(run("show", "--format", "csv")[1]))
    assert (row["host"], row["action"], row["sticky"]) == ("gpu003", "isolate", "true")
    made = json.loads(run("apply", *TO_FILE, "--yes", "--format", "json")[1])
    assert made["carried_out"] is True
    assert made["changes"][0]["done"] is True
    (entry, applied) = json.loads(run("audit", "--format", "json")[1])["entries"]
    assert (entry["what"], entry["about"]) == ("add", "gpu003: =cmd()")
    assert applied["about"].endswith("hosts.txt: isolated gpu003")
    (step,) = csv.DictReader(io.StringIO(run("undo", "--format", "csv")[1]))
    assert (step["step"], step["done"]) == ("release", "false")
    undone = json.loads(run("undo", "--yes", "--format", "json")[1])
    assert [one["host"] for one in undone["changes"]] == ["gpu003"]
    assert json.loads(run("undo", "--yes", "--format", "json")[1])["changes"] == []


def test_exports_name_the_hosts_as_the_cluster_does_and_no_foreign_ones(run: Run) -> None:
    run("add", "gpu[003,007].a.example,other1", "--reason", "fan")
    assert run("export")[1] == "gpu003.a.example\ngpu007.a.example\nother1\n"
    assert run("export", "--nodes", "hosts.txt")[1] == "gpu003\ngpu007\n"
    assert run("export", "--as", "slurm", "--nodes", "hosts.txt")[1] == "gpu[003,007]\n"
    exclude = run("export", "--as", "srun-exclude", "--nodes", "hosts.txt")[1]
    assert exclude == "--exclude=gpu[003,007]\n"
    listed = json.loads(run("export", "--as", "json", "--nodes", "hosts.txt")[1])
    assert [one["host"] for one in listed["hosts"]] == ["gpu003", "gpu007"]
    assert run("export", "--as", "srun-exclude", "--nodes", "gpu[021-030]")[:2] == (0, "")


def test_slurm_is_given_no_name_with_two_ranges() -> None:
    assert as_slurm_writes_it(["r1n1", "r1n2", "r2n1", "r2n2"]) == "r1n1,r1n2,r2n1,r2n2"
    assert as_slurm_writes_it(["r1n1", "r1n2", "x3"]) == "r1n[1-2],x3"


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        (("show",), 2, "there is no store list.sqlite; 'ncdiag isolate add' makes one"),
        (("remove", "gpu1"), 2, "there is no store list.sqlite"),
        (("plan", *TO_FILE), 2, "there is no store list.sqlite"),
        (("apply", *TO_FILE, "--yes"), 2, "there is no store list.sqlite"),
        (("add", "-x", "--reason", "y"), 2, "no such option"),
        (("add", "a b", "--reason", "y"), 2, "is no host name"),
        (("add", "gpu[1-", "--reason", "y"), 2, "not a node set"),
        (("add", "a,,b", "--reason", "y"), 2, "is no host name"),
        (("add", "gpu[1-999999999]", "--reason", "y"), 2, "more than 100,000 hosts"),
        (("add", "gpu1"), 2, "--reason"),
        (("add", "gpu1", "--reason", "y", "--for", "0s"), 2, "--for"),
        (("plan", "--to", "hostfile"), 2, "--to hostfile needs --file"),
        (("plan", "--to", "slurm", "--file", "x"), 2, "--file is for --to hostfile"),
        (("plan", "--to", "slurm", "--context", "x"), 2, "--context is for --to kubernetes"),
        (("plan", "--to", "kubernetes", "--context", "-x"), 2, "this is no context"),
        (("plan", "--to", "slrum"), 2, "Did you mean 'slurm'?"),
        (("export", "--as", "sarun"), 2, "Did you mean 'srun-exclude'?"),
        (("undo", "--file", "x"), 2, "there is no store list.sqlite"),
    ],
)
def test_what_cannot_be_meant_is_one_line(
    run: Run, words: tuple[str, ...], code: int, said: str
) -> None:
    found, out, err = run(*words)
    assert (found, out) == (code, "")
    assert err.startswith("ncdiag: ")
    assert err.count("\n") == 1
    assert said in err


def test_undo_needs_to_know_where_only_if_it_is_told_half_of_it(run: Run) -> None:
    run("add", "gpu001", "--reason", "fan")
    code, _, err = run("undo", "--file", "hosts.txt")
    assert (code, "--file needs --to" in err) == (2, True)
    code, out, err = run("undo", "--yes")
    assert (code, out, err) == (0, "", "ncdiag has nobody isolated\n")
    code, _, err = run("undo", "gpu001", *TO_FILE)
    assert code == 2
    assert "gpu001: ncdiag has not isolated it at hostfile:" in err


def test_a_file_that_is_gone_is_one_line_and_comes_back(run: Run) -> None:
    run("add", "gpu001", "--reason", "fan")
    run("apply", *TO_FILE, "--yes")
    Path("hosts.txt").rename("away.txt")
    code, out, err = run("undo", "--yes")
    assert (code, out) == (3, "")
    assert "cannot be read: No such file" in err
    assert run("undo", *TO_FILE)[0] == 2  # named just now
    Path("away.txt").rename("hosts.txt")
    assert run("undo", "--yes")[0] == 0


def test_another_ncdiag_that_holds_the_list_is_named(
    run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("ncdiag.isolate.apply.WAIT_S", 0.0)
    run("add", "gpu001", "--reason", "fan")
    with Ledger.open(Path("list.sqlite"), write=True) as ledger, ledger.locked():
        code, out, err = run("apply", *TO_FILE, "--yes")
        assert run("add", "gpu002", "--reason", "fan")[0] == 0
        assert run("plan", *TO_FILE)[0] == 1
    assert (code, out) == (3, "")
    assert f"another ncdiag (pid {os.getpid()} on " in err
    assert Path("hosts.txt").read_text() == HOSTS


def test_whom_undo_took_back_in_is_held_back_in_show_in_plans_and_in_exports(run: Run) -> None:
    run("add", "gpu003", "--reason", "fan")
    run("apply", *TO_FILE, "--yes")
    assert run("export")[1] == "gpu003\n"
    code, out, err = run("undo")
    assert (code, out.split()[:2]) == (1, ["release", "gpu003:"])
    assert err == "nothing was changed; --yes carries it out\n"
    assert run("undo", "--yes")[0] == 0
    table = run("show")[1]
    assert table.splitlines()[1].split()[:3] == ["gpu003", "held", "back"]
    assert "held back: gpu003" in table
    shown = " ".join(run("show", "gpu003")[1].split())
    assert "gpu003: held back, operator" in shown
    assert "took it back in on 20" in shown
    assert "until" not in shown
    assert "next: it stays in meanwhile; ncdiag isolate add gpu003 puts it on the list" in shown
    assert run("export")[:2] == (0, "")
    code, out, _ = run("plan", *TO_FILE)
    assert (code, "held back   gpu003: " in out) == (0, True)
    run("add", "gpu003", "--reason", "fan again")
    assert run("export")[1] == "gpu003\n"
    assert run("plan", *TO_FILE)[0] == 1


def test_what_is_seen_after_an_undo_counts_although_the_clock_went_back(run: Run) -> None:
    run("add", "gpu003", "--reason", "fan")
    run("apply", *TO_FILE, "--yes")
    run("undo", "--yes")
    assert run("export")[1] == ""
    piece = EvidencePiece(
        host="gpu003",
        kind=EvidenceKind.CRASH,
        class_="gpu_fell_off_bus",
        source="parse-log",
        run="job 7",
        seen_s=1.79e9,
        text="Xid 79",
    )
    with Ledger.open(Path("list.sqlite"), write=True) as ledger:
        ledger.add([piece], now_s=1.79e9)
    assert run("export")[1] == "gpu003\n"
    assert run("apply", *TO_FILE, "--yes")[0] == 0
    assert "| gpu003 slots=8\n" in Path("hosts.txt").read_text()


def test_a_host_that_nothing_is_known_of_is_told_with_the_one_that_may_be_meant(run: Run) -> None:
    run("add", "gpu007,GPU009.example.org", "--reason", "fan")
    code, out, err = run("remove", "gpu007,gpu077")
    assert (code, out) == (2, "")
    assert err == "ncdiag: gpu077 is not on the list; did you mean gpu007?\n"
    assert "gpu007" in run("export")[1]
    assert "did you mean GPU009.example.org?" in run("remove", "gpu009")[2]
    assert "; ncdiag isolate show lists who is" in run("remove", "x1")[2]
    assert run("show", "gpu077")[:2] == (
        0,
        "gpu077: nothing is known of it; did you mean gpu007?\n",
    )
    assert run("show", "x1")[1] == "x1: nothing is known of it\n"
    assert run("remove", "gpu007")[0] == run("remove", "gpu007")[0] == 0


def test_lines_for_people_fit_80_columns_and_a_plan_names_the_next_command(run: Run) -> None:
    run("add", "gpu003", "--reason", "the second fan of the upper tray stands still " * 3)
    code, out, err = run("plan", *TO_FILE)
    assert code == 1
    assert max(len(line) for line in out.splitlines() if "hosts.txt: " not in line) <= 80
    command = "ncdiag isolate apply --to hostfile --file hosts.txt --store list.sqlite --yes"
    assert err == f"next        {command}\n"
    run("add", "gpu[004-040]", "--reason", "fan")
    code, out, err = run("plan", *TO_FILE)
    assert (code, err) == (1, "")
    assert "-> see first what these hosts share" in " ".join(out.split())
    assert max(len(line) for line in run("show", "gpu003")[1].splitlines()) <= 80


def test_nobody_is_told_to_be_sure_of_what_is_inconclusive(run: Run) -> None:
    vague = EvidencePiece(
        host="gpu001",
        kind=EvidenceKind.HEALTH,
        class_="gpu_row_remap_pending",
        source="health",
        run="r1",
        seen_s=1.79e9,
        text="rows wait to be remapped",
        confidence=0.7,
        conclusive=False,
        until_s=4e9,
    )
    clean = EvidencePiece(
        host="gpu001",
        kind=EvidenceKind.HEALTH,
        class_="clean_health",
        source="health",
        run="r1",
        seen_s=1.79e9,
        text="35 checks passed",
        clears=True,
        covers=("mounts",),
    )
    with Ledger.open(Path("list.sqlite"), write=True) as ledger:
        ledger.add([vague, clean])
    lines = run("show", "gpu001")[1].splitlines()
    assert "  lemon score: 0.0" in lines
    told = [line.partition("  health: ")[2] for line in lines if "  health: " in line]
    assert told == ["gpu_row_remap_pending, inconclusive", "in order"]
    assert "%" not in run("show")[1]


def node(name: str, **spec: Any) -> dict[str, Any]:
    return {"metadata": {"name": name, "resourceVersion": "1"}, "spec": spec, "status": {}}


def test_kubernetes_from_the_word_to_the_undo(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    file = Path("nodes.json").absolute()
    items = [node(f"n{number}") for number in range(1, 21)] + [node("n30", unschedulable=True)]
    file.write_text(json.dumps({"items": items}))
    monkeypatch.setenv("KUBECTL_NODES", str(file))
    monkeypatch.setenv("PATH", f"{KUBECTL}:{os.environ['PATH']}")
    monkeypatch.setenv("KUBECTL_CONTEXT", "blue")
    Path("wide.toml").write_text("[budget]\nper_cent = 20\n")
    run("add", "n1,n30", "--reason", "fan")
    code, out, _ = run("apply", "--to", "kubernetes", "--yes", "--policy", "wide.toml")
    assert code == 0
    assert "left alone  n30: it was cordoned by somebody else" in out
    nodes = {one["metadata"]["name"]: one for one in json.loads(file.read_text())["items"]}
    assert nodes["n1"]["spec"]["unschedulable"] is True
    assert nodes["n1"]["metadata"]["annotations"]["ncdiag.io/reason"].startswith("ncdiag: ")
    monkeypatch.setenv("KUBECTL_CONTEXT", "green")
    code, out, _ = run("undo", "--yes")
    assert (code, "kubernetes:blue: released: n1" in out) == (0, True)
    nodes = {one["metadata"]["name"]: one["spec"] for one in json.loads(file.read_text())["items"]}
    assert nodes == {one["metadata"]["name"]: one["spec"] for one in items}


def test_the_policy_in_force_is_a_policy_file_that_says_the_same(run: Run) -> None:
    Path("own.toml").write_text(
        "[budget]\nhosts = 3\n[class.gpu_fell_off_bus]\nconfirmations = 2\nof = 3\n"
        '[kind.crash]\nwithin = "90s"\n'
    )
    for own in (None, Path("own.toml")):
        policy = read_policy(own)
        printed = run("policy", *(("--policy", str(own)) if own else ()), store=False)
        assert printed == (0, as_text(policy), "")
        Path("again.toml").write_text(printed[1])
        assert read_policy(Path("again.toml")) == policy
    found = json.loads(run("policy", "--format", "json", "--policy", "own.toml", store=False)[1])
    assert found["budget"]["hosts"] == 3
    assert found["kinds"]["crash"]["within_s"] == 90
