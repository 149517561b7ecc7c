"""An answer of a host, as marked lines among whatever else is printed there.

A launcher that merges the output of many hosts keeps short lines whole: an answer is packed, and
goes in pieces.
"""

import base64
import binascii
import re
import zlib
from typing import Final

_MARK = b"ncdiag-host: "
# slurmd passes on 1024 bytes at a time, with its label, and an answer is several times that.
_PIECE_BYTES = 600
_PIECE: Final = re.compile(
    re.escape(_MARK) + rb"(?P<host>\S{1,300}) (?P<number>\d{1,4})/(?P<of>\d{1,4}) "
    rb"(?P<piece>[A-Za-z0-9+/=]{1,%d})(?!\S)" % _PIECE_BYTES
)
# Far beyond what the largest host tells of itself; a host that is not sane fills no memory.
MOST_BYTES: Final = 16 << 20


def encode_answer(host: str, data: bytes) -> bytes:
    """Several short lines, each marked: the host, which piece of how many, and the piece."""
    text = base64.b64encode(zlib.compress(data))
    pieces = [text[at : at + _PIECE_BYTES] for at in range(0, len(text), _PIECE_BYTES)]
    return b"".join(
        b"%s%s %d/%d %s\n" % (_MARK, host.encode(), number, len(pieces), piece)
        for number, piece in enumerate(pieces, start=1)
    )


class Answers:
    """Puts answers together from the lines of many hosts, in whatever order they come."""

    def __init__(self) -> None:
        self._pieces: dict[tuple[bytes, int], dict[int, bytes]] = {}

    def hear(self, line: bytes) -> tuple[str, bytes] | None:
        """The host and the answer that this line completes; ``None`` for whatever else it is."""
        found = _PIECE.search(line)
        if found is None:
            return None
        number, of = int(found["number"]), int(found["of"])
        if not 1 <= number <= of:
            return None
        pieces = self._pieces.setdefault((found["host"], of), {})
        pieces[number] = found["piece"]
        if len(pieces) < of:
            return None
        del self._pieces[found["host"], of]
        data = _unpacked(b"".join(pieces[one] for one in range(1, of + 1)))
        return None if data is None else (found["host"].decode(errors="replace"), data)


def _unpacked(text: bytes) -> bytes | None:
    try:
        unpacking = zlib.decompressobj()
        data = unpacking.decompress(base64.b64decode(text, validate=True), MOST_BYTES)
    except (binascii.Error, zlib.error):
        return None
    return data if unpacking.eof else None
