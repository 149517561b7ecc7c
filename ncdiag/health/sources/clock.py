"""Whether the clock is kept by another one, and how far it is off."""

import ctypes
import re
from typing import Final

from ncdiag.health.sources.found import Found, absent, failed, read, unanswered
from ncdiag.health.sources.place import HostRoot
from ncdiag.model.health import Clock

_TIMEOUT_S: Final = 1.0
# adjtimex(2), linux/timex.h.
_UNSYNCHRONIZED: Final = 0x0040  # STA_UNSYNC
_NOT_KEPT: Final = 5  # TIME_ERROR
_OFFSET: Final = re.compile(
    r"^System time\s*:\s*(\d{1,12}\.\d{1,9}) seconds (fast|slow) of NTP time", re.MULTILINE
)
_LEAP: Final = re.compile(r"^Leap status\s*:\s*(.{1,40})$", re.MULTILINE)
_SYSTEMD: Final = re.compile(r"^\s*System clock synchronized:\s*(yes|no)\s*$", re.MULTILINE)


class _Timex(ctypes.Structure):
    """``struct timex`` as far as its status; the rest is room for what the kernel writes."""

    _fields_ = (
        ("modes", ctypes.c_uint),
        ("offset", ctypes.c_long),
        ("freq", ctypes.c_long),
        ("maxerror", ctypes.c_long),
        ("esterror", ctypes.c_long),
        ("status", ctypes.c_int),
        ("rest", ctypes.c_char * 512),
    )


def collect(root: HostRoot) -> Found:
    """By the kernel, and by chrony where it runs; what was recorded may be of systemd as well."""
    if not root.live:
        answer = root.recorded("clock.txt")
        if nothing := unanswered(answer):
            return nothing
        clock = clock_of(answer.output.decode(errors="replace"))
        return read(clock=clock) if clock else failed("clock.txt is neither chrony's nor systemd's")
    if root.exists("/run/chrony"):
        argv = ("chronyc", "-n", "tracking")
        answer = root.ask(argv, timeout_s=_TIMEOUT_S, recorded="clock.txt")
        if not unanswered(answer) and (clock := clock_of(answer.output.decode(errors="replace"))):
            return read(clock=clock)
    synchronized = _kernel_says()
    if synchronized is None:
        return absent("the kernel does not tell of its clock")
    by_systemd = root.exists("/run/systemd/timesync/synchronized")
    kept_by = "systemd-timesyncd" if by_systemd else None
    return read(clock=Clock(synchronized=synchronized, kept_by=kept_by))


def clock_of(text: str) -> Clock | None:
    """What ``chronyc tracking`` or ``timedatectl`` says; ``None`` where it is neither."""
    if leap := _LEAP.search(text):
        offset = _OFFSET.search(text)
        sign = 1 if offset and offset[2] == "fast" else -1
        return Clock(
            synchronized=leap[1].strip() != "Not synchronised",
            offset_s=sign * float(offset[1]) if offset else None,
            kept_by="chrony",
        )
    if found := _SYSTEMD.search(text):
        return Clock(synchronized=found[1] == "yes")
    return None


def _kernel_says() -> bool | None:
    timex = _Timex()
    try:
        state = ctypes.CDLL(None).adjtimex(ctypes.byref(timex))
    except AttributeError:
        return None
    return None if state < 0 else state != _NOT_KEPT and not timex.status & _UNSYNCHRONIZED
