"""Words for lists, and sentences of them."""

from collections.abc import Sequence

from ncdiag.diagnose.postmortem.thresholds import MAX_NAMES


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
