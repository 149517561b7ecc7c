"""The protocol of NCCL's RAS service as a client speaks it; bytes in, bytes out, no sockets.

One command a line, one answer a line; the answer to ``STATUS`` is the report, which ends when the
server closes the connection. Servers before 2.28.7 know no JSON and say so.
"""

from enum import Enum, auto

from ncdiag.model.errors import UndecidedError

PORT = 28028
MAX_REPORT_BYTES = 64 << 20
# Longest answer to a command; what is longer is no RAS service.
MAX_ANSWER_BYTES = 4096


class RasError(UndecidedError):
    """No report could be had; says why in one line."""


class _Step(Enum):
    GREETING = auto()
    TIMEOUT = auto()
    FORMAT = auto()
    REPORT = auto()


class RasClient:
    """Asks for one report, as JSON where the server can.

    ``wait_s`` is how long the server may wait for others of the job. Send what ``start`` and
    ``feed`` return, feed what arrives, call ``end`` when the server closes.
    """

    def __init__(self, *, wait_s: int, json: bool = True) -> None:
        self._wait_s = wait_s
        self._json = json
        self._step = _Step.GREETING
        self._buffer = bytearray()

    def start(self) -> bytes:
        """What to send first."""
        return b"CLIENT PROTOCOL 2\n"

    def feed(self, data: bytes) -> bytes:
        """Take what arrived; returns what to send next, if anything."""
        self._buffer += data
        out = bytearray()
        while self._step is not _Step.REPORT:
            end = self._buffer.find(b"\n", 0, MAX_ANSWER_BYTES)
            if end < 0:
                if len(self._buffer) >= MAX_ANSWER_BYTES:
                    raise RasError("what answers there is no RAS service of NCCL")
                return bytes(out)
            answer = self._buffer[:end].decode(errors="replace").strip()
            del self._buffer[: end + 1]
            out += self._answered(answer)
        if len(self._buffer) > MAX_REPORT_BYTES:
            raise RasError(f"the RAS report is larger than {MAX_REPORT_BYTES >> 20} MiB")
        return bytes(out)

    def end(self) -> bytes:
        """The report, now that the server closed the connection."""
        report = bytes(self._buffer)
        if self._step is not _Step.REPORT or not report.strip():
            raise RasError("the RAS service closed the connection without a report")
        if report.startswith(b"ERROR"):
            first = report.split(b"\n", 1)[0][:200].decode(errors="replace")
            raise RasError(f"the RAS service refused: {first}")
        return report

    def _answered(self, answer: str) -> bytes:
        """The next command after ``answer`` to the one before."""
        refused = answer.upper().startswith("ERROR")
        if self._step is _Step.GREETING:
            if not answer.upper().startswith("SERVER PROTOCOL"):
                raise RasError("what answers there is no RAS service of NCCL")
            self._step = _Step.TIMEOUT
            return f"TIMEOUT {self._wait_s}\n".encode()
        if self._step is _Step.TIMEOUT:
            # A server that does not take the time-out keeps its own.
            if self._json:
                self._step = _Step.FORMAT
                return b"SET FORMAT json\n"
            self._step = _Step.REPORT
            return b"VERBOSE STATUS\n"
        self._step = _Step.REPORT
        return b"VERBOSE STATUS\n" if refused else b"STATUS\n"
