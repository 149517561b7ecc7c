"""Host names that mean a host, and the names that are one."""

import re
from collections.abc import Iterable

_NO_NAME = re.compile(r"[.\s]*\Z")
_ADDRESS = re.compile(r"[0-9.]+\Z|.*:")


def real_hosts(names: Iterable[str | None]) -> list[str]:
    """Each host once, in the order of appearance.

    A short name beside its fully qualified one is the same host and keeps the short form, in
    which most of a log speaks. What an author blanked out (``...``) is no name.
    """
    known = dict.fromkeys(name for name in names if name and not _NO_NAME.match(name))
    kept = [name for name in known if not _shorter_form_in(name, known)]
    return [name for name in kept if name != "localhost"] or kept


def same_host(name: str, other: str) -> bool:
    """Whether two names are one host's: equal, or one the short form of the other."""
    return name == other or short(name) == other or name == short(other)


def short(name: str) -> str:
    """A name up to its first dot; an address whole."""
    return name if _ADDRESS.match(name) else name.split(".", 1)[0]


def _shorter_form_in(name: str, known: Iterable[str]) -> bool:
    return short(name) != name and short(name) in known
