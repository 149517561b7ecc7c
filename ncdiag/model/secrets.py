"""Which names stand for secrets: variables, options, headers, and fields of JSON."""

import re
from collections.abc import Mapping
from typing import Final

REDACTED: Final = "[redacted]"
# What ncdiag itself is told in variables, and no program that it starts has to know.
WEBHOOK_VARIABLE: Final = "NCDIAG_WEBHOOK"
TOKEN_VARIABLE: Final = "NCDIAG_SERVE_TOKEN"  # noqa: S105 - a name
_OWN: Final = frozenset({WEBHOOK_VARIABLE, TOKEN_VARIABLE})

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


def without_secrets(environment: Mapping[str, str]) -> dict[str, str]:
    """The environment for a program that we start: all but the secrets that are for us alone."""
    return {name: value for name, value in environment.items() if name not in _OWN}
