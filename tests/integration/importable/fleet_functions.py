"""What the tests of the fleet call on hosts; workers import it through PYTHONPATH."""

import json
import os
import socket
import sys
import threading
import time
from pathlib import Path

import psutil

from ncdiag.cluster.fleet import companions


def echo(payload: bytes) -> bytes:
    return payload


def about(payload: bytes) -> bytes:
    """What a worker looks like from inside; the payload names a companion to look up, if any."""
    name = payload.decode()
    companion = json.loads(companions().ready(name, 30.0))["pid"] if name else None
    return json.dumps(
        {
            "pid": os.getpid(),
            "companion": companion,
            "thread": threading.current_thread() is not threading.main_thread(),
            "hostname": socket.gethostname(),
            "python": sys.executable,
            "cwd": str(Path.cwd()),
            "environment": dict(os.environ),
            "listens": [
                str(connection.laddr.ip)
                for connection in psutil.Process().net_connections("inet")
                if connection.status == psutil.CONN_LISTEN
            ],
        }
    ).encode()


def fail(payload: bytes) -> bytes:
    raise RuntimeError(payload.decode() + "\nsecond line")


def leave(payload: bytes) -> bytes:
    raise SystemExit(payload.decode())


def wrong_type(payload: bytes) -> bytes:
    return payload.decode()  # type: ignore[return-value] # what is tested


def sleep(payload: bytes) -> bytes:
    time.sleep(float(payload))
    return b"slept"


def ask_companion(payload: bytes) -> bytes:
    request = json.loads(payload)
    say = json.dumps(request["say"]).encode()
    return companions().request(request["name"], say, request["deadline_s"])
