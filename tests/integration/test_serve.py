"""``ncdiag serve`` as a process: real sockets, promtool, Chromium, slow clients and greedy ones."""

import http.client
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest
from announced_reports import bench, burn_in, health

from ncdiag.model.isolation import EvidenceKind, EvidencePiece
from ncdiag.model.verdict import SweepReport
from ncdiag.report.bench.prometheus import render as render_bench
from ncdiag.report.burn_in.prometheus import render as render_burn_in
from ncdiag.report.health.prometheus import render_health_metrics
from ncdiag.report.write import write_all
from ncdiag.store.ledger import Ledger

pytestmark = pytest.mark.timeout(120)

TOKEN = "an-example-of-a-token"  # noqa: S105 - of a test
NAME = "<script>alert(1)<&script>"


EVIDENCE = EvidencePiece(
    host="h1",
    kind=EvidenceKind.HEALTH,
    class_="xid",
    source="health",
    run="r",
    seen_s=time.time(),
    text="Xid 79",
)


class Served:
    """A server that runs, and how it is reached."""

    def __init__(self, process: subprocess.Popen[str], port: int) -> None:
        self.process = process
        self.port = port
        self.url = f"http://127.0.0.1:{port}"

    def get(self, path: str, address: str = "127.0.0.1", **fields: str) -> tuple[int, bytes]:
        client = http.client.HTTPConnection(address, self.port, timeout=30)
        try:
            client.request("GET", path, headers=fields)
            answer = client.getresponse()
            return answer.status, answer.read()
        finally:
            client.close()

    def connect(self) -> socket.socket:
        return socket.create_connection(("127.0.0.1", self.port), 30)


@contextmanager
def serving(folder: Path, *options: str, **environment: str) -> Iterator[Served]:
    process = subprocess.Popen(
        [
            sys.executable,
            "-m",
            "ncdiag",
            "serve",
            "--reports",
            str(folder),
            "--port",
            "0",
            *options,
        ],
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "XDG_DATA_HOME": str(folder), **environment},
    )
    try:
        assert process.stderr is not None
        line = process.stderr.readline()
        found = re.search(r":(\d+)/$", line.strip())
        assert found is not None, line
        yield Served(process, int(found[1]))
    finally:
        process.terminate()
        try:
            said = process.communicate(timeout=30)[1]
        finally:
            process.kill()
            process.wait()
    assert process.returncode == 130
    assert said in {"", "ncdiag: interrupted\n"}


@pytest.fixture(scope="module")
def reports(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("reports")


@pytest.fixture(scope="module")
def running(reports: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """With textfiles of all sorts, and a ledger in which somebody is accused."""
    beside = tmp_path_factory.mktemp("beside")
    store = beside / "store"
    with Ledger.open(store, write=True) as ledger:
        ledger.add([EVIDENCE])
    for name, text in {
        "health": render_health_metrics(health()),
        "bench": render_bench(bench()),
        "burn-in": render_burn_in(burn_in()),
        "again": render_burn_in(burn_in()),
        "foreign": "other_total 1\n<b>damaged\n",
    }.items():
        (beside / f"{name}.prom").write_text(text)
    with serving(reports, "--metrics", str(beside), "--store", str(store)) as server:
        yield server


@pytest.fixture
def served(running: Served, reports: Path, faulty_report: SweepReport) -> Served:
    """One server for all tests, with one report in a folder that is called like a script."""
    folder = reports / NAME
    if not folder.exists():
        folder.mkdir()
        write_all(faulty_report, folder)
    return running


def test_the_index_leads_to_a_report_that_works_in_a_browser(served: Served, browser: Any) -> None:
    context = browser.new_context(viewport={"width": 1280, "height": 900})
    page = context.new_page()
    troubles: list[str] = []
    asked: list[str] = []
    page.on("console", lambda message: troubles.append(message.text))
    page.on("pageerror", lambda error: troubles.append(str(error)))
    page.on("dialog", lambda dialog: (troubles.append(dialog.message), dialog.dismiss()))
    page.on("request", lambda request: asked.append(request.url))
    page.goto(served.url)
    assert page.locator("table.reports tbody tr").count() == 1
    assert page.locator(".status").inner_text() == "faulty"
    if picture := os.environ.get("NCDIAG_TEST_PICTURES"):
        page.screenshot(path=f"{picture}/serve-index.png")
    page.locator("table.reports a").first.click()
    page.wait_for_selector("html[data-ready]")
    assert page.locator("h1").inner_text().endswith("Faulty")
    page.get_by_label("Filter links").fill("h3->")
    assert page.locator("#links .found-rows").inner_text().startswith("6 of")
    context.close()
    assert troubles == []
    assert all(url.startswith(served.url) for url in asked)
    assert len(asked) == 2


def test_promtool_has_nothing_to_say_of_the_metrics(served: Served) -> None:
    promtool = shutil.which("promtool")
    if promtool is None:
        pytest.skip("promtool is missing (package prometheus)")
    status, metrics = served.get("/metrics")
    assert status == 200
    for name in (b"sweep", b"bench", b"burn_in", b"health", b"isolation", b"serve"):
        assert b"\nncdiag_%s_" % name in metrics
    assert b"ncdiag_serve_damaged_lines 1\n" in metrics
    run = subprocess.run(
        [promtool, "check", "metrics"], input=metrics, capture_output=True, check=False
    )
    assert (run.returncode, run.stdout + run.stderr) == (0, b"")


def own_address() -> str:
    """An address of this machine that is not loopback; a name of it is asked for nowhere."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        try:
            probe.connect(("192.0.2.1", 9))  # sends nothing
        except OSError as error:
            pytest.skip(f"this machine has no address but loopback: {error.strerror}")
        return str(probe.getsockname()[0])


def test_on_loopback_nobody_from_outside_gets_in(served: Served) -> None:
    with pytest.raises(ConnectionRefusedError):
        served.get("/healthz", own_address())


def test_beyond_loopback_nobody_gets_anything_without_the_token(
    reports: Path, tmp_path: Path
) -> None:
    file = tmp_path / "token"
    file.write_text(TOKEN)
    file.chmod(0o600)
    address = own_address()
    with serving(reports, "--bind", "0.0.0.0", "--token-file", str(file)) as served:  # noqa: S104
        argv = Path(f"/proc/{served.process.pid}/cmdline").read_bytes()
        assert TOKEN.encode() not in argv
        for path in ("/", "/metrics", "/healthz", "/reports/x/report.json", "/nothing"):
            assert served.get(path, address)[0] == 401
            assert served.get(path, Authorization="Bearer wrong-wrong-wrong-wrong")[0] == 401
        ours = {"Authorization": f"Bearer {TOKEN}"}
        assert served.get("/healthz", address, **ours) == (200, b"ok\n")
        assert served.get("/", address, **ours)[0] == 200


def test_hundreds_of_requests_on_kept_connections_are_all_answered(served: Served) -> None:
    answered: list[int] = []

    def ask() -> None:
        client = http.client.HTTPConnection("127.0.0.1", served.port, timeout=30)
        for number in range(50):
            client.request("GET", ("/", "/metrics", "/healthz", "/missing")[number % 4])
            answer = client.getresponse()
            answer.read()
            answered.append(answer.status)
        client.close()

    threads = [threading.Thread(target=ask) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert (len(answered), answered.count(200), answered.count(404)) == (400, 304, 96)


def test_slow_clients_and_too_many_of_them_keep_nobody_out(served: Served) -> None:
    slow = []
    for number in range(300):  # more than there may be
        client = served.connect()
        with suppress(ConnectionError):  # it had to make room already
            client.send(b"GET / HTTP/1.1\r\nHost: lo" if number % 2 else b"G")
        slow.append(client)
    for _ in range(5):
        assert served.get("/healthz") == (200, b"ok\n")
    for client in slow:
        client.close()


def test_whoever_takes_a_large_answer_slowly_holds_up_nobody(served: Served, reports: Path) -> None:
    big = reports / "big"
    big.mkdir()
    with (big / "links.csv").open("wb") as file:
        file.truncate(1 << 30)
    with served.connect() as slow:
        slow.send(b"GET /reports/big/links.csv HTTP/1.1\r\nHost: localhost\r\n\r\n")
        assert slow.recv(15) == b"HTTP/1.1 200 OK"
        assert served.get("/healthz")[0] == 200
        pages = int(Path(f"/proc/{served.process.pid}/statm").read_text().split()[1])
        assert pages * os.sysconf("SC_PAGE_SIZE") < 300 << 20
    shutil.rmtree(big)


@pytest.mark.parametrize(
    ("sent", "status"),
    [
        (b"GET / HTTP/1.1\r\nHost: localhost\r\nX: " + b"a" * (32 << 10), b"431"),
        (b"\x16\x03\x01\x02\x00\x01\x00\r\n\r\n", b"400"),
        (b"GET /../../etc/passwd HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n", b"404"),
        (b"POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 3\r\n\r\nabc", b"405"),
        (b"HEAD / HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n", b"200"),
    ],
)
def test_what_is_odd_is_answered_and_the_connection_closed(
    sent: bytes, status: bytes, served: Served
) -> None:
    with served.connect() as client:
        client.sendall(sent)
        with client.makefile("rb") as answer:
            head, _, body = answer.read().partition(b"\r\n\r\n")
    assert head.split()[1] == status
    assert (body == b"") is sent.startswith(b"HEAD")
    assert served.get("/healthz")[0] == 200


def test_an_interrupt_ends_it_while_clients_wait(reports: Path) -> None:
    with serving(reports) as served, served.connect() as client:
        client.send(b"GET /")
        served.process.send_signal(signal.SIGINT)
        assert served.process.wait(30) == 130


HANGS = """
import sys, threading
from ncdiag.cli import interrupts, main
from ncdiag.cli.serving import site

def hang(_):
    print("asked", file=sys.stderr, flush=True)
    threading.Event().wait()

site.read_textfiles = hang
sys.argv = ["ncdiag", "serve", "--reports", sys.argv[1], "--port", "0"]
main.main()
"""


def test_a_file_server_that_does_not_answer_holds_up_neither_healthz_nor_an_interrupt(
    tmp_path: Path,
) -> None:
    argv = (sys.executable, "-c", HANGS, str(tmp_path))
    process = subprocess.Popen(argv, stderr=subprocess.PIPE, text=True)
    with process, ExitStack() as clients:
        try:
            assert process.stderr is not None
            found = re.search(r":(\d+)/$", process.stderr.readline().strip())
            assert found is not None
            served = Served(process, int(found[1]))
            for _ in range(10):  # more than there are readers
                client = clients.enter_context(served.connect())
                client.send(b"GET /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n")
            assert process.stderr.readline() == "asked\n"
            assert served.get("/healthz") == (200, b"ok\n")
            process.send_signal(signal.SIGINT)
            assert process.wait(30) == 130
            assert process.stderr.read() == "ncdiag: interrupted\n"
        finally:
            process.kill()
