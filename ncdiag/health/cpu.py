"""How busy a host's processors are."""

from dataclasses import dataclass
from pathlib import Path
from typing import Final

# Up to this share, 225 figures of links of 500 Mbit/s all reached 92 % of what the links carry.
_TOO_MUCH_STOLEN: Final = 0.1


@dataclass(frozen=True, slots=True)
class CpuTimes:
    """Clock ticks since boot, over all processors."""

    idle: int
    total: int
    stolen: int = 0

    def idle_share_since(self, before: "CpuTimes") -> float | None:
        """Share of the time since ``before`` that was idle, 0 to 1; ``None`` if no tick passed.

        It is 0 where a hypervisor took more than a tenth of all time: it takes only from whoever
        wants to run, so that there was nothing to spare, however idle the other processors were.
        """
        total = self.total - before.total
        if total <= 0:
            return None
        if self.stolen - before.stolen > _TOO_MUCH_STOLEN * total:
            return 0.0
        return min(1.0, max(0.0, (self.idle - before.idle) / total))


def read_cpu_times(root: Path = Path("/")) -> CpuTimes:
    """Read the first line of ``/proc/stat``; raises :class:`OSError` or :class:`ValueError`.

    Waiting for a disk is idle here, time taken by a hypervisor (steal) is not: only the latter
    keeps a network transfer from running.
    """
    with (root / "proc/stat").open() as stat:
        label, *ticks = stat.readline().split()
    if label != "cpu" or len(ticks) < 5:
        raise ValueError(f"{root}proc/stat does not begin with the sum of all processors")
    # user nice system idle iowait irq softirq steal; guest times are part of user (proc(5)).
    user, nice, system, idle, iowait, *rest = map(int, ticks[:8])
    total = user + nice + system + idle + iowait + sum(rest)
    return CpuTimes(idle + iowait, total, rest[2] if len(rest) == 3 else 0)
