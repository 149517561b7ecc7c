import os
import socket
import string
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from http import HTTPStatus
from pathlib import Path
from urllib.parse import quote

import pytest
from announced_reports import bench, burn_in
from hypothesis import given
from hypothesis import strategies as st
from markupsafe import escape

from ncdiag.cli import main
from ncdiag.cli.serving import folder as folders
from ncdiag.cli.serving.folder import TYPES, OpenFile, ReportFolder
from ncdiag.cli.serving.request import (
    MAX_FIELDS,
    BadRequestError,
    Request,
    parse_request,
    segments,
)
from ncdiag.cli.serving.site import Answer, Site, close
from ncdiag.cli.serving.start import token_of
from ncdiag.cli.serving.textfiles import Kept
from ncdiag.model.errors import UsageError
from ncdiag.model.secrets import TOKEN_VARIABLE
from ncdiag.model.verdict import SweepReport
from ncdiag.report import json_report, prometheus
from ncdiag.report.bench import json_report as bench_json
from ncdiag.report.burn_in import json_report as burn_in_json
from ncdiag.report.serve.head import ReportHead, read_head

MakeReport = Callable[..., SweepReport]
TOKEN = b"0123456789abcdef"
SECRET = b"outside"


@pytest.fixture
def reports(tmp_path: Path) -> Path:
    """A folder of reports, with everything beside and inside it that is nobody's business."""
    root = tmp_path / "reports"
    report = root / "sweep-1"
    report.mkdir(parents=True)
    for name in TYPES:
        (report / name).write_bytes(name.encode())
    (tmp_path / "report.json").write_bytes(SECRET)
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "report.json").write_bytes(SECRET)
    (root / "report.json").write_bytes(SECRET)
    (report / "journal.jsonl").write_bytes(SECRET)
    (report / ".report.json.12.tmp").write_bytes(SECRET)
    (root / ".hidden").mkdir()
    (root / ".hidden" / "report.json").write_bytes(SECRET)
    (root / "away").symlink_to(tmp_path / "other")
    (root / "latest").symlink_to("sweep-1")
    odd = root / "odd"
    odd.mkdir()
    (odd / "report.json").symlink_to(tmp_path / "report.json")
    (odd / "report.html").symlink_to("../sweep-1/report.html")
    (odd / "bench.json").symlink_to("/dev/zero")
    os.mkfifo(odd / "summary.txt")
    (odd / "links.csv").mkdir()
    deep = root / "import-1" / "links" / "deeper"
    deep.mkdir(parents=True)
    (deep / "report.json").write_bytes(SECRET)
    (deep.parent / "summary.txt").write_bytes(b"ten lines")
    return root


@pytest.fixture
def site(reports: Path) -> Site:
    return Site(ReportFolder.of(reports))


def get(target: str, method: str = "GET", **fields: str) -> Request:
    return Request(method=method, target=target, fields={"host": "localhost:9273", **fields})


def body(answer: Answer) -> bytes:
    """What would be sent."""
    if isinstance(answer.body, OpenFile):
        data = os.pread(answer.body.number, answer.body.size, 0)
        close(answer)
        return data
    return answer.body


@pytest.mark.parametrize("name", TYPES)
def test_the_files_of_a_report_are_served_as_what_they_are(name: str, site: Site) -> None:
    answer = site.answer(get(f"/reports/sweep-1/{name}?at=1"))
    assert (answer.status, body(answer)) == (HTTPStatus.OK, name.encode())
    assert answer.fields["Content-Type"] == TYPES[name]
    assert answer.fields["X-Content-Type-Options"] == "nosniff"
    assert "default-src 'none'" in answer.fields["Content-Security-Policy"]


def test_a_report_below_another_folder_is_served(site: Site) -> None:
    assert body(site.answer(get("/reports/import-1/links/summary.txt"))) == b"ten lines"


@pytest.mark.parametrize(
    "target",
    [
        "/reports",
        "/reports/",
        "/reports/report.json",
        "/reports/sweep-1",
        "/reports/sweep-1/",
        "/reports/sweep-1/journal.jsonl",
        "/reports/sweep-1/.report.json.12.tmp",
        "/reports/.hidden/report.json",
        "/reports/../report.json",
        "/reports/%2e%2e/report.json",
        "/reports/%2E./report.json",
        "/reports/sweep-1/../../report.json",
        "/reports/sweep-1/%2e%2e%2f%2e%2e%2freport.json",
        "/reports/..%2f..%2fother/report.json",
        "/reports/sweep-1/..%5c..%5creport.json",
        "/reports/%252e%252e/report.json",
        "/reports/./report.json",
        "/reports//report.json",
        "/reports/sweep-1//report.json",
        "/reports/sweep-1/report.json/",
        "/reports/sweep-1/report.json%00",
        "/reports/sweep-1%00/report.json",
        "/reports/sweep-1/report.json%00.html",
        "/reports/sweep-1%0d%0aX:%20y/report.json",
        "/reports/%ff/report.json",
        "/reports/away/report.json",
        "/reports/latest/report.json",
        "/reports/odd/report.json",
        "/reports/odd/report.html",
        "/reports/odd/bench.json",
        "/reports/odd/summary.txt",
        "/reports/odd/links.csv",
        "/reports/import-1/links/deeper/report.json",
        "/reports/" + "a" * 300 + "/report.json",
        "/reports/" + "a/" * 3000 + "report.json",
        "//etc/passwd",
        "/etc/passwd",
        "http://localhost/metrics",
        "*",
        "metrics",
        "/metrics/",
        "/healthz/..",
        "/%6detrics/x",
    ],
)
def test_nothing_else_is_there(target: str, site: Site) -> None:
    assert site.answer(get(target)).status == HTTPStatus.NOT_FOUND


PIECES = st.sampled_from(
    ["..", ".", "", "reports", "sweep-1", "odd", "away", "latest", "import-1", "links", "deeper",
     ".hidden", "other", "report.json", "summary.txt", "%2e%2e", "%2f", "%00", "~", "etc", "\\"]
) | st.text(string.printable, max_size=6)  # fmt: skip


def test_no_path_leads_outside(site: Site, reports: Path) -> None:
    before = len(list(Path("/proc/self/fd").iterdir()))

    @given(st.lists(PIECES, max_size=8), st.booleans())
    def try_path(pieces: list[str], quoted: bool) -> None:  # noqa: FBT001 - hypothesis gives it
        parts = [quote(piece, safe="%") if quoted else piece for piece in pieces]
        answer = site.answer(get("/" + "/".join(parts)))
        assert SECRET not in body(answer)
        if isinstance(answer.body, OpenFile):
            assert pieces[:1] == ["reports"]

    try_path()
    assert len(list(Path("/proc/self/fd").iterdir())) == before
    assert reports.is_dir()


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "OPTIONS", "PATCH", "get", "TRACE"])
def test_only_reading_is_allowed(method: str, site: Site) -> None:
    answer = site.answer(get("/reports/sweep-1/report.json", method))
    assert answer.status == HTTPStatus.METHOD_NOT_ALLOWED
    assert answer.fields["Allow"] == "GET, HEAD"


@pytest.mark.parametrize(
    "target", ["/", "/metrics", "/healthz", "/reports/sweep-1/report.json", "/x"]
)
@pytest.mark.parametrize(
    "given_",
    [None, "", "Bearer", "Bearer ", "Bearer 0123456789abcdeX", "Basic 0123456789abcdef",
     "Bearer 0123456789abcdef0", "0123456789abcdef", "Bearer \xe9"],
)  # fmt: skip
def test_without_its_token_a_site_answers_nothing(
    target: str, given_: str | None, reports: Path
) -> None:
    fields = {} if given_ is None else {"authorization": given_}
    site = Site(ReportFolder.of(reports), token=TOKEN)
    for method in ("GET", "HEAD", "POST"):
        answer = site.answer(get(target, method, **fields))
        assert answer.status == HTTPStatus.UNAUTHORIZED
        assert answer.fields["WWW-Authenticate"].startswith("Bearer")
        assert body(answer) == b"401 Unauthorized\n"


def test_with_its_token_a_site_answers_whatever_it_is_called(reports: Path) -> None:
    site = Site(ReportFolder.of(reports), token=TOKEN)
    for scheme in ("Bearer", "bearer"):
        fields = {"authorization": f"{scheme} {TOKEN.decode()}", "host": "head.example"}
        assert body(site.answer(get("/healthz", **fields))) == b"ok\n"


@pytest.mark.parametrize(
    "host", ["localhost", "localhost:1", "127.0.0.1:9273", "[::1]:9273", "127.9.9.9"]
)
def test_loopback_is_known_by_its_names(host: str, site: Site) -> None:
    assert site.answer(get("/healthz", host=host)).status == HTTPStatus.OK


@pytest.mark.parametrize(
    "host",
    ["", "evil.example", "evil.example:9273", "10.0.0.1", "localhost.evil.example", "[fe80::1]:80"],
)
def test_a_name_that_was_made_to_lead_to_loopback_is_refused(host: str, site: Site) -> None:
    assert site.answer(get("/", host=host)).status == HTTPStatus.MISDIRECTED_REQUEST


def test_the_index_escapes_names_and_lists_what_is_there(
    tmp_path: Path, faulty_report: SweepReport
) -> None:
    name = '<img src=x onerror=alert(1)>&"'
    (tmp_path / name).mkdir()
    (tmp_path / name / "report.json").write_bytes(json_report.render(faulty_report))
    (tmp_path / name / "report.html").write_text("page")
    (tmp_path / "empty").mkdir()
    (tmp_path / "damaged").mkdir()
    (tmp_path / "damaged" / "report.json").write_bytes(b"\x00{[")
    site = Site(ReportFolder.of(tmp_path))
    page = body(site.answer(get("/"))).decode()
    assert "<img" not in page
    assert str(escape(name)) in page
    assert f"/reports/{quote(name)}/report.html" in page
    assert '<span class="status faulty">faulty</span>' in page
    assert "2026-11-29 03:12:45" in page
    assert "empty" not in page
    assert '<span class="status degraded">unknown</span>' in page


def test_a_folder_without_reports_says_so(tmp_path: Path) -> None:
    page = body(Site(ReportFolder.of(tmp_path)).answer(get("/"))).decode()
    assert "There are no reports yet" in page


def test_the_newest_report_of_each_kind_gives_the_metrics(
    tmp_path: Path, make_report: MakeReport
) -> None:
    from dataclasses import replace

    for day, number in (("2026-01-01", 2), ("2026-03-01", 3), ("2026-02-01", 4)):
        report = replace(make_report(number), started=f"{day}T00:00:00Z")
        (tmp_path / day).mkdir()
        (tmp_path / day / "report.json").write_bytes(json_report.render(report))
        (tmp_path / day / "metrics.prom").write_text(prometheus.render(report))
    metrics = body(Site(ReportFolder.of(tmp_path)).answer(get("/metrics"))).decode()
    assert 'ncdiag_sweep_hosts{status="healthy"} 3\n' in metrics
    assert metrics.count("ncdiag_sweep_hosts{") == 5
    assert "ncdiag_serve_unread_textfiles 0\n" in metrics


def test_textfiles_and_the_ledger_join_the_metrics(tmp_path: Path) -> None:
    textfiles = tmp_path / "textfiles"
    textfiles.mkdir()
    (textfiles / "a.prom").write_text("# TYPE a gauge\na 1\nno metric\n")
    (textfiles / "b.txt").write_text("b 1\n")
    (textfiles / ".c.prom").write_text("c 1\n")
    os.mkfifo(textfiles / "d.prom")
    store = tmp_path / "store"
    arguments = ["isolate", "add", "gpu001", "--store", str(store), "--reason", "test"]
    assert main.run(arguments) == 0
    (tmp_path / "reports").mkdir()
    folder = ReportFolder.of(tmp_path / "reports")
    site = Site(folder, textfiles=[textfiles, tmp_path / "missing.prom"], store=store)
    metrics = body(site.answer(get("/metrics"))).decode()
    assert "\na 1\n" in metrics
    assert "b 1" not in metrics
    assert "c 1" not in metrics
    assert "ncdiag_serve_unread_textfiles 2\n" in metrics
    assert "ncdiag_serve_damaged_lines 1\n" in metrics
    assert "ncdiag_serve_ledger_read 1\n" in metrics
    assert 'ncdiag_isolation_evidence{kind="operator"} 1\n' in metrics
    assert "ncdiag_isolation_hosts_accused 1\n" in metrics


def test_a_ledger_that_is_damaged_is_said_and_the_rest_is_served(tmp_path: Path) -> None:
    store = tmp_path / "store"
    store.write_bytes(b"no database" * 100)
    (tmp_path / "reports").mkdir()
    site = Site(ReportFolder.of(tmp_path / "reports"), store=store)
    metrics = body(site.answer(get("/metrics"))).decode()
    assert "ncdiag_serve_ledger_read 0\n" in metrics
    assert "ncdiag_isolation" not in metrics


def test_what_a_report_is_stands_in_its_first_lines(faulty_report: SweepReport) -> None:
    started = faulty_report.started
    found = [
        read_head(json_report.render(faulty_report)[:1000]),
        read_head(burn_in_json.render(burn_in())[:1000]),
        read_head(bench_json.render(bench())[:1000]),
    ]
    assert found[0] == ReportHead(kind="sweep", verdict="faulty", started=started)
    assert [(one.kind, one.verdict) for one in found[1:]] == [
        ("burn-in", "met"),
        ("bench", "faulty"),
    ]
    assert all(one.started for one in found)


@given(st.binary(max_size=200) | st.text(max_size=50).map(str.encode))
def test_a_damaged_report_has_no_head(data: bytes) -> None:
    assert read_head(data) == ReportHead()


@given(st.binary(max_size=300))
def test_any_bytes_are_a_request_or_refused(data: bytes) -> None:
    request = None
    with suppress(BadRequestError):
        request = parse_request(data)
    assert request is None or request.target.isprintable()


def test_a_request_is_read() -> None:
    head = b"GET /a%20b?x HTTP/1.1\r\nHost: h\r\nAuthorization:  Bearer x \r\nX-A: 1\r\n\r\n"
    request = parse_request(head)
    assert (request.method, segments(request.target)) == ("GET", ["a b"])
    assert request.fields["authorization"] == "Bearer x"
    assert request.keep


@pytest.mark.parametrize(
    ("head", "keep"),
    [
        (b"GET / HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n", False),
        (b"GET / HTTP/1.0\r\n\r\n", False),
        (b"GET / HTTP/1.0\r\nConnection: Keep-Alive\r\n\r\n", True),
        (b"GET / HTTP/1.1\r\nHost: h\r\nContent-Length: 5\r\n\r\n", False),
        (b"GET / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n", False),
    ],
)
def test_a_connection_is_kept_only_where_it_is_clear_what_follows(head: bytes, keep: bool) -> None:  # noqa: FBT001 - of the table
    assert parse_request(head).keep is keep


@pytest.mark.parametrize(
    "head",
    [
        b"",
        b"GET /\r\n\r\n",
        b"GET / HTTP/2\r\nHost: h\r\n\r\n",
        b"GET  / HTTP/1.1\r\nHost: h\r\n\r\n",
        b"GET / HTTP/1.1\r\n\r\n",
        b"GET /\x80 HTTP/1.1\r\nHost: h\r\n\r\n",
        b"GET / HTTP/1.1\r\nHost : h\r\n\r\n",
        b"GET / HTTP/1.1\r\nHost: h\r\n folded\r\n\r\n",
        b"GET / HTTP/1.1\nHost: h\n\r\n\r\n",
        b"GET / HTTP/1.1\r\nHost: h\r\nHost: i\r\n\r\n",
        b"GET / HTTP/1.1\r\nHost: h\r\nAuthorization: a\r\nauthorization: b\r\n\r\n",
        b"GET / HTTP/1.1\r\nHost: h\x00\r\n\r\n",
        b"GET / HTTP/1.1\r\nHost: h\r\n" + b"A: b\r\n" * MAX_FIELDS + b"\r\n",
    ],
)
def test_a_request_that_can_be_read_in_two_ways_is_refused(head: bytes) -> None:
    with pytest.raises(BadRequestError):
        parse_request(head)


@pytest.fixture
def token_file(tmp_path: Path) -> Iterator[Path]:
    file = tmp_path / "token"
    file.write_bytes(TOKEN + b"\n")
    file.chmod(0o600)
    return file


def test_a_token_comes_from_a_file_or_the_environment(token_file: Path) -> None:
    assert token_of(token_file, {TOKEN_VARIABLE: "another-token-of-16"}) == TOKEN
    assert token_of(None, {TOKEN_VARIABLE: TOKEN.decode()}) == TOKEN
    assert token_of(None, {}) is None


@pytest.mark.parametrize("mode", [0o640, 0o604, 0o644, 0o610, 0o602])
def test_a_token_that_others_can_read_is_refused(mode: int, token_file: Path) -> None:
    token_file.chmod(mode)
    with pytest.raises(UsageError, match=r"can be read by others; chmod 600 it$"):
        token_of(token_file, {})


@pytest.mark.parametrize(
    "token", ["", "short", "0123456789abcde é", "a" * 5000, "0123456789 abcdef"]
)
def test_what_is_no_token_is_refused_and_never_shown(token: str, token_file: Path) -> None:
    token_file.write_text(token)
    for file, environment in ((token_file, {}), (None, {TOKEN_VARIABLE: token})):
        with pytest.raises(UsageError, match="holds no token") as refused:
            token_of(file, environment)
        assert not token or token not in str(refused.value)


def test_no_token_file_and_a_pipe_are_refused(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    for name in ("pipe", "missing"):
        with pytest.raises(UsageError):
            token_of(tmp_path / name, {})


@pytest.mark.parametrize(
    ("options", "complaint"),
    [
        (["--bind", "0.0.0.0"], "is reached from other hosts"),  # noqa: S104
        (["--bind", "::"], "is reached from other hosts"),
        (["--bind", "head.example"], "is no address"),
        (["--bind", ""], "is no address"),
        (["--port", "70000"], "--port"),
        (["--reports", "nowhere"], "there is no folder nowhere"),
        (["--metrics", "no/where"], "there is no no/where"),
        (["--store", "missing"], "missing"),
        (["--bind", "192.0.2.1", "--token-file", "token"], "cannot listen on 192.0.2.1"),
    ],
)
def test_what_cannot_be_served_is_refused_in_a_line(
    options: list[str],
    complaint: str,
    token_file: Path,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(token_file.parent)
    monkeypatch.delenv(TOKEN_VARIABLE, raising=False)
    assert main.run(["serve", "--reports", ".", *options]) == 2
    out, err = capfd.readouterr()
    assert (out, err.count("\n")) == ("", 1)
    assert complaint in err


def test_a_folder_that_is_gone_is_no_folder_without_reports(tmp_path: Path) -> None:
    (tmp_path / "reports").mkdir()
    site = Site(ReportFolder.of(tmp_path / "reports"))
    (tmp_path / "reports").rmdir()
    for target in ("/", "/metrics"):  # which the server answers with 503
        with pytest.raises(FileNotFoundError):
            site.answer(get(target))
    assert site.answer(get("/healthz")).status == HTTPStatus.OK


def test_a_port_that_is_taken_is_refused(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        assert main.run(["serve", "--reports", str(tmp_path), "--port", port]) == 2
    assert "Address already in use; choose others with --bind and --port" in capfd.readouterr().err


def test_a_folder_that_grows_without_end_is_listed_up_to_a_limit(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(folders, "_LISTED", 2)
    for number in range(5):
        (tmp_path / f"{number}").mkdir()
        (tmp_path / f"{number}" / "summary.txt").touch()
    (tmp_path / "0" / "report.json").write_text('{\n"schema": "ncdiag/burn-in/1",\n')
    (tmp_path / "0" / "metrics.prom").write_text("the_only_burn_in 1\n")
    folder = ReportFolder.of(tmp_path)
    shown, left_out = folder.shown()
    assert ([one.name for one in shown], left_out) == (["4", "3"], 3)
    assert folder.newest_metrics() == ["the_only_burn_in 1\n"]


def test_what_is_made_anew_is_given_out_as_it_was_meanwhile() -> None:
    begun, go_on = threading.Event(), threading.Event()
    texts = iter([b"old", b"new"])

    def make() -> bytes:
        text = next(texts)
        if text == b"new":
            begun.set()
            go_on.wait(60)
        return text

    kept = Kept(make, 0.0)
    assert kept.get() == b"old"
    with ThreadPoolExecutor(1) as pool:
        made = pool.submit(kept.get)
        assert begun.wait(60)
        assert kept.get() == b"old"
        go_on.set()
        assert made.result(60) == b"new"


@pytest.mark.parametrize("before", [[b"old"], []])
def test_what_is_too_long_in_the_making_is_an_error(before: list[bytes]) -> None:
    begun, go_on = threading.Event(), threading.Event()
    texts = iter([*before, b"new"])

    def make() -> bytes:
        text = next(texts)
        if text == b"new":
            begun.set()
            go_on.wait(60)
        return text

    kept = Kept(make, 0.0, longest_s=0.0)
    for text in before:
        assert kept.get() == text
    with ThreadPoolExecutor(1) as pool:
        made = pool.submit(kept.get)
        assert begun.wait(60)
        with pytest.raises(TimeoutError):
            kept.get()
        go_on.set()
        assert made.result(60) == b"new"


def test_no_file_is_read_to_tell_that_it_lives_or_to_refuse(site: Site) -> None:
    told = site.answer_at_once(get("/healthz"))
    assert told is not None
    assert body(told) == b"ok\n"
    assert site.answer_at_once(get("/metrics")) is None
    refused = site.answer_at_once(get("/metrics", host="elsewhere"))
    assert refused is not None
    assert refused.status == HTTPStatus.MISDIRECTED_REQUEST
