"""Posting a message to a webhook. Its URL may be a secret: no error and no line ever holds it."""

import ssl
import threading
from http.client import HTTPException
from typing import Final
from urllib.error import HTTPError, URLError
from urllib.parse import urlsplit
from urllib.request import HTTPRedirectHandler, Request, build_opener

from ncdiag.model.errors import UndecidedError, UsageError

DEADLINE_S: Final = 10.0
_SCHEMES: Final = ("http", "https")


def check_url(url: str, option: str) -> None:
    """Refuse what cannot be posted to; raises :class:`UsageError`, which does not tell the URL."""
    try:
        parts = urlsplit(url)
        port_is_right = parts.port is None or parts.port > 0
    except ValueError:
        raise UsageError(f"{option}: this is no URL") from None
    if parts.scheme not in _SCHEMES or not parts.hostname or not port_is_right:
        raise UsageError(f"{option}: give a URL that begins with https:// or http://, and a host")
    if not url.isascii() or not url.isprintable() or " " in url:
        raise UsageError(f"{option}: a URL has no blanks and nothing but ASCII in it")
    if "@" in parts.netloc:
        raise UsageError(f"{option}: a user and password in a URL are not sent; leave them out")


def post(url: str, message: bytes, deadline_s: float = DEADLINE_S) -> None:
    """Post JSON; raises :class:`UndecidedError` where it does not arrive within the deadline."""
    errors: list[str] = []
    # A name server that does not answer holds up a thread, which nothing waits for.
    sending = threading.Thread(target=_send, args=(url, message, deadline_s, errors), daemon=True)
    sending.start()
    sending.join(deadline_s)
    if sending.is_alive():
        raise UndecidedError(f"not sent: no answer within {deadline_s:g} s")
    if errors:
        raise UndecidedError(f"not sent: {errors[0]}")


def _send(url: str, message: bytes, deadline_s: float, errors: list[str]) -> None:
    request = Request(  # noqa: S310 - the scheme was looked at
        url, data=message, headers={"Content-Type": "application/json", "User-Agent": "ncdiag"}
    )
    try:
        with build_opener(_NoRedirect).open(request, timeout=deadline_s) as answer:
            answer.read(1)
    except Exception as error:  # noqa: BLE001 - a thread has nobody above it who would tell
        errors.append(_words(error))


class _NoRedirect(HTTPRedirectHandler):
    """A message goes where the operator said, and nowhere else."""

    def redirect_request(self, *_: object) -> None:
        """No other request; what the server answered is the error."""


def _words(error: Exception) -> str:
    """What went wrong, of which nothing may quote the URL."""
    if isinstance(error, HTTPError):
        with error:
            return f"the server answered {error.code}"
    reason = error.reason if isinstance(error, URLError) else error
    if isinstance(reason, ssl.SSLError):
        return f"TLS failed: {(reason.reason or 'no reason given').lower().replace('_', ' ')}"
    if isinstance(reason, TimeoutError):
        return "no answer in time"
    if isinstance(reason, OSError) and reason.strerror:
        return reason.strerror
    if isinstance(reason, HTTPException):
        return "the answer was no HTTP"
    return type(reason).__name__
