"""Reads what NCCL and RCCL processes say of themselves, all generations from 2.0 on."""

import re
from collections.abc import Sequence

from ncdiag.model.log import LogEvidence, NcclProcess, Speaker
from ncdiag.model.place import Place
from ncdiag.read.line import Line
from ncdiag.read.merge import join_process
from ncdiag.read.nccl import calls, chains, channels, networks, settings, start
from ncdiag.read.nccl.garbled_names import Process, garbled_names
from ncdiag.read.nccl.notes import ProcessNotes, Rule, add_once
from ncdiag.read.nccl.versions import NEEDLES, banner_host, is_bare_version, versions

RULES: tuple[Rule, ...] = (
    *start.RULES,
    *networks.RULES,
    *channels.RULES,
    *settings.RULES,
    *calls.RULES,
    *chains.RULES,
)
# Lines that only prove that their process lives.
SIGNS_OF_LIFE = (
    "RAS ",
    "[Proxy ",
    "proxy send connection",
    "proxy recv connection",
    "Connected to proxy",
    "Setting affinity for GPU",
    "cudaDriverVersion",
    "Launch mode ",
    "=== System : ",
    "Received and initiated operation",
)
# More processes than this in one input are no job's: ids of a damaged or foreign text.
MAX_PROCESSES = 200_000
MAX_VERSIONS = 1024
_BANNER_LINES = 6
_CUT = re.compile(r": opCount [0-9a-f]{1,16} .{0,400}\$\Z")
_REST = re.compile(r"^\s{0,8}\S.{0,600}\bcomm 0x[0-9a-f]{1,16}")


class NcclReader:
    """Keeps one record a process, told apart by host and process id.

    ``learned`` counts the lines of facts that told something new.
    """

    def __init__(self) -> None:
        self._rules: dict[bytes, list[Rule]] = {}
        for rule in RULES:
            for needle in rule.needles:
                self._rules.setdefault(needle.encode(), []).append(rule)
        facts = {needle for needle, rules in self._rules.items() if all(r.fact for r in rules)}
        facts |= {sign.encode() for sign in (*SIGNS_OF_LIFE, "NCCL WARN ")}
        others = {needle.encode() for needle in (*NEEDLES, "[nranks=", "Hostname ")}
        self.needles = frozenset(self._rules) | facts | others
        self.facts = frozenset(facts)
        self.kinds: set[str] = set()
        self.learned = 0
        self._processes: dict[Process, ProcessNotes] = {}
        self._versions: dict[tuple[str, str], None] = {}
        self._hosts: dict[str, Place] = {}
        self._banner = 0
        self._cut: Line | None = None

    @property
    def open(self) -> bool:
        """Inside RCCL's banner, or after a call line that a pager cut in two."""
        return self._banner > 0 or self._cut is not None

    def read(self, line: Line, hits: Sequence[bytes]) -> None:
        """Note what ``line`` tells of the process that printed it."""
        if line.level is None:
            self._read_unprefixed(line)
            return
        self._cut = None
        self.kinds.add("nccl")
        notes = self._notes(line)
        if notes is None:
            return
        self._note_versions(notes.process, line)
        done: list[object] = []
        for hit in hits:
            for rule in self._rules.get(hit, ()):
                if rule.note not in done and (found := rule.pattern.search(line.text)):
                    done.append(rule.note)
                    rule.note(notes, found, line)
                    self.learned += rule.fact and notes.learned()
        if line.text.endswith("$") and _CUT.search(line.text):
            self._cut = line

    def finish(self, evidence: LogEvidence) -> None:
        """Hand over the processes, the versions of bare lines and the hosts of banners."""
        self._fold_garbled(evidence)
        evidence.processes.extend(notes.process for notes in self._processes.values())
        known = set(evidence.versions)
        evidence.versions.extend(v for v in self._versions if v not in known)
        for host, place in self._hosts.items():
            evidence.hosts.setdefault(host, place)

    def _notes(self, line: Line) -> ProcessNotes | None:
        """The notes of the process that speaks, up to date with this sign of life."""
        speaker = line.speaker
        key = (speaker.host or speaker.address or "", speaker.pid or speaker.label or "")
        notes = self._processes.get(key)
        if notes is None:
            if len(self._processes) >= MAX_PROCESSES:
                return None
            process = NcclProcess(host=key[0], pid=key[1], speaker=speaker, first=line.place)
            notes = self._processes[key] = ProcessNotes(process)
        notes.lines += 1
        notes.process.last = line.place
        if speaker.rank is not None and notes.process.speaker.rank is None:
            notes.process.speaker = Speaker(*speaker)
        return notes

    def _fold_garbled(self, evidence: LogEvidence) -> None:
        """Give what stands under a damaged name back to its process."""
        lines = {key: notes.lines for key, notes in self._processes.items()}
        tables = {rank.host for benchmark in evidence.benchmarks for rank in benchmark.ranks}
        true_names = garbled_names(lines, tables, self._ranks_differ)
        for key, true in true_names.items():
            join_process(self._processes[true].process, self._processes.pop(key).process)
        if true_names:
            for event in evidence.events:
                said = event.speaker
                if true_host := true_names.get((said.host or "", said.pid or "")):
                    event.speaker = said._replace(host=true_host[0])
        for host in {host for host, _ in true_names} - {host for host, _ in self._processes}:
            evidence.hosts.pop(host, None)

    def _ranks_differ(self, one: Process, other: Process) -> bool:
        """Whether two processes have different ranks in communicators of one size."""
        first, second = (
            {(c.ranks, c.rank) for c in self._processes[key].process.communicators if c.rank}
            for key in (one, other)
        )
        sizes = {size for size, _ in first} & {size for size, _ in second}
        return any(size in sizes for size, _ in first ^ second)

    def _note_versions(self, process: NcclProcess, line: Line) -> None:
        if "ersion " in line.text:
            for library, version in versions(line.text):
                process.library = library
                add_once(process.versions, version)
                if library == "RCCL":
                    self._banner = _BANNER_LINES
        if process.library is None and ("rccl" in line.text or "/rccl/" in (line.location or "")):
            process.library = "RCCL"

    def _read_unprefixed(self, line: Line) -> None:
        if self._cut is not None:
            self._join(line)
        for found in versions(line.text):
            if len(self._versions) < MAX_VERSIONS:
                self._versions.setdefault(found)
            if is_bare_version(line.text):
                self.kinds.add("nccl")
            if found[0] == "RCCL":
                self._banner = _BANNER_LINES
                return
        if self._banner:
            self._banner -= 1
            if host := banner_host(line.text):
                self._hosts.setdefault(host, line.place)

    def _join(self, line: Line) -> None:
        """Read a call line that a pager broke at the screen's edge, marked with a dollar."""
        cut, self._cut = self._cut, None
        if cut is None or not _REST.match(line.text):
            return
        text = cut.text.rstrip("$") + " " + line.text.strip()
        whole = Line(text=text, place=cut.place, speaker=cut.speaker, level=cut.level)
        self.read(whole, [needle for needle in self._rules if needle.decode() in text])
