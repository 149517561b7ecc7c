"""Where a command prints: results on stdout, progress and messages on stderr."""

import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.console import Console


def results(*, no_color: bool = False) -> "Console":
    """The console of stdout. Text is printed as it is: no markup, no emoji, no highlighting."""
    return _console(stderr=False, quiet=False, no_color=no_color)


def messages(*, quiet: bool = False, no_color: bool = False) -> "Console":
    """The console of stderr, silent when ``quiet``."""
    return _console(stderr=True, quiet=quiet, no_color=no_color)


def write(document: bytes) -> None:
    """Put a document on stdout as it is, and nothing else."""
    sys.stdout.flush()
    sys.stdout.buffer.write(document)


def _console(*, stderr: bool, quiet: bool, no_color: bool) -> "Console":
    from ncdiag.cli.trimmed import TrimmedConsole  # with rich, which JSON is printed without

    return TrimmedConsole(
        stderr=stderr,
        quiet=quiet,
        no_color=no_color or None,  # None leaves it to the variable NO_COLOR
        markup=False,
        emoji=False,
        highlight=False,
    )
