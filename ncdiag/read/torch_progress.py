"""How far each rank got in each process group, as PyTorch's watchdogs tell."""

import re
from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

from ncdiag.model.log import GroupProgress, LogEvidence, Speaker
from ncdiag.read.line import Line

# "[PG ID 0 PG GUID 0(default_pg) Rank 3] " of 2.5 and later, "[PG 1 Rank 3] " before.
_PREFIX = re.compile(r"\[(?P<group>PG [^\[\]\n]{1,300}?) Rank (?P<group_rank>\d{1,7})\]")
# "[Rank 3] " of a piece of work; the global rank where no group is named.
_OWN = re.compile(r"\[Rank (?P<rank>\d{1,7})\]")
_WORK = re.compile(
    r"Work[A-Z]{2,8}\((?:SeqNum=(?P<seq>\d{1,20}), )?OpType=(?P<op>\w{1,64})"
    r"[^\n]{0,2000}?Timeout\(ms\)=(?P<timeout_ms>\d{1,20})\)"
)
_TIMED_OUT = re.compile(
    r"(?:[Cc]aught collective operation timeout: |raised the following async exception|"
    r"timed out in blocking wait)"
)
# "detected by watchdog at work: 7", "Timeout at NCCL work: 7", "at work sequence id: 7".
_AT_WORK = re.compile(r"at (?:NCCL )?work(?: sequence id)?: (?P<seq>-?\d{1,20})")
_STATUS = tuple(
    (name, re.compile(rf"[Ll]ast {word} (?:NCCL )?work: (?P<seq>-?\d{{1,20}})"))
    for name, word in (("enqueued", "enqueued"), ("started", "started"), ("completed", "completed"))
)
# The group that holds every rank: the rank in it is the global one.
_WHOLE = re.compile(
    r"PG (?:ID )?0(?: PG GUID (?:0|default_pg)?(?:\(default_pg\))?)?$|\(default_pg\)"
)
# Old builds print numbers that were never written; nothing gets so far in 32 bits' steps.
_RUBBISH = 1 << 31
_FARTHEST_APART = 1 << 20
_MOST = 100_000


class _Who(NamedTuple):
    speaker: Speaker
    rank: int | None
    group: str | None
    group_rank: int | None


class TorchProgressReader:
    """Makes a ``GroupProgress`` of each line that tells of a sequence number."""

    needles = frozenset(
        {
            b"aught collective operation timeout",
            b"raised the following async exception",
            b"timed out in blocking wait",
            b"ast enqueued NCCL work: ",
            b"ast enqueued work: ",
            b"detected by watchdog at work",
            b"Timeout at NCCL work",
        }
    )
    facts: frozenset[bytes] = frozenset()

    def __init__(self) -> None:
        self.kinds: set[str] = set()
        self._records: dict[_Who, GroupProgress] = {}
        self._waiting: dict[tuple[Speaker, int | None], GroupProgress] = {}

    @property
    def open(self) -> bool:
        """Every record is one line."""
        return False

    def read(self, line: Line, hits: Sequence[bytes]) -> None:
        """Note what one line tells of its rank."""
        if line.level is not None or not any(hit in self.needles for hit in hits):
            return
        who = _who(line)
        status = _status(line.text)
        work = _WORK.search(line.text) if _TIMED_OUT.search(line.text) else None
        if not status and not work:
            return
        self.kinds.add("torch")
        if len(self._records) >= _MOST and who not in self._records:
            return
        record = self._records.setdefault(who, _fresh(who, line))
        if work:
            _note_work(record, work)
            if who.group is None:
                self._waiting[who.speaker, who.rank] = record
        _note_status(record, status)
        if who.group is not None and record.timed_out is not None:
            self._join(who, record)

    def _join(self, who: _Who, record: GroupProgress) -> None:
        """Tell the group what its rank said of the same work in a line that names no group."""
        for rank in dict.fromkeys((who.rank, who.group_rank)):
            waiting = self._waiting.get((who.speaker, rank))
            if waiting and waiting.timed_out == record.timed_out and record.op is None:
                record.op, record.timeout_ms = waiting.op, waiting.timeout_ms
                record.place = min(record.place, waiting.place, key=lambda place: place.line)

    def finish(self, evidence: LogEvidence) -> None:
        """Hand over the records."""
        evidence.progress.extend(replace(record) for record in self._records.values())


def _who(line: Line) -> _Who:
    """Whose work a line speaks of. A rank inside a group's prefix is the one in that group."""
    rank = line.speaker.rank
    prefix = _PREFIX.search(line.text)
    if not prefix:
        own = _OWN.search(line.text)
        if rank is None and own:
            rank = int(own["rank"])
        return _Who(line.speaker, rank, None, None)
    group, group_rank = prefix["group"], int(prefix["group_rank"])
    if rank is None and _WHOLE.search(group):
        rank = group_rank
    return _Who(line.speaker, rank, group, group_rank)


def _fresh(who: _Who, line: Line) -> GroupProgress:
    return GroupProgress(
        rank=who.rank, group=who.group, group_rank=who.group_rank, place=line.place
    )


def _note_work(record: GroupProgress, work: re.Match[str]) -> None:
    """Keep the earliest work that timed out, with its name."""
    seq = int(work["seq"]) if work["seq"] else None
    if record.timed_out is not None and (seq is None or seq >= record.timed_out):
        if seq == record.timed_out and record.op is None:
            record.op, record.timeout_ms = work["op"], work["timeout_ms"]
        return
    record.timed_out = seq
    record.op, record.timeout_ms = work["op"], work["timeout_ms"]


def _status(text: str) -> dict[str, int]:
    """The numbers of a status line, without those that nobody ever wrote."""
    found = {name: int(m["seq"]) for name, pattern in _STATUS if (m := pattern.search(text))}
    if found and (at := _AT_WORK.search(text)):
        found["timed_out"] = int(at["seq"])
    sane = {name: seq for name, seq in found.items() if -1 <= seq < _RUBBISH}
    least = min((seq for seq in sane.values() if seq >= 0), default=0)
    return {name: seq for name, seq in sane.items() if seq - least <= _FARTHEST_APART}


def _note_status(record: GroupProgress, status: dict[str, int]) -> None:
    """Keep the furthest of what was enqueued and done, the earliest of what timed out."""
    for name in ("enqueued", "started", "completed"):
        if name in status:
            before: int | None = getattr(record, name)
            setattr(record, name, status[name] if before is None else max(before, status[name]))
    if "timed_out" in status and status["timed_out"] >= 0:
        seq = status["timed_out"]
        record.timed_out = seq if record.timed_out is None else min(seq, record.timed_out)
