"""A launch that has been started: what it says, the beat it needs, and its end."""

import asyncio
import contextlib
import os
import signal
from collections import deque
from collections.abc import AsyncIterator, Callable
from typing import Self, cast

from ncdiag.cluster.fleet.protocol import BEAT, Hello, decode_hello
from ncdiag.cluster.launchers import Launch
from ncdiag.cluster.launchers.attribution import attribute, lines_about
from ncdiag.model.secrets import without_secrets

_KEPT_LINES = 40
_MOST_KEPT_LINES = 40_000  # of a command for a thousand hosts
_MAX_LINE_BYTES = 16_384
# Of what is said on standard error; each line is looked at by all that tell reasons.
_MAX_SAID_CHARS = 2_000
# Something the command left behind may hold its output open for ever.
_LAST_WORDS_S = 1.0


class Running:
    """One launched command, in a session of its own: a Ctrl-C on the terminal is for us alone."""

    def __init__(self, launch: Launch, process: asyncio.subprocess.Process) -> None:
        self.launch = launch
        self.said: deque[str] = deque(maxlen=min(_KEPT_LINES * len(launch.hosts), _MOST_KEPT_LINES))
        self._process = process
        self._stdin = cast("asyncio.StreamWriter", process.stdin)
        self.exited: asyncio.Task[int]

    @classmethod
    async def start(
        cls,
        launch: Launch,
        hear: Callable[[Hello], None],
        log: Callable[[str], None],
        hear_error: Callable[[Launch, str], None],
    ) -> Self:
        """Start it and hand it its input; raises OSError.

        ``hear`` is told what workers say, ``hear_error`` each line of standard error.
        """
        process = await asyncio.create_subprocess_exec(
            *launch.argv,
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
            env={**without_secrets(os.environ), **launch.environment},
            start_new_session=True,
        )
        running = cls(launch, process)
        running._stdin.write(launch.stdin)
        running.exited = asyncio.create_task(running._follow(hear, log, hear_error))
        return running

    def said_about(self, host: str) -> list[str]:
        """What was said on standard error about one of its hosts."""
        return lines_about(self.launch, host, self.said)

    def beat(self) -> None:
        """Tell the worker that we live. Never waits: a dead link just fills the pipe."""
        if not self._stdin.is_closing():
            self._stdin.write(BEAT)

    def end(self) -> None:
        """Close its input, at which the worker ends by itself."""
        self._stdin.close()

    def kill(self) -> None:
        """End the command here, with whatever it started."""
        self.end()
        if self._process.returncode is None:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(self._process.pid, signal.SIGKILL)

    async def _follow(
        self,
        hear: Callable[[Hello], None],
        log: Callable[[str], None],
        hear_error: Callable[[Launch, str], None],
    ) -> int:
        readers = asyncio.gather(self._listen(hear), self._read_errors(log, hear_error))
        code = await self._process.wait()
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(_LAST_WORDS_S):
                await readers
        self._stdin.close()
        return code

    async def _listen(self, hear: Callable[[Hello], None]) -> None:
        async for line in _lines(cast("asyncio.StreamReader", self._process.stdout)):
            hello = decode_hello(line)
            if hello and hello.host in self.launch.hosts:
                hear(hello)

    async def _read_errors(
        self, log: Callable[[str], None], hear_error: Callable[[Launch, str], None]
    ) -> None:
        async for line in _lines(cast("asyncio.StreamReader", self._process.stderr)):
            said = line.decode(errors="replace").rstrip("\r")[:_MAX_SAID_CHARS]
            self.said.append(said)
            hosts, text = attribute(self.launch, said)
            log(f"{hosts[0] if len(hosts) == 1 else self.launch.argv[0]}: {text}")
            hear_error(self.launch, said)


async def _lines(stream: asyncio.StreamReader) -> AsyncIterator[bytes]:
    """Lines without their end; what is longer than any of ours is cut into several."""
    rest = b""
    while data := await stream.read(_MAX_LINE_BYTES):
        *lines, rest = (rest + data).split(b"\n")
        for line in lines:
            yield line
        if len(rest) > _MAX_LINE_BYTES:
            yield rest
            rest = b""
    if rest:
        yield rest
