"""The store's file: made, migrated, shared, and everything that can be wrong with it."""

import os
import sqlite3
import subprocess
import sys
import tempfile
import textwrap
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pytest
from reports_for_stores import small_bench, small_sweep

from ncdiag.model.errors import ExitCode, NcdiagError
from ncdiag.store import schema
from ncdiag.store.connection import open_database, told
from ncdiag.store.file_systems import FILE_SYSTEMS, UNKNOWN, FileSystem, by_magic, file_system_of
from ncdiag.store.location import default_store
from ncdiag.store.store import Store

NFS = FileSystem("nfs", shared=True)
EXT4 = FileSystem("ext4", shared=False)

# Killed within a transaction: SQLite calls back before it begins with a statement.
KILLED = """
    import os, sys
    from pathlib import Path
    sys.path.insert(0, sys.argv[2])
    from reports_for_stores import small_sweep
    from ncdiag.store.store import Store
    store = Store.open(Path(sys.argv[1]), write=True)
    store._database.set_trace_callback(lambda sql: sql.startswith(sys.argv[3]) and os._exit(9))
    store.add(small_sweep(2))
    os._exit(0)
"""
RECORDS = """
    import sys
    from pathlib import Path
    sys.path.insert(0, sys.argv[2])
    from reports_for_stores import small_sweep
    from ncdiag.store.store import Store
    first = int(sys.argv[3])
    sys.stdin.readline()
    for number in range(first, first + 8):
        with Store.open(Path(sys.argv[1]), write=True) as store:
            store.add(small_sweep(number))
"""
HERE = Path(__file__).parent / "importable"


def start(code: str, *arguments: object) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(code), *map(str, arguments)],
        stdin=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def whole(path: Path) -> bool:
    with sqlite3.connect(path) as database:
        found = database.execute("PRAGMA integrity_check").fetchone()[0]
        left = database.execute("PRAGMA foreign_key_check").fetchall()
    database.close()
    return bool(found == "ok" and left == [])


def refused(path: Path, *, write: bool = False, busy_s: float = 0.05) -> NcdiagError:
    with pytest.raises(NcdiagError) as caught:
        Store.open(path, write=write, busy_s=busy_s).close()
    assert "\n" not in f"{caught.value}"
    assert str(path) in f"{caught.value}"
    return caught.value


def make(path: Path, steps: Sequence[schema.Step] = schema.STEPS) -> None:
    open_database(path, write=True, steps=steps).close()


def test_a_new_store_has_the_newest_version_and_the_id_of_ncdiag(tmp_path: Path) -> None:
    path = tmp_path / "s.sqlite"
    make(path)
    with sqlite3.connect(path) as database:
        assert database.execute("PRAGMA user_version").fetchone() == (len(schema.STEPS),)
        assert database.execute("PRAGMA application_id").fetchone() == (schema.APPLICATION_ID,)
    database.close()


def test_a_store_of_version_1_keeps_its_runs_when_it_becomes_version_2(tmp_path: Path) -> None:
    path = tmp_path / "s.sqlite"
    make(path, schema.STEPS[:1])
    with sqlite3.connect(path) as database:
        database.execute(
            "INSERT INTO runs (identity, kind, started, seconds, verdict, interrupted, engine,"
            " launcher, mode, hosts, directory, settings, versions) VALUES"
            " ('one', 'sweep', '2026-01-01T00:00:00Z', 1, 'healthy', 0, 'torch', 'ssh', 'full', 2,"
            " NULL, '{}', '{}')"
        )
        database.commit()
    database.close()
    with Store.open(path) as store:
        assert [run.started for run in store.runs()] == ["2026-01-01T00:00:00Z"]
    with Store.open(path, write=True) as store:
        store.add(small_sweep(1))
        store.add(small_bench(1))
        assert len(store.runs()) == 3


def test_a_step_that_fails_leaves_the_store_as_it_was(tmp_path: Path) -> None:
    path = tmp_path / "s.sqlite"
    make(path, schema.STEPS[:1])
    broken = (
        schema.STEPS[0],
        ("CREATE TABLE more (id INTEGER)", "CREATE TABLE names (id INTEGER)"),
    )
    with pytest.raises(NcdiagError, match="already exists"):
        make(path, broken)
    with sqlite3.connect(path) as database:
        assert database.execute("PRAGMA user_version").fetchone() == (1,)
        tables = {row[0] for row in database.execute("SELECT name FROM sqlite_master")}
    database.close()
    assert "names" in tables
    assert "more" not in tables
    make(path)


def test_a_store_of_a_newer_version_is_refused_and_untouched(tmp_path: Path) -> None:
    path = tmp_path / "s.sqlite"
    make(path)
    with sqlite3.connect(path) as database:
        database.execute("PRAGMA user_version = 99")
    database.close()
    before = path.read_bytes()
    for write in (False, True):
        error = refused(path, write=write)
        assert error.exit_code is ExitCode.USAGE
        assert "version 99" in f"{error}"
        assert "update ncdiag" in f"{error}"
    assert path.read_bytes() == before


def test_a_locked_store_is_waited_for_and_then_undecided(tmp_path: Path) -> None:
    path = tmp_path / "s.sqlite"
    make(path)
    with Store.open(path, write=True, busy_s=0.05) as store:
        holder = sqlite3.connect(path, isolation_level=None)
        holder.execute("BEGIN IMMEDIATE")
        with pytest.raises(NcdiagError, match="another process") as caught:
            store.add(small_sweep(1))
        assert caught.value.exit_code is ExitCode.UNDECIDED
        holder.execute("ROLLBACK")
        store.add(small_sweep(1))
        holder.close()


def test_a_text_file_is_no_store(tmp_path: Path) -> None:
    path = tmp_path / "hosts.txt"
    path.write_text("gpu[001-128]\n" * 100)
    for write in (False, True):
        error = refused(path, write=write)
        assert error.exit_code is ExitCode.USAGE
        assert "no store" in f"{error}"
    assert path.read_text() == "gpu[001-128]\n" * 100


def test_the_database_of_another_program_is_no_store(tmp_path: Path) -> None:
    path = tmp_path / "other.sqlite"
    with sqlite3.connect(path) as database:
        database.execute("CREATE TABLE mine (id INTEGER)")
    database.close()
    for write in (False, True):
        assert "another program" in f"{refused(path, write=write)}"


def test_an_empty_file_is_no_store_to_read_and_becomes_one_to_write(tmp_path: Path) -> None:
    path = tmp_path / "s.sqlite"
    path.touch()
    assert "empty" in f"{refused(path)}"
    make(path)
    Store.open(path).close()


def test_a_damaged_store_is_undecided(tmp_path: Path) -> None:
    path = tmp_path / "s.sqlite"
    with Store.open(path, write=True) as store:
        for number in range(20):
            store.add(small_sweep(number))
    data = bytearray(path.read_bytes())
    data[4096:] = b"\xa5" * (len(data) - 4096)
    path.write_bytes(data)
    with pytest.raises(NcdiagError, match="damaged") as caught, Store.open(path) as store:
        store.runs()
    assert caught.value.exit_code is ExitCode.UNDECIDED


def test_links_that_cannot_be_unpacked_are_one_line(tmp_path: Path) -> None:
    path = tmp_path / "s.sqlite"
    with Store.open(path, write=True) as store:
        store.add(small_sweep(1))
        store._database.execute("UPDATE links SET packed = x'00'")
        with pytest.raises(NcdiagError, match="cannot be read"):
            store.link_history("h1", "h2")


def test_a_full_disk_loses_nothing(tmp_path: Path) -> None:
    path = tmp_path / "s.sqlite"
    with Store.open(path, write=True) as store:
        store.add(small_sweep(1))
        pages = store._database.execute("PRAGMA page_count").fetchone()[0]
        store._database.execute(f"PRAGMA max_page_count = {pages + 2}")
        big = replace(small_sweep(2), settings={"note": "x" * 100_000})
        with pytest.raises(NcdiagError, match="disk is full") as caught:
            store.add(big)
        assert caught.value.exit_code is ExitCode.UNDECIDED
        assert len(store.runs()) == 1
    assert whole(path)


def test_a_missing_store_and_a_missing_folder_say_how_to_get_one(tmp_path: Path) -> None:
    assert "--record" in f"{refused(tmp_path / 'none.sqlite')}"
    error = refused(tmp_path / "no" / "s.sqlite", write=True)
    assert "no folder" in f"{error}"
    assert "no file" in f"{refused(tmp_path, write=True)}"


@pytest.mark.parametrize(
    ("name", "code"),
    [
        ("SQLITE_BUSY_SNAPSHOT", ExitCode.UNDECIDED),
        ("SQLITE_READONLY_DIRECTORY", ExitCode.USAGE),
        ("SQLITE_CANTOPEN", ExitCode.USAGE),
        ("SQLITE_IOERR_WRITE", ExitCode.UNDECIDED),
        ("SQLITE_CORRUPT_INDEX", ExitCode.UNDECIDED),
        ("SQLITE_PROTOCOL", ExitCode.UNDECIDED),
        ("SQLITE_SOMETHING_NEW", ExitCode.UNDECIDED),
    ],
)
def test_every_error_of_sqlite_is_one_line(name: str, code: ExitCode, tmp_path: Path) -> None:
    error = sqlite3.OperationalError("what SQLite says")
    error.sqlite_errorname = name
    with pytest.raises(NcdiagError, match=r"^store ") as caught, told(tmp_path / "a\nb"):
        raise error
    assert caught.value.exit_code is code
    assert "\n" not in f"{caught.value}"


@contextmanager
def as_a_user() -> Iterator[None]:
    """Root may write everywhere, so that it has to be somebody else."""
    before = os.geteuid()
    if before == 0:
        os.seteuid(65534)
    try:
        yield
    finally:
        os.seteuid(before)


def test_a_store_in_a_folder_of_others_can_be_read_and_not_written() -> None:
    # Not in pytest's own folder, which nobody else may enter.
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        path = folder / "s.sqlite"
        with Store.open(path, write=True) as store:
            store.add(small_sweep(1))
        path.chmod(0o444)
        folder.chmod(0o555)
        try:
            with as_a_user():
                with Store.open(path) as store:
                    assert len(store.runs()) == 1
                error = refused(path, write=True)
        finally:
            folder.chmod(0o700)
        assert error.exit_code is ExitCode.USAGE
        assert "only be read" in f"{error}"


@pytest.mark.parametrize(("where", "mode"), [(EXT4, "wal"), (NFS, "delete"), (UNKNOWN, "delete")])
def test_only_a_local_disk_gets_a_write_ahead_log(
    where: FileSystem, mode: str, tmp_path: Path
) -> None:
    path = tmp_path / "s.sqlite"
    database = open_database(path, write=True, file_system=lambda _: where)
    assert database.execute("PRAGMA journal_mode").fetchone() == (mode,)
    database.close()


@pytest.mark.parametrize("write", [True, False])
def test_a_store_that_moves_to_a_shared_file_system_loses_its_log_and_nothing_else(
    write: bool,  # noqa: FBT001
    tmp_path: Path,
) -> None:
    path = tmp_path / "s.sqlite"
    with Store.open(path, write=True) as store:
        store.add(small_sweep(1))
    holder = open_database(path, write=True, file_system=lambda _: EXT4)
    copy = tmp_path / "copy.sqlite"
    with Store(holder, path) as store:
        store.add(small_sweep(2))
        for end in ("", "-wal"):  # as it is copied while somebody has it open
            copy.with_name(f"copy.sqlite{end}").write_bytes(Path(f"{path}{end}").read_bytes())
    path = copy
    database = open_database(path, write=write, file_system=lambda _: NFS)
    assert not Path(f"{path}-shm").exists()
    assert database.execute("PRAGMA journal_mode").fetchone() == ("delete",)
    # Others can read and write while this connection is open.
    other = open_database(path, write=True, busy_s=0.05, file_system=lambda _: NFS)
    with Store(other, path) as store:
        assert len(store.runs()) == 2
        store.add(small_sweep(3))
        assert len(Store(database, path).runs()) == 3
    database.close()


def test_two_at_once_make_one_store_on_a_shared_file_system(tmp_path: Path) -> None:
    path = tmp_path / "s.sqlite"
    with ThreadPoolExecutor(4) as pool:
        opened = list(
            pool.map(
                lambda _: open_database(path, write=True, file_system=lambda _: NFS).close(),
                range(12),
            )
        )
    assert opened == [None] * 12
    Store.open(path).close()


def test_the_file_system_is_found() -> None:
    found = file_system_of(Path("/proc/self/stat"))
    assert found == UNKNOWN  # procfs, which nobody keeps a store on
    assert file_system_of(Path("/dev/shm/none")).name in {"tmpfs", "unknown"}  # noqa: S108
    assert file_system_of(Path("/there/is/nothing/here")) == UNKNOWN


@pytest.mark.parametrize(
    ("magic", "name", "shared"),
    [
        (0x6969, "nfs", True),
        (0x0BD00BD0, "lustre", True),
        (0x47504653, "gpfs", True),
        (0xFF534D42, "cifs", True),
        (0xFF534D42 - 2**32, "cifs", True),  # as a signed long of 32 bits
        (0xEF53, "ext4", False),
        (0x12345, "unknown", True),
        (None, "unknown", True),
    ],
)
def test_magic_numbers(magic: int | None, name: str, shared: bool) -> None:  # noqa: FBT001
    assert by_magic(magic) == FileSystem(name, shared)


def test_the_table_of_file_systems_has_those_of_clusters() -> None:
    shared = {one.name for one in FILE_SYSTEMS.values() if one.shared}
    assert {"nfs", "lustre", "gpfs", "beegfs", "ceph", "cifs", "fuse"} <= shared


def test_the_default_is_in_the_data_directory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", "/home/op")
    assert default_store({"XDG_DATA_HOME": "/data"}) == Path("/data/ncdiag/results.sqlite")
    for environment in ({}, {"XDG_DATA_HOME": ""}, {"XDG_DATA_HOME": "relative"}):
        assert default_store(environment) == Path("/home/op/.local/share/ncdiag/results.sqlite")


@pytest.mark.parametrize(
    "statement", ["INSERT INTO runs", "INSERT INTO links", "INSERT OR REPLACE INTO hosts", "COMMIT"]
)
def test_whoever_is_killed_while_recording_leaves_what_was_there(
    statement: str, tmp_path: Path
) -> None:
    path = tmp_path / "s.sqlite"
    with Store.open(path, write=True) as store:
        store.add(small_sweep(1))
    process = start(KILLED, path, HERE, statement)
    process.communicate(timeout=60)
    assert process.returncode == 9
    with Store.open(path, write=True) as store:
        assert [run.started for run in store.runs()] == [small_sweep(1).started]
        store.add(small_sweep(2))
        assert len(store.runs()) == 2
    assert whole(path)


def test_two_processes_at_once_lose_nothing(tmp_path: Path) -> None:
    path = tmp_path / "s.sqlite"  # which neither of them finds
    processes = [start(RECORDS, path, HERE, first) for first in (0, 8)]
    for process in processes:
        assert process.stdin is not None
        process.stdin.write("go\n")
        process.stdin.flush()
    for process in processes:
        _, complaint = process.communicate(timeout=120)
        assert (process.returncode, complaint) == (0, "")
    with Store.open(path) as store:
        assert len(store.runs()) == 16
        assert len(store.link_history("h1", "h2")) == 16
        assert store.host_names() == ["h1", "h2", "h3"]
    assert whole(path)
