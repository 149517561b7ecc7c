"""Asks hosts one question by a launcher alone: no fleet is needed, and none is left behind."""

from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import as_completed

from ncdiag.cluster.answers import Answers
from ncdiag.cluster.fleet import reasons
from ncdiag.cluster.launcher import Launcher, RemoteJob
from ncdiag.cluster.launchers.attribution import lines_about, named_hosts
from ncdiag.cluster.processes import Ended, Pool
from ncdiag.model.host import Host
from ncdiag.model.text import visible

Decode = Callable[[str, bytes], bool]
"""Takes the answer of a host; false where it is none that can be used."""


def ask_hosts(
    hosts: Sequence[Host],
    launcher: Launcher,
    job: RemoteJob,
    take: Decode,
    on_change: Callable[[str, str], None],
    *,
    timeout_s: float,
) -> Mapping[str, str]:
    """Start ``job`` on all hosts, a bounded number at a time; why others gave no answer.

    ``take`` is told each answer as it comes, from a thread of the command that it came by.
    ``timeout_s`` is for one command. Raises UsageError for hosts that ``launcher`` cannot start.
    """
    answered: set[str] = set()
    unreachable: dict[str, str] = {}
    left = list(hosts)
    with Pool(launcher.starts_at_a_time) as pool:
        while left:
            running = [
                pool.submit(one, timeout_s=timeout_s, on_line=_Hearing(one.hosts, take, answered))
                for one in launcher.launches(left, job)
            ]
            for future in as_completed(running):
                ended = future.result()
                for name in _refusers(ended) or ended.launch.hosts:
                    if name not in answered:
                        unreachable[name] = _reason(ended, name, timeout_s)
                    on_change(name, unreachable.get(name, "up"))
            left = [h for h in left if h.name not in answered and h.name not in unreachable]
    return {name: reason for name, reason in unreachable.items() if name not in answered}


class _Hearing:
    """Takes what one command says; a host of another command is not spoken for."""

    def __init__(self, hosts: Sequence[str], take: Decode, answered: set[str]) -> None:
        self._hosts, self._take, self._answered = hosts, take, answered
        self._heard = Answers()

    def __call__(self, line: bytes) -> None:
        if (answer := self._heard.hear(line)) and answer[0] in self._hosts and self._take(*answer):
            self._answered.add(answer[0])


def _refusers(ended: Ended) -> list[str]:
    """The hosts for whose sake the launcher gave up on others, which are asked again."""
    lines = [line for line in ended.said if reasons.tells_of_no_launch(line)]
    return [name for line in lines for name in named_hosts(ended.launch, line)]


def _reason(ended: Ended, host: str, timeout_s: float) -> str:
    if ended.timed_out:
        return f"timed out: it did not answer within {timeout_s:g} s"
    if ended.code is None:
        return visible(f"cannot start {ended.error}")
    return reasons.why_not_started(ended.code, lines_about(ended.launch, host, ended.said))
