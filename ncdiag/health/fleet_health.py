"""Health facts of many hosts: through a fleet that is up, or by a launcher alone.

The latter starts one plain Python a host, which is all that is needed to ask once, and much faster
than to start a fleet.
"""

import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Final

from ncdiag.cluster.asking import ask_hosts
from ncdiag.cluster.fleet import CallError, Fleet
from ncdiag.cluster.launchers import Launcher, RemoteJob
from ncdiag.health.collect import (
    DEFAULT_LIMIT_S,
    HealthTask,
    collect_for_driver,
    decode_facts,
    encode_task,
)
from ncdiag.health.readings import Readings
from ncdiag.health.tell_health import MODULE, HealthQuestion, decode_answer
from ncdiag.model.health import HealthFacts
from ncdiag.model.host import Host
from ncdiag.model.json_text import encode
from ncdiag.model.text import visible

# Beside collecting: the way to the host and the start of Python, from a cold network file system.
START_S: Final = 45.0
# In a worker that runs already.
_ANSWER_S: Final = 10.0
# What was sent is here by then. When a host is asked is not known as well, since starts are queued;
# hosts whose bounds differ by more could not be compared.
_DELIVERY_S: Final = 2.0
_SOMETHING_ELSE: Final = "it answered something that is no answer: is it another version of ncdiag?"


def ask_fleet(
    fleet: Fleet, hosts: Sequence[Host], *, timeout_s: float = DEFAULT_LIMIT_S + _ANSWER_S
) -> tuple[dict[str, HealthFacts], dict[str, str]]:
    """The facts of ``hosts``, all asked at the same time in workers that are up.

    Returns facts and errors by host; each host is in one of them. No host takes longer than
    ``timeout_s``.
    """
    facts: dict[str, HealthFacts] = {}
    errors: dict[str, str] = {}
    up = set(fleet.up)
    asked_s = time.time()
    calls = []
    for host in hosts:
        if host.name not in up:
            errors[host.name] = fleet.unreachable.get(host.name, "it did not come up")
            continue
        limit_s = min(DEFAULT_LIMIT_S, timeout_s)
        payload = encode_task(HealthTask(root=host.root, limit_s=limit_s))
        calls.append(fleet.call(host.name, collect_for_driver, payload, timeout_s=timeout_s))
    for call in fleet.as_completed(calls):
        try:
            found = decode_facts(call.result())
        except CallError as error:
            errors[call.host] = str(error)
            continue
        if found is None:
            errors[call.host] = _SOMETHING_ELSE
        else:
            facts[call.host] = replace(found, asked_s=asked_s, answered_s=time.time())
    return facts, errors


def ask_by_launcher(
    hosts: Sequence[Host],
    launcher: Launcher,
    on_change: Callable[[str, str], None],
    *,
    interval_s: float | None = None,
    start_s: float = START_S,
) -> Readings:
    """The facts of ``hosts``; raises UsageError for hosts that ``launcher`` cannot start.

    With ``interval_s`` each host reads twice. ``start_s`` is what reaching a host may take.
    """
    question = HealthQuestion(
        roots={host.name: host.root for host in hosts if host.root},
        interval_s=interval_s,
    )
    hearing = _Hearing(time.time())
    readings_s = question.limit_s if interval_s is None else 2 * question.limit_s + interval_s
    silent = ask_hosts(
        hosts,
        launcher,
        RemoteJob(module=MODULE, stdin=encode(question) + b"\n"),
        hearing.take,
        on_change,
        timeout_s=start_s + readings_s,
    )
    return Readings(
        facts=hearing.facts,
        before=hearing.before,
        errors={**silent, **hearing.errors},
    )


class _Hearing:
    """Takes answers as they come, each with the bounds of when its facts were taken."""

    def __init__(self, asked_s: float) -> None:
        self.facts: dict[str, HealthFacts] = {}
        self.before: dict[str, HealthFacts] = {}
        self.errors: dict[str, str] = {}
        self._asked_s = asked_s

    def take(self, host: str, data: bytes) -> bool:
        heard_s = time.time()
        answer = decode_answer(data)
        if answer is None or answer.facts is None:
            said = answer.error if answer else None
            self.errors[host] = visible(said) if said else _SOMETHING_ELSE
            return True
        # A host cannot have been started before it was asked, nor be heard before it sent: by our
        # clock its facts were taken between these.
        answered_s = heard_s - max(answer.until_sent_s, 0.0)
        asked_s = self._asked_s + max(answer.since_start_s, 0.0)
        self.facts[host] = replace(
            answer.facts,
            asked_s=min(max(asked_s, answered_s - _DELIVERY_S), answered_s),
            answered_s=answered_s,
        )
        if answer.before:
            self.before[host] = answer.before
        return True
