"""Asks hosts what they are, by a launcher alone: no fleet is needed, and none is left behind."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from ncdiag.cluster.asking import ask_hosts
from ncdiag.cluster.fleet.addresses import driver_addresses
from ncdiag.cluster.launchers import Launcher, RemoteJob
from ncdiag.health.self_report import (
    MODULE,
    HostHint,
    Question,
    SelfReport,
    decode_report,
    encode_question,
)
from ncdiag.model.host import Host

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

    def take(name: str, answer: bytes) -> bool:
        report = decode_report(name, answer)
        if report:
            reports[name] = report
        return report is not None

    silent = ask_hosts(hosts, launcher, job, take, on_change, timeout_s=timeout_s)
    unreachable = dict(silent)
    answered = {host.name: reports[host.name] for host in hosts if host.name in reports}
    for name, other in _twins(answered).items():
        del answered[name]
        unreachable[name] = f"it is the same host as {other}: list it once"
        on_change(name, unreachable[name])
    return Probed(answered, unreachable)


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
