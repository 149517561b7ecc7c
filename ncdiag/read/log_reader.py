"""One input's lines, without their wrappers, handed to the readers of every dialect."""

import re
from collections.abc import Sequence

from ncdiag.model.log import InputSummary, LogEvidence, Pace
from ncdiag.model.place import Place
from ncdiag.read import pace
from ncdiag.read.dialects import line_readers, repeated_lines
from ncdiag.read.headings import Headings
from ncdiag.read.line import Line, LineReader
from ncdiag.read.nccl_tests.table import TableReader
from ncdiag.read.peel import Peeler
from ncdiag.read.plain_lines import PlainLine, PlainLines
from ncdiag.read.source_text import is_source

# Wrappers that prove a host speaks, beside the library's own prefix: for itself, or for a process.
_KERNELS = frozenset({"kernel", "fabric-manager"})
_HOSTS_THEMSELVES = _KERNELS | {"ucx"}
_HOST_ORIGINS = _HOSTS_THEMSELVES | {"syslog", "journald", "pdsh"}
_START = b"Init START"
_TAIL = 16
_MOST_PLANS = 4096
# How often a new voice is tried to be known, before its lines may be part of a flood.
_TRIES = 4
_TIMED = re.compile(rb"\d\d:\d\d:\d\d|\[ {0,8}\d{1,9}\.\d{6}\]")
_FARTHEST_TIME = 400


class LogReader:
    """Reads the lines of one input: some or all of them, in order.

    ``needles`` are what some reader wants to see the lines of; ``facts`` likewise, but worth less
    once they repeat what is known. While ``open``, the next line is wanted whatever it contains.
    ``learned`` counts facts that were new, ``starts`` the communicators that started. Of a
    flood only those lines that are ``unmuted`` need be read. ``unended`` is the number of a line in
    whose last word the input ends, once that is known.
    """

    def __init__(self, path: str, *, brief: bool = False) -> None:
        self._path = path
        self._peeler = Peeler(path)
        self._readers = line_readers()
        self._wanted = [reader.needles | reader.facts for reader in self._readers]
        always = (reader.needles - reader.facts for reader in self._readers)
        self.needles = frozenset[bytes]().union(*always)
        self.facts = frozenset[bytes]().union(*self._wanted) - self.needles
        # A table of results has a frame that looks like comments.
        self._framing = TableReader().needles
        self.open = False
        self.starts = 0
        self.unended: int | None = None
        self._brief = brief
        # Of a large input not every line is seen, so that a block may end unseen.
        self._placed = _as_it_is if brief else Headings().under
        self._plain_lines = PlainLines()
        self._repeated = repeated_lines(self._readers)
        self.unmuted = self._repeated.unmuted
        self._plans: dict[Sequence[bytes], list[LineReader]] = {}
        self._open: list[LineReader] = []
        self._pending: dict[int, tuple[bytes, tuple[bytes, ...]]] = {}
        self._hosts: dict[str, Place] = {}
        self._themselves: set[str] = set()
        self._carriers: set[str] = set()
        self._end: Place | None = None
        self._clock_end: Place | None = None
        self._pace: Pace | None = None

    @property
    def learned(self) -> int:
        """How many facts were new."""
        return sum(getattr(reader, "learned", 0) for reader in self._readers)

    @property
    def known_hosts(self) -> int:
        """How many hosts have spoken."""
        return len(self._hosts)

    def take(self, raw: bytes, number: int, hits: tuple[bytes, ...]) -> None:
        """Read a line without its line end; ``hits`` are the needles it contains."""
        if self._brief and hits and not self.open:
            if not self._told_already(raw, number, hits):
                self._read_in_full(raw, number, hits)
        else:
            if hits and is_source(raw):
                hits = tuple(hit for hit in hits if hit in self._framing)
                if not (hits or self.open):
                    return
            self._feed(raw, number, hits)

    def _told_already(self, raw: bytes, number: int, hits: tuple[bytes, ...]) -> bool:
        """Count a line that says nothing new, or read it the short way."""
        self._repeated.hear(raw)
        parts = self._plain_lines.parts(raw)
        if parts is None:
            known = self._repeated.repeats(raw, number, hits)
        elif self._knows(parts, number):
            known = self._repeated.counts(parts, raw, number, hits)
        else:
            parts.voice.tries += 1
            if parts.voice.tries <= _TRIES:
                return False
            known = False
        if known or self._repeated.floods(raw, number, hits):
            return True
        if parts is None or not parts.voice.known or parts.voice.wrapper or self._pending:
            return False
        line = parts.line(self._path, number)
        self._hand_on(line, hits)
        self._repeated.learn(parts, line, hits)
        return True

    def _knows(self, parts: PlainLine, number: int) -> bool:
        """Whether lines of this voice are what they look like."""
        voice = parts.voice
        if not (voice.known or voice.wrapper) and self._peeler.plain(voice.host, voice.pid):
            voice.known = True
            self._note_host(voice.host, parts.line(self._path, number))
        return voice.known

    def _read_in_full(self, raw: bytes, number: int, hits: tuple[bytes, ...]) -> None:
        """Read a line, and remember what lines like it are."""
        self._pending[number] = (raw, hits)
        lines = list(self._peeler.feed(raw, number))
        began = self._pending.get(lines[0].place.line) if lines else None
        self._hand_all_on(lines, number)
        if began is None or lines[-1].place.line != lines[0].place.line:
            return
        parts = self._plain_lines.parts(began[0])
        if parts is None:
            self._repeated.meet(began[0], lines, began[1])
        elif len(lines) == 1:
            self._repeated.learn(parts, lines[0], began[1])

    def _feed(self, raw: bytes, number: int, hits: tuple[bytes, ...]) -> None:
        self._pending[number] = (raw, hits)
        self._hand_all_on(list(self._peeler.feed(raw, number)), number)

    def _hand_all_on(self, lines: Sequence[Line], number: int) -> None:
        for line in lines:
            self._hand_on(line, self._hits(line))
        if lines and lines[-1].place.line == number:
            self._pending.clear()

    def finish(self) -> LogEvidence:
        """All that was read; called once, after the last line."""
        for line in self._peeler.finish():
            self._hand_on(line, self._hits(line))
        self._repeated.finish(self._place)
        # A node whose processes give their own names is there under those.
        only_carries = self._carriers - self._themselves
        hosts = {host: place for host, place in self._hosts.items() if host not in only_carries}
        evidence = LogEvidence(hosts=hosts)
        kinds: set[str] = set()
        for reader in self._readers:
            reader.finish(evidence)
            kinds |= getattr(reader, "kinds", set())
        if self._end:
            evidence.ends[self._path] = self._end
        if self._clock_end:
            evidence.clock_ends[self._path] = self._clock_end
        if self._pace:
            evidence.paces[self._path] = self._pace
        evidence.inputs.append(InputSummary(path=self._path, kinds=sorted(kinds)))
        return evidence

    def _place(self, raw: bytes, number: int) -> Place:
        """The place of a line that was only counted, with its time if it has one."""
        if _TIMED.search(raw, 0, _FARTHEST_TIME):
            peeler = Peeler(self._path)
            lines = [*peeler.feed(raw, number), *peeler.finish()]
            return lines[0].place if lines else Place(self._path, number)
        return Place(self._path, number)

    def _hand_on(self, line: Line, hits: tuple[bytes, ...]) -> None:
        """Note what any line tells and hand it to those who want it."""
        line = self._in_its_input(line)
        if line.text and not line.text.isspace():
            self._end = line.place
        if line.place.time:
            self._keep_time(line)
        host = line.speaker.host
        if host and (line.carrier or host not in self._themselves):
            self._note_host(host, line)
        if _START in hits:
            self.starts += 1
        plan = self._plans.get(hits)
        if plan is None:
            asked = zip(self._readers, self._wanted, strict=True)
            plan = [reader for reader, wanted in asked if not wanted.isdisjoint(hits)]
            if len(self._plans) < _MOST_PLANS:
                self._plans[hits] = plan
        if self._open:
            plan = [reader for reader in self._readers if reader in plan or reader in self._open]
        for reader in plan:
            reader.read(line, hits)
        if plan:
            self._open = [reader for reader in plan if reader.open]
            self.open = bool(self._open)

    def _in_its_input(self, line: Line) -> Line:
        """The line with what its surroundings tell of it."""
        line = self._placed(line)
        return line._replace(unended=True) if line.place.line == self.unended else line

    def _keep_time(self, line: Line) -> None:
        """Note when somebody spoke, and the pace of jobs; kernels speak whether they go on or not.

        Where not every line is looked at, a silence may be lines of no interest.
        """
        self._clock_end = line.place
        if self._brief or line.origin in _KERNELS:
            return
        if self._pace:
            pace.step(self._pace, line.place)
        else:
            self._pace = Pace(first=line.place, last=line.place)

    def _note_host(self, host: str, line: Line) -> None:
        """Note who speaks, and of a wrapper's host whether it does so itself."""
        if line.carrier and len(self._carriers) < _MOST_PLANS:
            self._carriers.add(line.carrier)
        if line.level or line.origin in _HOST_ORIGINS:
            self._hosts.setdefault(host, line.place)
            if line.level or line.origin in _HOSTS_THEMSELVES:
                self._themselves.add(host)

    def _hits(self, line: Line) -> tuple[bytes, ...]:
        """The needles of the raw line; searched anew where a record is joined from several."""
        number = line.place.line
        pending = self._pending
        raw, hits = pending.get(number, (b"", ()))
        for old in [held for held in pending if held < number]:
            del pending[old]
        # What is typeset differently, or a link, hides needles.
        plain = b"](" not in raw and (raw.isascii() or not line.text.isascii())
        if plain and line.text[-_TAIL:].encode(errors="replace") in raw:
            return hits
        text = line.text.encode(errors="replace")
        return tuple(needle for needle in self.needles | self.facts if needle in text)


def _as_it_is(line: Line) -> Line:
    return line
