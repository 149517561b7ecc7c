"""What is looked for in place of needles: short words, as few as serve them all.

An engine is the faster the fewer and shorter its words are, and many needles have parts in common.
"""

from collections.abc import Iterable

from ncdiag.read import ordinary

_CLUE_BYTES = 8


def clues(needles: Iterable[bytes]) -> dict[bytes, list[bytes]]:
    """The words to look for, and the needles that a line with such a word may contain.

    Each needle contains its word, and is one where there is no shorter word that is rare.
    """
    sharing: dict[bytes, list[bytes]] = {}
    left = dict.fromkeys(needles)
    for needle in left:
        for part in set(_parts(needle)):
            sharing.setdefault(part, []).append(needle)
    words: dict[bytes, list[bytes]] = {}
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
