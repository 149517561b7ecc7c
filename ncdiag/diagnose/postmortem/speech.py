"""Words for counts and lists."""

from collections.abc import Sequence

from ncdiag.diagnose.postmortem.thresholds import MAX_NAMES


def plural(count: int, word: str) -> str:
    """``1 host``, ``3 hosts``."""
    if count == 1:
        return f"{count} {word}"
    ending = "es" if word.endswith(("s", "ch", "sh")) else "s"
    return f"{count} {word}{ending}"


def listed(names: Sequence[str], most: int = MAX_NAMES) -> str:
    """``a, b and c``; what goes beyond ``most`` is a number."""
    shown = list(names[:most])
    if len(names) > most:
        shown.append(f"{len(names) - most} more")
    if len(shown) < 2:
        return "".join(shown)
    return f"{', '.join(shown[:-1])} and {shown[-1]}"


def capital(sentence: str) -> str:
    """The sentence with a capital at its beginning."""
    return sentence[:1].upper() + sentence[1:]
