"""The JSON report of NCCL's RAS subsystem, and the JSON stream of its monitor.

The report lists every rank as it is; what a text report points out is found here by comparison.
"""

import json
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from ncdiag.model.log import LogEvidence, RasIssue, RasMember, RasReport
from ncdiag.model.place import Place
from ncdiag.read.bounded_bytes import BoundedBytes
from ncdiag.read.ras.parts import (
    IN_PROGRESS,
    MAX_ISSUES,
    MAX_MEMBERS,
    MAX_REPORTS,
    NOTHING_LAUNCHED,
    RESULTS,
    SUCCESS,
    Peer,
    peer_in,
)
from ncdiag.read.ras.stream import EventStream

# 100,000 ranks, counting a rank once for each of its communicators.
MAX_BYTES = 64 << 20
MAX_DEPTH_ERROR = "it is nested too deeply"

# What a server answers before the report when it was asked without a client.
_ANSWERS = rb"\s*(?:(?:OK|SERVER PROTOCOL \d{1,3})\r?\n\s*){0,8}"
_REPORT = re.compile(_ANSWERS + rb'\{\s*"nccl_version"\s*:')
_EVENT = re.compile(_ANSWERS + rb'\{\s*"timestamp"\s*:[^{}]{0,200}"event"\s*:\s*"PEER_')
_BETWEEN = re.compile(r"[^{]*")

# Ranks send and receive as often as their place in the program asks for: no two need agree.
_TRANSFERS = frozenset({"Send", "Recv", "SendRecv"})

_Object = Mapping[str, Any]


class RasDocument:
    """Reads a file of reports or of events, one behind the other."""

    kind = "ras"

    def __init__(self, path: str) -> None:
        self.error: str | None = None
        self._path = path
        self._pieces = BoundedBytes(MAX_BYTES)

    @property
    def truncated(self) -> bool:
        """Whether the file is larger than is read."""
        return self._pieces.too_large

    @classmethod
    def recognises(cls, head: bytes) -> bool:
        """Whether a file that begins with ``head`` is such a report or stream."""
        if _EVENT.match(head):
            return True
        return bool(_REPORT.match(head)) and b'"communicators' in head

    def feed(self, chunk: bytes) -> None:
        """Keep the next bytes, up to the limit."""
        self._pieces.add(chunk)

    def finish(self, evidence: LogEvidence) -> None:
        """Add the reports to ``evidence``; ``error`` tells where the file is cut or damaged."""
        if self._pieces.too_large:
            self.error = f"RAS report of more than {MAX_BYTES >> 20} MiB: not read"
            return
        events = EventStream()
        reports = []
        for line, read in self._objects(self._pieces.whole().decode(errors="replace")):
            place = Place(self._path, line)
            if "communicators" in read:
                reports.append(_report(read, place))
            elif isinstance(event := read.get("event"), str):
                details = _text(read.get("details")) or ""
                events.add(event, _peer(read), place, f"{event}: {details}"[:400])
            if len(reports) >= MAX_REPORTS:
                break
        if report := events.report():
            reports.append(report)
        evidence.ras.extend(reports)

    def _objects(self, text: str) -> Iterator[tuple[int, _Object]]:
        decoder = json.JSONDecoder()
        at, line, counted = 0, 1, 0
        while True:
            between = _BETWEEN.match(text, at)
            at = between.end() if between else len(text)
            if at >= len(text):
                return
            line += text.count("\n", counted, at)
            counted = at
            try:
                read, at = decoder.raw_decode(text, at)
            except (ValueError, RecursionError) as error:
                why = MAX_DEPTH_ERROR if isinstance(error, RecursionError) else str(error)
                self.error = f"RAS report is cut or damaged: {why}"
                return
            if isinstance(read, dict):
                yield line, read


def _report(read: _Object, place: Place) -> RasReport:
    communicators = [each for each in _list(read.get("communicators")) if isinstance(each, dict)]
    ranks = [rank for each in communicators for rank in _all_ranks(each)]
    processes = {(host, pid) for rank in ranks if (host := _host(rank)) and (pid := _pid(rank))}
    report = RasReport(
        place=place,
        version=_text(read.get("nccl_version")),
        nodes=len({host for rank in ranks if (host := _host(rank))}) or None,
        processes=len(processes) or None,
        gpus=len({(host, r.get("nvml_dev")) for r in _hashable(ranks) if (host := _host(r))})
        or None,
        communicators=len(communicators),
        largest=max((_size(each) or 0 for each in communicators), default=0) or None,
        complete="ras" in read,
    )
    issues = _dead(communicators, place)
    for each in communicators:
        issues += _of_communicator(each, place)
    timeouts = _number(_dict(read.get("ras")).get("timeouts_count"))
    if timeouts:
        text = f"{timeouts} communication time-outs while gathering communicator data"
        issues.append(RasIssue(kind="TIMEOUT", place=place, text=text))
    report.issues = issues[:MAX_ISSUES]
    return report


def _of_communicator(each: _Object, place: Place) -> list[RasIssue]:
    size = _size(each)
    group = _text(each.get("hash"))
    ranks = [rank for rank in _list(each.get("ranks")) if _is_rank(rank, size)]
    missing = [rank for rank in _list(each.get("missing_ranks")) if _is_rank(rank, size)]
    silent = [rank for rank in missing if _dict(rank.get("status")).get("unresponsive") is True]
    issues = [*_incomplete(silent), *_errors(ranks), *_statuses(ranks, missing), *_counts(ranks)]
    return [
        RasIssue(
            kind=issue.kind,
            place=place,
            group=group,
            ranks=size,
            op=issue.op,
            counts=issue.counts,
            statuses=issue.statuses,
            members=issue.members[:MAX_MEMBERS],
            text=issue.text,
        )
        for issue in issues
    ]


_NOWHERE = Place("", 0)


def _dead(communicators: Sequence[_Object], place: Place) -> list[RasIssue]:
    """A dead process is missing in each of its communicators and is told once."""
    dead: dict[tuple[str | None, str | None], RasMember] = {}
    for each in communicators:
        size = _size(each)
        for rank in _list(each.get("missing_ranks")):
            if _is_rank(rank, size) and _dict(rank.get("status")).get("considered_dead") is True:
                dead.setdefault((_host(rank), _pid(rank)), _member(rank))
    if not dead:
        return []
    text = f"{len(dead)} job processes are considered dead"
    return [
        RasIssue(kind="DEAD", place=place, members=list(dead.values())[:MAX_MEMBERS], text=text)
    ]


def _incomplete(silent: Sequence[_Object]) -> Iterator[RasIssue]:
    waited = [
        rank for rank in silent if _dict(rank.get("status")).get("considered_dead") is not True
    ]
    if waited:
        text = f"no communicator data from {len(waited)} ranks"
        members = [_member(rank) for rank in waited]
        yield RasIssue(kind="INCOMPLETE", place=_NOWHERE, members=members, text=text)


def _errors(ranks: Sequence[_Object]) -> Iterator[RasIssue]:
    for key, what in (("init_state", "Initialization"), ("async_error", "Asynchronous")):
        failed = [
            (rank, result)
            for rank in ranks
            if (result := _number(_dict(rank.get("status")).get(key))) is not None
            and result not in (SUCCESS, IN_PROGRESS)
        ]
        if failed:
            names = [RESULTS.get(result, "Unexpected error") for _, result in failed]
            yield RasIssue(
                kind="ERROR",
                place=_NOWHERE,
                statuses=dict(Counter(names)),
                members=[
                    _member(rank, status=name)
                    for (rank, _), name in zip(failed, names, strict=True)
                ],
                text=f"{what} errors on {len(failed)} ranks",
            )


def _statuses(ranks: Sequence[_Object], missing: Sequence[_Object]) -> Iterator[RasIssue]:
    statuses = [(rank, _status(rank)) for rank in ranks]
    # Those who answered and said that they are no members.
    statuses += [
        (rank, "NOCOMM")
        for rank in missing
        if _dict(rank.get("status")).get("unresponsive") is False
    ]
    counts = Counter(status for _, status in statuses)
    if len(counts) < 2:
        return
    (most, _), *_ = counts.most_common(1)
    yield RasIssue(
        kind="MISMATCH",
        place=_NOWHERE,
        statuses=dict(counts),
        members=[_member(rank, status=status) for rank, status in statuses if status != most],
        text="Communicator ranks have different status",
    )


def _status(rank: _Object) -> str:
    status = _dict(rank.get("status"))
    if status.get("abort_flag") is True:
        return "ABORT"
    if status.get("finalize_called") is True or status.get("destroy_flag") is True:
        return "FINALIZE"
    return "RUNNING" if _number(status.get("init_state")) in (SUCCESS, None) else "INIT"


def _counts(ranks: Sequence[_Object]) -> Iterator[RasIssue]:
    """One issue an operation of which ranks launched different numbers."""
    launched: dict[str, list[tuple[_Object, int]]] = {}
    for rank in ranks:
        for op, value in _dict(rank.get("collective_counts")).items():
            number = _number(value)
            if number is not None and op not in _TRANSFERS:
                launched.setdefault(op, []).append((rank, number or NOTHING_LAUNCHED))
    for op, all_of_it in launched.items():
        counts = Counter(number for _, number in all_of_it)
        if len(counts) < 2:
            continue
        (most, _), *_ = counts.most_common(1)
        yield RasIssue(
            kind="MISMATCH",
            place=_NOWHERE,
            op=op[:80],
            counts=dict(counts),
            members=[_member(rank, operation=n) for rank, n in all_of_it if n != most],
            text=f"Communicator ranks have different {op[:80]} operation counts",
        )


def _member(rank: _Object, *, operation: int | None = None, status: str | None = None) -> RasMember:
    device, nvml = _number(rank.get("cuda_dev")), _number(rank.get("nvml_dev"))
    gpus = None if device is None else str(device)
    if gpus and nvml is not None and nvml != device:
        gpus = f"{device} (NVML {nvml})"
    return RasMember(_number(rank.get("rank")), _host(rank), _pid(rank), gpus, operation, status)


def _all_ranks(each: _Object) -> Iterator[_Object]:
    size = _size(each)
    for key in ("ranks", "missing_ranks"):
        yield from (rank for rank in _list(each.get(key)) if _is_rank(rank, size))


def _hashable(ranks: Sequence[_Object]) -> Iterator[_Object]:
    return (rank for rank in ranks if _number(rank.get("nvml_dev")) is not None)


def _is_rank(value: object, size: int | None) -> bool:
    if not isinstance(value, dict):
        return False
    rank = _number(value.get("rank"))
    return rank is not None and rank >= 0 and (size is None or rank < size)


def _peer(read: _Object) -> Peer | None:
    peer = _dict(read.get("peer"))
    host, pid = _host(peer), _pid(peer)
    if host or pid:
        gpus = ",".join(str(g) for g in _list(peer.get("cuda_devs")) if _number(g) is not None)
        return Peer(host, pid, gpus or None)
    return peer_in(_text(peer.get("addr")) or _text(read.get("details")) or "")


def _size(each: _Object) -> int | None:
    return _number(each.get("size"))


def _host(rank: _Object) -> str | None:
    host = _text(rank.get("host"))
    return None if host in (None, "", "unknown") else host


def _pid(rank: _Object) -> str | None:
    pid = _number(rank.get("pid"))
    return None if pid is None or pid < 0 else str(pid)


def _number(value: object) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def _text(value: object) -> str | None:
    return value[:400] if isinstance(value, str) else None


def _list(value: object) -> list[Any]:
    return value if isinstance(value, list) else []


def _dict(value: object) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}
