"""Channel lines: which transport carries each edge, and whether GPUDirect does."""

import re

from ncdiag.model.log import NcclProcess
from ncdiag.read.line import Line
from ncdiag.read.nccl.notes import ProcessNotes, Rule

_CHANNEL = re.compile(
    r"(?:Channel|Ring|Tree) \d{1,4}(?:/\d{1,4})? : (-?\d{1,9})(?:\[[0-9a-f]{1,16}\])? (->|<-) "
    r"(-?\d{1,9})(?:\[[0-9a-f]{1,16}\])?(?: \[(send|receive)\])? via (.+)"
)
_COLLNET = re.compile(
    r"CollNet \d{1,4}(?:/\d{1,4})? : (\d{1,9}) \[(send|receive)\] via COLLNET/(.+)"
)
_NET = re.compile(r"(NET/[^/]{1,40})/\d{1,4}(\(\d{1,9}\))?")
_LOCAL_HEADS = ("P2P/", "SHM/", "SHM", "direct shared memory", "NVLS/", "MNNVL")
_MAX_RANKS = 4096


def _note_channel(notes: ProcessNotes, found: re.Match[str], line: Line) -> None:
    source, arrow, target, role, carrier = found.groups()
    if net := _NET.match(carrier):
        notes.process.transports[net[1]] += 1
        notes.process.pxn = bool(notes.process.pxn or net[2]) or notes.process.pxn
        _count(notes.process, direct="/GDRDMA" in carrier)
    elif head := next((head for head in _LOCAL_HEADS if carrier.startswith(head)), None):
        name = "SHM" if head == "direct shared memory" else head.rstrip("/")
        notes.process.transports["P2P" if name == "MNNVL" else name] += 1
    else:
        return
    # The first releases do not say which end of a network line speaks.
    if arrow == "->" and (role or not net):
        _note_rank(notes, target if role == "receive" else source)
    notes.advance(line)


def _count(process: NcclProcess, *, direct: bool) -> None:
    if direct:
        process.gdr_channels += 1
    else:
        process.plain_channels += 1


def _note_rank(notes: ProcessNotes, rank: str) -> None:
    ranks = notes.process.channel_ranks
    if len(ranks) < _MAX_RANKS and not rank.startswith("-"):
        ranks.add(int(rank))


def _note_collnet(notes: ProcessNotes, found: re.Match[str], line: Line) -> None:
    notes.process.transports["COLLNET"] += 1
    notes.process.sharp = True
    notes.advance(line)
    _note_rank(notes, found[1])


RULES = (
    Rule((" via ",), _CHANNEL, _note_channel),
    Rule((" via COLLNET",), _COLLNET, _note_collnet),
)
