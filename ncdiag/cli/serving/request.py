"""A request's head, read strictly: what is not plain HTTP/1.0 or 1.1 is refused, not guessed at."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from http import HTTPStatus
from typing import Final
from urllib.parse import unquote_to_bytes

MAX_HEAD_BYTES: Final = 16 << 10
MAX_FIELDS: Final = 100

# RFC 9112 (HTTP/1.1), 3 "Request Line" and 5 "Field Syntax"; a field is never folded.
_LINE: Final = re.compile(rb"([!#$%&'*+.^_`|~0-9A-Za-z-]{1,32}) ([\x21-\x7e]+) HTTP/1\.([01])\Z")
_FIELD: Final = re.compile(rb"([!#$%&'*+.^_`|~0-9A-Za-z-]+):[ \t]*([\x20-\x7e\t\x80-\xff]*)\Z")


class BadRequestError(Exception):
    """A request that is answered with ``status``, and the connection closed."""

    def __init__(self, status: HTTPStatus) -> None:
        super().__init__(status.phrase)
        self.status = status


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """A request without its body, which nobody here wants; fields have names in small letters."""

    method: str
    target: str
    fields: Mapping[str, str] = field(default_factory=dict)
    minor: int = 1

    @property
    def keep(self) -> bool:
        """Whether another request may follow on this connection."""
        if self.has_body:
            return False
        wish = self.fields.get("connection", "").lower()
        return wish != "close" if self.minor else wish == "keep-alive"

    @property
    def has_body(self) -> bool:
        """Whether more follows that is no request."""
        return "transfer-encoding" in self.fields or self.fields.get("content-length", "0") != "0"


def parse_request(head: bytes) -> Request:
    """The request whose head, up to its blank line, is ``head``. Raises BadRequestError."""
    first, *lines = head.removesuffix(b"\r\n\r\n").split(b"\r\n")
    line = _LINE.match(first)
    if line is None or len(lines) > MAX_FIELDS:
        raise BadRequestError(HTTPStatus.BAD_REQUEST)
    fields: dict[str, str] = {}
    for text in lines:
        found = _FIELD.match(text)
        if found is None:
            raise BadRequestError(HTTPStatus.BAD_REQUEST)
        name, value = found[1].decode().lower(), found[2].decode("latin-1").strip(" \t")
        if name in fields and name in ("host", "authorization", "content-length"):
            raise BadRequestError(HTTPStatus.BAD_REQUEST)
        fields[name] = value
    if line[3] == b"1" and "host" not in fields:
        raise BadRequestError(HTTPStatus.BAD_REQUEST)
    return Request(
        method=line[1].decode(), target=line[2].decode(), fields=fields, minor=int(line[3])
    )


def segments(target: str) -> list[str] | None:
    """The parts of the path of ``target``, each decoded once; ``None`` where it is no path."""
    if not target.startswith("/"):
        return None
    path = target.partition("?")[0].partition("#")[0]
    try:
        return [unquote_to_bytes(part).decode() for part in path[1:].split("/")]
    except UnicodeDecodeError:
        return None
