"""Slurm's ``topology.conf``, and what ``scontrol show topology`` prints."""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field

from ncdiag.model.topology import (
    NotATopologyError,
    SlurmSwitch,
    SlurmTopology,
    TruncatedTopologyError,
)
from ncdiag.read.topology.slurm_end import refuse_cut_topology
from ncdiag.read.topology.slurm_names import Names, is_open
from ncdiag.read.topology.text import integer, open_line, quoted

_WORDS = ("switchname", "blockname", "blocksizes")
_RECOGNISED = re.compile(rf"^[ \t]*(?:{'|'.join(_WORDS)})[ \t]*=", re.MULTILINE | re.IGNORECASE)
_SETTING = re.compile(r'([A-Za-z_]\w*)[ \t]*=[ \t]*(?:"([^"]*)"|(\S*))')
# 100,000 nodes one by one are 2 MiB.
_MAX_CHARS = 16 << 20
# Slurm's own limit is 1 KiB in old releases, none now; 10,000 nodes one by one are 150 KiB.
_MAX_LINE_CHARS = 4 << 20


@dataclass(slots=True)
class _Switch:
    """One switch or block; several lines may tell of it."""

    switches: dict[str, None] = field(default_factory=dict)
    nodes: dict[str, None] = field(default_factory=dict)


def recognises(text: str) -> bool:
    """Whether a line of ``text`` begins with a switch, a block or the sizes of blocks."""
    return _RECOGNISED.search(text) is not None


def read(text: str) -> SlurmTopology:
    """The topology; raises :class:`TruncatedTopologyError` for a text that ends within a line.

    Raises :class:`NotATopologyError`, which names the line, for a list of nodes that is none or
    names more than a million.
    """
    if len(text) > _MAX_CHARS:
        raise NotATopologyError(f"larger than {_MAX_CHARS >> 20} MiB: no topology.conf is")
    reader = _Reader()
    cut = open_line(text).partition("#")[0].strip() != ""
    lines = list(_logical_lines(text))
    for place, (number, line) in enumerate(lines, start=1):
        try:
            reader.read(line, cut=place == len(lines) and cut)
        except TruncatedTopologyError:
            if place == len(lines):
                raise
            raise NotATopologyError(f"line {number}: an open bracket: {quoted(line)}") from None
        except NotATopologyError as error:
            raise NotATopologyError(f"line {number}: {error}") from None
    topology = reader.finish()
    refuse_cut_topology(topology, ended=text.endswith("\n"))
    return topology


def _logical_lines(text: str) -> Iterator[tuple[int, str]]:
    """Lines with their numbers, continued ones joined, without comments and empty ones."""
    kept, begin = "", 0
    raws = text.rstrip("\n").split("\n")
    for number, raw in enumerate(raws, start=1):
        line = raw.partition("#")[0].rstrip()
        begin = begin if kept else number
        if line.endswith("\\") and len(kept) < _MAX_LINE_CHARS:
            kept += line[:-1]
            continue
        line, kept = (kept + line).strip(), ""
        if len(line) > _MAX_LINE_CHARS:
            raise NotATopologyError(f"line {begin} is longer than {_MAX_LINE_CHARS >> 20} MiB")
        if line:
            yield begin, line
    if kept.strip():
        raise TruncatedTopologyError(f"cut short: it ends with {quoted(kept[-60:])}")


class _Reader:
    """Takes line after line."""

    def __init__(self) -> None:
        self._names = Names()
        self._switches: dict[str, _Switch] = {}
        self._plugin: str | None = None
        self._block_sizes: tuple[int, ...] = ()

    def read(self, line: str, *, cut: bool) -> None:
        values = {
            match[1].lower(): match[2] if match[2] is not None else match[3]
            for match in _SETTING.finditer(line)
        }
        if cut and self._is_cut(line, values):
            raise TruncatedTopologyError(f"cut short: it ends with {quoted(line[-60:])}")
        if "blocksizes" in values and "blockname" not in values:
            sizes = (integer(size, 10) for size in values["blocksizes"].split(","))
            self._block_sizes = tuple(size for size in sizes if size is not None)
        for plugin, key in (("tree", "switchname"), ("block", "blockname")):
            if name := values.get(key):
                self._plugin = self._plugin or plugin
                self._add(name, values)

    def _add(self, name: str, values: dict[str, str]) -> None:
        switch = self._switches.setdefault(name, _Switch())
        switch.switches.update(dict.fromkeys(self._names.expand(values.get("switches", ""))))
        # scontrol lists all nodes below a switch of a higher level.
        if not (values.get("level", "0") != "0" and values.get("switches")):
            switch.nodes.update(dict.fromkeys(self._names.expand(values.get("nodes", ""))))

    def _is_cut(self, line: str, values: dict[str, str]) -> bool:
        """Whether the last line, which has no end, breaks off where it can be seen."""
        if is_open(line) or line.endswith((",", "=", '="')):
            return True
        named = "switchname" in values or "blockname" in values
        if not named:
            return "=" not in line and any(word.startswith(line.lower()) for word in _WORDS)
        # scontrol lists the switches of a higher level after the nodes below them.
        needed = ("switches",) if values.get("level", "0") != "0" else ("nodes", "switches")
        last = list(_SETTING.finditer(line))[-1]
        return last.end() < len(line) or not any(values.get(key) for key in needed)

    def finish(self) -> SlurmTopology:
        if not self._switches or self._plugin is None:
            raise TruncatedTopologyError("cut short: sizes of blocks, and no block")
        return SlurmTopology(
            plugin=self._plugin,
            switches=tuple(
                SlurmSwitch(name, tuple(one.switches), tuple(one.nodes))
                for name, one in self._switches.items()
            ),
            block_sizes=self._block_sizes,
        )
