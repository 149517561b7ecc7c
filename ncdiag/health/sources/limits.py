"""The soft limits of this process, which are those of what the same login starts."""

import re
from typing import Final

from ncdiag.health.sources.found import Found, absent, failed, read
from ncdiag.health.sources.place import HostRoot
from ncdiag.health.sources.values import whole_number

# proc(5), /proc/PID/limits.
_NAMES: Final = {
    "Max locked memory": "memlock",
    "Max open files": "nofile",
    "Max processes": "nproc",
    "Max stack size": "stack",
    "Max core file size": "core",
}
_ROW: Final = re.compile(r"^(Max [a-z ]{1,40}?) {2,}(\d{1,20}|unlimited) ", re.MULTILINE)


def collect(root: HostRoot) -> Found:
    """Each limit in its own unit; -1 is without bound."""
    text = root.text("/proc/self/limits")
    if text is None:
        return absent("/proc/self/limits cannot be read")
    found: dict[str, int] = {}
    for title, soft in _ROW.findall(text):
        number = -1 if soft == "unlimited" else whole_number(soft)
        if title in _NAMES and number is not None:
            found[_NAMES[title]] = number
    return read(limits=found) if found else failed("/proc/self/limits holds no limits")
