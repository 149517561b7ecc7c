"""What the kernel log tells of broken hardware since the host booted.

The lines are looked through by the readers of post-mortems, so both give a fault the same name.
"""

import os
import re
import time
from collections.abc import Iterable
from typing import Final

from ncdiag.health.sources.found import Found, absent, denied, failed, read, unanswered
from ncdiag.health.sources.kernel_ring import KERNEL_RING, KernelRing
from ncdiag.health.sources.place import RECORDED, HostRoot, played
from ncdiag.health.topology.programs import Answer, Outcome
from ncdiag.model.finding import FindingClass
from ncdiag.model.health import KernelEvent, SourceState
from ncdiag.model.log import Event
from ncdiag.model.place import Clock, Place
from ncdiag.read.blocks import Stream, blocks
from ncdiag.read.depth import Depth
from ncdiag.read.log_reader import LogReader
from ncdiag.read.selection import Selection
from ncdiag.read.signatures.kernel import ROWS

_RECORD: Final = "dmesg.txt"
# A recorded log may be of any size. A gigabyte takes less, but for one that is all errors.
_READING_S: Final = 4.0
_PROGRAM_S: Final = 1.5
_TEXT_CHARS: Final = 500
# More different ones tell an operator nothing.
_MOST_EVENTS: Final = 512
# Nothing but lines of errors matters here.
_SHALLOW: Final = Depth(
    edge_bytes=0, first_calls_bytes=0, last_calls_bytes=0, facts_lines=0, later_facts_lines=0
)
# Forms of the kernel's messages; those of a GPU that has gone, of which several lines tell.
_FORMS: Final = frozenset(row.name for row in ROWS) | {"bus_lines"}
_NAMED_BY: Final = ("pci", "switch", "device", "interface", "unit")
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
        return _found(_File(number, time.monotonic() + _READING_S), os.fstat(number).st_size)
    finally:
        os.close(number)


def _live(root: HostRoot) -> Found:
    try:
        with KernelRing() as ring:
            return _found(ring, None)
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
            return _found(_Bytes(answer.output), len(answer.output))
        complaints.append(answer)
    return _why(complaints)


def _why(complaints: Iterable[Answer]) -> Found:
    """What to say where the log is not to be had in any way."""
    reasons = [one.reason for one in complaints if one.outcome is Outcome.FAILED and one.reason]
    for one in complaints:
        if one.denied or re.search("not permitted|ermission denied", one.reason or ""):
            return denied(one.reason or "")
    return failed(reasons[-1]) if reasons else absent("the host has no kernel log")


def _found(stream: "Stream | _File", size: int | None) -> Found:
    reader = LogReader("kernel log", brief=True)
    selection = Selection(reader, every_line=False, size=size, depth=_SHALLOW)
    for block in blocks(stream):
        selection.read(block)
    events = kernel_events(reader.finish().events)
    if isinstance(stream, _File) and stream.cut:
        mib = selection.bytes >> 20
        reason = f"{_RECORD} is large: {mib} of {(size or 0) >> 20} MiB were read in time"
        return Found(SourceState.TIMED_OUT, reason, {"kernel_events": events})
    return read(kernel_events=events)


def kernel_events(events: Iterable[Event]) -> tuple[KernelEvent, ...]:
    """Events of the kernel with equal ones as one, in the order of their first appearance."""
    found: dict[tuple[str, int | None, str | None], KernelEvent] = {}
    for event in events:
        # Links that come up are no fault.
        link_is_fine = event.details.get("state", "down") != "down"
        if event.form not in _FORMS or (
            event.class_name == FindingClass.NIC_LINK_DOWN and link_is_fine
        ):
            continue
        one = _kernel_event(event)
        key = one.class_, one.code, one.device
        if key not in found and len(found) >= _MOST_EVENTS:
            key = one.class_, one.code, None
        before = found.get(key)
        if before is not None or len(found) < 2 * _MOST_EVENTS:
            found[key] = one if before is None else _added(before, one)
    return tuple(found.values())


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


def _added(before: KernelEvent, one: KernelEvent) -> KernelEvent:
    firsts = [at for at in (before.since_boot_s, one.since_boot_s) if at is not None]
    lasts = [at for at in (before.last_since_boot_s, one.last_since_boot_s) if at is not None]
    return KernelEvent(
        class_=before.class_,
        text=before.text,
        code=before.code,
        device=before.device if before.device == one.device else None,
        since_boot_s=min(firsts, default=None),
        last_since_boot_s=max(lasts, default=None),
        count=before.count + one.count,
        severity=before.severity if before.severity == one.severity else None,
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
