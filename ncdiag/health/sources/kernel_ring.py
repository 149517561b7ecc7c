"""The kernel's own ring of messages, as lines like those of ``dmesg``."""

import os
from contextlib import suppress
from typing import Final

KERNEL_RING: Final = "/dev/kmsg"
# One record is read at a time, and none is longer (linux/printk.h: CONSOLE_EXT_LOG_MAX).
_RECORD_BYTES: Final = 16 << 10


class KernelRing:
    """Reads what is in the ring now, and waits for nothing. Raises :class:`OSError`.

    A record is ``priority,number,microseconds,flags;text`` (Linux, Documentation/ABI/testing/
    dev-kmsg). What programs wrote into the ring is left out.
    """

    def __init__(self, path: str = KERNEL_RING) -> None:
        self._number = -1
        self._number = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        self._left = bytearray()
        self._ended = False

    def __del__(self) -> None:
        with suppress(OSError):
            os.close(self._number)

    def readinto(self, buffer: memoryview, /) -> int:
        """Fill ``buffer`` with lines; 0 at the end."""
        while len(self._left) < len(buffer) and not self._ended:
            # What was overwritten before it could be read is lost; the next read goes on behind it.
            with suppress(BrokenPipeError):
                try:
                    record = os.read(self._number, _RECORD_BYTES)
                except BlockingIOError:
                    record = b""
                self._ended = not record
                self._left += line_of(record)
        part = bytes(self._left[: len(buffer)])
        buffer[: len(part)] = part
        del self._left[: len(part)]
        return len(part)


def line_of(record: bytes) -> bytes:
    """``6,339,5140900,-;NET: Registered`` is ``[    5.140900] NET: Registered``; else nothing."""
    head, semicolon, text = record.partition(b";")
    fields = head.split(b",")
    if not semicolon or len(fields) < 3 or not (fields[0].isdigit() and fields[2].isdigit()):
        return b""
    # The lower three bits are the level, the rest who wrote it: 0 is the kernel.
    if len(fields[0]) > 9 or len(fields[2]) > 18 or int(fields[0]) >> 3:
        return b""
    seconds, microseconds = divmod(int(fields[2]), 1_000_000)
    message = text.partition(b"\n")[0]
    return b"[%5d.%06d] %s\n" % (seconds, microseconds, message)
