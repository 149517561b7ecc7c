"""Who names whom: storms of failed transfers folded into the links behind them."""

from collections import Counter
from dataclasses import dataclass, field

from ncdiag.diagnose.postmortem.case import Case
from ncdiag.diagnose.postmortem.thresholds import REPORTING_HOSTS
from ncdiag.model.log import Event, Speaker


@dataclass(slots=True)
class Votes:
    """For each host that is named as the other end: which hosts, and which processes, name it."""

    hosts: dict[str, set[str]] = field(default_factory=dict)
    processes: dict[str, set[Speaker]] = field(default_factory=dict)

    @property
    def reporters(self) -> set[str]:
        """All hosts that name another."""
        return set().union(*self.hosts.values()) if self.hosts else set()

    @property
    def links(self) -> list[tuple[str, str]]:
        """(reporting host, named host) of every link between two known hosts."""
        return [(by, named) for named, hosts in self.hosts.items() for by in sorted(hosts)]

    def leaders(self) -> list[str]:
        """The hosts that most reporters name: most hosts, then most processes."""
        ranked = sorted(self.processes, key=self._weight, reverse=True)
        return [host for host in ranked if self._weight(host) == self._weight(ranked[0])]

    def _weight(self, host: str) -> tuple[int, int]:
        others = self.hosts.get(host, set()) - {host}
        return len(others), len(self.processes[host])

    def convicted(self) -> str | None:
        """The one host that several hosts name, and more of them than name any other."""
        counts = Counter({host: len(by - {host}) for host, by in self.hosts.items()})
        ranked = counts.most_common(2)
        if not ranked or ranked[0][1] < REPORTING_HOSTS:
            return None
        if len(ranked) > 1 and ranked[1][1] == ranked[0][1]:
            return None
        return ranked[0][0]

    def mutual(self) -> bool:
        """Whether two hosts name each other and nobody else is concerned."""
        return len(self.hosts) == 2 and self.reporters == set(self.hosts)


def tally(events: list[Event], case: Case) -> Votes:
    """Count the votes of ``events``; what names nobody does not vote."""
    votes = Votes()
    for event in events:
        named = case.hosts.peer_of(event)
        if named is None:
            continue
        votes.processes.setdefault(named, set()).add(event.speaker)
        by = case.hosts.of_speaker(event.speaker)
        named_by = votes.hosts.setdefault(named, set())
        if by:
            named_by.add(by)
    return votes
