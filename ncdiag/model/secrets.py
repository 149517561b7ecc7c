"""Which names stand for secrets: variables, options, headers, and fields of JSON."""

import re
from typing import Final

REDACTED: Final = "[redacted]"

_PARTS = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|[0-9]+")
# Whole parts of a name: an author and an authentication are no secrets, nor are tokenizers.
_WHOLE = frozenset({"AUTH", "AUTHORIZATION", "CREDENTIAL", "CREDENTIALS", "KEY"})
_ENDS = ("TOKEN", "SECRET", "SECRETS", "PASSWORD", "PASSWORDS", "PASSWD", "PASSPHRASE")
_JOINED = ("APIKEY", "ACCESSKEY", "SECRETKEY", "PRIVATEKEY")
# Of these only where more stands before: 3 may pass.
_LAST = frozenset({"PASS", "PW"})


def names_a_secret(name: str) -> bool:
    """Whether what ``name`` stands for may be a secret; NCCL's own settings hold none."""
    if name.startswith("NCCL_"):
        return False
    parts = [part.upper() for part in _PARTS.findall(name)]
    if any(part in _WHOLE or part.endswith((*_ENDS, *_JOINED)) for part in parts):
        return True
    return len(parts) > 1 and parts[-1] in _LAST
