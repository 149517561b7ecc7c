"""Secrets never get into a store, which outlives the run and is shown to others."""

import re
from collections.abc import Mapping
from typing import Final

REDACTED: Final = "[redacted]"

# As wherever variables are read; NCCL's own hold no secret.
_WORDS = r"(?:TOKEN|SECRET|KEY|PASSW|CREDENTIAL|AUTH)"
_SMELLS = re.compile(_WORDS, re.IGNORECASE)
_NAME = rf"[\w-]{{0,63}}{_WORDS}[\w-]{{0,63}}"
_VALUE = r"(?:\"[^\"]*\"|'[^']*'|[^\s,;]+)"
_IN_TEXT = tuple(
    re.compile(pattern, re.IGNORECASE)
    for pattern in (
        rf"(?P<before>\b(?!NCCL_){_NAME}\s*[=:]\s*){_VALUE}",  # NAME=value, name: value
        rf"(?P<before>--{_NAME}\s+){_VALUE}",  # --name value
        r"(?P<before>://)[^/\s:@]*:[^/\s@]+(?=@)",  # scheme://user:password@host
    )
)


def redacted(settings: Mapping[str, str]) -> dict[str, str]:
    """``settings`` without the values that may be secrets."""
    return {name: _safe(name, value) for name, value in settings.items()}


def redacted_text(text: str) -> str:
    """``text`` without what follows a name that smells of a secret, and without passwords."""
    for pattern in _IN_TEXT:
        text = pattern.sub(rf"\g<before>{REDACTED}", text)
    return text


def _safe(name: str, value: str) -> str:
    if _SMELLS.search(name) and not name.startswith("NCCL_"):
        return REDACTED
    return redacted_text(value)
