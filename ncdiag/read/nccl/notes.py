"""What is noted of one process while its lines go by, and what a rule for a line is."""

import re
from collections.abc import Callable
from typing import NamedTuple

from ncdiag.model.log import CommunicatorState, NcclProcess
from ncdiag.read.line import Line

# A process that makes communicators for ever keeps the newest of those still in use.
MAX_COMMUNICATORS = 4096
MAX_NAMES = 1024


class ProcessNotes:
    """A process's record, and the indexes by which a line finds the communicator it speaks of."""

    def __init__(self, process: NcclProcess) -> None:
        self.process = process
        self.lines = 0
        self._told = -1
        self._by_pointer: dict[str, CommunicatorState] = {}
        self._unfinished: dict[str, CommunicatorState] = {}
        self.grouped_calls: set[tuple[str, int]] = set()

    def learned(self) -> bool:
        """Whether anything was told since the last time that a reader of facts looks for."""
        known = _known(self.process)
        if known == self._told:
            return False
        self._told = known
        return True

    def communicator(self, pointer: str) -> CommunicatorState:
        """The communicator now living at ``pointer``, made when it is not known."""
        return self._by_pointer.get(pointer) or self.new_communicator(pointer)

    def known(self, pointer: str) -> CommunicatorState | None:
        """The communicator now living at ``pointer``."""
        return self._by_pointer.get(pointer)

    def new_communicator(self, pointer: str) -> CommunicatorState:
        """A new communicator at ``pointer``, in place of whatever was there before."""
        state = CommunicatorState(pointer=pointer)
        self._by_pointer[pointer] = state
        communicators = self.process.communicators
        communicators.append(state)
        if len(communicators) > MAX_COMMUNICATORS:
            self._forget_one()
        return state

    def start(self, state: CommunicatorState) -> None:
        """``state`` is starting: lines that name no communicator may be about it."""
        self._unfinished[state.pointer] = state

    def settle(self, state: CommunicatorState) -> None:
        """``state`` has started up, or ended."""
        self._unfinished.pop(state.pointer, None)

    def advance(self, line: Line) -> None:
        """A step of a start-up whose line names no communicator: the one of its device."""
        waiting = list(self._unfinished.values())
        on_device = [state for state in waiting if state.device == line.speaker.device]
        state = (on_device or waiting)[-1:]
        if state and (on_device or len(waiting) == 1) and state[0].progressed is None:
            state[0].progressed = line.place

    def _forget_one(self) -> None:
        communicators = self.process.communicators
        old = next((i for i, state in enumerate(communicators) if state.ended), 0)
        state = communicators.pop(old)
        if self._by_pointer.get(state.pointer) is state:
            del self._by_pointer[state.pointer]
        if self._unfinished.get(state.pointer) is state:
            del self._unfinished[state.pointer]


def _known(process: NcclProcess) -> int:
    """How many facts a process told, but for rings and tuning: they differ by channel and size."""
    lists = (
        process.versions, process.networks, process.nics, process.nic_speeds_mbit_per_s,
        process.interfaces, process.addresses, process.plugins, process.transports,
        process.environment, process.defaulted, process.unused, process.hca_gdr,
        process.channel_ranks, process.ofi, process.net_devices, process.communicators,
    )  # fmt: skip
    single = (
        process.nvls, process.sharp, process.mnnvl, process.pxn, process.connected,
        process.gdr_channels or None, process.plain_channels or None,
    )  # fmt: skip
    return sum(map(len, lists)) + len(single) - single.count(None)


class Rule(NamedTuple):
    """Lines that contain one of ``needles`` and match ``pattern``, and what is noted of them.

    ``fact`` says that such lines soon only repeat what is known of their process.
    """

    needles: tuple[str, ...]
    pattern: re.Pattern[str]
    note: Callable[[ProcessNotes, re.Match[str], Line], None]
    fact: bool = True


def add_once(names: list[str], name: str) -> None:
    """Keep ``name`` in a short list of different names."""
    if name and name not in names and len(names) < MAX_NAMES:
        names.append(name)


def put(table: dict[str, str], name: str, value: str) -> None:
    """Keep ``value``, in a table of limited size."""
    if name in table or len(table) < MAX_NAMES:
        table[name] = value
