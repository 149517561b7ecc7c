"""Collectives as they are called, and how they are tuned."""

import re

from ncdiag.model.log import CommunicatorState
from ncdiag.read.line import Line
from ncdiag.read.nccl.notes import ProcessNotes, Rule

_CALL = re.compile(r"^(\w[\w ]{0,40}): opCount ([0-9a-f]{1,16})\b")
_VALUE = re.compile(r"\b(coun\w{0,1}|datatype|op|comm) (0x[0-9a-f]{1,16}|\d{1,20})\b")
_API = re.compile(
    r"^nccl([A-Z]\w{1,30})\([0-9a-fx]{1,18},[0-9a-fx]{1,18},(\d{1,20}),(\d{1,3}),"
    r"\d{1,3},-?\d{1,9},(0x[0-9a-f]{1,16})"
)
_TUNING = re.compile(
    r"(?:^|: )(?P<op>[A-Z]\w{1,30}): \d{1,20} Bytes -> Algo (?P<algo>\w{1,20})"
    r" proto (?P<proto>\w{1,20})"
)
_TRANSFERS = frozenset({"Send", "Recv"})
_KEPT_CALLS = 64
_MAX_GROUPED = 4096
_MAX_ALGORITHMS = 256


def _note_call(notes: ProcessNotes, found: re.Match[str], line: Line) -> None:
    values = dict(_VALUE.findall(line.text, found.end()))
    if "comm" not in values:
        return
    state = notes.communicator(values["comm"])
    state.last_call = line.place
    count, datatype = values.get("count") or values.get("coun"), values.get("datatype")
    if count and datatype and found[1] not in _TRANSFERS:
        _keep(notes, state, int(found[2], 16), (found[1], count, datatype))


def _keep(
    notes: ProcessNotes, state: CommunicatorState, number: int, call: tuple[str, str, str]
) -> None:
    """Keep the newest calls; those grouped under one number cannot be compared by it."""
    grouped = (state.pointer, number)
    if grouped in notes.grouped_calls:
        return
    if state.calls.get(number, call) != call:
        del state.calls[number]
        if len(notes.grouped_calls) >= _MAX_GROUPED:
            notes.grouped_calls.clear()
        notes.grouped_calls.add(grouped)
        return
    state.calls[number] = call
    if len(state.calls) > _KEPT_CALLS:
        del state.calls[min(state.calls)]


def _note_api_call(notes: ProcessNotes, found: re.Match[str], line: Line) -> None:
    state = notes.communicator(found[4])
    state.api_calls += 1
    state.last_call = line.place


def _note_tuning(notes: ProcessNotes, found: re.Match[str], line: Line) -> None:
    del line
    name = f"{found['op']} {found['algo']}/{found['proto']}"
    algorithms = notes.process.algorithms
    if name in algorithms or len(algorithms) < _MAX_ALGORITHMS:
        algorithms[name] += 1


RULES = (
    Rule((": opCount ",), _CALL, _note_call, fact=False),
    Rule(("NCCL CALL ",), _API, _note_api_call, fact=False),
    Rule((" Bytes -> Algo ",), _TUNING, _note_tuning),
)
