"""How long a process was ready to run and had no CPU: time in which nobody kept it waiting.

On a host under full load all takes longer, and what is only slow must not be taken for hung.
"""

import os
from contextlib import suppress
from pathlib import Path


def waited_for_cpu_s(pid: int) -> float:
    """The wait of all threads of ``pid`` together; 0 where the kernel does not count it.

    ``schedstat`` of a task holds nanoseconds on a CPU, nanoseconds of waiting for one, and time
    slices (Linux, Documentation/scheduler/sched-stats).
    """
    waited_ns = 0
    tasks = Path(f"/proc/{pid}/task")
    with suppress(OSError, ValueError, IndexError):
        for task in os.listdir(tasks):  # noqa: PTH208 - names are all that is needed
            waited_ns += int((tasks / task / "schedstat").read_text().split()[1])
    return waited_ns / 1e9
