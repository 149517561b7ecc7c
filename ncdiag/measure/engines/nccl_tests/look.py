"""Says where a program of nccl-tests is on this host and what it knows, or why it cannot be run.

Run on each host by a launcher as ``python -P -m ncdiag.measure.engines.nccl_tests.look --host
NAME``; the question is a line of JSON on standard input, the answer a marked line on standard
output.
"""

import os
import sys

import msgspec

from ncdiag.cluster.own_name import own_name
from ncdiag.cluster.processes import ask
from ncdiag.measure.engines.nccl_tests.programs import find, options_of, why_ended

MODULE = "ncdiag.measure.engines.nccl_tests.look"
_MARK = b"ncdiag-nccl-tests: "
# Loading the libraries of CUDA from a cold network file system takes most of it.
_USAGE_S = 40.0
_MAX_BYTES = 1 << 20


class LookFor(msgspec.Struct, frozen=True):
    """Look for this program, in ``folder`` if the operator named one."""

    program: str
    folder: str | None = None


class Found(msgspec.Struct, frozen=True):
    """What is on a host: the program's path and the letters of its options, or ``error``."""

    host: str
    path: str = ""
    options: tuple[str, ...] = ()
    error: str | None = None


def decode_found(line: bytes) -> Found | None:
    """The answer in a line; ``None`` for whatever else is printed on a host."""
    start = line.find(_MARK)
    if start < 0:
        return None
    try:
        return msgspec.json.decode(line[start + len(_MARK) :], type=Found)
    except msgspec.MsgspecError:
        return None


def look(host: str, question: LookFor) -> Found:
    """What there is on this host."""
    path, looked = find(question.program, question.folder, os.environ)
    if path is None:
        return Found(host, error=f"{question.program} is not there: looked in {looked}")
    ended = ask((path, "-h"), timeout_s=_USAGE_S, most_bytes=_MAX_BYTES)
    if ended.timed_out:
        return Found(host, error=f"{path} -h did not end within {_USAGE_S:g} s")
    if ended.code is None:
        return Found(host, error=f"cannot start {ended.error}")
    usage = ended.stdout.decode(errors="replace")
    options = options_of(usage)
    if not options:
        why = (
            why_ended(ended.code, [*usage.splitlines(), *ended.said])
            or "it does not say what options it has"
        )
        return Found(host, error=f"{path} cannot be used: {why}")
    return Found(host, path=path, options=tuple(sorted(options)))


def main() -> None:
    """Answer the question on standard input."""
    host = own_name()
    question = msgspec.json.decode(sys.stdin.buffer.readline(), type=LookFor)
    sys.stdout.buffer.write(_MARK + msgspec.json.encode(look(host, question)) + b"\n")
    sys.stdout.buffer.flush()


if __name__ == "__main__":
    main()
