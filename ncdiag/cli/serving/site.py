"""What each address answers, and to whom; knows nothing of sockets."""

import hmac
import ipaddress
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from email.utils import formatdate
from http import HTTPStatus
from pathlib import Path
from typing import Final

from ncdiag.cli.serving.folder import TYPES, OpenFile, ReportFolder
from ncdiag.cli.serving.request import Request, segments
from ncdiag.cli.serving.textfiles import Kept, ledger_text, read_textfiles
from ncdiag.report.exposition import gauge
from ncdiag.report.serve.index import render_index
from ncdiag.report.serve.metrics import join_metrics

_METHODS: Final = ("GET", "HEAD")
_HTML: Final = "text/html; charset=utf-8"
_PLAIN: Final = "text/plain; charset=utf-8"
_EXPOSITION: Final = "text/plain; version=0.0.4; charset=utf-8"
# A page may use what stands in it, and ask nobody for anything: its own policy is stricter still.
_POLICY: Final = (
    "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; img-src data:; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
_ALWAYS: Final = {
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cache-Control": "no-cache",
}
_KEPT_S: Final = 5.0
_LEDGER_KEPT_S: Final = 60.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """What is sent back; an open file is sent piece by piece and closed by whoever sends it."""

    status: HTTPStatus
    body: bytes | OpenFile = b""
    fields: Mapping[str, str] = field(default_factory=dict)

    @property
    def size(self) -> int:
        """How many bytes follow."""
        return self.body.size if isinstance(self.body, OpenFile) else len(self.body)


class Site:
    """The pages and metrics. With a token nobody gets anything without it."""

    def __init__(
        self,
        folder: ReportFolder,
        *,
        token: bytes | None = None,
        textfiles: Sequence[Path] = (),
        store: Path | None = None,
    ) -> None:
        self._folder = folder
        self._token = token
        self._textfiles = tuple(textfiles)
        self._store = store
        self._index = Kept(self._make_index, _KEPT_S)
        self._metrics = Kept(self._make_metrics, _KEPT_S)
        self._ledger = Kept(self._make_ledger, _LEDGER_KEPT_S)

    def answer_at_once(self, request: Request) -> Answer | None:
        """The answer for which no file is read; ``None`` where :meth:`answer` has to read some."""
        refused = self._refused(request)
        if refused is not None:
            return refused
        if segments(request.target) == ["healthz"]:
            return _answer(HTTPStatus.OK, b"ok\n", _PLAIN)
        return None

    def answer(self, request: Request) -> Answer:
        """The answer to ``request``; reads files, and writes none. May raise OSError."""
        known = self.answer_at_once(request)
        if known is not None:
            return known
        match segments(request.target):
            case [""]:
                return _page(self._index.get())
            case ["metrics"]:
                return _answer(HTTPStatus.OK, self._metrics.get(), _EXPOSITION)
            case ["reports", *folders, file] if folders:
                opened = self._folder.open(folders, file)
                if opened is not None:
                    return _file(file, opened)
        return failure(HTTPStatus.NOT_FOUND)

    def _refused(self, request: Request) -> Answer | None:
        if self._token is not None:
            if not _holds(request.fields.get("authorization", ""), self._token):
                return failure(
                    HTTPStatus.UNAUTHORIZED, {"WWW-Authenticate": 'Bearer realm="ncdiag"'}
                )
        elif not _is_here(request.fields.get("host", "localhost")):
            # A page from elsewhere, whose name was made to lead here, would read everything.
            return failure(HTTPStatus.MISDIRECTED_REQUEST)
        if request.method not in _METHODS:
            return failure(HTTPStatus.METHOD_NOT_ALLOWED, {"Allow": ", ".join(_METHODS)})
        return None

    def _make_index(self) -> bytes:
        reports, left_out = self._folder.shown()
        return render_index(reports, left_out=left_out).encode()

    def _make_metrics(self) -> bytes:
        texts, failed = read_textfiles(self._textfiles)
        ledger = self._ledger.get().decode()
        own = [*gauge("ncdiag_serve_unread_textfiles", "Textfiles that failed.", [({}, failed)])]
        if self._store is not None:
            help_ = "1 if the isolation ledger could be read."
            own += gauge("ncdiag_serve_ledger_read", help_, [({}, float(bool(ledger)))])
        return join_metrics([*self._folder.newest_metrics(), *texts, ledger, "".join(own)]).encode()

    def _make_ledger(self) -> bytes:
        return (ledger_text(self._store) or "").encode() if self._store is not None else b""


def failure(status: HTTPStatus, fields: Mapping[str, str] | None = None) -> Answer:
    """An answer that says nothing but what its status means."""
    text = f"{status.value} {status.phrase}\n".encode()
    return _answer(status, text, _PLAIN, fields or {})


def _holds(authorization: str, token: bytes) -> bool:
    scheme, _, given = authorization.partition(" ")
    is_bearer = scheme.lower() == "bearer"
    return hmac.compare_digest(given.strip().encode("latin-1", "replace"), token) and is_bearer


def _is_here(host: str) -> bool:
    """Whether the field ``Host`` names this machine by an address or name that only it has."""
    name = host.rpartition(":")[0] if not host.endswith("]") and ":" in host else host
    name = name.removeprefix("[").removesuffix("]").rstrip(".").lower()
    if name == "localhost":
        return True
    try:
        return ipaddress.ip_address(name).is_loopback
    except ValueError:
        return False


def _answer(
    status: HTTPStatus, body: bytes, type_: str, more: Mapping[str, str] | None = None
) -> Answer:
    fields = {"Content-Type": type_, **_ALWAYS, **(more or {})}
    return Answer(status=status, body=body, fields=fields)


def _page(body: bytes) -> Answer:
    return _answer(HTTPStatus.OK, body, _HTML, {"Content-Security-Policy": _POLICY})


def _file(name: str, opened: OpenFile) -> Answer:
    fields = {"Content-Type": TYPES[name], **_ALWAYS, "Content-Security-Policy": _POLICY}
    fields["Last-Modified"] = formatdate(opened.changed_s, usegmt=True)
    return Answer(status=HTTPStatus.OK, body=opened, fields=fields)


def close(answer: Answer) -> None:
    """Let go of the file of an answer that is not sent."""
    if isinstance(answer.body, OpenFile):
        os.close(answer.body.number)
