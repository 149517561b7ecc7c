"""The words for a path: its type, as NCCL names it, and its bandwidth."""

from dataclasses import dataclass
from enum import IntEnum


class PathType(IntEnum):
    """What a path goes through, nearest first; names and values are NCCL's since 2.27.

    ``LOC`` the same device, ``NVL`` NVLink or xGMI, ``NVB`` NVLink by way of another GPU, ``C2C``
    chip to chip, ``PIX`` one PCIe switch at most, ``PXB`` several, ``P2C`` C2C and then the CPU's
    PCIe, ``PXN`` NVLink to a GPU nearer to the adapter, ``PHB`` a CPU, ``SYS`` several, ``NET``
    another host, ``DIS`` none.
    """

    LOC = 0
    NVL = 1
    NVB = 2
    C2C = 3
    PIX = 4
    PXB = 5
    P2C = 6
    PXN = 7
    PHB = 8
    SYS = 9
    NET = 10
    DIS = 11


@dataclass(frozen=True, slots=True)
class Path:
    """One path: its type, the least of its links in GB/s each way, and what lies between the ends.

    ``gb_per_s`` is ``None`` where the dump does not tell. ``via`` names bus ids, ``CPU 0`` and
    ``NVSwitch`` in order.
    """

    type: PathType
    gb_per_s: float | None
    via: tuple[str, ...] = ()
