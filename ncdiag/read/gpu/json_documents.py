"""JSON between other lines: programs warn, on the same output, before they answer."""

import json
import re
from typing import Any

from ncdiag.read.gpu.reading import GpuReportError

# A host of eight GPUs is 30 KB.
MAX_BYTES = 4 << 20
# Warnings with a brace in them, before the answer.
_MAX_TRIES = 64
_MAX_DOCUMENTS = 64
_LINE = re.compile(r"^[ \t]{0,80}(?=\{)", re.MULTILINE)


def objects(data: bytes) -> list[dict[str, Any]]:
    """The JSON objects that begin a line of ``data``, in their order.

    Raises :class:`GpuReportError` where there is none, and where the last is cut short.
    """
    if len(data) > MAX_BYTES:
        raise GpuReportError(f"larger than {MAX_BYTES >> 20} MiB: no report on GPUs is")
    text = data.decode("utf-8", "replace").removeprefix("\ufeff")
    decoder = json.JSONDecoder()
    found: list[dict[str, Any]] = []
    refused, after = 0, 0
    for line in _LINE.finditer(text):
        begin = line.end()
        if begin < after:
            continue
        try:
            value, after = decoder.raw_decode(text, begin)
        except (ValueError, RecursionError):
            refused += 1
            if refused > _MAX_TRIES:
                break
            continue
        if isinstance(value, dict):
            found.append(value)
        if len(found) >= _MAX_DOCUMENTS:
            break
    if not found:
        raise GpuReportError("cut short or damaged JSON" if refused else "no JSON")
    return found
