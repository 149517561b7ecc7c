"""The versions that go with a result: a figure means little without what measured it."""

import platform
from collections.abc import Sequence
from contextlib import suppress
from importlib import metadata


def installed(packages: Sequence[str]) -> dict[str, str]:
    """The versions of those of ``packages`` that are installed."""
    found = {}
    for name in packages:
        with suppress(metadata.PackageNotFoundError):
            found[name] = metadata.version(name)
    return found


def of_this_host(packages: Sequence[str]) -> dict[str, str]:
    """Python, the system, and those of ``packages`` that are installed."""
    return {
        "python": platform.python_version(),
        "system": platform.platform(),
        **installed(packages),
    }
