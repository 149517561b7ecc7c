"""Takes gzip, zstandard, xz and bzip2 apart, told by content, whatever the file is called."""

import bz2
import lzma
import zlib
from collections.abc import Callable
from typing import IO, Any, Protocol, cast

try:
    from isal import igzip_lib
except ImportError:  # the standard library's, half as fast
    igzip_lib = None  # type: ignore[assignment]
try:
    import zstandard
except ImportError:
    zstandard = None  # type: ignore[assignment]

# Windows beyond these are used by nobody who writes logs; they bound the memory.
_XZ_MEMORY = 192 << 20
_ZSTD_WINDOW = 128 << 20
_CHUNK = 256 << 10


class DamagedError(Exception):
    """The compressed data is damaged or ends too early; what came out until then is good."""


class Source(Protocol):
    """Gives up to ``size`` bytes, fewer only at the end or where they come slowly."""

    def read(self, size: int, /) -> bytes: ...  # noqa: D102


class Inflated(Protocol):
    """Gives the bytes that were compressed; raises ``DamagedError``."""

    def readinto(self, buffer: memoryview, /) -> int: ...  # noqa: D102


class _Decompressor(Protocol):
    """What the standard library's decompressors have in common."""

    @property
    def eof(self) -> bool: ...
    @property
    def needs_input(self) -> bool: ...
    @property
    def unused_data(self) -> bytes: ...
    def decompress(self, data: bytes, max_length: int = -1) -> bytes: ...


class _Gzip:
    """``zlib`` with the manners of the others."""

    def __init__(self) -> None:
        self._inflate = zlib.decompressobj(zlib.MAX_WBITS | 16)

    @property
    def eof(self) -> bool:
        return self._inflate.eof

    @property
    def needs_input(self) -> bool:
        return not self._inflate.unconsumed_tail

    @property
    def unused_data(self) -> bytes:
        return self._inflate.unused_data

    def decompress(self, data: bytes, max_length: int = -1) -> bytes:
        return self._inflate.decompress(self._inflate.unconsumed_tail + data, max(max_length, 0))


def _gzip() -> _Decompressor:
    if igzip_lib is None:
        return _Gzip()
    made: _Decompressor = igzip_lib.IgzipDecompressor(flag=igzip_lib.DECOMP_GZIP)
    return made


def _xz() -> _Decompressor:
    return lzma.LZMADecompressor(lzma.FORMAT_XZ, memlimit=_XZ_MEMORY)


class _Members:
    """One compressed member after another, as the tools write and ``cat`` joins them."""

    def __init__(self, source: Source, make: Callable[[], _Decompressor]) -> None:
        self._source = source
        self._make = make
        self._member = make()
        self._begun = False
        self._rest = b""

    def readinto(self, buffer: memoryview, /) -> int:
        while True:
            if self._member.eof and not self._next_member():
                return 0
            data = self._rest
            self._rest = b""
            if not data and self._member.needs_input:
                data = self._source.read(_CHUNK)
                if not data:
                    if not self._begun:
                        return 0
                    raise DamagedError("the compressed data ends too early")
            self._begun = True
            try:
                out = self._member.decompress(data, len(buffer))
            except Exception as error:  # each library has errors of its own
                raise DamagedError(f"the compressed data is damaged: {error}") from error
            if out:
                buffer[: len(out)] = out
                return len(out)

    def _next_member(self) -> bool:
        """Begin what follows a member's end; padding with zeros is none."""
        rest = self._member.unused_data.lstrip(b"\0")
        while not rest:
            chunk = self._source.read(_CHUNK)
            if not chunk:
                return False
            rest = chunk.lstrip(b"\0")
        self._rest, self._member, self._begun = rest, self._make(), False
        return True


class _Zstandard:
    """All frames of a zstandard stream."""

    def __init__(self, source: Source) -> None:
        if zstandard is None:
            raise DamagedError("reading zstandard needs: pip install zstandard")
        reader = zstandard.ZstdDecompressor(max_window_size=_ZSTD_WINDOW)
        self._reader: Any = reader.stream_reader(cast("IO[bytes]", source), read_across_frames=True)

    def readinto(self, buffer: memoryview, /) -> int:
        try:
            return int(self._reader.readinto(buffer))
        except zstandard.ZstdError as error:
            raise DamagedError(f"the compressed data is damaged: {error}") from error


_FORMATS: tuple[tuple[bytes, Callable[[Source], Inflated]], ...] = (
    (b"\x1f\x8b\x08", lambda source: _Members(source, _gzip)),
    (b"\x28\xb5\x2f\xfd", _Zstandard),
    (b"\xfd7zXZ\x00", lambda source: _Members(source, _xz)),
    (b"BZh", lambda source: _Members(source, bz2.BZ2Decompressor)),
)


def inflater(head: bytes) -> Callable[[Source], Inflated] | None:
    """What takes apart data that begins so, or ``None`` for data that is not compressed."""
    if head.startswith(b"BZh") and head[4:10] != b"1AY&SY":
        return None
    return next((make for magic, make in _FORMATS if head.startswith(magic)), None)
