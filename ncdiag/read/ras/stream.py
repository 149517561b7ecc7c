"""The stream of events that a RAS monitor prints, folded into one report."""

from ncdiag.model.log import RasIssue, RasReport
from ncdiag.model.place import Place
from ncdiag.read.ras.parts import EVENTS, MAX_ISSUES, MAX_MEMBERS, RECOVERED, Peer, member


class EventStream:
    """Keeps which peers were last in trouble."""

    def __init__(self) -> None:
        self.first: Place | None = None
        self._issues: dict[tuple[str, str], RasIssue] = {}

    def add(self, event: str, peer: Peer | None, place: Place, text: str) -> None:
        """Take one event."""
        self.first = self.first or place
        if event == RECOVERED:
            self._recovered(peer)
        kind = EVENTS.get(event)
        if kind is None:
            return
        key = (kind, event)
        if key not in self._issues and len(self._issues) >= MAX_ISSUES:
            return
        issue = self._issues.setdefault(key, RasIssue(kind=kind, place=place, text=text))
        if peer and len(issue.members) < MAX_MEMBERS:
            one = member(peer, status=event)
            if one not in issue.members:
                issue.members.append(one)

    def report(self) -> RasReport | None:
        """What is left of it, if there was any event."""
        if self.first is None:
            return None
        return RasReport(place=self.first, issues=list(self._issues.values()), complete=True)

    def _recovered(self, peer: Peer | None) -> None:
        """Forget what was only late."""
        if peer is None:
            return
        for key, issue in list(self._issues.items()):
            if key[0] != "TIMEOUT":
                continue
            issue.members = [
                one for one in issue.members if (one.host, one.pid) != (peer.host, peer.pid)
            ]
            if not issue.members:
                del self._issues[key]
