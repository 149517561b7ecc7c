"""Whom a finding points at, and who only suffers from it."""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator

from ncdiag.diagnose.postmortem.case import Case
from ncdiag.diagnose.postmortem.classes import Blame
from ncdiag.diagnose.postmortem.devices import canonical, each_once
from ncdiag.diagnose.postmortem.draft import Draft
from ncdiag.diagnose.postmortem.fold import merge
from ncdiag.diagnose.postmortem.job import job_shape
from ncdiag.diagnose.postmortem.speech import listed
from ncdiag.diagnose.postmortem.thresholds import AGAIN_AFTER_S
from ncdiag.diagnose.postmortem.timeline import spread
from ncdiag.diagnose.postmortem.transfers import blame_transfers
from ncdiag.diagnose.postmortem.votes import tally
from ncdiag.model.finding import FindingClass as C
from ncdiag.model.finding import Suspect, SuspectKind
from ncdiag.model.log import Event
from ncdiag.model.units import format_count

_GPU_KEYS = ("pci", "gpus", "bus_id")
_NIC_KEYS = ("hca", "device", "interface")
_PROCESSES = frozenset({C.PROCESS_CRASH, C.PROCESS_DIED})
_CONFIG_HOSTS = frozenset({Blame.CONFIG, Blame.APPLICATION})


def blame(drafts: Iterable[Draft], case: Case) -> None:
    """Name suspects, ranks and victims of all drafts."""
    for draft in drafts:
        if draft.standing:
            merge(draft)
        _prove_ranks(draft, case)
        if draft.class_ is C.NVLINK_ERROR:
            _decisive_link(draft)
        if draft.class_ in {C.IB_COMPLETION_ERROR, C.IB_FLUSH_ERROR}:
            blame_transfers(draft, case)
        else:
            draft.suspects += _suspects(draft, case)
        if draft.class_ is C.TORCH_WATCHDOG_TIMEOUT and draft.root:
            _name_silent(draft, case)
        draft.victims += _victims(draft, case)


def _suspects(draft: Draft, case: Case) -> list[Suspect]:
    found: list[Suspect] = []
    for kind in draft.rule.blame:
        found += _BY_BLAME[kind](draft, case)
    if not found and draft.class_ in _PROCESSES and (pid := _pid(draft)):
        # Nothing says where it ran or which rank it was.
        found.append(Suspect(kind=SuspectKind.APPLICATION, name=f"pid {pid}"))
    return found


def _pid(draft: Draft) -> str | None:
    """The process that ended, by the first of its messages that tells."""
    told = (event.details.get("pid") for event in draft.accusing)
    return draft.attributes.get("pid") or next(filter(None, told), None)


def _by_peer(draft: Draft, case: Case) -> Iterator[Suspect]:
    votes = tally(draft.accusing, case)
    for host in votes.leaders():
        yield Suspect(kind=SuspectKind.HOST, name=host)
    if votes.processes:
        draft.notes.append(_named_by(votes.leaders(), votes.reporters))


def _named_by(named: list[str], reporters: set[str]) -> str:
    by = (
        f" by {format_count(len(reporters), 'host')} ({listed(sorted(reporters))})"
        if reporters
        else ""
    )
    return f"Named as the other end{by}: {listed(named)}."


def _by_host(draft: Draft, case: Case) -> Iterator[Suspect]:
    """The host as such, or its configuration where the class is one of settings."""
    settings = bool(_CONFIG_HOSTS & set(draft.rule.blame))
    kind = SuspectKind.CONFIG if settings else SuspectKind.HOST
    lost = [event for event in draft.accusing if event.details.get("node")]
    events = lost if draft.class_ is C.JOB_CANCELLED and lost else draft.accusing
    for host in dict.fromkeys([*_concerned(events, case), *draft.also_hosts]):
        yield Suspect(kind=kind, name=host)


def _concerned(events: Iterable[Event], case: Case) -> list[str]:
    """Hosts of which more is told than, once, that the other end does not answer them."""
    told: dict[str, list[Event]] = {}
    for event in events:
        if host := case.hosts.of_event(event):
            told.setdefault(host, []).append(event)
    return [
        host
        for host, own in told.items()
        if not all(event.details.get("of_peer") for event in own) or spread(own) > AGAIN_AFTER_S
    ]


def hosts_of(events: Iterable[Event], case: Case) -> list[str]:
    """The hosts that events are about, each once, in order."""
    return list(dict.fromkeys(h for e in events if (h := case.hosts.of_event(e))))


def _by_keys(kind: SuspectKind, keys: tuple[str, ...]) -> Callable[[Draft, Case], list[Suspect]]:
    def named(draft: Draft, case: Case) -> list[Suspect]:
        values = Counter(
            value
            for event in draft.accusing
            for key in keys
            if (value := event.attributes.get(key))
        )
        own = [value for key in keys if (value := draft.attributes.get(key))]
        names = each_once([*own, *(name for name, _ in values.most_common())])
        return [Suspect(kind=_kind_of(name, kind, case), name=name) for name in names]

    return named


def _kind_of(name: str, kind: SuspectKind, case: Case) -> SuspectKind:
    """What stands at an address of a GPU is one, whoever complains of it."""
    return SuspectKind.GPU if canonical(name) in case.gpus else kind


def _by_rank(draft: Draft, case: Case) -> Iterator[Suspect]:
    del case
    if draft.class_ is C.HANG_INIT and not draft.derived:
        # Who says that another did not come has come.
        return
    for rank in draft.ranks:
        yield Suspect(kind=SuspectKind.RANK, name=str(rank))


def _by_setting(draft: Draft, case: Case) -> Iterator[Suspect]:
    del case
    name = draft.attributes.get("setting") or draft.rule.setting
    yield Suspect(kind=SuspectKind.CONFIG, name=name)


def _by_application(draft: Draft, case: Case) -> Iterator[Suspect]:
    """The program, by what is known of it; a setting of the class is a suspect of its own."""
    del case
    name = draft.attributes.get("exception") or draft.attributes.get("process")
    yield Suspect(kind=SuspectKind.APPLICATION, name=name or "the program")


_BY_BLAME: dict[Blame, Callable[[Draft, Case], Iterable[Suspect]]] = {
    Blame.HOST: _by_host,
    Blame.PEER: _by_peer,
    Blame.GPU: _by_keys(SuspectKind.GPU, _GPU_KEYS),
    Blame.NIC: _by_keys(SuspectKind.NIC, _NIC_KEYS),
    Blame.SWITCH: _by_keys(SuspectKind.SWITCH, ("switch",)),
    Blame.RANK: _by_rank,
    Blame.CONFIG: _by_setting,
    Blame.APPLICATION: _by_application,
}


def _prove_ranks(draft: Draft, case: Case) -> None:
    """Add ranks that other lines of the speaking processes prove, where messages name none."""
    if any(event.ranks for event in draft.events):
        return
    proven = {case.rank_of(event.speaker) for event in draft.accusing}
    draft.ranks = sorted({*draft.ranks, *(rank for rank in proven if rank is not None)})


def _decisive_link(draft: Draft) -> None:
    """The first fatal record decides; the GPU in most records is named beside it."""
    fatal = [e for e in draft.strong if e.details.get("fatal") == "yes" or e.details.get("down")]
    if fatal:
        draft.first = fatal[0]
        merge(draft)


def _name_silent(draft: Draft, case: Case) -> None:
    """The few ranks that do not report a time-out which all others do."""
    size = job_shape(case.evidence).ranks
    if not size or not draft.ranks:
        return
    silent = sorted(set(range(size)) - set(draft.ranks))
    if silent and len(silent) < len(draft.ranks):
        draft.suspects += [Suspect(kind=SuspectKind.RANK, name=str(rank)) for rank in silent]
        named = listed([str(rank) for rank in silent])
        draft.notes.append(
            f"All others wait; no word of {format_count(len(silent), 'rank')} {named}."
        )


def _victims(draft: Draft, case: Case) -> list[str]:
    """Hosts that report it and are not suspected themselves."""
    suspected = {suspect.name for suspect in draft.suspects}
    speaking = (case.hosts.of_speaker(event.speaker) for event in draft.events)
    return [host for host in dict.fromkeys(speaking) if host and host not in suspected]
