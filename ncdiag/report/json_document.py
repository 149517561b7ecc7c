"""The layout that all JSON reports share."""

from collections.abc import Iterable, Mapping
from typing import Any

from ncdiag.model.json_text import encode


def layout(document: Mapping[str, Any]) -> bytes:
    """``document`` as JSON: a key a line, in lists an item a line, so that it can be diffed.

    A figure that is not a finite number becomes ``null``.
    """
    lines = [encode(key) + b": " + _value(value) for key, value in document.items()]
    return b"{\n" + b",\n".join(lines) + b"\n}\n"


def _value(value: Any) -> bytes:
    if isinstance(value, Iterable) and not isinstance(value, (str, dict)):
        items = b",\n ".join(map(encode, value))
        return b"[\n " + items + b"\n]" if items else b"[]"
    return encode(value)
