"""``ncdiag history`` and ``--record`` as an operator meets them."""

import csv
import json
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import pytest
from reports_for_stores import a_link, a_sweep, at, small_bench, small_sweep

from ncdiag.cli import keeping, main
from ncdiag.model.errors import NcdiagError, UsageError
from ncdiag.model.verdict import HostStatus, HostVerdict, LinkStatus
from ncdiag.store.store import Store

ROOT = Path(__file__).parents[2]
Captured = pytest.CaptureFixture[str]


@pytest.fixture
def path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("COLUMNS", "80")
    return tmp_path / "s.sqlite"


def record(path: Path, rates: Sequence[float | None]) -> None:
    with Store.open(path, write=True) as store:
        for number, rate in enumerate(rates):
            store.add(small_sweep(number, rate))


def run(capfd: Captured, *arguments: object) -> tuple[int, str, str]:
    code = main.run([str(argument) for argument in arguments])
    return code, *capfd.readouterr()


def test_the_page_shows_what_is_printed(path: Path, make_report: object, capfd: Captured) -> None:
    assert callable(make_report)
    with Store.open(path, write=True) as store:
        for day in range(7):
            slow = {"h3": 0.2} if day in (2, 5) else {}
            report = make_report(8, slow_senders=slow, seed=day)
            store.add(replace(report, started=f"2026-11-{day + 10}T03:12:45Z"))
    code, out, _ = run(capfd, "history", "host", "h3", "--store", path)
    assert code == 1
    shown = "\n".join(line.rstrip() for line in out.splitlines())
    assert f"```\n{shown}\n```" in (ROOT / "docs/history.md").read_text()


@pytest.mark.parametrize(
    ("rates", "code", "word"),
    [
        ([100.0] * 8, 0, "STEADY"),
        ([100.0 - 3 * n for n in range(9)], 0, "CHANGED"),  # small_sweep: all hosts alike
        ([100.0] * 5, 3, "TOO FEW"),
        ([100.0] * 8 + [None], 3, "UNDECIDED"),
    ],
)
def test_the_exit_code_says_what_the_word_says(
    rates: Sequence[float | None], code: int, word: str, path: Path, capfd: Captured
) -> None:
    with Store.open(path, write=True) as store:
        for number, rate in enumerate(rates):
            sweep = small_sweep(number, rate)
            links = tuple(replace(one, fleet_gbit_per_s=rate) for one in sweep.diagnosis.links)
            store.add(replace(sweep, diagnosis=replace(sweep.diagnosis, links=links)))
    found, out, _ = run(capfd, "history", "link", "h1", "h2", "--store", path)
    assert (found, out.splitlines()[-1].partition(":")[0]) == (code, word)


def test_a_link_that_falls_alone_is_said_in_one_line(path: Path, capfd: Captured) -> None:
    record(path, [100.0 - 2 * n for n in range(10)])
    code, out, _ = run(capfd, "history", "link", "h1->h2", "--store", path)
    assert code == 1
    assert out.splitlines()[-1] == (
        "DRIFTING: h1->h2 fell by 18 % over 10 runs, from 100 Gbit/s to 82.0 Gbit/s"
    )


def test_a_faulty_link_is_said_with_its_error(path: Path, capfd: Captured) -> None:
    link = replace(a_link("a", "b", 1), status=LinkStatus.FAULTY, error="\x1b[31mbad\n")
    with Store.open(path, write=True) as store:
        store.add(a_sweep(at(1), (link, a_link("a", "b", 0))))
    code, out, _ = run(capfd, "history", "link", "a", "b", "--store", path)
    assert code == 1
    assert "newest: \\x1b[31mbad\\n" in out
    assert "FAULTY: a->b on rail 1 was faulty in the newest of 1 run since 2026-01-01" in out
    assert "\x1b" not in out
    code, out, _ = run(capfd, "history", "link", "a", "b", "--rail", "0", "--store", path)
    assert (code, out.count("TOO FEW"), out.count("FAULTY")) == (3, 1, 0)


def test_a_table_fits_a_terminal(path: Path, capfd: Captured) -> None:
    hosts = (HostVerdict(name="h1", status=HostStatus.INCONCLUSIVE, efficiency=0.5),)
    with Store.open(path, write=True) as store:
        for number in range(3):
            links = (replace(a_link("h1", "h2"), expected_gbit_per_s=0.001 * (number + 100)),)
            store.add(a_sweep(at(number), links, hosts))
    _, out, _ = run(capfd, "history", "host", "h1", "--store", path)
    table = out.splitlines()[:4]
    assert all(len(line) <= 80 for line in table)
    assert "…" not in out
    assert "102 Mbit/s" in out


def test_the_list_of_runs_names_culprits_and_kinds(path: Path, capfd: Captured) -> None:
    record(path, [100.0])
    with Store.open(path, write=True) as store:
        store.add(small_bench(5))
        store.add(small_sweep(6), kind="import", content="x")
        store.add(replace(small_sweep(7), interrupted=True))
    code, out, _ = run(capfd, "history", "--store", path)
    assert code == 0
    assert [line.split()[3] for line in out.splitlines()[1:]] == [
        "sweep",
        "bench",
        "import",
        "sweep",
    ]
    assert "all_reduce" in out
    assert out.splitlines()[-1].endswith("interrupted")
    _, out, _ = run(capfd, "history", "--kind", "bench", "--format", "csv", "--store", path)
    (row,) = csv.DictReader(out.splitlines())
    assert (row["kind"], row["collective"], row["hosts"]) == ("bench", "all_reduce", "4")
    code, out, err = run(capfd, "history", "--since", "2030-01-01", "--store", path)
    assert (code, out) == (0, "")
    assert "no recorded run" in err


def test_json_has_all_of_it(path: Path, capfd: Captured) -> None:
    record(path, [100.0 - 2 * n for n in range(10)])
    _, out, _ = run(capfd, "history", "host", "h1", "--format", "json", "--store", path)
    document = json.loads(out)
    assert (document["schema"], document["kind"]) == ("ncdiag/history/1", "host")
    (history,) = document["histories"]
    assert history["standing"] == "drifting"
    assert history["drift"]["change"] == pytest.approx(-0.18)
    assert [one["send_gbit_per_s"] for one in history["runs"]][:2] == [100.0, 98.0]
    _, out, _ = run(capfd, "history", "--format", "json", "--store", path)
    runs = json.loads(out)["runs"]
    assert [one["number"] for one in runs] == list(range(1, 11))


def test_csv_has_a_row_a_run(path: Path, capfd: Captured) -> None:
    with Store.open(path, write=True) as store:
        store.add(a_sweep(at(1), (replace(a_link("a", "b"), error="=cmd()"),)))
    _, out, _ = run(capfd, "history", "link", "a", "b", "--format", "csv", "--store", path)
    (row,) = csv.DictReader(out.splitlines())
    assert (row["measured_gbit_per_s"], row["error"]) == ("100.0", "'=cmd()")


def test_benchmarks_have_a_table_for_each_number_of_hosts(path: Path, capfd: Captured) -> None:
    with Store.open(path, write=True) as store:
        for number in range(8):
            store.add(small_bench(number, 400.0 - 10 * number))
    code, out, _ = run(capfd, "history", "bench", "all_reduce", "--store", path)
    assert code == 1
    lines = [line for line in out.splitlines() if line.startswith("DRIFTING")]
    assert len(lines) == 2
    assert "all_reduce over 2 hosts, 16 ranks fell by 18 %" in lines[0]
    _, out, _ = run(capfd, "history", "bench", "all_reduce", "--host-count", 4, "--store", path)
    assert out.count("DRIFTING") == 1


def test_a_picture_is_drawn_and_none_is_overwritten(path: Path, capfd: Captured) -> None:
    record(path, [100.0, None, 50.0])
    png = path.with_suffix(".png")
    arguments = ["history", "link", "h1", "h2", "--png", png, "--store", path]
    run(capfd, *arguments)
    assert png.read_bytes().startswith(b"\x89PNG")
    code, _, err = run(capfd, *arguments)
    assert code == 2
    assert "--force" in err
    assert run(capfd, *arguments, "--force")[0] == 3


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        (["host", "h22"], 2, "did you mean h2?"),
        (["host", "zebra"], 2, "there are 3 hosts: h1, h2, h3"),
        (["link", "h1", "zebra"], 2, "host zebra is in no recorded run"),
        (["link", "h1"], 2, "two ends"),
        (["link", "h1", "h2", "h3"], 2, "two ends"),
        (["link", "h1->"], 2, "two ends"),
        (["link", "h1", "h2", "--rail", "7"], 3, "h1->h2 on rail 7"),
        (["link", "h1", "h1"], 3, "no recorded run"),
        (["host", "h1", "--since", "2030-01-01"], 3, "no recorded run"),
        (["host", "h1", "--since", "soon"], 2, "not a time"),
        (["host", "h1", "--since", "2026-13-01"], 2, "not a time"),
        (["host", "h1", "--last", "0"], 2, "--last"),
        (["bench", "all_gather"], 2, "no benchmark of all_gather"),
        (["--last", "3", "host", "h1"], 2, "--last goes behind the command"),
        (["--format", "json", "host", "h1"], 2, "--format goes behind the command"),
        (["hots", "h1"], 2, "host"),
        (["export", "--to", "x.xlsx"], 2, ".csv or .parquet"),
    ],
)
def test_bad_use_is_one_line(
    arguments: list[str], code: int, said: str, path: Path, capfd: Captured
) -> None:
    record(path, [100.0])
    behind = [] if arguments[0].startswith("--") else ["--store", path]
    found, out, err = run(capfd, "history", *arguments, *behind)
    assert (found, out) == (code, "")
    assert said in err
    assert err.count("\n") == 1


def test_without_a_store_it_says_how_to_get_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: Captured
) -> None:
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    code, _, err = run(capfd, "history")
    assert code == 2
    assert f"there is no store {tmp_path}/ncdiag/results.sqlite" in err
    assert list(tmp_path.iterdir()) == []


def test_keeping_makes_the_default_store_and_says_where(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: Captured
) -> None:
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    keeping.check(None, record=True)
    assert keeping.keep(small_sweep(1), None, directory=Path("/reports/a"))
    assert keeping.keep(small_sweep(1), None, quiet=True)
    _, err = capfd.readouterr()
    assert err == (
        f"recorded as run 1 in {tmp_path}/ncdiag/results.sqlite\n"
        f"evidence in {tmp_path}/ncdiag/results.sqlite: conclusive against 0 hosts, "
        "not conclusive against 0, clears 3\n"
    )
    assert (tmp_path / "ncdiag").stat().st_mode & 0o077 == 0
    code, out, _ = run(capfd, "history", "--format", "json")
    assert code == 0
    assert len(json.loads(out)["runs"]) == 1


def test_what_cannot_be_kept_is_one_line_and_no_error(tmp_path: Path, capfd: Captured) -> None:
    other = tmp_path / "hosts.txt"
    other.write_text("gpu001\n" * 1000)
    assert not keeping.keep(small_sweep(1), other, quiet=True)
    _, err = capfd.readouterr()
    assert err.startswith("not recorded: ")
    assert err.count("\n") == 1


def test_a_store_that_cannot_be_used_is_seen_before_anything_is_measured(tmp_path: Path) -> None:
    with pytest.raises(NcdiagError, match="no folder"):
        keeping.check(tmp_path / "no" / "s.sqlite", record=True)
    with pytest.raises(UsageError, match="--record"):
        keeping.check(tmp_path / "s.sqlite", record=False)
    keeping.check(None, record=False)
    assert list(tmp_path.iterdir()) == []


def test_looking_at_runs_and_hosts_loads_nothing_heavy(path: Path) -> None:
    record(path, [100.0])
    code = (
        "import sys\n"
        "from ncdiag.cli.main import run\n"
        "for words in (['history'], ['history', 'host', 'h1']):\n"
        f"    run([*words, '--store', {str(path)!r}])\n"
        "print('loaded:', *sys.modules)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60
    )
    heavy = {"pandas", "numpy", "matplotlib", "distributed", "pyarrow"}
    assert not heavy & set(done.stdout.splitlines()[-1].split())


def test_links_are_exported_as_csv(path: Path, capfd: Captured) -> None:
    record(path, [100.0, None])
    to = path.with_suffix(".csv")
    code, out, err = run(capfd, "history", "export", "--to", to, "--store", path)
    assert (code, out, err) == (0, "", f"12 rows in {to}\n")
    rows = list(csv.DictReader(to.read_text().splitlines()))
    assert (rows[0]["source"], rows[0]["target"], rows[0]["run"]) == ("h1", "h2", "1")
    assert (rows[0]["measured_gbit_per_s"], rows[0]["round"]) == ("100", "3")
    assert (rows[-1]["measured_gbit_per_s"], rows[-1]["error"]) == ("", "nothing came")
    code, _, err = run(capfd, "history", "export", "--to", to, "--store", path)
    assert code == 2
    assert "--force" in err


@pytest.mark.parametrize(("table", "rows"), [("links", 12), ("hosts", 6), ("bench", 4)])
def test_parquet_says_the_same_as_csv(table: str, rows: int, path: Path, capfd: Captured) -> None:
    pytest.importorskip("pyarrow", reason="pyarrow is missing: pip install 'ncdiag[parquet]'")
    import pandas as pd

    record(path, [100.0, None])
    with Store.open(path, write=True) as store:
        store.add(small_bench(9))
    frames = []
    for suffix, read in ((".csv", pd.read_csv), (".parquet", pd.read_parquet)):
        to = path.with_suffix(suffix)
        code, _, err = run(
            capfd, "history", "export", "--table", table, "--to", to, "--store", path
        )
        assert (code, err) == (0, f"{rows} rows in {to}\n")
        frames.append(read(to))
    one, two = frames
    assert list(one.columns) == list(two.columns)
    assert len(one) == rows
    pd.testing.assert_frame_equal(one, two[list(one.columns)], check_dtype=False, rtol=1e-6)


def test_chunks_of_an_export_are_bounded(
    path: Path, monkeypatch: pytest.MonkeyPatch, capfd: Captured
) -> None:
    from ncdiag.report.history import export

    record(path, [100.0] * 5)
    sizes = []
    frame = export._frame

    def counting(columns: export.Columns, kinds: Mapping[str, str]) -> object:
        sizes.append(len(columns["run"]))
        return frame(columns, kinds)

    monkeypatch.setattr(export, "_CHUNK_ROWS", 4)
    monkeypatch.setattr(export, "_frame", counting)
    run(capfd, "history", "export", "--to", path.with_suffix(".csv"), "--store", path)
    assert sum(sizes) == 30
    assert max(sizes) <= 5


def test_without_pyarrow_the_cure_is_one_line(
    path: Path, monkeypatch: pytest.MonkeyPatch, capfd: Captured
) -> None:
    record(path, [100.0])
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    to = path.with_suffix(".parquet")
    code, _, err = run(capfd, "history", "export", "--to", to, "--store", path)
    assert code == 2
    assert "ncdiag[parquet]" in err
    assert err.count("\n") == 1
    assert sorted(path.parent.glob("*.parquet*")) == []
    assert sorted(path.parent.glob(".*")) == []
