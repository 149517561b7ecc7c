"""What the kernel log tells of broken hardware since the host booted.

The lines are looked through by the readers of post-mortems, so both give a fault the same name.
"""

import os
import re
import time
from collections.abc import Callable, Iterable
from functools import partial
from typing import Final

from ncdiag.health.kernel_words import RECOVERY_ACTION, weighty_words
from ncdiag.health.sources.found import Found, absent, denied, failed, read, unanswered
from ncdiag.health.sources.kernel_lines import read_kernel_lines
from ncdiag.health.sources.kernel_ring import KERNEL_RING, KernelRing
from ncdiag.health.sources.place import RECORDED, HostRoot, played
from ncdiag.health.topology.programs import Answer, Outcome
from ncdiag.model.finding import FindingClass
from ncdiag.model.health import KernelEvent, SourceState
from ncdiag.model.log import Event
from ncdiag.model.place import Clock, Place
from ncdiag.read.blocks import Stream

_RECORD: Final = "dmesg.txt"
# A recorded log may be of any size. A gigabyte takes less, but for one that is all errors.
_READING_S: Final = 4.0
_PROGRAM_S: Final = 1.5
_TEXT_CHARS: Final = 500
# More different ones tell an operator nothing.
_MOST_EVENTS: Final = 512
_NAMED_BY: Final = ("pci", "switch", "device", "interface", "unit")
_Key = tuple[str, int | None, str | None, str | None, tuple[bool, ...]]
_PCI: Final = re.compile(r"([0-9A-Fa-f]{4,8}):([0-9A-Fa-f]{2}:[0-9A-Fa-f]{2})(\.[0-7])?")


def collect(root: HostRoot) -> Found:
    """The events of the kernel's ring, else as ``dmesg`` or ``journalctl`` prints it."""
    return _live(root) if root.live else _recorded(root)


def _recorded(root: HostRoot) -> Found:
    try:
        number = root.open(f"{RECORDED}/{_RECORD}")
    except FileNotFoundError:
        return absent(f"{_RECORD} is not recorded")
    except PermissionError:
        return denied(f"{_RECORD}: permission denied")
    except OSError as error:
        return failed(f"{_RECORD}: {(error.strerror or str(error)).lower()}")
    try:
        instead = played(os.pread(number, 512, 0), _RECORD)
        if instead and (nothing := unanswered(instead)):
            return nothing
        return _of_file(number)
    finally:
        os.close(number)


def _live(root: HostRoot) -> Found:
    try:
        return _found(KernelRing, None)
    except OSError as error:
        is_missing = isinstance(error, FileNotFoundError)
        complaint = Answer(
            outcome=Outcome.ABSENT if is_missing else Outcome.FAILED,
            reason=f"{KERNEL_RING}: {(error.strerror or str(error)).lower()}",
            denied=isinstance(error, PermissionError),
        )
    complaints = [complaint]
    journal = ("journalctl", "-k", "-b", "-o", "short-monotonic", "--no-pager", "-q")
    for argv in (("dmesg",), journal):
        answer = root.ask(argv, timeout_s=_PROGRAM_S, recorded=_RECORD)
        # A journal that we may not see is printed as an empty one.
        if answer.outcome is Outcome.CAPTURED and answer.output.strip():
            return _found(partial(_Bytes, answer.output), len(answer.output))
        complaints.append(answer)
    return _why(complaints)


def _why(complaints: Iterable[Answer]) -> Found:
    """What to say where the log is not to be had in any way."""
    reasons = [one.reason for one in complaints if one.outcome is Outcome.FAILED and one.reason]
    for one in complaints:
        if one.denied or re.search("not permitted|ermission denied", one.reason or ""):
            return denied(one.reason or "")
    return failed(reasons[-1]) if reasons else absent("the host has no kernel log")


def _found(open_stream: Callable[[], Stream], size: int | None) -> Found:
    return read(kernel_events=kernel_events(read_kernel_lines(open_stream, size).events))


def _of_file(number: int) -> Found:
    size, until_s = os.fstat(number).st_size, time.monotonic() + _READING_S
    opened: list[_File] = []

    def from_its_beginning() -> _File:
        os.lseek(number, 0, os.SEEK_SET)
        opened.append(_File(number, until_s))
        return opened[-1]

    told = read_kernel_lines(from_its_beginning, size)
    events = kernel_events(told.events)
    if not opened[-1].cut:
        return read(kernel_events=events)
    reason = f"{_RECORD} is large: {told.bytes >> 20} of {size >> 20} MiB were read in time"
    return Found(SourceState.TIMED_OUT, reason, {"kernel_events": events})


def kernel_events(events: Iterable[Event]) -> tuple[KernelEvent, ...]:
    """Events of the kernel with equal ones as one, in the order of their first appearance.

    Of an Xid 154 the last word counts, and is the one that is kept.
    """
    found: dict[_Key, KernelEvent] = {}
    told_at: dict[_Key, int] = {}
    for event in events:
        # Links that come up are no fault.
        link_is_fine = event.details.get("state", "down") != "down"
        if event.class_name == FindingClass.NIC_LINK_DOWN and link_is_fine:
            continue
        one = _kernel_event(event)
        key = _key(one, one.device)
        if key not in found and len(found) >= _MOST_EVENTS:
            key = _key(one, None)
        before, line = found.get(key), (event.last or event.place).line
        if before is None and len(found) >= 2 * _MOST_EVENTS:
            continue
        is_newer = line >= told_at.get(key, line)
        told_at[key] = max(line, told_at.get(key, line))
        found[key] = one if before is None else _added(before, one, is_newer=is_newer)
    return tuple(found.values())


def _key(one: KernelEvent, device: str | None) -> _Key:
    """What events have in common that are counted as one: also how much they weigh."""
    words = () if one.code == RECOVERY_ACTION else weighty_words(one.text)
    return one.class_, one.code, device, one.severity, words


def _kernel_event(event: Event) -> KernelEvent:
    values = event.attributes
    code = values.get("xid") or values.get("sxid")
    named = next((values[name] for name in _NAMED_BY if values.get(name)), None)
    return KernelEvent(
        class_=str(event.class_name),
        text=event.text.strip()[:_TEXT_CHARS],
        code=int(code) if code else None,
        device=_device(named) if named else None,
        since_boot_s=_since_boot(event.place),
        last_since_boot_s=_since_boot(event.last or event.place),
        count=event.count,
        severity=str(event.severity) if event.severity else None,
    )


def _device(name: str) -> str:
    """A PCI address as sysfs writes it; any other name as it is."""
    found = _PCI.fullmatch(name)
    if not found:
        return name[:64]
    return f"{int(found[1], 16):04x}:{found[2].lower()}{found[3] or '.0'}"


def _since_boot(place: Place) -> float | None:
    time_ = place.time
    return time_.seconds if time_ and time_.clock is Clock.UPTIME else None


def _added(before: KernelEvent, one: KernelEvent, *, is_newer: bool) -> KernelEvent:
    firsts = [at for at in (before.since_boot_s, one.since_boot_s) if at is not None]
    lasts = [at for at in (before.last_since_boot_s, one.last_since_boot_s) if at is not None]
    return KernelEvent(
        class_=before.class_,
        text=one.text if is_newer and one.code == RECOVERY_ACTION else before.text,
        code=before.code,
        device=before.device if before.device == one.device else None,
        since_boot_s=min(firsts, default=None),
        last_since_boot_s=max(lasts, default=None),
        count=before.count + one.count,
        severity=before.severity,
    )


class _File:
    """A file as far as it can be read in time; ``cut`` says that there was more."""

    def __init__(self, number: int, until_s: float) -> None:
        self._number = number
        self._until_s = until_s
        self.cut = False

    def readinto(self, buffer: memoryview, /) -> int:
        """Fill ``buffer``; 0 at the end, or when it is too late."""
        if time.monotonic() > self._until_s:
            self.cut = True
            return 0
        return os.readv(self._number, [buffer])


class _Bytes:
    """What a program printed."""

    def __init__(self, data: bytes) -> None:
        self._left = memoryview(data)

    def readinto(self, buffer: memoryview, /) -> int:
        """Fill ``buffer``; 0 at the end."""
        part = self._left[: len(buffer)]
        buffer[: len(part)] = part
        self._left = self._left[len(part) :]
        return len(part)
