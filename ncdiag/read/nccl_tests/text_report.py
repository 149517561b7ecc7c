"""Reads the text that one run of nccl-tests or rccl-tests printed, with what ran into it."""

import re
from collections.abc import Iterable
from io import BytesIO
from itertools import islice

from ncdiag.model.benchmark import Benchmark
from ncdiag.model.log import LogEvidence
from ncdiag.read.line import Line
from ncdiag.read.nccl_tests.table import TableReader
from ncdiag.read.peel import Peeler

MAX_BYTES = 64 << 20
_ANNOUNCES = re.compile(
    rb"nThreads?:? {1,4}\d{1,6} {1,4}nGpus|# ?nccl-tests version |# ?Collective test starting: "
    rb"|^rccl-tests: Version|\btime +algbw +busbw +(?:#wrong|error|res)\b",
    re.MULTILINE,
)
_RANK = re.compile(
    rb"Rank {1,8}\d{1,9} [^\n]{0,60}?Pid {1,12}(\d{1,10}) on {1,12}(\S{1,255}) device"
)
# A record of the library, to the end of its line; a warning begins with a line feed of its own.
_MAX_RANKS = 100_000
_MAX_HEARD = 1_000_000
# How a line goes on that nothing was cut from, and what launchers put before each.
_FRESH = re.compile(rb"#(?:[ \n]|\Z)|\s{2,40}\d{1,16} {1,40}\d{1,16} {1,20}[a-z]|\n|\Z")
_LABEL = re.compile(rb"(?:\[[^\]\n]{1,80}\](?:<std\w{2,4}>)?:? ?| {0,6}\d{1,6}: |[\w.-]{1,80}: )+")
_RECORD = re.compile(
    rb"(?P<feed>\n?)(?:\[\d{4}-\d\d-\d\d[^\]\n]{0,40}\] )?(?<![\w.-])(?P<word>[\w.-]{1,255}+):"
    rb"(?P<pid>\d{1,10}):\d{1,10} (?:\[-?\d{1,4}\] )?"
    rb"(?:\S{1,256}:\d{1,7} (?:\([^()\n]{0,200}\) )?)?NCCL (?P<level>WARN|INFO|TRACE|CALL|ABORT) "
    rb"[^\n]{0,65536}+(?:\n|\Z)"
)


def announces(head: bytes) -> bool:
    """Whether text that begins so is the output of such a test, or holds some."""
    return _ANNOUNCES.search(head) is not None


def read_text(data: bytes, path: str) -> list[Benchmark]:
    """The runs in ``data``, in order. Lines count without those of the library.

    Records of the library are taken out first, character by character, as they were put in: they
    cut rows in two anywhere, also within a number.
    """
    reader, evidence, peeler = TableReader(), LogEvidence(), Peeler(path)
    wanted = re.compile(b"|".join(map(re.escape, sorted(reader.needles))))
    text = _without_records(data[:MAX_BYTES])
    unended = None if text[-1:].isspace() else text.count(b"\n") + 1
    hits: set[int] = set()

    def hand_on(lines: Iterable[Line]) -> None:
        for line in lines:
            if reader.open or line.place.line in hits:
                reader.read(line._replace(unended=line.place.line == unended), ())

    for number, raw in enumerate(BytesIO(text), 1):
        if wanted.search(raw):
            hits.add(number)
        elif not reader.open:
            continue
        hand_on(peeler.feed(raw.removesuffix(b"\n"), number))
    hand_on(peeler.finish())
    reader.finish(evidence)
    return evidence.benchmarks


def _without_records(data: bytes) -> bytes:
    """``data`` as it would be had the library printed nothing."""
    if b" NCCL " not in data:
        return data
    hosts = _Hosts(data)

    def kept(found: re.Match[bytes]) -> bytes:
        before = hosts.before(found["word"], found["pid"])
        if before:
            return found["feed"] + before
        if found["level"] == b"WARN" and found["feed"]:
            # The last of several tells.
            goes_on = _RECORD.match(data, found.end()) or not _FRESH.match(data, found.end())
            return b"" if goes_on else b"\n"
        line = data.rfind(b"\n", 0, found.start()) + 1
        labelled = not found["feed"] and _LABEL.fullmatch(data, line, found.start("word"))
        return b"\n" if labelled else found["feed"]

    return _RECORD.sub(kept, data)


class _Hosts:
    """Where processes run, by their ids: what stands before a host's name is not the record's."""

    def __init__(self, data: bytes) -> None:
        self._told: dict[bytes, list[bytes]] = {}
        for found in islice(_RANK.finditer(data), _MAX_RANKS):
            self._told.setdefault(found[1], []).append(found[2])
        self._names = frozenset(host for hosts in self._told.values() for host in hosts)
        self._heard: dict[bytes, bytes] = {}
        for record in islice(_RECORD.finditer(data), _MAX_HEARD):
            word, pid = record["word"], record["pid"]
            if pid not in self._told and len(word) <= len(self._heard.get(pid, word)):
                self._heard[pid] = word

    def before(self, word: bytes, pid: bytes) -> bytes:
        """What stands before the host in the ``word`` before a process id."""
        ends = [host for host in self._told.get(pid, ()) if word.endswith(host)]
        if not ends:
            rests = (word[at:] for at in range(len(word)))
            ends = [rest for rest in rests if rest in self._names][:1]
        host = max(ends, key=len) if ends else self._heard.get(pid, word)
        return word[: -len(host)] if word.endswith(host) else b""
