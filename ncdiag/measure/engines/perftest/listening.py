"""TCP ports of this host: a free one, and whether a program of ours waits on it already.

perftest says that it waits only once its output is flushed, which is at its end.
"""

import contextlib
import socket
from collections.abc import Iterator
from pathlib import Path

import psutil

_LISTEN = "0A"  # the state in /proc/net/tcp (include/net/tcp_states.h)


def free_port() -> int:
    """A port nobody uses now; whoever wants it has to be ready to lose it to another."""
    with socket.socket(socket.AF_INET6 if socket.has_ipv6 else socket.AF_INET) as probe:
        probe.bind(("", 0))
        return int(probe.getsockname()[1])


def child_listens(port: int) -> bool:
    """Whether a child of this process, or a child of it, waits for connections on ``port``."""
    sockets = {f"socket:[{inode}]" for inode in _listening(port)}
    return bool(sockets) and any(sockets & set(_files(pid)) for pid in _children())


def _listening(port: int) -> Iterator[str]:
    for table in ("tcp", "tcp6"):
        try:
            lines = Path(f"/proc/self/net/{table}").read_text().splitlines()[1:]
        except OSError:
            continue
        for line in lines:
            fields = line.split()
            if fields[3] == _LISTEN and int(fields[1].rpartition(":")[2], 16) == port:
                yield fields[9]


def _children() -> list[int]:
    return [child.pid for child in psutil.Process().children(recursive=True)]


def _files(pid: int) -> Iterator[str]:
    try:
        entries = list(Path(f"/proc/{pid}/fd").iterdir())
    except OSError:
        return
    for entry in entries:
        with contextlib.suppress(OSError):
            yield str(entry.readlink())
