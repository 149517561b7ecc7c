"""Errors of torch in one line an operator can read."""

import re

from ncdiag.model.text import visible

_MAX_LENGTH = 200
# "[/path/of/the/build/gloo/transport/tcp/pair.cc:547] " before the message itself.
_PLACE = re.compile(r"\[[^\]\s]*\.(?:cc|cpp|h|cu):\d+\]:?\s*")
# What follows is advice on the network in general, or a trace of C++ frames.
_TAIL = re.compile(
    r"\.?\s*(?:This is typically caused|Exception raised from|C\+\+ CapturedTrace).*"
)


def one_line(error: BaseException) -> str:
    """The first line of an error's message, without places in source code."""
    lines = str(error).strip().splitlines()
    first = _TAIL.sub("", _PLACE.sub("", lines[0])) if lines else ""
    return visible(first.strip())[:_MAX_LENGTH] or type(error).__name__
