"""The steps of ``ncdiag serve``: refuse what would be unsafe, listen, say where, serve."""

import ipaddress
import os
import socket
import stat
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

from rich.console import Console

from ncdiag.cli.serving.folder import ReportFolder
from ncdiag.cli.serving.server import Limits, Server, listen
from ncdiag.cli.serving.site import Site
from ncdiag.cli.serving.textfiles import check_textfiles
from ncdiag.model.errors import UsageError
from ncdiag.model.secrets import TOKEN_VARIABLE
from ncdiag.model.text import visible
from ncdiag.store.ledger import Ledger
from ncdiag.store.location import default_store

_LEAST_TOKEN: Final = 16
_MOST_TOKEN: Final = 4096


def serve_until_stopped(
    *,
    reports: Path,
    metrics: Sequence[Path],
    store: Path | None,
    bind: str,
    port: int,
    token_file: Path | None,
    messages: Console,
    limits: Limits | None = None,
) -> None:
    """Serve until an interrupt, which goes on to the caller; raises :class:`UsageError`."""
    address = address_of(bind)
    token = token_of(token_file)
    if token is None and not ipaddress.ip_address(address).is_loopback:
        raise UsageError(
            f"--bind {visible(bind)} is reached from other hosts: give a token with --token-file, "
            f"or the variable {TOKEN_VARIABLE}"
        )
    check_textfiles(metrics)
    site = Site(ReportFolder.of(reports), token=token, textfiles=metrics, store=_store_of(store))
    with _listening(address, port) as listening:
        messages.print(f"serving {visible(str(reports))} at {_url(listening)}", soft_wrap=True)
        Server(site, listening, limits or Limits()).run()


def address_of(bind: str) -> str:
    """The address that ``bind`` is; no name is looked up. Raises :class:`UsageError`."""
    try:
        return "127.0.0.1" if bind == "localhost" else str(ipaddress.ip_address(bind.strip("[]")))
    except ValueError:
        raise UsageError(
            f"--bind {visible(bind)} is no address; give one such as 127.0.0.1, 0.0.0.0 or ::1"
        ) from None


def token_of(file: Path | None, environment: Mapping[str, str] = os.environ) -> bytes | None:
    """The token of ``file``, else of the environment; ``None`` without one.

    Raises :class:`UsageError`, which never tells a token.
    """
    if file is None:
        given = environment.get(TOKEN_VARIABLE)
        return None if given is None else _checked(given.encode("utf-8", "replace"), TOKEN_VARIABLE)
    shown = f"--token-file {visible(str(file))}"
    try:
        number = os.open(file, os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC)
        with os.fdopen(number, "rb") as opened:
            told = os.fstat(number)
            if not stat.S_ISREG(told.st_mode):
                raise UsageError(f"{shown} is no file")
            if stat.S_IMODE(told.st_mode) & 0o077:
                raise UsageError(f"{shown} can be read by others; chmod 600 it")
            return _checked(opened.read(_MOST_TOKEN + 2), shown)
    except OSError as error:
        raise UsageError(f"{shown}: {error.strerror}") from error


def _checked(given: bytes, where: str) -> bytes:
    token = given.strip(b" \t\r\n")
    if not _LEAST_TOKEN <= len(token) <= _MOST_TOKEN or not all(
        0x21 <= one < 0x7F for one in token
    ):
        raise UsageError(
            f"{where} holds no token: {_LEAST_TOKEN} characters of ASCII or more, without blanks; "
            "openssl rand -hex 32 makes one"
        )
    return token


def _store_of(path: Path | None) -> Path | None:
    """The store, which is looked into where it was named. Raises NcdiagError."""
    if path is not None:
        Ledger.open(path).close()
        return path
    default = default_store()
    return default if default.exists() else None


def _listening(address: str, port: int) -> socket.socket:
    try:
        return listen(address, port)
    except OSError as error:
        raise UsageError(
            f"cannot listen on {address} port {port}: {error.strerror}; "
            "choose others with --bind and --port"
        ) from error


def _url(listening: socket.socket) -> str:
    address, port = listening.getsockname()[:2]
    return f"http://{f'[{address}]' if ':' in address else address}:{port}/"
