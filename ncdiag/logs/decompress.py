"""Takes gzip, zstandard, xz and bzip2 apart, told by content, whatever the file is called."""

import bz2
import lzma
import zlib
from collections.abc import Callable
from typing import Any, Protocol

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
# What goes in at once: 32 MiB can come out of it, 128 KiB for each 4 bytes of zstandard.
_PIECE = 1 << 10
_LEAST_PIECE = 16
_PIECE_SHARE = 64
_MAGIC_BYTES = 6


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


class _Zstandard:
    """A zstandard frame with the manners of the others; what came out too much waits here."""

    def __init__(self) -> None:
        if zstandard is None:
            raise DamagedError("reading zstandard needs: pip install zstandard")
        inflate = zstandard.ZstdDecompressor(max_window_size=_ZSTD_WINDOW)
        self._frame: Any = inflate.decompressobj()
        self._ready = memoryview(b"")

    @property
    def eof(self) -> bool:
        return bool(self._frame.eof) and not self._ready

    @property
    def needs_input(self) -> bool:
        return not self._ready

    @property
    def unused_data(self) -> bytes:
        return bytes(self._frame.unused_data)

    def decompress(self, data: bytes, max_length: int = -1) -> bytes:
        if not self._ready:
            self._ready = memoryview(self._frame.decompress(data))
        out, self._ready = self._ready[:max_length], self._ready[max_length:]
        return bytes(out)


class _Members:
    """One compressed member after another, as the tools write and ``cat`` joins them.

    Their data goes in by small pieces: where one turns out to be damaged, what it held is lost;
    and of zeros, a piece makes thousands of times as many.
    """

    def __init__(
        self, source: Source, make: Callable[[], _Decompressor], magics: tuple[bytes, ...]
    ) -> None:
        self._source = source
        self._make = make
        self._magics = magics
        self._member = make()
        self._begun = False
        self._chunk = b""
        self._at = 0
        self._fed = 0

    def readinto(self, buffer: memoryview, /) -> int:
        while True:
            if self._member.eof and not self._next_member():
                return 0
            data = b""
            if self._member.needs_input:
                data = self._piece()
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

    def _piece(self) -> bytes:
        """The next bytes, more of them the more there were before; none at the end."""
        if self._at >= len(self._chunk):
            self._chunk, self._at = self._source.read(_CHUNK), 0
        size = min(max(self._fed // _PIECE_SHARE, _LEAST_PIECE), _PIECE)
        piece = self._chunk[self._at : self._at + size]
        self._at += len(piece)
        self._fed += len(piece)
        return piece

    def _begins(self, head: bytes) -> bool:
        """Whether a member may begin so; of fewer bytes than a mark has, as far as they go."""
        return any(head.startswith(magic[: len(head)]) for magic in self._magics)

    def _next_member(self) -> bool:
        """Begin what follows a member's end; padding with zeros is none."""
        self._at = max(self._at - len(self._member.unused_data), 0)
        while self._at >= len(self._chunk) or not self._chunk[self._at]:
            piece = self._piece()
            if not piece:
                return False
            self._at -= len(piece.lstrip(b"\0"))
        if not self._begins(self._chunk[self._at : self._at + _MAGIC_BYTES]):
            raise DamagedError("bytes that are not compressed follow the compressed data")
        self._member, self._begun = self._make(), False
        return True


# RFC 1952; RFC 8878, with the frames that say nothing; the .xz file format; bzip2.
_GZIP = (b"\x1f\x8b\x08",)
_ZSTANDARD = (b"\x28\xb5\x2f\xfd", *(bytes([0x50 + n, 0x2A, 0x4D, 0x18]) for n in range(16)))
_XZ = (b"\xfd7zXZ\x00",)
_BZIP2 = (b"BZh",)

_FORMATS: tuple[tuple[bytes, Callable[[Source], Inflated]], ...] = (
    (_GZIP[0], lambda source: _Members(source, _gzip, _GZIP)),
    (_ZSTANDARD[0], lambda source: _Members(source, _Zstandard, _ZSTANDARD)),
    (_XZ[0], lambda source: _Members(source, _xz, _XZ)),
    (_BZIP2[0], lambda source: _Members(source, bz2.BZ2Decompressor, _BZIP2)),
)


# The first block of text, or the end of no text.
_BZIP2_BLOCKS = (b"1AY&SY", b"\x17rE8P\x90")


def inflater(head: bytes) -> Callable[[Source], Inflated] | None:
    """What takes apart data that begins so, or ``None`` for data that is not compressed."""
    if head.startswith(b"BZh") and head[4:10] not in _BZIP2_BLOCKS:
        return None
    return next((make for magic, make in _FORMATS if head.startswith(magic)), None)
