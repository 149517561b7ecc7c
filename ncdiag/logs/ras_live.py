"""Asks the RAS service of a running job for its report."""

import socket
import time

from ncdiag.model.errors import UsageError
from ncdiag.read.ras.client import PORT, RasClient, RasError

TIMEOUT_S = 60.0
_CHUNK = 64 << 10


def fetch(host: str, port: int = PORT, timeout_s: float = TIMEOUT_S) -> bytes:
    """The report that the service at ``host`` gives, JSON or text, within ``timeout_s``.

    The service asks every process of the job and waits for the slow ones, silently: it is told to
    wait half of ``timeout_s``.
    """
    deadline = time.monotonic() + timeout_s
    client = RasClient(wait_s=max(int(timeout_s / 2), 1))
    where = f"{host}:{port}"
    try:
        with socket.create_connection((host, port), timeout=timeout_s) as connection:
            _say(connection, client.start(), deadline)
            while data := _hear(connection, deadline):
                _say(connection, client.feed(data), deadline)
            return client.end()
    except TimeoutError:
        raise RasError(f"{where}: no whole RAS report within {timeout_s:g} s") from None
    except RasError as error:
        raise RasError(f"{where}: {error}") from None
    except (OSError, UnicodeError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise RasError(
            f"{where}: {reason}; RAS listens on the hosts of a running job, on localhost only "
            "unless NCCL_RAS_ADDR says otherwise"
        ) from None


def address(text: str) -> tuple[str, int]:
    """The host and port that ``host``, ``host:port``, ``[v6]:port`` or ``v6`` names."""
    host, colon, port = text, "", ""
    if text.startswith("["):
        host, bracket, rest = text[1:].partition("]")
        colon, port = rest[:1], rest[1:]
        if not bracket or (rest and colon != ":"):
            host = ""
    elif text.count(":") == 1:
        host, colon, port = text.partition(":")
    number = int(port) if port.isascii() and port.isdigit() and len(port) <= 5 else 0
    if not host or (colon and not 0 < number < 1 << 16):
        raise UsageError(f"{text!r} names no RAS service; give HOST, HOST:PORT or [ADDRESS]:PORT")
    return host, number or PORT


def _say(connection: socket.socket, data: bytes, deadline: float) -> None:
    if data:
        _wait(connection, deadline)
        connection.sendall(data)


def _hear(connection: socket.socket, deadline: float) -> bytes:
    _wait(connection, deadline)
    return connection.recv(_CHUNK)


def _wait(connection: socket.socket, deadline: float) -> None:
    left = deadline - time.monotonic()
    if left <= 0:
        raise TimeoutError
    connection.settimeout(left)
