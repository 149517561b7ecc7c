"""The kernel's modules, and versions of what is installed."""

import re
from typing import Final

from ncdiag.health.sources.found import Found, absent, read
from ncdiag.health.sources.place import HostRoot
from ncdiag.health.sources.versions import versions

_MOST_MODULES: Final = 4096
_MOST_BYTES: Final = 1 << 20
_NAME: Final = re.compile(r"\w{1,64}", re.ASCII)


def collect(root: HostRoot) -> Found:
    """The names of all modules that are loaded, sorted."""
    known = versions(root)
    text = root.text("/proc/modules", _MOST_BYTES)
    if text is None and not known:
        return absent("neither modules nor versions can be read")
    words = (line.partition(" ")[0] for line in (text or "").splitlines()[:_MOST_MODULES])
    names = tuple(sorted({word for word in words if _NAME.fullmatch(word)}))
    return read(modules=None if text is None else names, versions=known)
