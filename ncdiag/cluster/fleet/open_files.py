"""How many files a driver may have open: some for each host."""

import contextlib
import resource

from ncdiag.model.errors import UsageError

# Three pipes and the connections of a worker, 7.5 as counted with 2 and 6 hosts; and our own, 16.
_FILES_A_HOST = 8
_FILES = 40


def allow_many_files(hosts: int) -> None:
    """Lift our own limit as far as we may; raises UsageError where that is too little.

    Without files Dask neither accepts a connection nor says so, and each host fails in its own way.
    """
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    with contextlib.suppress(OSError, ValueError):
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    needed = _FILES + hosts * _FILES_A_HOST
    if 0 <= hard < needed:
        raise UsageError(
            f"{hosts} hosts need about {needed} open files here, and the limit is {hard}: "
            "raise it (ulimit -Hn)"
        )
