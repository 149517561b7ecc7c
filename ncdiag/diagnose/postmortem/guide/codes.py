"""What the numbers in findings mean: statuses of work requests, Xids, exit codes, signals."""

from collections.abc import Mapping
from typing import Final

from ncdiag.model.finding import FindingClass as Class

_STATUSES: Final = {
    "1": "local length error: the message is longer than the buffer for it; ends differ",
    "2": "local queue pair error: driver or firmware, or a queue pair in a wrong state",
    "4": "local protection error: the memory is not, or no longer, registered",
    "5": "flushed: the queue pair had failed before",
    "6": "memory window error",
    "7": "bad response from the other end",
    "8": "local access error: the memory does not allow this",
    "9": "the other end refused the request: sizes or versions differ",
    "10": "the other end's memory does not allow this: it was freed there, or PCIe (ACS, IOMMU)",
    "11": "the other end could not finish: memory or PCIe error there",
    "12": "retries used up: the other end does not answer, or the path to it is broken",
    "13": "the other end was not ready to receive for too long: its process is stuck or gone",
    "19": "the adapter failed",
    "20": "no response in time: the other end or the path to it",
    "21": "the adapter reports a general error",
}
_XIDS: Final = {
    "8": "the GPU stopped processing",
    "11": "an invalid or corrupt command stream",
    "13": "a kernel of the program faulted",
    "31": "the program used an address that is not mapped",
    "32": "an invalid or corrupt command stream",
    "37": "a driver firmware error",
    "38": "a driver firmware error",
    "39": "the copy engine faulted",
    "40": "the copy engine faulted",
    "41": "the copy engine faulted",
    "43": "the GPU stopped processing for this program; the GPU itself is fine",
    "44": "a fault while switching between programs",
    "45": "a clean-up after an earlier fault or a killed program",
    "46": "the GPU stopped and does not come back",
    "48": "an uncorrectable memory error",
    "54": "the auxiliary power cable is not connected",
    "61": "the power controller stopped at a breakpoint",
    "62": "the power controller halted",
    "63": "a memory row was marked to be swapped out at the next reset",
    "64": "a bad memory row could not be swapped out: no spare is left",
    "66": "an access by the driver that is not allowed",
    "67": "an access by the driver that is not allowed",
    "68": "the video decoder faulted",
    "69": "a graphics engine error in the program",
    "74": "an NVLink error",
    "79": "the GPU fell off the PCIe bus",
    "80": "the command stream arrived damaged",
    "86": "the optical flow engine faulted",
    "92": "many correctable memory errors",
    "94": "an uncorrectable memory error that hit one program only",
    "95": "an uncorrectable memory error that may have hit every program on the GPU",
    "109": "a switch between programs did not finish",
    "110": "a security fault",
    "119": "the GPU's firmware processor did not answer in time",
    "120": "the GPU's firmware processor failed",
    "121": "an error on the link between CPU and GPU chips",
    "136": "an NVLink could not be trained",
    "137": "an NVLink access that is not allowed, mostly by software of a peer",
    "140": "an uncorrectable memory error",
    "141": "a fault in CUDA's fast path",
    "143": "the GPU could not be initialised",
    "144": "an NVLink error on the GPU's side",
    "145": "an NVLink error in the remapping of a link",
    "146": "an NVLink error in the transaction layer",
    "147": "an NVLink error in the crossbar to the links",
    "148": "an NVLink error in the control of a link",
    "149": "an NVLink error on the wire: cable, connector or signal",
    "150": "the NVLink management firmware failed",
    "154": "the driver says what has to be done to recover the GPU",
    "155": "an NVLink error that software reports",
    "156": "a part of the GPU was retired",
    "157": "a part of the GPU could not be retired",
    "158": "the GPU timed out for good",
    "161": "a channel could not be retired",
    "167": "PCIe timed out for good",
    "168": "errors in protected memory; the GPU has less of it now",
    "169": "a security controller halted",
    "171": "the memory error was in DRAM",
    "172": "the memory error was in SRAM",
}
_SIGNALS: Final = {
    "4": "SIGILL: an instruction this processor does not have, or a processor fault",
    "6": "SIGABRT: the process gave up by itself, mostly after an error it printed",
    "7": "SIGBUS: shared memory is full, or a memory page is bad",
    "8": "SIGFPE: a division by zero in native code",
    "9": "SIGKILL: killed from outside, mostly for memory or by the scheduler",
    "11": "SIGSEGV: a bad address in native code",
    "15": "SIGTERM: asked to end, by the launcher or scheduler",
}
_NAMED_SIGNALS: Final = dict(text.split(": ", 1) for text in _SIGNALS.values())
_EXITCODES: Final = {
    "1": "the program ended with an error of its own",
    "2": "wrong arguments",
    "126": "the program cannot be executed",
    "127": "the program was not found",
    **{f"-{number}": text for number, text in _SIGNALS.items()},
    **{f"{128 + int(number)}": text for number, text in _SIGNALS.items()},
}
_ERRNOS: Final = {
    "12": "no memory, or the limit on locked memory",
    "22": "an invalid argument: GID index or RoCE version",
    "61": "no data: the GID table is empty there",
    "101": "the network cannot be reached",
    "110": "timed out: no path between these two adapters",
    "113": "no route to the host",
}
_WORDS: Final = {"xid": "Xid", "exitcode": "exit code"}
_XID_CLASSES: Final = (
    Class.XID_APPLICATION_FAULT,
    Class.GPU_MEMORY_ERROR,
    Class.GPU_FELL_OFF_BUS,
    Class.GSP_TIMEOUT,
    Class.NVLINK_ERROR,
    Class.GPU_INTERNAL_FAULT,
    Class.XID_FOLLOWUP,
)

# Class, attribute, and what its values mean.
CODES: Final[Mapping[Class, tuple[str, Mapping[str, str]]]] = {
    Class.IB_COMPLETION_ERROR: ("status", _STATUSES),
    Class.IB_FLUSH_ERROR: ("status", _STATUSES),
    Class.IB_MODIFY_QP_FAILED: ("errno", _ERRNOS),
    Class.ELASTIC_WORKER_FAILED: ("exitcode", _EXITCODES),
    Class.PROCESS_DIED: ("exitcode", _EXITCODES),
    Class.PROCESS_CRASH: ("signal", {**_SIGNALS, **_NAMED_SIGNALS}),
    Class.TERMINATED_BY_LAUNCHER: ("signal", {**_SIGNALS, **_NAMED_SIGNALS}),
    **dict.fromkeys(_XID_CLASSES, ("xid", _XIDS)),
}


def code_meaning(class_: Class, attributes: Mapping[str, str]) -> str:
    """``status 12 means retries used up ...`` for a finding whose number is known, else empty."""
    if class_ not in CODES:
        return ""
    name, meanings = CODES[class_]
    value = attributes.get(name, "")
    word = _WORDS.get(name, name)
    return f"{word} {value} means {meanings[value]}" if value in meanings else ""
