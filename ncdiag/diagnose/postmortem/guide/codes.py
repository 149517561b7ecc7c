"""What the numbers in findings mean: statuses of work requests, Xids, exit codes, signals."""

from collections.abc import Mapping
from typing import Final

from ncdiag.model.finding import FindingClass as Class
from ncdiag.read.signatures.xid_catalogue import XIDS

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
_XIDS: Final = {str(number): xid.meaning for number, xid in XIDS.items()}
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
