"""Finds the class of findings that a user means, for the ``--explain`` of several commands."""

from collections.abc import Collection
from difflib import get_close_matches

from ncdiag.model.errors import UsageError


def class_name(asked: str, names: Collection[str]) -> str:
    """The one of ``names`` that is asked for; raises :class:`UsageError` that suggests near ones.

    Case is set aside, and ``-`` or a space stands for ``_``.
    """
    word = asked.strip().lower().replace("-", "_").replace(" ", "_")
    if word in names:
        return word
    near: list[str] = get_close_matches(word, names, n=3, cutoff=0.6)
    near += [one for one in names if word and word in one and one not in near][:3]
    hint = f"did you mean {' or '.join(near)}?" if near else "--list-classes lists them all"
    raise UsageError(f"there is no class {asked}; {hint}")
