"""What callers of ``ncdiag health`` are told that wait for other exit codes than the contract's."""

import sys
from collections.abc import Sequence
from contextlib import suppress

from ncdiag.cli.health.prolog import drains_nobody


def answer(arguments: Sequence[str], message: str) -> int | None:
    """Tell of an error before or within the command; ``None`` where the usual way will do.

    The options may be what is wrong, so that they are only looked for.
    """
    if "--prolog" in arguments:
        return drains_nobody(message)
    if "--nagios" not in arguments:
        return None
    from ncdiag.report.health.one_line import nagios_failure

    line, code = nagios_failure(message)
    with suppress(OSError, ValueError):  # whoever reads it is gone
        print(line, file=sys.stdout, flush=True)  # noqa: T201 - the line of a plugin
    return code
