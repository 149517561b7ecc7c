"""The life of communicators: start, layout, first connections, end."""

import re

from ncdiag.model.log import CommunicatorState
from ncdiag.read.line import Line
from ncdiag.read.nccl.notes import ProcessNotes, Rule

_COMM = re.compile(
    r"\bcomm (?P<pointer>0x[0-9a-f]{3,16})\b(?: rank (?P<rank>\d{1,9}))?"
    r"(?: (?:n[Rr]anks |\[nranks=)(?P<ranks>\d{1,9}))?"
)
_VALUE = re.compile(r" (cudaDev|busId|commId|parent|nNodes|localRanks|MNNVL) ([\w()-]+)")
_STEP = re.compile(
    r"- ?(Init START|Init COMPLETE|COMPLETE|Destroy \w{1,16}|Abort \w{1,16}|Finalize \w{1,16})"
)
_TIMINGS = re.compile(r"Init timings\b.{0,80}?: rank (\d{1,9}) nranks (\d{1,9}) total")
_CONNECTED = re.compile(
    r"Connected (?:all rings|all trees|binomial trees|NVLS tree|[Cc]oll[Nn]et)|Connected CollNet"
)
_PXN = re.compile(r"use ring PXN (\d) GDR (\d)")
_RING = re.compile(r"\bRing \d{1,4} : -?\d{1,9} -> -?\d{1,9} -> -?\d{1,9}\b")
_STEP_LINE = re.compile(
    r"^(?:Channel \d+/\d+ :\s+\d|Trees \[|NVLS Trees|Tree \d+ :|\d+ coll channels"
    r"|threadThresholds |P2P Chunksize set)"
)
_COUNTS = re.compile(
    r"\d coll channels(?:, (\d{1,9}) collnet channels)?(?:, (\d{1,9}) nvls channels)?"
)


def _note_communicator(notes: ProcessNotes, found: re.Match[str], line: Line) -> None:
    pointer = found["pointer"]
    step = _STEP.search(line.text)
    values = dict(_VALUE.findall(line.text, found.end()))
    state = _meant(notes, pointer, values.get("commId"), step[1] if step else "")
    if found["rank"]:
        state.rank = int(found["rank"])
    if found["ranks"]:
        state.ranks = int(found["ranks"])
    _note_values(notes, state, values)
    if step:
        _take_step(notes, state, step[1], line)
    else:
        state.progressed = state.progressed or line.place


def _meant(notes: ProcessNotes, pointer: str, comm_id: str | None, step: str) -> CommunicatorState:
    """The communicator a line speaks of: memory is used again after an end, by another one."""
    known = notes.known(pointer)
    if known is None or not step.startswith("Init"):
        return notes.communicator(pointer)
    other = comm_id and known.comm_id and comm_id != known.comm_id
    again = known.ended or (not comm_id and known.completed and step == "Init START")
    return notes.new_communicator(pointer) if other or again else known


def _note_values(notes: ProcessNotes, state: CommunicatorState, values: dict[str, str]) -> None:
    state.device = values.get("cudaDev", state.device)
    state.bus_id = values.get("busId", state.bus_id)
    state.comm_id = values.get("commId", state.comm_id)
    state.parent = values.get("parent", state.parent)
    state.nodes = _number(values.get("nNodes")) or state.nodes
    state.local_ranks = _number(values.get("localRanks")) or state.local_ranks
    if "MNNVL" in values:
        notes.process.mnnvl = notes.process.mnnvl or values["MNNVL"] not in {"0", "-1"}


def _take_step(notes: ProcessNotes, state: CommunicatorState, step: str, line: Line) -> None:
    if step == "Init START":
        state.started = state.started or line.place
        if not state.completed:
            notes.start(state)
    elif step in {"Init COMPLETE", "COMPLETE"}:
        state.completed = state.completed or line.place
        notes.settle(state)
    elif not step.startswith("Finalize"):
        state.ended = state.ended or line.place
        state.aborted = state.aborted or step.startswith("Abort")
        notes.settle(state)


def _note_timings(notes: ProcessNotes, found: re.Match[str], line: Line) -> None:
    """The start-up of a rank is over; the communicator is told by its rank and size."""
    rank, ranks = int(found[1]), int(found[2])
    for state in reversed(notes.process.communicators):
        if (state.rank, state.ranks) == (rank, ranks):
            state.progressed = state.progressed or line.place
            return


def _note_connected(notes: ProcessNotes, found: re.Match[str], line: Line) -> None:
    process = notes.process
    process.connected = process.connected or line.place
    if "oll" in found[0].removeprefix("Connected all"):
        process.sharp = True
    if pxn := _PXN.search(line.text):
        process.pxn = process.pxn or pxn[1] != "0"
    notes.advance(line)


def _note_step(notes: ProcessNotes, found: re.Match[str], line: Line) -> None:
    del found
    process = notes.process
    if counts := _COUNTS.match(line.text):
        # Channels are set aside for CollNet even where it is not used: only none is telling.
        if counts[1] == "0":
            process.sharp = process.sharp or False
        if counts[2]:
            process.nvls = process.nvls or int(counts[2]) > 0
    notes.advance(line)


def _note_ring(notes: ProcessNotes, found: re.Match[str], line: Line) -> None:
    del found
    notes.advance(line)


def _number(text: str | None) -> int | None:
    return int(text) if text and text.isdecimal() and len(text) < 10 else None


RULES = (
    Rule(
        ("Init START", "Init COMPLETE", "Destroy ", "Abort ", "Finalize "),
        _COMM,
        _note_communicator,
        fact=False,
    ),
    # Calls name their communicator too, millions of times.
    Rule(("comm 0x",), _COMM, _note_communicator),
    Rule(("Init timings",), _TIMINGS, _note_timings),
    Rule(
        ("Connected all", "Connected bin", "Connected NVLS", "Connected Col", "Connected col"),
        _CONNECTED,
        _note_connected,
    ),
    Rule(("Ring ",), _RING, _note_ring),
    Rule(
        (
            "Channel ",
            "Trees [",
            "NVLS Trees",
            "Tree ",
            "coll channels",
            "threadThresholds",
            "P2P Chunksize",
        ),
        _STEP_LINE,
        _note_step,
    ),
)
