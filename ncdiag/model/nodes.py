"""Sets of host names, folded for people."""

import re
from collections.abc import Iterable

# What ClusterShell folds without giving any of its own syntax a meaning.
_FOLDABLE = re.compile(r"[A-Za-z0-9._-]+", re.ASCII)


def fold(names: Iterable[str]) -> str:
    """``gpu[001-003,007]`` for a set of hosts; names with other characters stand for themselves."""
    from ClusterShell.NodeSet import RESOLVER_NOGROUP, NodeSet

    names = list(names)
    plain = [name for name in names if _FOLDABLE.fullmatch(name)]
    others = [name for name in names if not _FOLDABLE.fullmatch(name)]
    folded = str(NodeSet.fromlist(plain, resolver=RESOLVER_NOGROUP))
    return ",".join(part for part in (folded, *others) if part)
