"""Sets of host names, folded for people."""

import re
from collections.abc import Iterable, Sequence

# What ClusterShell folds without giving any of its own syntax a meaning.
_FOLDABLE = re.compile(r"(?:[A-Za-z._-]|\d{1,9}(?!\d))+", re.ASCII)
_NUMBERS = re.compile(r"\d+")
_ADDRESS = re.compile(r"[\d.]+")
# Folding names by all their numbers at once takes minutes for thousands of them.
_MOST_BY_ALL_NUMBERS = 100

# As hosts are called, or as an author blanked a name out: <host>, ...-07.
_NAME = re.compile(r"<[\w.-]{1,100}>|\.{0,3}\w[\w.:%-]{0,252}", re.ASCII)


def is_host_name(text: str) -> bool:
    """Whether ``text`` may stand in a list of hosts: no option, path, node set or markup can."""
    return _NAME.fullmatch(text) is not None


def fold(names: Iterable[str]) -> str:
    """``gpu[001-003,007]`` for a set of hosts; names with other characters stand for themselves."""
    from ClusterShell.NodeSet import RESOLVER_NOGROUP, NodeSet

    names = list(names)
    plain = [name for name in names if _FOLDABLE.fullmatch(name)]
    others = [name for name in names if not _FOLDABLE.fullmatch(name)]
    folded = [
        str(NodeSet.fromlist(alike, resolver=RESOLVER_NOGROUP)) for alike in _foldable_sets(plain)
    ]
    return ",".join(part for part in (*folded, *others) if part)


def _foldable_sets(names: Sequence[str]) -> Iterable[list[str]]:
    """``names`` as they can be folded in little time: of many, those that differ in one number."""
    simple: list[str] = []
    alike: dict[str, list[str]] = {}
    for name in names:
        own = name if _ADDRESS.fullmatch(name) else name.split(".", 1)[0]
        numbers = [found.span() for found in _NUMBERS.finditer(own)]
        if len(numbers) > 1:
            start, end = numbers[-1]
            alike.setdefault(f"{name[:start]}[]{name[end:]}", []).append(name)
        else:
            simple.append(name)
    several = [name for group in alike.values() for name in group]
    if len(several) <= _MOST_BY_ALL_NUMBERS:
        return [[*simple, *several]]
    return [simple, *alike.values()]
