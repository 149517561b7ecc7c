"""What goes into a store comes out of it."""

from collections.abc import Sequence
from dataclasses import fields, replace
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from reports_for_stores import a_link, a_sweep, at, small_bench, small_sweep

from ncdiag.model.bench import BenchFinding, BenchFindingKind, BenchPoint, BenchSeverity
from ncdiag.model.verdict import (
    Culprit,
    CulpritKind,
    Direction,
    HostStatus,
    HostVerdict,
    LinkStatus,
    LinkVerdict,
    SweepReport,
)
from ncdiag.store.packing import STATUSES, pack, unpack
from ncdiag.store.records import LinkPoint
from ncdiag.store.redact import redacted, redacted_text
from ncdiag.store.store import Store

HOSTILE = (
    "o'brien",
    'a"b',
    "x; DROP TABLE runs;--",
    "two\nlines",
    "\u202eevil",
    "né-ü-日本",
    "%",
    "",
)
NAMES = st.sampled_from(["h1", "h2", "h3", *HOSTILE])
RATES = st.none() | st.floats(0, 1e6, width=32)


@st.composite
def link_verdicts(draw: st.DrawFn) -> LinkVerdict:
    return LinkVerdict(
        source=draw(NAMES),
        target=draw(NAMES),
        rail=draw(st.integers(0, 9)),
        status=draw(st.sampled_from(list(LinkStatus))),
        measured_gbit_per_s=draw(RATES),
        min_gbit_per_s=draw(RATES),
        expected_gbit_per_s=draw(RATES),
        expected_from=draw(st.none() | st.sampled_from(["400 Gbit/s of eth0", *HOSTILE[:-1]])),
        fleet_gbit_per_s=draw(RATES),
        bytes=draw(st.integers(0, 2**60)),
        tests=draw(st.integers(0, 1000)),
        idle=draw(st.none() | st.floats(0, 1, width=32)),
        error=draw(st.none() | st.sampled_from(HOSTILE[:-1])),
        round=draw(st.none() | st.integers(0, 10_000)),
    )


LINKS = st.lists(link_verdicts(), unique_by=lambda one: (one.source, one.target, one.rail))
SWEEPS = st.lists(
    st.builds(lambda second, links: a_sweep(at(second), tuple(links)), st.integers(0, 5), LINKS),
    max_size=6,
)


def points_of(report: SweepReport, run: int) -> set[LinkPoint]:
    kept = {field.name for field in fields(LinkPoint)} - {"run", "started", "engine"}
    return {
        LinkPoint(
            run=run,
            started=report.started,
            engine="torch",
            **{name: getattr(link, name) for name in kept},
        )
        for link in report.diagnosis.links
    }


@settings(max_examples=60, suppress_health_check=[HealthCheck.too_slow])
@given(SWEEPS)
def test_any_sequence_of_sweeps_comes_out_as_it_went_in(sweeps: Sequence[SweepReport]) -> None:
    newest: dict[object, tuple[int, SweepReport]] = {}
    with TemporaryDirectory() as folder:
        path = Path(folder) / "s.sqlite"
        for sweep in sweeps:
            with Store.open(path, write=True) as store:
                added = store.add(sweep)
            names = tuple(sorted(host.name for host in sweep.diagnosis.hosts))
            identity = (sweep.started, names)
            assert added.again == (identity in newest)
            newest[identity] = (added.number, sweep)
        if not sweeps:
            return
        with Store.open(path) as store:
            assert {run.number for run in store.runs()} == {run for run, _ in newest.values()}
            everything = set()
            for run, sweep in newest.values():
                expected = points_of(sweep, run)
                everything |= expected
                assert {p for table in store.links_of(run) for p in table.points()} == expected
            pairs = {(point.source, point.target) for point in everything}
            for source, target in pairs:
                history = store.link_history(source, target)
                assert set(history) == {
                    point
                    for point in everything
                    if (point.source, point.target) == (source, target)
                }
                assert [one.started for one in history] == sorted(one.started for one in history)


@given(st.lists(link_verdicts(), max_size=20))
def test_packed_columns_can_be_unpacked(links: list[LinkVerdict]) -> None:
    nan = float("nan")
    columns = {
        "target": np.sort(np.arange(len(links)) * 7 + 3),
        "status": np.array([STATUSES.index(link.status) for link in links]),
        "bytes": np.array([link.bytes for link in links], "<u8"),
        "idle": np.array([nan if link.idle is None else link.idle for link in links]),
        "tests": np.array([link.tests for link in links]),
        "round": np.array([-1 if link.round is None else link.round for link in links]),
        "expected_from": np.arange(len(links)),
        "error": np.arange(len(links)),
    } | {
        name: np.array(
            [nan if getattr(link, name) is None else getattr(link, name) for link in links]
        )
        for name in (
            "measured_gbit_per_s",
            "min_gbit_per_s",
            "expected_gbit_per_s",
            "fleet_gbit_per_s",
        )
    }
    found = unpack(pack(columns), len(links))
    for name, values in columns.items():
        np.testing.assert_array_equal(found[name], values.astype(found[name].dtype))


@given(st.binary(max_size=200), st.integers(0, 100))
def test_a_blob_of_anything_is_one_error(data: bytes, count: int) -> None:
    with pytest.raises(ValueError, match=r".+"):
        unpack(data, count + 1)


def test_a_bomb_is_not_unpacked() -> None:
    import zlib

    with pytest.raises(ValueError, match="bytes of"):
        unpack(zlib.compress(bytes(10**8)), 3)


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return Store.open(tmp_path / "s.sqlite", write=True)


def test_a_host_has_its_medians(store: Store) -> None:
    links = (
        a_link("h1", "h2", gbit_per_s=10.0),
        a_link("h1", "h3", gbit_per_s=20.0),
        a_link("h1", "h4", gbit_per_s=30.0),
        a_link("h2", "h1", gbit_per_s=90.0),
        a_link("h3", "h1", gbit_per_s=None),
    )
    hosts = (
        HostVerdict(name="h1", status=HostStatus.FAULTY, efficiency=0.2, reason="slow sending"),
        HostVerdict(name="h9", status=HostStatus.UNREACHABLE, reason="ssh: refused"),
    )
    run = store.add(a_sweep(at(1), links, hosts)).number
    (point,) = store.host_history("h1")
    assert point.run == run
    assert (point.status, point.efficiency, point.reason) == ("faulty", 0.2, "slow sending")
    assert (point.send_gbit_per_s, point.receive_gbit_per_s) == (20.0, 90.0)
    assert point.expected_gbit_per_s == 100.0
    assert point.fleet_ratio == pytest.approx(20 / 99)
    assert point.worst_window == pytest.approx(0.9)
    assert (point.links, point.slow_links) == (5, 1)
    (away,) = store.host_history("h9")
    assert (away.status, away.send_gbit_per_s, away.links) == ("unreachable", None, 0)
    assert store.host_history("h2") == []
    assert store.host_history("nobody") == []


def test_a_run_that_is_recorded_again_counts_once_with_what_is_newest(store: Store) -> None:
    interrupted = replace(small_sweep(1), interrupted=True)
    first = store.add(interrupted, directory=Path("/reports/a"))
    other = store.add(small_sweep(2))
    again = store.add(small_sweep(1, 50.0), directory=Path("/reports/moved"))
    assert (first.again, other.again, again.again) == (False, False, True)
    assert again.number == first.number
    one, two = store.runs()
    assert (one.number, one.interrupted, one.directory) == (first.number, False, "/reports/moved")
    assert two.number == other.number
    assert [point.measured_gbit_per_s for point in store.link_history("h1", "h2")] == [50.0, 100.0]


def test_imports_are_told_apart_by_what_was_read(store: Store) -> None:
    one = store.add(small_sweep(1), kind="import", content="digest 1")
    assert store.add(small_sweep(2), kind="import", content="digest 1").again
    assert not store.add(small_sweep(1), kind="import", content="digest 2").again
    assert not store.add(small_sweep(1)).again
    assert [run.kind for run in store.runs(kind="import")] == ["import", "import"]
    assert one.number in {run.number for run in store.runs()}


def test_the_newest_runs_and_those_since_are_found(store: Store) -> None:
    for number in (3, 1, 2, 0):  # recorded in any order
        store.add(small_sweep(number, 100.0 + number))
    assert [run.started for run in store.runs(last=2)] == [at(2), at(3)]
    assert [run.started for run in store.runs(since=at(1))] == [at(1), at(2), at(3)]
    links = store.link_history("h1", "h2", last=2)
    assert [link.measured_gbit_per_s for link in links] == [102.0, 103.0]
    assert [p.started for p in store.host_history("h1", since=at(2))] == [at(2), at(3)]
    assert store.link_history("h1", "h2", rail=1) == []
    assert store.link_history("h1", "nobody") == []


def test_the_last_runs_of_a_link_are_runs_whatever_the_rails(store: Store) -> None:
    for number in range(3):
        links = tuple(a_link("a", "b", rail) for rail in range(4))
        store.add(a_sweep(at(number), links))
    found = store.link_history("a", "b", last=2)
    assert [(one.started, one.rail) for one in found] == [
        (at(number), rail) for number in (1, 2) for rail in range(4)
    ]


def test_culprits_settings_and_versions_are_kept(store: Store) -> None:
    culprit = Culprit(
        kind=CulpritKind.LINK,
        name="h1->h2",
        direction=Direction.SEND,
        status=LinkStatus.FAULTY,
        confidence=0.9,
        efficiency=0.3,
        explains=1,
        contradicts=0,
        reason="slow",
        next="look",
    )
    fleet = replace(culprit, kind=CulpritKind.FLEET, name="fleet")
    sweep = small_sweep(1)
    sweep = replace(sweep, diagnosis=replace(sweep.diagnosis, culprits=(culprit, fleet)))
    store.add(sweep)
    (run,) = store.runs()
    assert run.culprits == ("link h1->h2", "fleet")
    assert (run.settings, run.versions) == ({"seed": "0"}, {"ncdiag": "1"})
    assert (run.engine, run.launcher, run.mode, run.hosts) == ("torch", "ssh", "full", 3)
    assert (run.kind, run.seconds, run.verdict) == ("sweep", 12.5, "healthy")


def test_benchmarks_come_out_as_they_went_in(store: Store) -> None:
    reports = [small_bench(number, 400.0 + number) for number in range(3)]
    for report in reversed(reports):
        store.add(report)
    found = store.bench_history("all_reduce", hosts=4)
    assert [curve.plateau_busbw_gb_per_s for curve in found] == [400.0, 401.0, 402.0]
    for curve, report in zip(found, reports, strict=True):
        assert curve.points == report.curves[1].points
        assert (curve.hosts, curve.ranks) == (report.curves[1].hosts, 32)
        assert (curve.expected_busbw_gb_per_s, curve.plateau_from_bytes) == (420.0, 2**28)
    assert len(store.bench_history("all_reduce")) == 6
    assert [one.started for one in store.bench_history("all_reduce", hosts=2, last=1)] == [at(2)]
    assert [one.started for one in store.bench_history("all_reduce", hosts=2, before=at(2))] == [
        at(0),
        at(1),
    ]
    assert store.bench_history("all_reduce", engine="torch") == []
    assert store.bench_history("broadcast") == []
    assert store.collectives() == ["all_reduce"]
    assert {run.collective for run in store.runs()} == {"all_reduce"}
    assert store.add(reports[0]).again
    assert len(store.bench_history("all_reduce")) == 6


def test_every_measured_field_of_a_point_of_a_benchmark_is_kept() -> None:
    from ncdiag.store.benches import _POINT_FIELDS

    own = {field.name for field in fields(BenchPoint)}
    assert set(_POINT_FIELDS) == {name for name in own if not name.startswith("history_")}


def test_faults_of_a_benchmark_are_its_culprits(store: Store) -> None:
    fault = BenchFinding(
        kind=BenchFindingKind.SLOW_RANK,
        severity=BenchSeverity.FAULT,
        text="rank 3 is slow",
        next="look",
        rank=3,
        host="h2",
    )
    note = replace(fault, kind=BenchFindingKind.NOISE, severity=BenchSeverity.NOTE)
    wrong = replace(fault, kind=BenchFindingKind.WRONG_DATA, rank=None, host=None)
    store.add(replace(small_bench(1), findings=(note, fault, wrong)))
    (run,) = store.runs()
    assert run.culprits == ("slow rank h2", "wrong data all_reduce")


def test_a_name_that_is_no_unicode_is_kept_as_an_escape(store: Store) -> None:
    store.add(a_sweep(at(1), (a_link("h\udcff", "h2"),)))
    (link,) = store.link_history("h\udcff", "h2")
    assert link.source == "h\\udcff"


def test_no_secret_gets_into_the_file(store: Store) -> None:
    secret = "hunter2-hunter2"  # noqa: S105 - what must not be found
    sweep = small_sweep(1, None)
    links = tuple(
        replace(link, error=f"died: HF_TOKEN={secret} https://me:{secret}@host/x")
        for link in sweep.diagnosis.links
    )
    hosts = (
        HostVerdict(name="h1", status=HostStatus.UNREACHABLE, reason=f"ssh --api-key {secret}: no"),
    )
    sweep = replace(
        sweep,
        diagnosis=replace(sweep.diagnosis, links=links, hosts=hosts),
        settings={"MY_TOKEN": secret, "command": f"x --password '{secret} b' y", "NCCL_KEY": "ok"},
        versions={"secret": secret},
    )
    store.add(sweep)
    bench = small_bench(1, None)
    curves = tuple(replace(one, error=f"AUTH: {secret}") for one in bench.curves)
    store.add(replace(bench, curves=curves, settings={"env": f"A_SECRET={secret}"}))
    sweep_run, bench_run = store.runs()
    assert sweep_run.settings == {
        "MY_TOKEN": "[redacted]",
        "command": "x --password [redacted] y",
        "NCCL_KEY": "ok",
    }
    assert bench_run.settings == {"env": "A_SECRET=[redacted]"}
    store.close()
    for path in store.path.parent.iterdir():
        assert secret.encode() not in path.read_bytes()


@pytest.mark.parametrize(
    ("text", "left"),
    [
        ("Authorization: Bearer hunter2", "Authorization: [redacted]"),
        ("proxy-authorization: Basic hunter2==", "proxy-authorization: [redacted]"),
        ("it sent Bearer hunter2, then", "it sent Bearer [redacted], then"),
        ('{"password": "hunter2", "n": 1}', '{"password": [redacted], "n": 1}'),
        (r'"{\"apiKey\": \"hunter2\"}"', r'"{\"apiKey\": [redacted]'),
        ("{'db': {'password': 'a hunter2'}}", "{'db': {'password': [redacted]}}"),
        ('token="half of hunter2', "token=[redacted]"),
        ("spring.datasource.password=hunter2", "spring.datasource.password=[redacted]"),
        ("DB_PASS=hunter2 x", "DB_PASS=[redacted] x"),
        ("a: HF_TOKEN=hunter2", "a: HF_TOKEN=[redacted]"),
        ("--hf-token hunter2 --n 4", "--hf-token [redacted] --n 4"),
        ("X-Api-Key: hunter2", "X-Api-Key: [redacted]"),
        ("https://hunter2@host/x", "https://[redacted]@host/x"),
        ("https://user:hunter2/ss@host/x", "https://[redacted]@host/x"),
        ("https://user:p@hunter2@host", "https://[redacted]@host"),
    ],
)
def test_secrets_in_a_text_are_left_out(text: str, left: str) -> None:
    assert redacted_text(text) == left


@pytest.mark.parametrize(
    "text",
    [
        "ssh: connect to host h8 port 22: Connection refused",
        "Host key verification failed.",
        "user@h1: Permission denied (publickey,password).",
        "NCCL_IB_PKEY=0x1",
        "2 keys of the token bucket",
        "author: someone, authentication: denied",
        "TOKENIZERS_PARALLELISM=false",
        "TOKENIZERS_PARALLELISM false; --max-tokens 5",
        "pass: 3 of 5",
        "ssh://root@h1 is closed; see https://example.org/@someone",
    ],
)
def test_what_is_no_secret_stays(text: str) -> None:
    assert redacted_text(text) == text
    assert redacted({"note": text}) == {"note": text}


def test_a_thousand_different_errors_are_enough(store: Store) -> None:
    links = tuple(
        replace(a_link("a", f"b{number}", gbit_per_s=None), error=f"error {number} " + "x" * 1000)
        for number in range(1200)
    )
    store.add(a_sweep(at(1), links))
    errors = {p.error for table in store.links_of(1) for p in table.points()}
    assert len(errors) == 1000
    assert max(len(error or "") for error in errors) == 300


def test_a_sweep_without_links_is_kept(store: Store) -> None:
    hosts = (HostVerdict(name="h1", status=HostStatus.UNREACHABLE, reason="no"),)
    store.add(a_sweep(at(1), (), hosts))
    assert list(store.links_of(1)) == []
    assert [name for name, _ in store.hosts_of(1)] == ["h1"]


def test_counts_that_are_too_large_are_kept_as_the_largest(store: Store) -> None:
    link = replace(a_link("a", "b"), bytes=10**30, tests=10**12, round=10**12)
    huge = replace(a_link("a", "c", gbit_per_s=1e300), bytes=-1, round=-7)
    store.add(a_sweep(at(1), (link, huge)))
    (point,) = store.link_history("a", "b")
    assert (point.bytes, point.tests, point.round) == (2**63 - 1, 2**32 - 1, 2**31 - 1)
    (point,) = store.link_history("a", "c")
    assert (point.measured_gbit_per_s, point.bytes, point.round) == (None, 0, None)
    bench = small_bench(1)
    points = tuple(replace(one, wrong=10**30, repeats=10**30) for one in bench.curves[0].points)
    store.add(replace(bench, curves=(replace(bench.curves[0], points=points),)))
    (curve,) = store.bench_history("all_reduce")
    assert {(one.wrong, one.repeats) for one in curve.points} == {(2**63 - 1, 2**63 - 1)}
