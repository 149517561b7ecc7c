"""A host tells its health facts: run on each host by a launcher, it answers once and ends.

Started as ``python -P -m ncdiag.health.tell_health --host NAME``; the question is a line of JSON on
standard input, the same for all hosts, and the answer are marked lines on standard output.
"""

import os
import sys
import time
from pathlib import Path
from typing import Final

import msgspec

from ncdiag.cluster.answers import encode_answer
from ncdiag.cluster.own_name import own_name
from ncdiag.health.collect import DEFAULT_LIMIT_S, collect_health
from ncdiag.model.errors import NcdiagError
from ncdiag.model.health import HealthFacts
from ncdiag.model.json_text import encode

MODULE: Final = "ncdiag.health.tell_health"


class HealthQuestion(msgspec.Struct, frozen=True, kw_only=True):
    """Say how you are. ``roots`` are the folders of hosts that are read elsewhere than from ``/``.

    ``interval_s`` asks for a second reading that much later.
    """

    roots: dict[str, str] = {}
    interval_s: float | None = None
    limit_s: float = DEFAULT_LIMIT_S


class HealthAnswer(msgspec.Struct, frozen=True, kw_only=True):
    """The facts, those of the reading before, or why there are none.

    ``since_start_s`` and ``until_sent_s`` are the host's own time from its start until the facts
    were taken, and from then until they were sent: they bound when that was by another clock.
    """

    facts: HealthFacts | None = None
    before: HealthFacts | None = None
    error: str | None = None
    since_start_s: float = 0.0
    until_sent_s: float = 0.0


def answer(host: str, question: HealthQuestion, began_s: float) -> HealthAnswer:
    """Collect what is asked, as ``host``, which began at ``began_s`` of its clock."""
    root = Path(question.roots.get(host, "/"))
    before = None
    try:
        if question.interval_s is not None:
            before = collect_health(root, limit_s=question.limit_s)
            time.sleep(question.interval_s)
        facts = collect_health(root, limit_s=question.limit_s)
    except NcdiagError as error:
        return HealthAnswer(error=str(error))
    return HealthAnswer(
        facts=facts,
        before=before,
        since_start_s=facts.taken_s - began_s,
        until_sent_s=time.time() - facts.taken_s,
    )


def decode_answer(data: bytes) -> HealthAnswer | None:
    """The answer of a host; ``None`` where it is no such thing."""
    try:
        return msgspec.json.decode(data, type=HealthAnswer)
    except msgspec.MsgspecError:
        return None


def main() -> None:
    """Answer the question on standard input."""
    began_s = time.time()
    host = own_name()
    # Kept apart, since what we call may print as well.
    out = os.dup(1)
    os.dup2(2, 1)
    question = msgspec.json.decode(sys.stdin.buffer.readline(), type=HealthQuestion)
    with os.fdopen(out, "wb") as stream:
        stream.write(encode_answer(host, encode(answer(host, question, began_s))))


if __name__ == "__main__":
    main()
