"""What a message leaves out and other lines of its process, or of the job, tell."""

import re
from collections.abc import Callable, Iterable, Mapping

from ncdiag.diagnose.postmortem.case import Case
from ncdiag.diagnose.postmortem.draft import Draft
from ncdiag.model.finding import FindingClass as C

_Telling = Callable[[Draft, Case], str | None]

_INTERFACE = "NCCL_SOCKET_IFNAME"
_NUMBERED = re.compile(r"\APG (\d+)\Z")


def complete(drafts: Iterable[Draft], case: Case) -> None:
    """Fill in the attributes that messages of these classes leave out."""
    for draft in drafts:
        for name, telling in _LEFT_OUT.get(draft.class_, {}).items():
            if name not in draft.attributes and (value := telling(draft, case)):
                draft.attributes[name] = value


def _wished(draft: Draft, case: Case) -> str | None:
    """By the speaker's setting; where it has none, by that of all others if they agree."""
    process = case.process_of(draft.first.speaker)
    if process and _INTERFACE in process.environment:
        wished: str | None = process.environment[_INTERFACE]
    else:
        wished = _agreed(p.environment.get(_INTERFACE) for p in case.evidence.processes)
    return None if not wished or wished.startswith("^") else wished


def _used(draft: Draft, case: Case) -> str | None:
    """The interface that the speaker said it uses, if it is one."""
    process = case.process_of(draft.first.speaker)
    return _agreed(process.interfaces) if process else None


def _group(draft: Draft, case: Case) -> str | None:
    """The group in which the same rank tells of the same work."""
    rank, seq = draft.first.speaker.rank, draft.first.attributes.get("seq")
    group = _agreed(
        record.group
        for record in case.evidence.progress
        if rank is not None and record.rank == rank and str(record.timed_out) == seq
    )
    numbered = _NUMBERED.match(group or "")
    return numbered[1] if numbered else group


def _store_host(draft: Draft, case: Case) -> str | None:
    """A job has one store: whoever names it names the same."""
    del case
    return _agreed(event.attributes.get("peer") for event in draft.events)


def _agreed(values: Iterable[str | None]) -> str | None:
    """The one value that is told, if it is one."""
    known = {value for value in values if value}
    return known.pop() if len(known) == 1 else None


_LEFT_OUT: Mapping[C, Mapping[str, _Telling]] = {
    C.BOOTSTRAP_NO_INTERFACE: {"interface": _wished},
    C.BOOTSTRAP_CONNECT_FAILED: {"interface": _used},
    C.SOCKET_CONNECT_FAILED: {"interface": _used},
    C.STORE_FAILURE: {"peer": _store_host},
    C.TORCH_WATCHDOG_TIMEOUT: {"group": _group},
}
