"""Bytes of a dump to text, and the small values that several formats write alike."""

import codecs
import math
import re
from functools import lru_cache

from ncdiag.model.text import visible
from ncdiag.model.topology import NotATopologyError

# Ten times the ibnetdiscover of a fabric of 100,000 ports.
MAX_BYTES = 128 << 20
# Enough to tell a text from what is none.
_HEAD_BYTES = 64 << 10
# NCCL keeps this many characters of an attribute (MAX_STR_LEN, src/graph/xml.h).
MAX_VALUE_CHARS = 255

_BOMS = (
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)
_COMPRESSED = {b"\x1f\x8b": "gzip", b"\x28\xb5\x2f\xfd": "zstandard", b"PK\x03\x04": "zip"}
# ECMA-48: control sequences, operating system commands, two-character escapes.
_ESCAPE = re.compile(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)?|[@-Z\\^_])")
_CONTROL = re.compile(r"[\x00-\x08\x0b\x0e-\x1f\x7f\ufffe\uffff]")
_INTEGER = re.compile(r"\s*[+-]?(?:0[xX])?[0-9a-fA-F]+\s*")
# What bash and its like show when they wait: [root@node7 ~]#, node7:~$, >.
_PROMPT = re.compile(r"\[?[\w.-]+@[^\"'=\t]*[$#%>]|(?!NV#)[\w.:~/()-]*[$#%>]")
_MAX_PROMPT_CHARS = 200
_BUS_ID = re.compile(r"(?:([0-9a-f]{1,8}):)?([0-9a-f]{2}):([0-9a-f]{2}\.[0-9a-f])")


def decode(data: bytes) -> str:
    """Return the text of a dump: UTF-8, UTF-16, else Latin-1; lines end with a line feed.

    Terminal escapes, NUL and other control characters are dropped. Raises ``NotATopologyError``
    for what is too large, compressed or binary.
    """
    if len(data) > MAX_BYTES:
        raise NotATopologyError(f"larger than {MAX_BYTES >> 20} MiB: no topology dump is")
    for magic, name in _COMPRESSED.items():
        if data.startswith(magic):
            raise NotATopologyError(f"compressed ({name}): unpack it first")
    head = _decode(data[:_HEAD_BYTES])
    shown = _ESCAPE.sub("", head)
    # A text has a stray NUL, and some colour; half escapes or a tenth control characters is none.
    if 2 * len(shown) < len(head) or 10 * len(_CONTROL.findall(shown)) > len(shown):
        raise NotATopologyError("binary data, not the text of a topology dump")
    text = _decode(data).replace("\r\n", "\n").replace("\r", "\n")
    return _CONTROL.sub("", _ESCAPE.sub("", text))


def _decode(data: bytes) -> str:
    for bom, encoding in _BOMS:
        if data.startswith(bom):
            return data[len(bom) :].decode(encoding, "replace")
    head = data[:512]
    if len(head) >= 4:
        for zeros, encoding in ((head[1::2], "utf-16-le"), (head[::2], "utf-16-be")):
            if 10 * zeros.count(0) > 9 * len(zeros) and 10 * head.count(0) < 6 * len(head):
                return data.decode(encoding, "replace")
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError:
        return data.decode("latin-1")


def open_line(text: str) -> str:
    """Return the line that ``text`` breaks off in: its last, where no line feed ends it.

    Empty where a line feed ends the text, or only blanks or a shell's prompt follow the last. Such
    a line may have been longer, and what it says another thing.
    """
    line = text.rpartition("\n")[2].strip()
    return "" if _PROMPT.fullmatch(line[-_MAX_PROMPT_CHARS:]) else line


def quoted(text: str, limit: int = 60) -> str:
    """Return text from a dump fit for a message: one line, no control characters, cut."""
    shown = visible(" ".join(text[: 4 * limit].split()))
    return shown if len(shown) <= limit else shown[: limit - 1] + "…"


# A fleet's dumps say the same few values over and over; none is longer than an attribute may be.
@lru_cache(maxsize=4096)
def bus_id(text: str | None) -> str | None:
    """Return a bus id as the kernel writes it, ``0000:1b:00.0``; others in lower case.

    ``00000000:1B:00.0`` and ``1b:00.0`` are brought to that form; NCCL's own ids of switches that
    nobody sees (``fffffff:ffff:ff``) are left alone.
    """
    if text is None:
        return None
    lower = text.strip().lower()
    match = _BUS_ID.fullmatch(lower)
    if match is None:
        return lower or None
    domain = (match[1] or "").lstrip("0").rjust(4, "0")
    return f"{domain}:{match[2]}:{match[3]}"


def integer(text: str | None, base: int = 0) -> int | None:
    """Return a number, decimal or with 0x, whole or not at all; ``None`` beyond 64 bits."""
    return None if not text or len(text) > MAX_VALUE_CHARS else _integer(text, base)


@lru_cache(maxsize=4096)
def _integer(text: str, base: int) -> int | None:
    if not _INTEGER.fullmatch(text):
        return None
    try:
        value = int(text, 16 if base == 16 or "x" in text.lower() else 10)
    except ValueError:
        return None
    return value if -(2**63) <= value < 2**64 else None


def number(text: str | None) -> float | None:
    """Return a decimal number; ``None`` for an empty one, nonsense, infinity and the like."""
    if not text or len(text) > MAX_VALUE_CHARS or "_" in text:
        return None
    try:
        value = float(text)
    except ValueError:
        return None
    return value if math.isfinite(value) else None
