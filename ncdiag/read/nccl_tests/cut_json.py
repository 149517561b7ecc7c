"""Makes a document again of JSON that stops in the middle."""

import re

_MAX_DEPTH = 64
# What matters outside of text: brackets, commas, and text as a whole (one that ends, or not).
_TOKEN = re.compile(rb'[\[\]{},]|"(?:[^"\\]|\\.)*+"?', re.DOTALL)
_CLOSERS = {b"[": b"]", b"{": b"}"}


def mended(data: bytes) -> bytes:
    """``data`` up to the last value that is whole, with the brackets closed that are open there."""
    stack: list[bytes] = []
    end, closers = 0, b""
    for token in _TOKEN.finditer(data):
        mark = token[0]
        if mark in _CLOSERS:
            stack.append(_CLOSERS[mark])
            if len(stack) > _MAX_DEPTH:
                return b""
            end, closers = token.end(), b"".join(reversed(stack))
        elif mark == b",":
            end, closers = token.start(), b"".join(reversed(stack))
        elif mark in {b"]", b"}"}:
            if not stack or stack.pop() != mark:
                break
            end, closers = token.end(), b"".join(reversed(stack))
            if not stack:
                break
    return data[:end] + closers
