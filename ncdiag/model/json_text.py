"""JSON as ncdiag prints it: whoever looks at it on a terminal sees what is in it.

Every document and file of JSON that a command writes goes through :func:`encode`.
"""

import re
from typing import Any

import msgspec

from ncdiag.model.text import is_hidden, visible

_encoder = msgspec.json.Encoder()
# JSON itself escapes control characters of ASCII but for DEL.
_SUSPECTS = re.compile(r"[^\x00-\x7e]")


def encode(value: Any, *, indent: int | None = None) -> bytes:
    r"""``value`` as JSON; characters that hide or reorder text are written as ``\u009b``.

    A program reads the same text as ever. Only half a surrogate pair, as in bytes of an environment
    that are no UTF-8, comes back as the text ``\udcff``. ``indent`` is in spaces; without it all
    is on one line.
    """
    try:
        data = _encoder.encode(value)
    except UnicodeEncodeError:
        data = _encoder.encode(_whole(msgspec.to_builtins(value)))
    if indent is not None:
        data = msgspec.json.format(data, indent=indent)
    if data.isascii() and b"\x7f" not in data:
        return data
    return _SUSPECTS.sub(_escaped, data.decode()).encode()


def _escaped(found: re.Match[str]) -> str:
    char = found[0]
    if not is_hidden(char):
        return char
    units = char.encode("utf-16-be")
    return "".join(f"\\u{units[at : at + 2].hex()}" for at in range(0, len(units), 2))


def _whole(value: Any) -> Any:
    """``value`` with half surrogate pairs, of which JSON has no right form, made visible."""
    if isinstance(value, str):
        return value if _is_whole(value) else visible(value)
    if isinstance(value, dict):
        return {_whole(key): _whole(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_whole(item) for item in value]
    return value


def _is_whole(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True
