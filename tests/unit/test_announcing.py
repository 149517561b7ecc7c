import fcntl
import json
import os
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

import pytest
from health_reports import HOT, host_health, report

from ncdiag.cli import announcing, main, posting
from ncdiag.cli.announcing import Outlets, outlets
from ncdiag.model.errors import UndecidedError, UsageError
from ncdiag.model.secrets import WEBHOOK_VARIABLE
from ncdiag.model.verdict import SweepReport

MakeReport = Callable[..., SweepReport]
ROOT = Path(__file__).parents[2]
TIMES = str(ROOT / "examples/stragglers/times.csv")
SECRET = "T0SECRET"  # noqa: S105 - a word to look for


@pytest.fixture(autouse=True)
def no_webhook(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(WEBHOOK_VARIABLE, raising=False)


@contextmanager
def receiver(status: int = 200, *, location: str | None = None) -> Iterator[tuple[str, list[Any]]]:
    """A server on loopback that keeps what is posted to it; its URL holds a secret."""
    kept: list[Any] = []

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            size = int(self.headers["Content-Length"])
            kept.append((self.path, self.headers["Content-Type"], self.rfile.read(size)))
            self.send_response(status)
            if location is not None:
                self.send_header("Location", location)
            self.end_headers()

        def do_GET(self) -> None:
            kept.append("GET")
            self.send_response(200)
            self.end_headers()

        def log_message(self, *_: object) -> None:
            pass

    with HTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}/services/{SECRET}", kept
        finally:
            server.shutdown()
            thread.join()


def asked(**options: Any) -> dict[str, Any]:
    return {"junit": None, "events": None, "webhook": None, "webhook_always": False, **options}


def test_without_options_nothing_is_told_and_no_report_is_looked_at() -> None:
    told = outlets(asked(), {})
    assert not told
    told.announce("no report")  # type: ignore[arg-type]


def test_a_webhook_hears_of_bad_news_alone(make_report: MakeReport) -> None:
    with receiver() as (url, kept):
        told = outlets(asked(webhook=url), {})
        told.announce(make_report(2))
        assert kept == []
        told.announce(make_report(3, slow_senders={"h1": 0.2}))
        told.announce(make_report(3, unreachable={"h1": "refused"}))
    paths = [(path, kind) for path, kind, _ in kept]
    assert paths == [(f"/services/{SECRET}", "application/json")] * 2
    texts = [json.loads(body)["text"] for _, _, body in kept]
    assert [text.split(":")[1] for text in texts] == [" FAULTY", " INCONCLUSIVE"]


def test_a_webhook_hears_of_warnings() -> None:
    with receiver() as (url, kept):
        told = outlets(asked(webhook=url), {})
        told.announce(report(host_health("a")))
        told.announce(report(host_health("a", *HOT)))
    [(_, _, body)] = kept
    assert json.loads(body)["text"].startswith("ncdiag health: WARNING: a: 8 warnings")


def test_a_webhook_hears_of_good_news_where_that_is_wanted(make_report: MakeReport) -> None:
    with receiver() as (url, kept):
        outlets(asked(webhook_always=True), {WEBHOOK_VARIABLE: url}).announce(make_report(2))
    assert json.loads(kept[0][2])["text"].startswith("ncdiag sweep: HEALTHY: ")


@pytest.mark.parametrize("status", [302, 404, 500])
def test_what_a_server_refuses_is_a_line_without_the_url(
    status: int, faulty_report: SweepReport, capsys: pytest.CaptureFixture[str]
) -> None:
    with receiver() as (elsewhere, others), receiver(status, location=elsewhere) as (url, kept):
        outlets(asked(webhook=url), {}).announce(faulty_report)
    assert len(kept) == 1
    assert others == []
    assert capsys.readouterr().err == f"ncdiag: --webhook: not sent: the server answered {status}\n"


def test_nobody_listening_is_a_line_and_no_exit_code(
    capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{unused.getsockname()[1]}/{SECRET}"
        monkeypatch.setenv(WEBHOOK_VARIABLE, url)
        assert main.run(["stragglers", TIMES]) == 1
    out, err = capfd.readouterr()
    assert err == "ncdiag: --webhook: not sent: Connection refused\n"
    assert "SLOW RANKS" in out
    assert SECRET not in out


def test_a_server_that_says_nothing_costs_the_deadline_at_most() -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        url = f"http://127.0.0.1:{silent.getsockname()[1]}/{SECRET}"
        with pytest.raises(UndecidedError, match=r"^not sent: no answer") as failed:
            posting.post(url, b"{}", deadline_s=0.2)
    assert SECRET not in str(failed.value)


@pytest.mark.parametrize(
    "url",
    [
        "ftp://host/SECRET",
        "file:///etc/SECRET",
        "SECRET",
        "http://",
        "http:///SECRET",
        "https://user:SECRET@host/",
        "https://host:99999/SECRET",
        "https://host:x/SECRET",
        "https://host/SECRET\r\nHost: other",
        "https://hö.st/SECRET",
        "https://[SECRET/",
    ],
)
def test_no_other_url_is_taken_and_none_is_repeated(url: str) -> None:
    for given, environment in ((url, {}), (None, {WEBHOOK_VARIABLE: url})):
        with pytest.raises(UsageError) as refused:
            outlets(asked(webhook=given), environment)
        assert "SECRET" not in str(refused.value)
        assert ("--webhook" if given else WEBHOOK_VARIABLE) in str(refused.value)


@pytest.mark.parametrize("option", ["junit", "events"])
def test_a_folder_is_made_for_nothing_but_a_report(option: str, tmp_path: Path) -> None:
    file = tmp_path / "missing" / "file"
    with pytest.raises(UsageError, match=rf"^--{option} .*: there is no folder .*/missing; make"):
        outlets(asked(**{option: file}), {})
    assert not file.parent.exists()
    assert outlets(asked(**{option: file}, output=file.parent), {})


def test_always_needs_somewhere_to_post_to() -> None:
    with pytest.raises(UsageError, match=r"^--webhook-always needs --webhook"):
        outlets(asked(webhook_always=True), {})


def test_events_of_runs_follow_one_another_even_after_half_a_line(
    tmp_path: Path, faulty_report: SweepReport
) -> None:
    file = tmp_path / "events.ndjson"
    told = outlets(asked(events=file), {})
    told.announce(faulty_report, where=tmp_path)
    first = file.read_text()
    file.write_text(f'{first}{{"half":')
    told.announce(faulty_report)
    lines = file.read_text().splitlines()
    half = lines.index('{"half":')
    assert [json.loads(line)["event"]["action"] for line in lines[:half]] == [
        json.loads(line)["event"]["action"] for line in lines[half + 1 :]
    ]
    assert json.loads(lines[0])["ncdiag"]["report"] == str(tmp_path)


def test_many_at_once_never_write_into_each_other(
    tmp_path: Path, faulty_report: SweepReport
) -> None:
    file = tmp_path / "events.ndjson"
    told = Outlets(events=file)
    threads = [threading.Thread(target=told.announce, args=(faulty_report,)) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    actions = [json.loads(line)["event"]["action"] for line in file.read_text().splitlines()]
    assert actions == ["verdict", "finding", "finding", "finding"] * 8


@pytest.mark.parametrize("option", ["junit", "events"])
def test_a_file_that_is_something_else_is_refused_before_anything_is_done(
    option: str, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    log = tmp_path / "job.log"
    log.write_text("NCCL INFO\n")
    assert main.run(["stragglers", TIMES, f"--{option}", str(log)]) == 2
    assert main.run(["stragglers", TIMES, f"--{option}", str(tmp_path)]) == 2
    assert main.run(["stragglers", TIMES, f"--{option}", f"{log}/below"]) == 2
    out, err = capfd.readouterr()
    assert out == ""
    assert [line.split()[0:2] for line in err.splitlines()] == [["ncdiag:", f"--{option}"]] * 3
    assert log.read_text() == "NCCL INFO\n"


def test_what_cannot_be_written_in_the_end_is_a_line_and_the_rest_is_told(
    tmp_path: Path, faulty_report: SweepReport, capsys: pytest.CaptureFixture[str]
) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    junit = tmp_path / "junit.xml"
    outlets(asked(events=Path("/dev/full"), junit=junit), {}).announce(faulty_report)
    assert capsys.readouterr().err == (
        "ncdiag: --events: cannot append to /dev/full: No space left on device\n"
    )
    assert junit.read_text().startswith("<?xml")
    outlets(asked(events=pipe), {}).announce(faulty_report)  # nobody reads it
    assert capsys.readouterr().err.startswith(f"ncdiag: --events: cannot append to {pipe}")


def test_a_file_that_is_not_there_is_answered_by_the_name_that_is_near(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "times.csv").write_text("rank\n")
    assert main.run(["stragglers", str(tmp_path / "tmes.csv")]) == 2
    assert capfd.readouterr().err.endswith("; did you mean times.csv?\n")
    assert main.run(["stragglers", str(tmp_path / "no" / "tmes.csv")]) == 2
    assert capfd.readouterr().err.endswith("No such file or directory\n")


def test_stragglers_tell_and_record(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    events, store = tmp_path / "events", tmp_path / "store"
    arguments = ["--events", str(events), "--record", "--store", str(store), "--format", "csv"]
    assert main.run(["stragglers", TIMES, *arguments]) == 1
    assert "conclusive against 1 host, " in capfd.readouterr().err
    verdict, rank = map(json.loads, events.read_text().splitlines())
    assert verdict["ncdiag"]["command"] == "stragglers"
    assert (
        rank["message"] == "rank 13 on gpu002 gpu5: 17 % slower than its peers, in 2 of 2 windows"
    )


def test_parse_log_tells(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    log, junit = tmp_path / "a.log", tmp_path / "junit.xml"
    log.write_text("nothing that anybody knows\n")
    assert main.run(["parse-log", str(log), "--junit", str(junit)]) == 3
    assert capfd.readouterr().err == ""
    assert '<skipped message="inconclusive: ' in junit.read_text()


def test_health_tells_and_leaves_schedulers_alone(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "host").mkdir()
    arguments = ["health", "--root", str(tmp_path / "host"), "--junit", str(tmp_path / "a.xml")]
    code = main.run([*arguments, "--events", str(tmp_path / "events"), "--format", "json"])
    told = json.loads((tmp_path / "events").read_text().splitlines()[0])
    assert told["ncdiag"]["verdict"] == json.loads(capfd.readouterr().out)["verdict"]
    assert told["event"]["outcome"] == {0: "success", 1: "failure", 3: "unknown"}[code]
    assert 'classname="ncdiag.health.host" name="host"' in (tmp_path / "a.xml").read_text()
    assert main.run(["health", "--nagios", "--webhook", "http://h/x"]) == 3
    assert capfd.readouterr().out.startswith(
        "HEALTH UNKNOWN - --nagios and --webhook do not go together"
    )


def test_a_file_of_events_that_somebody_keeps_locked_holds_nobody_up(
    tmp_path: Path,
    faulty_report: SweepReport,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(announcing, "_LOCK_S", 0.0)
    file = tmp_path / "events"
    with file.open("w") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        outlets(asked(events=file), {}).announce(faulty_report)
    said = capsys.readouterr().err
    assert said.startswith(f"ncdiag: --events: cannot append to {file}: another process kept it")
    assert said.count("\n") == 1
    assert file.read_bytes() == b""


def test_events_are_appended_to_a_file_that_may_not_be_read(
    tmp_path: Path,
    faulty_report: SweepReport,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    file = tmp_path / "events"
    file.write_text("{}\n")
    told = outlets(asked(events=file), {})

    def refuse(path: Path, _mode: str) -> None:
        raise PermissionError(13, "Permission denied", str(path))

    with monkeypatch.context() as patched:
        patched.setattr(Path, "open", refuse)
        told.announce(faulty_report)
    assert capsys.readouterr().err == ""
    assert len(list(map(json.loads, file.read_text().splitlines()))) > 1
