"""Host names as files hold them, one a line."""

from collections.abc import Iterable


def render(names: Iterable[str]) -> str:
    """One host a line, in the given order; empty for no hosts."""
    return "".join(f"{name}\n" for name in names)
