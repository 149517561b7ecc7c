"""What driver and worker say to each other before, and beside, Dask.

The driver writes one ``Job`` as a line of JSON to the worker's standard input and a beat each
second after it; the worker writes ``Hello`` lines to its standard output. Shell start-up files may
print there as well, so ours are marked.
"""

from typing import Final

import msgspec

from ncdiag.cluster.fleet.companion import CompanionSpec

# What a launcher runs on every host.
WORKER_MODULE: Final = "ncdiag.cluster.fleet.worker"

_MARK: Final = b"ncdiag-worker: "
BEAT: Final = b"\n"


class Job(msgspec.Struct, frozen=True, kw_only=True):
    """Everything a worker needs; one and the same for all hosts.

    The driver listens on ``driver_port`` at all of ``driver_addresses``, and unless these are
    ``exact``, wherever an ssh connection to the host comes from. ``connect_s`` is how long a worker
    may take to register with it.
    """

    driver_addresses: tuple[str, ...]
    driver_port: int
    exact: bool = False
    certificate: str
    key: str
    companions: tuple[CompanionSpec, ...] = ()
    connect_s: float = 30.0


class Hello(msgspec.Struct, frozen=True, kw_only=True):
    """A worker tells that it has started, or why it cannot work."""

    host: str
    version: str
    failed: str | None = None


def encode_job(job: Job) -> bytes:
    """One line."""
    return msgspec.json.encode(job) + b"\n"


def decode_job(line: bytes) -> Job:
    """The job of a line; raises msgspec.MsgspecError."""
    return msgspec.json.decode(line, type=Job)


def encode_hello(hello: Hello) -> bytes:
    """One marked line."""
    return _MARK + msgspec.json.encode(hello) + b"\n"


def decode_hello(line: bytes) -> Hello | None:
    """The hello of a line; ``None`` for whatever else is printed on a host."""
    start = line.find(_MARK)
    if start < 0:
        return None
    try:
        return msgspec.json.decode(line[start + len(_MARK) :], type=Hello)
    except msgspec.MsgspecError:
        return None
