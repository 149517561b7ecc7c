"""How a colleague would put each class of finding, and its suspects, in a sentence."""

import re
from collections.abc import Iterable, Mapping

from ncdiag.diagnose.postmortem.speech import listed
from ncdiag.model.finding import FindingClass as C
from ncdiag.model.finding import Suspect, SuspectKind
from ncdiag.model.place import Clock, Moment

PHRASES: Mapping[C, str] = {
    C.IB_COMPLETION_ERROR: "InfiniBand requests failed",
    C.IB_FLUSH_ERROR: "InfiniBand requests were flushed",
    C.IB_PORT_ERROR: "an InfiniBand port reported that it is down",
    C.IB_DEVICE_FATAL: "an InfiniBand adapter failed",
    C.IB_QP_FATAL_EVENT: "a queue pair failed",
    C.IB_MODIFY_QP_FAILED: "two InfiniBand adapters could not be connected",
    C.IB_MEMORY_REGISTRATION_FAILED: "memory could not be registered with the adapter",
    C.IB_VERBS_CALL_FAILED: "a verbs call failed during set-up",
    C.BOOTSTRAP_CONNECT_FAILED: "a process could not reach another at start-up",
    C.BOOTSTRAP_NO_INTERFACE: "no network interface matched",
    C.BOOTSTRAP_BIND_FAILED: "a process could not listen on its address",
    C.BOOTSTRAP_MISMATCH: "processes disagreed on who takes part",
    C.SOCKET_CONNECT_FAILED: "a data connection could not be opened",
    C.SOCKET_CLOSED_BY_PEER: "the other end closed a connection",
    C.SOCKET_ERROR: "a connection broke",
    C.SOCKET_HANDSHAKE_FAILED: "something else spoke to a port of the job",
    C.OFI_COMPLETION_ERROR: "libfabric requests failed",
    C.OFI_MEMORY_REGISTRATION: "libfabric could not register memory",
    C.OFI_ENDPOINT_FAILED: "no libfabric endpoint could be opened",
    C.SHARP_FAILED: "in-network reduction could not be set up",
    C.REMOTE_ERROR: "ranks found the other side gone",
    C.UNHANDLED_SYSTEM_ERROR: "a system call failed",
    C.INTERNAL_ERROR: "an internal check of the library failed",
    C.INVALID_USAGE: "the library was used wrongly",
    C.PROXY_FAILURE: "the network threads gave up",
    C.COMM_ABORTED: "communicators were aborted",
    C.NO_TRANSPORT_FOUND: "ranks had no way to reach one another",
    C.TOPOLOGY_ERROR: "the hardware topology could not be read",
    C.COLLECTIVE_MISMATCH: "ranks called collectives that do not match",
    C.OPTIONAL_LIBRARY_MISSING: "an optional library is missing",
    C.NETWORK_FALLBACK: "a slower network was used than there is",
    C.RESOURCE_LIMIT: "a limit of the operating system was hit",
    C.CUDA_ERROR: "a CUDA call failed",
    C.CUDA_OUT_OF_MEMORY: "a GPU ran out of memory",
    C.CUDA_INVALID_DEVICE: "a process asked for a GPU that is not there",
    C.PEER_MAPPING_EXHAUSTED: "too many GPUs were mapped to one another",
    C.DUPLICATE_GPU: "two ranks used one GPU",
    C.P2P_DISABLED: "GPUs that should talk directly could not",
    C.SHM_NO_SPACE: "shared memory was full",
    C.NVLS_MULTICAST_FAILED: "NVLink multicast was refused",
    C.MNNVL_FAILED: "the NVLink domain of the rack did not work",
    C.XID_APPLICATION_FAULT: "the program did something the GPU refused",
    C.GPU_MEMORY_ERROR: "the memory of a GPU failed",
    C.GPU_FELL_OFF_BUS: "a GPU fell off the bus",
    C.GSP_TIMEOUT: "the firmware of a GPU did not answer",
    C.NVLINK_ERROR: "NVLink failed",
    C.GPU_INTERNAL_FAULT: "a GPU reported an internal fault",
    C.XID_FOLLOWUP: "the driver cleaned up after it",
    C.NVSWITCH_FATAL: "an NVSwitch failed",
    C.NVSWITCH_NONFATAL: "an NVSwitch survived an error",
    C.NIC_FIRMWARE_FAULT: "the firmware of an adapter failed",
    C.NIC_LINK_DOWN: "a network link went down",
    C.PCIE_ERROR: "PCIe reported errors",
    C.HOST_MEMORY_ERROR: "memory or processor of a host failed",
    C.OOM_KILL: "the kernel killed a process for memory",
    C.KERNEL_STALL: "the kernel did not move on",
    C.STORAGE_ERROR: "a disk or file system failed",
    C.THERMAL_POWER: "heat or power slowed the hardware",
    C.TORCH_WATCHDOG_TIMEOUT: "a collective did not finish in time",
    C.TORCH_DESYNC: "ranks were at different collectives",
    C.TORCH_WATCHDOG_STUCK: "the watchdog thread stood still",
    C.STORE_FAILURE: "the key-value store was lost",
    C.ELASTIC_WORKER_FAILED: "the agent reported a dead worker",
    C.PROCESS_CRASH: "a process crashed",
    C.PROCESS_DIED: "a process ended without a word",
    C.APPLICATION_EXCEPTION: "the program ended with an error of its own",
    C.TERMINATED_BY_LAUNCHER: "processes were told to stop",
    C.JOB_TIME_LIMIT: "the job reached its time limit",
    C.JOB_CANCELLED: "the job was cancelled",
    C.RAS_MISMATCH: "the ranks of a communicator were not at the same point",
    C.RAS_INCOMPLETE: "processes did not answer",
    C.DATA_CORRUPTION: "results were wrong",
    C.SINGLE_RANK_RUN: "a collective ran over one rank only",
    C.LOW_BANDWIDTH_GDR_ONE_SIDED: "GPUDirect worked at one end only",
    C.GDR_DISABLED: "GPUDirect was off",
    C.SLOW_NODE: "a host was slow with every partner",
    C.BANDWIDTH_CLIFF: "bandwidth fell off from one size to the next",
    C.HANG_INIT: "the start-up did not complete",
    C.HANG_FIRST_COLLECTIVE: "the first collective did not return",
    C.HANG_MID_RUN: "progress stopped without an error",
    C.HOST_CONFIG_WARNING: "a setting of a host drew a warning",
}

# What is told of an attribute, the most telling first.
_DETAILS = (
    ("xid", "Xid {}"),
    ("sxid", "SXid {}"),
    ("status", "status {}"),
    ("signal", "signal {}"),
    ("exitcode", "exit code {}"),
    ("exception", "{}"),
    ("error", "{}"),
    ("op", "{}"),
)
_LONGEST_DETAIL = 48
_KINDS = {
    SuspectKind.RANK: "rank",
    SuspectKind.GPU: "GPU",
    SuspectKind.NIC: "NIC",
    SuspectKind.SWITCH: "switch",
}
_DATED = re.compile(r"\b(\d{4}-\d\d-\d\d)[T _](\d\d:\d\d:\d\d)")
_OF_DAY = re.compile(r"\b\d\d:\d\d:\d\d\b")


def phrase(class_: C, attributes: Mapping[str, str]) -> str:
    """What happened, as a clause without a comma: ``InfiniBand requests failed (status 12)``."""
    for name, form in _DETAILS:
        value = attributes.get(name, "")
        told = value.lower() in PHRASES[class_].lower()
        if value and not told and len(value) <= _LONGEST_DETAIL:
            return f"{PHRASES[class_]} ({form.format(value)})"
    return PHRASES[class_]


def whom(suspects: Iterable[Suspect]) -> str:
    """``GPU 0000:43:00, rank 3 and node-b``."""
    return listed(list(dict.fromkeys(_named(suspect) for suspect in suspects)))


def _named(suspect: Suspect) -> str:
    word = _KINDS.get(suspect.kind, "")
    named = suspect.name.lower().startswith(word.lower())
    return suspect.name if named else f"{word} {suspect.name}"


def moment(time: Moment) -> str:
    """A date only where one is printed whole, else the time of day."""
    if time.clock is Clock.UPTIME:
        return f"{time.seconds:.0f} s after boot"
    return time_of_day(time.text)


def time_of_day(text: str) -> str:
    """A time as it stands in a log, without what is odd or not needed of it."""
    if dated := _DATED.search(text):
        return f"{dated[1]} {dated[2]}"
    of_day = _OF_DAY.search(text)
    return of_day[0] if of_day else text
