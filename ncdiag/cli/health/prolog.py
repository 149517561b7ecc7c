"""``ncdiag health --prolog``: whether Slurm is to drain this host, and nothing else.

Slurm drains a node for any code but 0, so this is 1 for a fatal finding alone: a monitor that is
broken, or cannot tell, must not drain a cluster.
"""

import sys
from collections.abc import Callable
from contextlib import suppress

from ncdiag.cli.health.deadline import LONGEST_S, deadline
from ncdiag.model.errors import ExitCode, NcdiagError
from ncdiag.model.health import HealthReport, HostFitness
from ncdiag.model.text import visible

_NOT_DRAINED = "this host could not be judged, and is not drained for that"


def prolog(look: Callable[[], HealthReport]) -> ExitCode:
    """Print the reason to drain this host, if there is one; all else is 0, with a line on stderr.

    ``look`` collects and judges; whatever it raises is our own failure.
    """
    late = f"{_NOT_DRAINED}: nothing came within {LONGEST_S:g} s"
    with deadline(LONGEST_S, ExitCode.DONE, late):
        try:
            reason = _reason(look())
        except BaseException as error:  # noqa: BLE001 - also an interrupt says nothing of the host
            kind = "" if isinstance(error, NcdiagError) else f"{type(error).__name__}: "
            return drains_nobody(f"{kind}{' '.join(str(error).split())}")
    if reason is None:
        return ExitCode.DONE
    with suppress(OSError, ValueError):  # whoever reads it is gone, and the finding stands
        print(reason, flush=True)  # noqa: T201 - the one line
    return ExitCode.WRONG


def drains_nobody(message: str) -> ExitCode:
    """Say on stderr why this host could not be judged; that is no reason to drain it."""
    _say(f"{_NOT_DRAINED}: {message}")
    return ExitCode.DONE


def _reason(report: HealthReport) -> str | None:
    """Why to drain this host; says on stderr where that could not be told."""
    from ncdiag.report.health.one_line import drain_reason

    for host in report.hosts:
        if host.fitness is HostFitness.UNKNOWN:
            _say(f"{_NOT_DRAINED}: {host.error or 'too few of its facts could be read'}")
    return drain_reason(report)


def _say(text: str) -> None:
    with suppress(OSError, ValueError):
        print(f"ncdiag: {visible(text)}", file=sys.stderr, flush=True)  # noqa: T201
