"""What kernels tell of hardware; people put such logs above or below what a job printed."""

from collections.abc import Iterable

from ncdiag.diagnose.postmortem.hosts import HostBook
from ncdiag.model.finding import FindingClass as C
from ncdiag.model.log import Event

GPU_FAULTS = frozenset(
    {
        C.GPU_MEMORY_ERROR,
        C.GPU_FELL_OFF_BUS,
        C.GSP_TIMEOUT,
        C.NVLINK_ERROR,
        C.GPU_INTERNAL_FAULT,
        C.NVSWITCH_FATAL,
        C.PCIE_ERROR,
        C.XID_APPLICATION_FAULT,
    }
)
# Of these processes die.
UNDER_PROCESSES = GPU_FAULTS | {C.HOST_MEMORY_ERROR}
_TOLD = UNDER_PROCESSES | {C.NIC_FIRMWARE_FAULT, C.NIC_LINK_DOWN, C.OOM_KILL, C.KERNEL_STALL}


def of_kernel(event: Event) -> bool:
    """Whether a kernel tells of hardware, not a process of what it noticed."""
    speaker = event.speaker
    return event.class_name in _TOLD and speaker.pid is None and speaker.rank is None


def first_lines(events: Iterable[Event], hosts: HostBook) -> dict[tuple[str, str | None], int]:
    """The first line of each host's kernel in each input."""
    found: dict[tuple[str, str | None], int] = {}
    for event in filter(of_kernel, events):
        key = (event.place.path, hosts.of_event(event))
        found[key] = min(event.place.line, found.get(key, event.place.line))
    return found
