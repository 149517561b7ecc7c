"""The RAS client against a small server that behaves as NCCL's, or does not."""

import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import suppress

import pytest

from ncdiag.logs.ras_live import fetch
from ncdiag.read.ras.client import RasError

Serve = Callable[[socket.socket], None]
JSON = b'{"nccl_version": "2.28.7", "communicators": []}\n'


class Server:
    """Listens on loopback and serves each connection until the test ends."""

    def __init__(self, serve: Serve) -> None:
        self._serve = serve
        self._listening = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._listening.getsockname()[1]
        self._thread = threading.Thread(target=self._run)
        self._thread.start()

    def _run(self) -> None:
        with suppress(OSError):
            connection, _ = self._listening.accept()
            with connection:
                self._serve(connection)

    def close(self) -> None:
        with suppress(OSError):
            self._listening.shutdown(socket.SHUT_RDWR)
        self._listening.close()
        self._thread.join()


@pytest.fixture
def serving() -> Iterator[Callable[[Serve], int]]:
    servers: list[Server] = []

    def start(serve: Serve) -> int:
        servers.append(Server(serve))
        return servers[-1].port

    yield start
    for server in servers:
        server.close()


def lines(connection: socket.socket) -> Iterator[str]:
    with connection.makefile("rb") as file:
        for line in file:
            yield line.decode().strip().lower()


def speaks(*, json: bool, report: bytes, piece: int = 1 << 16) -> Serve:
    def serve(connection: socket.socket) -> None:
        for line in lines(connection):
            if line.endswith("status"):
                for start in range(0, len(report), piece):
                    connection.sendall(report[start : start + piece])
                return
            answer = b"OK\n"
            if line.startswith("client"):
                answer = b"SERVER PROTOCOL 2\n"
            elif line.startswith("set format") and not json:
                answer = b"ERROR: Unknown command SET FORMAT json\n"
            # A byte at a time: answers may come in pieces.
            for at in range(len(answer)):
                connection.sendall(answer[at : at + 1])

    return serve


def until_closed(connection: socket.socket) -> None:
    while connection.recv(4096):
        pass


def test_a_report_as_json(serving: Callable[[Serve], int]) -> None:
    port = serving(speaks(json=True, report=JSON, piece=5))
    assert fetch("127.0.0.1", port, 30) == JSON


def test_an_older_server_gives_text(serving: Callable[[Serve], int]) -> None:
    port = serving(speaks(json=False, report=b"NCCL version 2.24.3\n" * 50_000))
    assert fetch("localhost", port, 30) == b"NCCL version 2.24.3\n" * 50_000


def test_silence_ends_at_the_deadline(serving: Callable[[Serve], int]) -> None:
    with pytest.raises(RasError, match=r"no whole RAS report within 0\.2 s"):
        fetch("127.0.0.1", serving(until_closed), 0.2)


def test_a_server_that_never_stops_ends_at_the_deadline(serving: Callable[[Serve], int]) -> None:
    def serve(connection: socket.socket) -> None:
        connection.sendall(b"SERVER PROTOCOL 2\nOK\nOK\n")
        with suppress(OSError):
            while True:
                connection.sendall(b"x" * 1000)

    with pytest.raises(RasError, match=r"no whole RAS report within|larger than"):
        fetch("127.0.0.1", serving(serve), 0.5)


def test_an_early_end_is_told(serving: Callable[[Serve], int]) -> None:
    def serve(connection: socket.socket) -> None:
        connection.sendall(b"SERVER PROTOCOL 2\nOK\n")
        connection.shutdown(socket.SHUT_WR)
        until_closed(connection)

    with pytest.raises(RasError, match="without a report"):
        fetch("127.0.0.1", serving(serve), 30)


def test_another_service_is_told(serving: Callable[[Serve], int]) -> None:
    def serve(connection: socket.socket) -> None:
        connection.sendall(b"220 mail ready\r\n")
        until_closed(connection)

    with pytest.raises(RasError, match="no RAS service"):
        fetch("127.0.0.1", serving(serve), 30)


def test_nobody_there_is_told() -> None:
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    with pytest.raises(RasError, match=f"127.0.0.1:{port}: Connection refused; RAS listens"):
        fetch("127.0.0.1", port, 30)
    with pytest.raises(RasError, match="no-such-host"):
        fetch("no-such-host.invalid", port, 30)
    with pytest.raises(RasError, match="aaaa"):
        fetch("a" * 300, port, 30)
