"""Completion errors: whom the status points at, and which links are behind a storm."""

from collections import Counter

from ncdiag.diagnose.postmortem.case import Case
from ncdiag.diagnose.postmortem.draft import Draft
from ncdiag.diagnose.postmortem.fold import merge
from ncdiag.diagnose.postmortem.speech import listed
from ncdiag.diagnose.postmortem.votes import Votes, tally
from ncdiag.model.finding import Suspect, SuspectKind
from ncdiag.model.log import Event
from ncdiag.model.units import format_count

# The peer did not answer, or did not take part; its memory or PCIe; the local registration; the
# local adapter; sizes or versions that differ between the ends.
SILENT_PEER = frozenset({"12", "13", "20"})
PEER_MEMORY = frozenset({"10", "11"})
LOCAL_MEMORY = frozenset({"2", "4", "8"})
LOCAL_ADAPTER = frozenset({"19", "21"})
DIFFERING = frozenset({"1", "9"})
# With these the host that most reporters name may be at fault itself.
CONVICTING = frozenset({"10", "11", "12", "20"})


def status_of(event: Event) -> str:
    """The completion status, as digits."""
    return event.attributes.get("status", "")


def blame_transfers(draft: Draft, case: Case) -> None:
    """Name the host that most reporters name, or the local one, as the first status has it."""
    status = status_of(draft.first)
    same_kind = [event for event in draft.accusing if _kind(status_of(event)) is _kind(status)]
    if _kind(status) is LOCAL_MEMORY or _kind(status) is LOCAL_ADAPTER:
        _blame_local(draft, same_kind, case)
    elif _kind(status) is DIFFERING:
        draft.suspects.append(
            Suspect(kind=SuspectKind.CONFIG, name="sizes or versions of the two ends")
        )
    else:
        _blame_peer(draft, same_kind, case)


def _kind(status: str) -> frozenset[str]:
    for kind in (PEER_MEMORY, LOCAL_MEMORY, LOCAL_ADAPTER, DIFFERING):
        if status in kind:
            return kind
    return SILENT_PEER


def _blame_local(draft: Draft, events: list[Event], case: Case) -> None:
    hosts = dict.fromkeys(h for e in events if (h := case.hosts.of_speaker(e.speaker)))
    draft.suspects += [Suspect(kind=SuspectKind.HOST, name=host) for host in hosts]
    hcas = dict.fromkeys(h for e in events if (h := e.attributes.get("hca")))
    draft.suspects += [Suspect(kind=SuspectKind.NIC, name=hca) for hca in hcas]
    if len(hosts) > 1:
        draft.notes.append(
            f"{format_count(len(hosts), 'host')} report it at once: a setting they share, "
            "not hardware."
        )


def _blame_peer(draft: Draft, events: list[Event], case: Case) -> None:
    votes = tally(events, case)
    leaders = votes.leaders()
    draft.suspects += [Suspect(kind=SuspectKind.HOST, name=host) for host in leaders]
    if votes.mutual():
        draft.suspects += [
            Suspect(kind=SuspectKind.HOST, name=host) for host in votes.hosts if host not in leaders
        ]
        draft.notes.append("The two ends name each other: the path between them is as suspect.")
    _speak_for(draft, leaders, case)
    _note_links(draft, events, votes)


def _speak_for(draft: Draft, leaders: list[str], case: Case) -> None:
    """Let the first record that names the suspect speak for the storm."""
    for event in draft.accusing:
        if case.hosts.peer_of(event) in leaders:
            draft.first = event
            merge(draft)
            return


def _note_links(draft: Draft, events: list[Event], votes: Votes) -> None:
    leaders = votes.leaders()
    if not leaders:
        return
    reporters = votes.hosts[leaders[0]] - {leaders[0]}
    processes = format_count(len(votes.processes[leaders[0]]), "process")
    on = (
        f" on {format_count(len(reporters), 'host')} ({listed(sorted(reporters))})"
        if reporters
        else ""
    )
    address = draft.attributes.get("peer", leaders[0])
    name = leaders[0] if address == leaders[0] else f"{address} ({leaders[0]})"
    draft.notes.append(f"{name} did not serve {processes}{on}.")
    hcas = Counter(hca for event in events if (hca := event.attributes.get("hca")))
    if len(leaders) > 1 and len(hcas) == 1:
        hca = next(iter(hcas))
        draft.suspects.append(Suspect(kind=SuspectKind.LINK, name=f"the rail of {hca}"))
        draft.notes.append(f"No host is named more than others, and all are on {hca}: that rail.")
