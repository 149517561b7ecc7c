"""The host itself: since when it runs, load, memory, and what hangs in the kernel."""

import os
import re
import time
from typing import Final

from ncdiag.health.sources.found import Found, absent, read
from ncdiag.health.sources.place import HostRoot
from ncdiag.health.sources.settings import settings
from ncdiag.health.sources.values import whole_number

_MOST_PROCESSES: Final = 65_536
_MOST_BLOCKED: Final = 64
_NAME_CHARS: Final = 64
# A process that only waits for a disk is out of state D again.
_LOOK_AGAIN_S: Final = 0.3
_KIB: Final = 1024
# proc(5), /proc/PID/stat: the name in brackets may hold brackets itself.
_STAT: Final = re.compile(r"\d{1,10} \((?P<name>.*)\) (?P<state>[A-Za-z])(?: |$)", re.DOTALL)


def collect(root: HostRoot) -> Found:
    """What ``/proc`` tells, with the kernel's settings."""
    memory = _memory(root)
    facts = {
        "uptime_s": _first_number(root, "/proc/uptime"),
        "boot_id": root.text("/proc/sys/kernel/random/boot_id"),
        "load": _first_number(root, "/proc/loadavg"),
        "cpus": _cpus(root),
        "memory_total_bytes": memory.get("MemTotal"),
        "memory_available_bytes": memory.get("MemAvailable"),
        "blocked_processes": _blocked(root),
        "settings": settings(root) or None,
    }
    if all(fact is None for fact in facts.values()):
        return absent("/proc cannot be read")
    return read(**facts)


def _first_number(root: HostRoot, file: str) -> float | None:
    found = re.match(r"\d{1,15}(?:\.\d{1,6})?(?=\s)", root.text(file) or "", re.ASCII)
    return float(found[0]) if found else None


def _cpus(root: HostRoot) -> int | None:
    """How many CPUs are online: ``0-63,128-191`` are 128."""
    text = root.text("/sys/devices/system/cpu/online") or ""
    if not re.fullmatch(r"\d{1,5}(?:-\d{1,5})?(?:,\d{1,5}(?:-\d{1,5})?)*", text, re.ASCII):
        return os.cpu_count() if root.live else None
    ranges = [one.partition("-") for one in text.split(",")]
    return sum(max(int(last or first) - int(first) + 1, 0) for first, _, last in ranges)


def _memory(root: HostRoot) -> dict[str, int]:
    rows = re.findall(
        r"^(MemTotal|MemAvailable): +(\d{1,15}) kB$", root.text("/proc/meminfo") or "", re.MULTILINE
    )
    return {name: int(kib) * _KIB for name, kib in rows}


def _blocked(root: HostRoot) -> tuple[str, ...] | None:
    """Processes that sleep where no signal reaches them, in two looks one after the other."""
    pids = [name for name in root.names("/proc") if name.isdecimal()]
    if not pids:
        return None
    blocked = [pid for pid in pids[:_MOST_PROCESSES] if _name_if_blocked(root, pid)]
    if not blocked:
        return ()
    if root.live:
        time.sleep(_LOOK_AGAIN_S)
    found: list[str] = []
    for pid in blocked:
        if name := _name_if_blocked(root, pid):
            found.append(f"{name[:_NAME_CHARS]} ({pid})")
            if len(found) >= _MOST_BLOCKED:
                break
    return tuple(found)


def _name_if_blocked(root: HostRoot, pid: str) -> str | None:
    """The name of a process in state D; its command line would be memory that may hang as well."""
    found = _STAT.match(root.text(f"/proc/{pid}/stat") or "")
    if found is None or found["state"] != "D" or whole_number(pid) is None:
        return None
    return found["name"] or "?"
