"""The sockets: one thread waits on all of them, a few others read files.

A client that sends or takes slowly costs its own connection and nothing else. Where there are too
many connections, the one that has waited longest without a request makes room.
"""

import asyncio
import os
import resource
import socket
import sys
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, replace
from email.utils import formatdate
from http import HTTPStatus
from typing import Any, Final

from ncdiag.cli.serving.folder import OpenFile
from ncdiag.cli.serving.request import MAX_HEAD_BYTES, BadRequestError, Request, parse_request
from ncdiag.cli.serving.site import Answer, Site, close, failure
from ncdiag.model.text import visible

_READERS: Final = 4
_BACKLOG: Final = 512
_PIECE: Final = 256 << 10
_OWN_FILES: Final = 32


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """How long a client may take, and how many there may be."""

    head_s: float = 10.0
    idle_s: float = 30.0
    piece_s: float = 30.0
    answer_s: float = 60.0
    connections: int = 256


class Server:
    """Answers requests on one listening socket until it is interrupted."""

    def __init__(self, site: Site, listening: socket.socket, limits: Limits) -> None:
        self._site = site
        self._listening = listening
        self._limits = replace(limits, connections=most_connections(limits.connections))
        # Those that wait for a request, who has waited longest first; and all of them.
        self._waiting: dict[asyncio.StreamWriter, None] = {}
        self._connections: set[asyncio.StreamWriter] = set()
        self._readers = ThreadPoolExecutor(_READERS, "reader")

    def run(self) -> None:
        """Serve; returns by an exception only, at once."""
        with asyncio.Runner() as runner:
            try:
                runner.run(self._serve())
            finally:
                self._readers.shutdown(wait=False, cancel_futures=True)

    async def _serve(self) -> None:
        asyncio.get_running_loop().set_exception_handler(_tell)
        server = await asyncio.start_server(
            self._connected, sock=self._listening, limit=MAX_HEAD_BYTES, backlog=_BACKLOG
        )
        await server.serve_forever()

    async def _connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            if len(self._connections) >= self._limits.connections and not self._make_room():
                await self._send(writer, failure(HTTPStatus.SERVICE_UNAVAILABLE), keep=False)
                return
            self._connections.add(writer)
            first = True
            while await self._exchange(reader, writer, first=first):
                first = False
        except (OSError, TimeoutError, asyncio.IncompleteReadError):
            pass  # the client went away, or took too long
        except Exception as error:  # noqa: BLE001 - one bad request must not end the server
            _say(f"internal error: {type(error).__name__}: {error}")
        finally:
            self._connections.discard(writer)
            self._waiting.pop(writer, None)
            writer.close()

    def _make_room(self) -> bool:
        """Close the connection that has waited longest without a request, if any does."""
        writer = next(iter(self._waiting), None)
        if writer is None:
            return False
        del self._waiting[writer]
        self._connections.discard(writer)
        writer.transport.abort()
        return True

    async def _exchange(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, *, first: bool
    ) -> bool:
        """One request and its answer; whether another one may follow."""
        self._waiting[writer] = None
        try:
            request = await self._request(reader, first=first)
        except BadRequestError as error:
            await self._send(writer, failure(error.status), keep=False)
            return False
        finally:
            self._waiting.pop(writer, None)
        if request is None:
            return False
        # Also while all readers wait for a file server, it can be told that this process lives.
        answer = self._site.answer_at_once(request) or await self._answer_in_time(request)
        await self._send(writer, answer, keep=request.keep, bodiless=request.method == "HEAD")
        return request.keep

    async def _answer_in_time(self, request: Request) -> Answer:
        job = self._readers.submit(self._answered, request)
        try:
            async with asyncio.timeout(self._limits.answer_s):
                return await asyncio.wrap_future(job)
        except BaseException:
            job.add_done_callback(_close_late)
            raise

    def _answered(self, request: Request) -> Answer:
        try:
            return self._site.answer(request)
        except OSError:
            return failure(HTTPStatus.SERVICE_UNAVAILABLE)

    async def _request(self, reader: asyncio.StreamReader, *, first: bool) -> Request | None:
        """The next request; ``None`` where the client has no more. Raises BadRequestError."""
        limits = self._limits
        async with asyncio.timeout(limits.head_s if first else limits.idle_s) as limit:
            try:
                begun = await reader.readexactly(1)
            except asyncio.IncompleteReadError:
                return None
            limit.reschedule(asyncio.get_running_loop().time() + limits.head_s)
            try:
                return parse_request(begun + await reader.readuntil(b"\r\n\r\n"))
            except asyncio.LimitOverrunError:
                raise BadRequestError(HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE) from None

    async def _send(
        self, writer: asyncio.StreamWriter, answer: Answer, *, keep: bool, bodiless: bool = False
    ) -> None:
        try:
            head = _head(answer, keep=keep)
            if bodiless or isinstance(answer.body, OpenFile):
                writer.write(head)
            else:
                writer.write(head + answer.body)
            await self._drained(writer)
            if isinstance(answer.body, OpenFile) and not bodiless:
                await self._send_file(writer, answer.body)
        finally:
            close(answer)

    async def _send_file(self, writer: asyncio.StreamWriter, file: OpenFile) -> None:
        """Exactly as much as was announced; a file that shrinks meanwhile ends the connection."""
        loop = asyncio.get_running_loop()
        at = 0
        while at < file.size:
            size = min(_PIECE, file.size - at)
            piece = await loop.run_in_executor(self._readers, os.pread, file.number, size, at)
            if not piece:
                writer.transport.abort()
                raise ConnectionAbortedError
            writer.write(piece)
            await self._drained(writer)
            at += len(piece)

    async def _drained(self, writer: asyncio.StreamWriter) -> None:
        async with asyncio.timeout(self._limits.piece_s):
            await writer.drain()


def _close_late(job: "Future[Answer]") -> None:
    """Let go of the file of an answer that nobody waits for any more."""
    if not job.cancelled() and job.exception() is None:
        close(job.result())


def _tell(_loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
    """A line for what went wrong outside of all requests, such as no more files to open."""
    error = context.get("exception")
    if not isinstance(error, KeyboardInterrupt | asyncio.CancelledError):
        _say(f"{context.get('message')}: {error}")


def _say(text: str) -> None:
    with suppress(OSError):
        print(f"ncdiag: serve: {visible(text)}", file=sys.stderr)  # noqa: T201 - a message


def most_connections(wanted: int) -> int:
    """As many of ``wanted`` as this process may have files open for: one each, and one to send."""
    may_open = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
    return wanted if may_open < 0 else max(min(wanted, (may_open - _OWN_FILES) // 2), 1)


def _head(answer: Answer, *, keep: bool) -> bytes:
    fields = {
        "Date": formatdate(usegmt=True),
        **answer.fields,
        "Content-Length": f"{answer.size}",
        "Connection": "keep-alive" if keep else "close",
    }
    lines = "".join(f"{name}: {value}\r\n" for name, value in fields.items())
    return f"HTTP/1.1 {answer.status.value} {answer.status.phrase}\r\n{lines}\r\n".encode("ascii")


def listen(address: str, port: int) -> socket.socket:
    """A listening socket; raises OSError."""
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    listening = socket.socket(family, socket.SOCK_STREAM)
    with suppress(OSError):
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listening.bind((address, port))
        listening.listen(_BACKLOG)
    except OSError:
        listening.close()
        raise
    return listening
