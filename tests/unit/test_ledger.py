"""The ledger: evidence counts once, actions and the audit trail stay, one at a time changes it."""

import multiprocessing
import os
import signal
import sqlite3
from dataclasses import replace
from multiprocessing.connection import Connection
from pathlib import Path

import pytest
from evidence_pieces import DAY_S, NOW_S, clean, crash, piece
from reports_for_stores import small_sweep

from ncdiag.model.errors import ExitCode, NcdiagError, UndecidedError, UsageError
from ncdiag.model.isolation import EvidenceKind, EvidencePiece
from ncdiag.store import schema
from ncdiag.store.connection import open_database
from ncdiag.store.evidence_rows import KEPT_CLEAN_RUNS
from ncdiag.store.evidence_table import MAX_PARTNERS, EvidenceTable
from ncdiag.store.file_systems import FileSystem
from ncdiag.store.ledger import Ledger
from ncdiag.store.ledger_records import ActionRecord, ActionState, AuditEntry
from ncdiag.store.lock import locked
from ncdiag.store.store import Store


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "s.sqlite"


def an_action(host: str = "h1", *, isolate: bool = True, **more: object) -> ActionRecord:
    made = ActionRecord(
        place="slurm",
        host=host,
        isolate=isolate,
        reason="slow_host",
        plan="p1",
        by="ops",
        intended_s=NOW_S,
    )
    return replace(made, **more)  # type: ignore[arg-type]


def test_evidence_comes_out_as_it_went_in_the_newest_first(path: Path) -> None:
    old = crash(
        "h1",
        "gpu_fell_off_bus",
        ago_s=3 * DAY_S,
        component="0000:3b:00",
        report="/logs/a:3",
        uptime_s=12.5,
        until_s=NOW_S + 60,
    )
    new = clean("h2", "r9", EvidenceKind.HEALTH, covers=("pcie_error", "gpu-count"))
    with Ledger.open(path, write=True) as ledger:
        assert ledger.add([old, new], now_s=NOW_S) == 2
        assert ledger.evidence() == [replace(new, covers=("gpu-count", "pcie_error")), old]
        assert ledger.evidence(["h1"]) == [old]
        assert ledger.evidence(since_s=NOW_S - DAY_S) == [
            replace(new, covers=("gpu-count", "pcie_error"))
        ]
        assert ledger.evidence(last=1)[0].host == "h2"
        table = ledger.table()
        assert table.hosts == ("h1", "h2")
        made = table.pieces_of(range(2))
        assert {one.host: one for one in made} == {one.host: one for one in ledger.evidence()}


def test_the_same_run_counts_once_and_what_is_told_last_holds(path: Path) -> None:
    with Ledger.open(path, write=True) as ledger:
        assert ledger.add([piece("h1"), piece("h2")], now_s=NOW_S) == 2
        assert ledger.add([piece("h1", text="again", conclusive=False)], now_s=NOW_S) == 0
        assert ledger.add([piece("h1", "r2"), piece("h1", component="eth0")], now_s=NOW_S) == 2
        told = {(one.run, one.component): one.text for one in ledger.evidence(["h1"])}
    assert told[("r1", None)] == "again"
    assert len(told) == 3


def test_of_a_run_that_is_told_anew_nothing_older_remains(path: Path) -> None:
    with Ledger.open(path, write=True) as ledger:
        ledger.add([piece("h1"), piece("h2"), piece("h1", "r2")], now_s=NOW_S)
        ledger.add([clean("h1", "r1")], instead_of=("r1",), now_s=NOW_S)
        assert {(one.host, one.run, one.clears) for one in ledger.evidence()} == {
            ("h1", "r1", True),
            ("h1", "r2", False),
        }
        ledger.add([], instead_of=("r2",), now_s=NOW_S)
        assert [one.run for one in ledger.evidence()] == ["r1"]


def test_nothing_was_seen_in_the_future_and_nonsense_is_bounded(path: Path) -> None:
    wild = [
        piece("h1", ago_s=-1e9),
        piece("h2", seen_s=float("nan"), until_s=float("inf"), uptime_s=-5.0),
        piece("h3", confidence=7.0, partners=("h3", *(f"p{n:02}" for n in range(99)))),
        piece("h4", confidence=float("nan"), text="a\ud800b", component="g\x1b[1m"),
    ]
    with Ledger.open(path, write=True) as ledger:
        assert ledger.add(wild, now_s=NOW_S) == 4
        found = {one.host: one for one in ledger.evidence()}
        assert len(ledger.table()) == 4
    assert found["h1"].seen_s == NOW_S
    assert (found["h2"].seen_s, found["h2"].until_s, found["h2"].uptime_s) == (0.0, None, None)
    assert found["h3"].confidence == 1.0
    assert len(found["h3"].partners) == MAX_PARTNERS
    assert "h3" not in found["h3"].partners
    assert found["h4"].confidence == 0.0
    assert found["h4"].text == "a\\ud800b"


def test_only_the_newest_clean_runs_of_a_host_are_kept(path: Path) -> None:
    runs = KEPT_CLEAN_RUNS + 5
    with Ledger.open(path, write=True) as ledger:
        ledger.add([piece("h1", f"bad{n}", ago_s=9e5 + n) for n in range(runs)], now_s=NOW_S)
        for number in range(runs):
            ledger.add([clean("h1", f"r{number:02}", ago_s=1000.0 - number)], now_s=NOW_S)
        kept = [one.run for one in ledger.evidence() if one.clears]
        assert kept == [f"r{number:02}" for number in range(runs)][:4:-1]
        assert len(ledger.evidence()) == runs + KEPT_CLEAN_RUNS


def test_evidence_is_kept_without_secrets(path: Path) -> None:
    with Ledger.open(path, write=True) as ledger:
        ledger.add([piece("h1", text="started with --token=abcdef0123")], now_s=NOW_S)
        assert "abcdef" not in ledger.evidence()[0].text


def test_a_table_of_pieces_is_the_same_as_that_of_the_file(path: Path) -> None:
    pieces = [piece("h2", "r2", component="b"), crash("h1", "oom_kill"), clean("h3", "r1")]
    made = EvidenceTable.of(pieces)
    with Ledger.open(path, write=True) as ledger:
        ledger.add(pieces[::-1], now_s=NOW_S)
        read = ledger.table()
        assert (made.hosts, made.classes, made.runs) == (read.hosts, read.classes, read.runs)
        for table in (made, read):
            rows: list[EvidencePiece] = table.pieces_of(range(3))
            assert [table.hosts[one] for one in table.host] == [row.host for row in rows]
            assert [table.classes[one] for one in table.class_] == [row.class_ for row in rows]
            assert sorted(rows, key=lambda row: row.host) == sorted(pieces, key=lambda p: p.host)


def test_an_empty_ledger_has_an_empty_table(path: Path) -> None:
    with Ledger.open(path, write=True) as ledger:
        assert len(ledger.table()) == 0
        assert ledger.evidence() == []
        assert ledger.isolated() == {}
        assert ledger.audit() == []


def test_a_store_of_version_2_keeps_its_runs_and_gets_a_ledger(path: Path) -> None:
    open_database(path, write=True, steps=schema.STEPS[:2]).close()
    with Store.open(path, write=True) as store:
        store.add(small_sweep(1))
    with Ledger.open(path, write=True) as ledger:
        assert ledger.add([piece("h1")], now_s=NOW_S) == 1
    with Store.open(path) as store:
        assert len(store.runs()) == 1


def test_an_action_goes_from_intended_to_done_and_is_undone_by_a_release(path: Path) -> None:
    with Ledger.open(path, write=True) as ledger:
        number = ledger.record_action(an_action())
        assert ledger.isolated("slurm")["h1"].state is ActionState.INTENDED
        ledger.finish_action(number, ActionState.DONE, now_s=NOW_S + 1)
        (done,) = ledger.actions("slurm", host="h1", plan="p1")
        assert (done.number, done.state, done.changed_s) == (number, ActionState.DONE, NOW_S + 1)
        undo = ledger.record_action(an_action(isolate=False, plan="p2"))
        assert set(ledger.isolated()) == {"h1"}
        ledger.finish_action(undo, ActionState.FAILED, error="no answer")
        assert set(ledger.isolated()) == {"h1"}
        again = ledger.record_action(an_action(isolate=False, plan="p3"))
        ledger.finish_action(again, ActionState.DONE)
        assert ledger.isolated() == {}
        assert [one.state.value for one in ledger.actions()] == ["done", "failed", "done"]
        assert ledger.actions()[1].error == "no answer"
        assert ledger.outs() == {"h1": (NOW_S,)}


def test_what_failed_is_not_isolated_and_places_are_told_apart(path: Path) -> None:
    with Ledger.open(path, write=True) as ledger:
        failed = ledger.record_action(an_action("h1"))
        ledger.finish_action(failed, ActionState.FAILED, error="refused")
        ledger.record_action(an_action("h2", place="kubernetes"))
        assert ledger.isolated("slurm") == {}
        assert set(ledger.isolated()) == {"h2"}
        assert ledger.outs() == {"h2": (NOW_S,)}
        with pytest.raises(UsageError, match="no action 99"):
            ledger.finish_action(99, ActionState.DONE)


def test_nothing_is_ever_removed_from_the_audit_trail(path: Path) -> None:
    entry = AuditEntry(
        what="apply",
        user="ops",
        machine="login1",
        command="ncdiag isolate apply --yes --password=hunter2",
        about="2 hosts isolated",
        at_s=NOW_S,
    )
    with Ledger.open(path, write=True) as ledger:
        ledger.note(entry)
        ledger.note(replace(entry, what="undo"))
        assert [one.what for one in ledger.audit()] == ["apply", "undo"]
        assert [one.what for one in ledger.audit(last=1)] == ["undo"]
        assert "hunter2" not in ledger.audit()[0].command
    with sqlite3.connect(path) as database:
        for change in ("DELETE FROM audit", "UPDATE audit SET user = 'nobody'"):
            with pytest.raises(sqlite3.IntegrityError, match="stays on record"):
                database.execute(change)
    database.close()


def test_a_batch_that_fails_leaves_no_piece_behind(path: Path) -> None:
    class Broken(list[EvidencePiece]):
        def __iter__(self):  # type: ignore[no-untyped-def]  # noqa: ANN204
            yield piece("h1")
            raise KeyboardInterrupt

    with Ledger.open(path, write=True) as ledger:
        with pytest.raises(KeyboardInterrupt):
            ledger.add(Broken(), now_s=NOW_S)
        assert ledger.evidence() == []


def test_a_ledger_that_is_locked_damaged_newer_or_none_is_one_line(tmp_path: Path) -> None:
    busy, newer, other = (tmp_path / name for name in ("busy", "newer", "other"))
    Ledger.open(busy, write=True).close()
    Ledger.open(newer, write=True).close()
    other.write_text("gpu001\n" * 1000)
    holder = sqlite3.connect(busy, isolation_level=None)
    holder.execute("BEGIN IMMEDIATE")
    with sqlite3.connect(newer) as database:
        database.execute("PRAGMA user_version = 99")
    database.close()

    def told(path: Path) -> NcdiagError:
        with (
            pytest.raises(NcdiagError) as caught,
            Ledger.open(path, write=True, busy_s=0.05) as ledger,
        ):
            ledger.add([piece("h1")], now_s=NOW_S)
        assert "\n" not in f"{caught.value}"
        return caught.value

    assert told(busy).exit_code is ExitCode.UNDECIDED
    assert "newer ncdiag" in f"{told(newer)}"
    assert "no store" in f"{told(other)}"
    assert told(tmp_path / "missing" / "s").exit_code is ExitCode.USAGE
    holder.close()


def test_a_second_ncdiag_is_told_who_is_changing_the_list(path: Path) -> None:
    with Ledger.open(path, write=True) as first, Ledger.open(path, write=True) as second:
        with (
            first.locked(),
            pytest.raises(UndecidedError, match=f"another ncdiag .pid {os.getpid()} on .* since"),
            second.locked(),
        ):
            pass
        with first.locked():
            second.add([piece("h1")], now_s=NOW_S)  # evidence needs no lock
        with second.locked(wait_s=5.0):
            assert len(first.evidence()) == 1


@pytest.mark.parametrize("shared", [False, True])
def test_the_lock_is_gone_with_the_process_that_held_it(path: Path, *, shared: bool) -> None:
    here, there = multiprocessing.get_context("fork").Pipe()
    child = os.fork()
    if child == 0:
        _hold(path, there, shared=shared)
    assert here.recv() == "held"
    with pytest.raises(UndecidedError, match=f"pid {child} "), _lock(path, shared=shared):
        pass
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    with _lock(path, shared=shared):
        pass


def _lock(path: Path, *, shared: bool):  # type: ignore[no-untyped-def]  # noqa: ANN202
    return locked(path, file_system=lambda _: FileSystem("nfs" if shared else "ext4", shared))


def _hold(path: Path, there: Connection, *, shared: bool) -> None:
    with _lock(path, shared=shared):
        there.send("held")
        signal.pause()


def test_a_lock_that_is_a_link_or_cannot_be_made_is_one_line(path: Path) -> None:
    path.with_name(f"{path.name}.lock").symlink_to(path.parent / "elsewhere")
    with pytest.raises(UsageError, match=r"lock .*another --store"), locked(path):
        pass
    assert not (path.parent / "elsewhere").exists()


def test_the_order_in_which_hosts_were_accused_is_known_whatever_the_clock_said(path: Path) -> None:
    first, later = piece("h1"), piece("h1", "r2", ago_s=3600.0)
    with Ledger.open(path, write=True) as ledger:
        ledger.add([first, clean("h2", "r1")], now_s=NOW_S)
        assert ledger.recorded_after(["h1", "h2", "h3"]) == {"h1": 0}
        number = ledger.record_action(an_action("h9"))
        ledger.add([first, clean("h1", "r3")], now_s=NOW_S)  # nothing new of h1
        assert ledger.recorded_after(["h1"]) == {"h1": 0}
        ledger.add([later], now_s=NOW_S - 3600)
        assert ledger.recorded_after(["h1"]) == {"h1": number}


def test_what_is_told_again_with_something_new_is_new(path: Path) -> None:
    vague = piece("h1", conclusive=False)
    with Ledger.open(path, write=True) as ledger:
        ledger.add([vague], now_s=NOW_S)
        assert ledger.recorded_after(["h1"]) == {}
        number = ledger.record_action(an_action("h1"))
        ledger.add([replace(vague, conclusive=True)], now_s=NOW_S)
        assert ledger.recorded_after(["h1"]) == {"h1": number}


def test_a_ledger_of_version_3_keeps_its_evidence_and_knows_no_order_of_it(path: Path) -> None:
    open_database(path, write=True, steps=schema.STEPS[:3]).close()
    database = sqlite3.connect(path)
    with database:
        database.execute("INSERT INTO names VALUES (1, 'h1')")
        database.execute("INSERT INTO sets VALUES (1, '[]')")
        row = (1, 1, 1, 1, 1, 1, 1, 5.0, None, None, 1, 1, 0, 1, 1, None, None)
        database.execute(
            "INSERT INTO evidence VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)", row
        )
    database.close()
    with Ledger.open(path, write=True) as ledger:
        assert ledger.hosts() == ["h1"]
        assert ledger.recorded_after(["h1"]) == {}
