"""What is looked for in place of needles: short words, as few as serve them all.

An engine is the faster the fewer and shorter its words are, and many needles have parts in common.
"""

from collections.abc import Iterable

from ncdiag.read import ordinary

_CLUE_BYTES = 8
_NUMBERS = frozenset(b"0123456789")


def clues(needles: Iterable[bytes]) -> dict[bytes, list[bytes]]:
    """The words to look for, and the needles that a line with such a word may contain.

    Each needle contains its word, and is one where there is no shorter word that is rare. One with
    a number stays whole: lines that differ by numbers only may be counted as the same.
    """
    words: dict[bytes, list[bytes]] = {}
    sharing: dict[bytes, list[bytes]] = {}
    left: dict[bytes, None] = {}
    for needle in needles:
        if not _NUMBERS.isdisjoint(needle):
            words[needle] = [needle]
            continue
        left[needle] = None
        for part in set(_parts(needle)):
            sharing.setdefault(part, []).append(needle)
    for part in sorted(sharing, key=lambda part: (-len(sharing[part]), part)):
        owners = [needle for needle in sharing[part] if needle in left]
        if len(owners) > 1 and part not in ordinary.TEXT:
            words[part] = owners
            for needle in owners:
                del left[needle]
    for needle in left:
        part = needle[:_CLUE_BYTES]
        words.setdefault(needle if part in ordinary.TEXT else part, []).append(needle)
    return words


def _parts(needle: bytes) -> Iterable[bytes]:
    last = max(len(needle) - _CLUE_BYTES, 0)
    return (needle[start : start + _CLUE_BYTES] for start in range(last + 1))
