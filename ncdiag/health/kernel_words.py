"""What in a line of the kernel log decides how much it weighs, beside its class and number.

Lines that differ in these are not counted as one: a corrected error and a fatal one of the same
device are two things.
"""

import re
from typing import Final

RECOVERY_ACTION: Final = 154
NONFATAL: Final = re.compile(r"\bnon-?fatal\b", re.IGNORECASE)
FATAL: Final = re.compile(r"\bfatal\b", re.IGNORECASE)
FATAL_PCIE: Final = re.compile(r"\(Fatal\)|ERR_FATAL")
SLOT: Final = re.compile(r"Slot\(")
LINK_DOWN: Final = re.compile("LINK_DOWN")
DEFERRED: Final = re.compile("Deferred")
RECOVERED: Final = re.compile(r"Memory failure: .{1,120}: Recovered")
DEAD_ADAPTER: Final = re.compile(
    r"health compromised|Fatal error|\bsynd 0x|Health issue|recovery flow aborted|recovery failed"
    r"|in (?:fatal|error) state"
)
LESS_OF_ADAPTER: Final = re.compile("NETDEV WATCHDOG|igh temp")
OWN_DISK: Final = re.compile(r"\b(?:nvme\d|sd[a-z]\b|md\d|dm-\d)")
_WEIGHTY: Final = (
    *(NONFATAL, FATAL, FATAL_PCIE, SLOT, LINK_DOWN, DEFERRED, RECOVERED),
    *(DEAD_ADAPTER, LESS_OF_ADAPTER, OWN_DISK),
)
_ACTION: Final = re.compile(r"\([^)]{0,40}\) to 0x([0-9a-fA-F]{1,4})")


def weighty_words(text: str) -> tuple[bool, ...]:
    """Which of the words that decide are in ``text``."""
    return tuple(word.search(text) is not None for word in _WEIGHTY)


def recovery_action_of(text: str) -> int | None:
    """The number that an Xid 154 changed the GPU's recovery action to."""
    match = _ACTION.search(text)
    return int(match[1], 16) if match else None
