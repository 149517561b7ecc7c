"""Asks hosts what they are, by a launcher alone: no fleet is needed, and none is left behind."""

from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import as_completed
from dataclasses import dataclass

from ncdiag.cluster.fleet import reasons
from ncdiag.cluster.fleet.addresses import driver_addresses
from ncdiag.cluster.launchers import Launcher, RemoteJob
from ncdiag.cluster.launchers.attribution import lines_about, named_hosts
from ncdiag.cluster.processes import Ended, Pool
from ncdiag.health.self_report import (
    MODULE,
    HostHint,
    Question,
    Reports,
    SelfReport,
    encode_question,
)
from ncdiag.model.host import Host
from ncdiag.model.text import visible

# Starting Python from a cold network file system takes most of it.
PROBE_S = 60.0


@dataclass(frozen=True, slots=True)
class Probed:
    """The hosts that answered, in the order given, and for the others the reason."""

    reports: Mapping[str, SelfReport]
    unreachable: Mapping[str, str]


def probe(
    hosts: Sequence[Host],
    launcher: Launcher,
    on_change: Callable[[str, str], None],
    *,
    driver_address: str | None = None,
    timeout_s: float = PROBE_S,
) -> Probed:
    """Ask all hosts, a bounded number at a time; raises UsageError for hosts it cannot start.

    Of several names for one host the first one stands.
    """
    question = Question(
        hosts={host.name: HostHint(nics=host.nics, address=host.address) for host in hosts},
        driver_addresses=(driver_address,) if driver_address else driver_addresses(hosts),
    )
    job = RemoteJob(module=MODULE, stdin=encode_question(question))
    reports: dict[str, SelfReport] = {}
    unreachable: dict[str, str] = {}
    left = list(hosts)
    with Pool(launcher.starts_at_a_time) as pool:
        while left:
            running = [
                pool.submit(one, timeout_s=timeout_s, on_line=_Hearing(one.hosts, reports))
                for one in launcher.launches(left, job)
            ]
            for future in as_completed(running):
                ended = future.result()
                for name in _refusers(ended) or ended.launch.hosts:
                    if name not in reports:
                        unreachable[name] = _reason(ended, name, timeout_s)
                    on_change(name, unreachable.get(name, "up"))
            left = [h for h in left if h.name not in reports and h.name not in unreachable]
    answered = {host.name: reports[host.name] for host in hosts if host.name in reports}
    for name, other in _twins(answered).items():
        del answered[name]
        unreachable[name] = f"it is the same host as {other}: list it once"
        on_change(name, unreachable[name])
    return Probed(answered, unreachable)


class _Hearing:
    """Takes what one command says; a host of another command is not spoken for."""

    def __init__(self, hosts: Sequence[str], reports: dict[str, SelfReport]) -> None:
        self._hosts, self._into = hosts, reports
        self._heard = Reports()

    def __call__(self, line: bytes) -> None:
        report = self._heard.hear(line)
        if report and report.host in self._hosts:
            self._into[report.host] = report


def _twins(reports: Mapping[str, SelfReport]) -> dict[str, str]:
    """Names of hosts that another name stands for already, with that: they share one NIC."""
    found: dict[str, str] = {}
    first: dict[tuple[str, str], str] = {}
    for name, report in reports.items():
        if report.own_address:
            other = first.setdefault((report.facts.hostname, report.own_address), name)
            if other != name:
                found[name] = other
    return found


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
