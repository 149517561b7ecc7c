"""Opens an input as a stream of plain bytes, however it is packed or encoded."""

import codecs
import os
from typing import Protocol

from ncdiag.logs.decompress import DamagedError, Inflated, inflater

_HEAD_BYTES = 16
_CHUNK = 128 << 10


class Descriptor:
    """The bytes of an open file from where it stands: ``length`` of them, or all there are."""

    def __init__(self, number: int, length: int | None = None) -> None:
        self._number = number
        self._left = length
        self.done = 0

    def readinto(self, buffer: memoryview, /) -> int:
        """Read into ``buffer``; a file that shrank simply ends."""
        if self._left is not None:
            buffer = buffer[: self._left]
        if not buffer:
            return 0
        count = os.readv(self._number, [buffer])
        self.done += count
        if self._left is not None:
            self._left -= count
        return count


class Peeked:
    """A stream whose beginning, ``head``, was read already and will be read again."""

    def __init__(self, source: Inflated, size: int) -> None:
        head = bytearray(size)
        filled = 0
        self.failure: DamagedError | None = None
        with memoryview(head) as view:
            try:
                while filled < size and (count := source.readinto(view[filled:])):
                    filled += count
            except DamagedError as error:  # what came out before it is read first
                self.failure = error
        self.whole = filled < size
        self.head = bytes(head[:filled])
        self._at = 0
        self._source = source

    def readinto(self, buffer: memoryview, /) -> int:
        """First the beginning, then the rest."""
        if self._at < len(self.head):
            taken = self.head[self._at : self._at + len(buffer)]
            self._at += len(taken)
            buffer[: len(taken)] = taken
            return len(taken)
        if self.failure:
            raise self.failure
        return self._source.readinto(buffer)

    def read(self, size: int, /) -> bytes:
        """Read up to ``size`` bytes."""
        data = bytearray(size)
        with memoryview(data) as view:
            count = self.readinto(view)
        return bytes(data[:count])

    def skip(self, size: int) -> None:
        """Leave out the first bytes of the beginning."""
        self._at += size


class Text:
    """UTF-16 or UTF-32 as UTF-8."""

    def __init__(self, source: Peeked, encoding: str) -> None:
        self._source = source
        self._decoder = codecs.getincrementaldecoder(encoding)(errors="replace")
        self._ready = b""
        self._ended = False

    def readinto(self, buffer: memoryview, /) -> int:
        """Decode some more."""
        while not self._ready and not self._ended:
            chunk = self._source.read(_CHUNK)
            self._ended = not chunk
            text = self._decoder.decode(chunk, final=self._ended)
            self._ready = text.encode(errors="replace")
        taken = self._ready[: len(buffer)]
        self._ready = self._ready[len(taken) :]
        buffer[: len(taken)] = taken
        return len(taken)


class Opened(Protocol):
    """A stream of plain bytes; raises ``DamagedError`` or ``OSError`` where it breaks off."""

    def readinto(self, buffer: memoryview, /) -> int: ...  # noqa: D102


# Longer marks first: one of UTF-32 begins with one of UTF-16.
_MARKS = (
    (codecs.BOM_UTF32_LE, "utf-32-le"),
    (codecs.BOM_UTF32_BE, "utf-32-be"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
    (codecs.BOM_UTF8, "utf-8"),
)
# Where ASCII text without a mark has its letters, of so many bytes each.
_LETTERS = (("utf-16-le", 0, 2), ("utf-16-be", 1, 2), ("utf-32-le", 0, 4), ("utf-32-be", 3, 4))
# Collectors may compress what was compressed; whoever nests more means harm.
_LAYERS = 3


def opened(raw: Inflated) -> tuple[Opened, bool]:
    """``raw`` as plain bytes without a byte order mark, and whether it was anything else."""
    plain = Peeked(raw, _HEAD_BYTES)
    packed = False
    for _ in range(_LAYERS):
        inflate = inflater(plain.head)
        if inflate is None:
            break
        plain, packed = Peeked(inflate(plain), _HEAD_BYTES), True
    mark, encoding = _encoding(plain.head)
    plain.skip(len(mark))
    if encoding == "utf-8":
        return plain, packed or bool(mark)
    return Text(plain, encoding), True


def _encoding(head: bytes) -> tuple[bytes, str]:
    """The byte order mark of a text, if there is one, and how it is encoded."""
    for mark, encoding in _MARKS:
        if head.startswith(mark):
            return mark, encoding
    for encoding, first, width in _LETTERS:
        letters = head[first::width]
        if len(letters) > 1 and letters.isascii() and len(head) % width == 0:
            rest = len(head) - len(letters)
            if head.count(0) == rest and 0 not in letters:
                return b"", encoding
    return b"", "utf-8"


class Careful:
    """A stream that breaks off quietly: damaged data, a failing disk and the limit end it."""

    def __init__(self, stream: Opened, max_bytes: int) -> None:
        self.truncated = False
        self.error: str | None = None
        self._stream = stream
        self._left = max_bytes
        self._limit = max_bytes

    def readinto(self, buffer: memoryview, /) -> int:
        """Read into ``buffer``."""
        if self.truncated:
            return 0
        try:
            if not self._left:
                if self._stream.readinto(buffer[:1]):
                    self._stop(f"only the first {self._limit} bytes were read (see --max-bytes)")
                return 0
            count = self._stream.readinto(buffer[: self._left])
        except (OSError, DamagedError) as error:
            self._stop(getattr(error, "strerror", None) or str(error))
            return 0
        self._left -= count
        return count

    @property
    def bytes(self) -> int:
        """How many were read."""
        return self._limit - self._left

    def _stop(self, why: str) -> None:
        self.truncated, self.error = True, why
