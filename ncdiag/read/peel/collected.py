"""Lines that a collector keeps as JSON objects: Docker, Fluentd, Loki, Elastic, the journal."""

import re
from collections.abc import Iterator, Mapping
from typing import NamedTuple

import msgspec

from ncdiag.model.log import Speaker
from ncdiag.read.peel import stamps
from ncdiag.read.peel.chain import Chain, Memory

TEXTS = (
    "_raw", "log", "MESSAGE", "message", "@message", "msg", "line", "textPayload", "text", "body",
)  # fmt: skip
_TIMES = (
    "time", "@timestamp", "timestamp", "_time", "ts", "asctime", "__REALTIME_TIMESTAMP", "date",
)  # fmt: skip
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
    ("k8s", "node", "name"),
    ("labels", "node_name"),
    ("labels", "nodename"),
    ("labels", "hostname"),
    ("labels", "host"),
)
# Labels that name hosts, but other things as well: a host that is one of a list has a digit.
_PERHAPS_HOSTS = (("labels", "node"), ("labels", "instance"))
_LISTED = re.compile(r"[A-Za-z][A-Za-z_.-]{0,252}\d[\w.-]{0,252}|\d{1,3}(?:\.\d{1,3}){3}", re.ASCII)
_PORT = re.compile(r":\d{1,5}\Z", re.ASCII)
# What stores put around records they give back: objects, or lists of them.
_AROUND = (("_source",), ("result",), ("events",), ("hits", "hits"), ("data", "result"))
_DEEPEST = 4
# An object, perhaps one of a list.
_OPENS = re.compile(r"[\s,]{0,64}(?:\[\s{0,64})?\{")
_ORIGINS = {
    "kernel": "kernel",
    "slurmd": "slurm",
    "slurmstepd": "slurm",
    "slurmctld": "slurm",
    "nv-fabricmanager": "fabric-manager",
}
_HOST = re.compile(r"(?!\d+(?:\.\d+){3}$)[A-Za-z0-9][\w.-]{0,252}", re.ASCII)
_ADDRESS = re.compile(r"\d{1,3}(?:\.\d{1,3}){3}", re.ASCII)
_EVENTS = re.compile(r'\{\s{0,8}"events"\s{0,8}:\s{0,8}\[')
# A line that was cut off within its text.
_CUT = re.compile(
    rf'\{{.{{0,2000}}?"(?:{"|".join(TEXTS)})" ?: ?"((?:[^"\\]|\\.)*)', re.ASCII | re.DOTALL
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


def begins(text: str, start: int) -> bool:
    """Whether objects begin at ``start``."""
    return _OPENS.match(text, start) is not None


def read(text: str, start: int, base: Chain, memory: Memory) -> list[Collected]:
    """The objects that begin at ``start``, as far as they carry lines of a log."""
    body = text[start:].strip("[], \t\r\n")
    try:
        records = msgspec.json.decode(f"[{body}]")
    except (msgspec.DecodeError, RecursionError):
        records = _whole(body)
    if not records:
        cut = _cut(body, base)
        return [cut] if cut else []
    told = (one for record in records if isinstance(record, dict) for one in _within(record))
    return [found for record in told if (found := of_record(record, base, memory))]


def of_record(record: Mapping[str, object], base: Chain, memory: Memory) -> Collected | None:
    """The lines of one record, if it has any."""
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


def _within(record: Mapping[str, object], depth: int = 0) -> Iterator[Mapping[str, object]]:
    """The records that a store's answer holds, or ``record`` itself."""
    if isinstance(labels := record.get("stream"), dict):
        # Loki: the labels once, then a time and a line each.
        values = record.get("values")
        for value in values if isinstance(values, list) else ():
            if isinstance(value, list) and len(value) >= 2:
                yield {"labels": labels, "time": value[0], "line": value[1]}
        return
    around = () if depth >= _DEEPEST or _message(record) is not None else _AROUND
    inner = next((found for path in around if (found := _value(record, path))), None)
    if not isinstance(inner, dict | list):
        yield record
        return
    for one in inner if isinstance(inner, list) else (inner,):
        if isinstance(one, dict):
            yield from _within(one, depth + 1)


def _message(record: Mapping[str, object]) -> str | None:
    for key in TEXTS:
        value = record.get(key)
        if isinstance(value, str):
            return value
        # The journal writes what is no UTF-8 as numbers.
        if key == "MESSAGE" and isinstance(value, list):
            numbers = [item for item in value if isinstance(item, int) and 0 <= item < 256]
            return bytes(numbers).decode("utf-8", "replace")
    return None


def _whole(body: str) -> list[object]:
    """The objects of a list that was cut off within one of them."""
    start = found.end() if (found := _EVENTS.match(body)) else 0
    end = body.rfind("},", start) + 1
    if not end:
        return []
    try:
        return msgspec.json.decode(f"[{body[start:end]}]", type=list[object])
    except (msgspec.DecodeError, RecursionError):
        return []


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
    name = _host(record)
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


def _host(record: Mapping[str, object]) -> str | None:
    """The host that ``record`` names, without a port."""
    for path in (*_HOSTS, *_PERHAPS_HOSTS):
        value = _value(record, path)
        if not isinstance(value, str) or not value:
            continue
        name = _PORT.sub("", value)
        if path not in _PERHAPS_HOSTS or _LISTED.fullmatch(name):
            return name
    return None


def _value(record: Mapping[str, object], path: tuple[str, ...]) -> object:
    """What stands at ``path``: in objects within each other, or in one under a key with dots."""
    value: object = record
    for key in path:
        value = value.get(key) if isinstance(value, dict) else None
    return record.get(".".join(path)) if value is None else value


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
