"""Lines that a collector keeps as one JSON object each: Docker, Fluentd, Loki, the journal."""

import re
from collections.abc import Mapping
from typing import NamedTuple

import msgspec

from ncdiag.model.log import Speaker
from ncdiag.read.peel import stamps
from ncdiag.read.peel.chain import Chain, Memory

_TEXTS = ("log", "MESSAGE", "message", "msg", "line", "textPayload", "text", "body")
_TIMES = ("time", "@timestamp", "timestamp", "ts", "asctime", "__REALTIME_TIMESTAMP", "date")
_HOSTS = (
    ("kubernetes", "host"),
    ("kubernetes", "node_name"),
    ("kubernetes", "node", "name"),
    ("kubernetes", "nodeName"),
    ("_HOSTNAME",),
    ("hostname",),
    ("host",),
    ("host", "name"),
    ("host", "hostname"),
    ("node_name",),
    ("nodename",),
    ("labels", "node_name"),
    ("labels", "hostname"),
)
_ORIGINS = {
    "kernel": "kernel",
    "slurmd": "slurm",
    "slurmstepd": "slurm",
    "slurmctld": "slurm",
    "nv-fabricmanager": "fabric-manager",
}
_HOST = re.compile(r"(?!\d+(?:\.\d+){3}$)[A-Za-z0-9][\w.-]{0,252}", re.ASCII)
_ADDRESS = re.compile(r"\d{1,3}(?:\.\d{1,3}){3}", re.ASCII)
# A line that was cut off within its text.
_CUT = re.compile(
    rf'\{{.{{0,2000}}?"(?:{"|".join(_TEXTS)})" ?: ?"((?:[^"\\]|\\.)*)', re.ASCII | re.DOTALL
)
# Halves of a pair of escapes, which msgspec refuses.
_HALF = re.compile(r"\\u[dD][89a-fA-F][0-9a-fA-F]{2}", re.ASCII)
# The Docker daemon breaks longer lines into pieces of this size.
_DOCKER_PIECE = 16_000
_MOST_LINES = 1000


class Collected(NamedTuple):
    """The lines of one object; ``partial`` if the last goes on in the next of ``stream``."""

    lines: list[str]
    proved: Chain
    partial: bool = False
    stream: str = ""


def read(text: str, start: int, base: Chain, memory: Memory) -> Collected | None:
    """The object that begins at ``start``, if it carries a line of a log."""
    body = text[start:].strip()
    try:
        record = msgspec.json.decode(body)
    except (msgspec.DecodeError, RecursionError):
        return _cut(body, base)
    if not isinstance(record, dict):
        return None
    found = _message(record)
    if found is None:
        return None
    # What JSON can spell and a line cannot hold.
    message = found.replace("\0", "").encode(errors="replace").decode()
    stream = record.get("stream")
    partial = (
        "log" in record and len(message) >= _DOCKER_PIECE and not message.endswith(("\n", "\r"))
    )
    proved = _proved(record, base, memory)
    lines = message.splitlines()[:_MOST_LINES] or [""]
    return Collected(lines, proved, partial, stream if isinstance(stream, str) else "")


def _message(record: Mapping[str, object]) -> str | None:
    for key in _TEXTS:
        value = record.get(key)
        if isinstance(value, str):
            return value
        # The journal writes what is no UTF-8 as numbers.
        if key == "MESSAGE" and isinstance(value, list):
            numbers = [item for item in value if isinstance(item, int) and 0 <= item < 256]
            return bytes(numbers).decode("utf-8", "replace")
    return None


def _cut(body: str, base: Chain) -> Collected | None:
    found = _CUT.match(body)
    if not found:
        return None
    text = _HALF.sub("?", found[1])
    try:
        text = msgspec.json.decode(f'"{text}"', type=str)
    except msgspec.DecodeError:
        text = text.replace("\\n", "\n").replace('\\"', '"')
    lines = text.replace("\0", "").encode(errors="replace").decode().splitlines()
    return Collected(lines[:_MOST_LINES] or [""], base)


def _proved(record: Mapping[str, object], base: Chain, memory: Memory) -> Chain:
    speaker = base.speaker
    name = next((found for path in _HOSTS if (found := _at(record, path))), None)
    host = name if name and _HOST.fullmatch(name) else None
    address = name if name and _ADDRESS.fullmatch(name) else None
    pid = record.get("_PID")
    identifier = record.get("SYSLOG_IDENTIFIER")
    origin = _ORIGINS.get(identifier) if isinstance(identifier, str) else None
    if record.get("_TRANSPORT") == "kernel":
        origin = "kernel"
    stamp = _stamp(record, memory)
    if base.stamp and (stamp is None or base.stamp.weight >= stamp.weight):
        stamp = base.stamp
    return Chain(
        speaker=Speaker(
            host=host or speaker.host,
            pid=pid if isinstance(pid, str) and pid.isdecimal() else speaker.pid,
            label=speaker.label,
            address=address or speaker.address,
        ),
        stamp=stamp,
        origin=origin or base.origin,
    )


def _at(record: Mapping[str, object], path: tuple[str, ...]) -> str | None:
    value: object = record
    for key in path:
        value = value.get(key) if isinstance(value, dict) else None
    return value if isinstance(value, str) else None


def _stamp(record: Mapping[str, object], memory: Memory) -> stamps.Stamp | None:
    for key in _TIMES:
        value = record.get(key)
        if isinstance(value, bool) or not isinstance(value, str | int | float):
            continue
        if isinstance(value, str) and not (value.isascii() and value.isdecimal()):
            stamp = stamps.read(value[: stamps.LONGEST], memory.calendar)
        else:
            stamp = _number(str(value), float(value) if len(str(value)) < 40 else 0.0)
        if stamp:
            return stamp
    return None


def _number(text: str, seconds: float) -> stamps.Stamp | None:
    """A time since 1970 in whatever unit makes it one of this century."""
    for _ in range(4):
        if 1e9 <= seconds < 4e9:
            return stamps.since_epoch(text, seconds)
        seconds /= 1000
    return None
