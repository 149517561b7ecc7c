"""What a message leaves out and a setting of its process tells."""

from collections.abc import Iterable

from ncdiag.diagnose.postmortem.case import Case
from ncdiag.diagnose.postmortem.draft import Draft
from ncdiag.model.finding import FindingClass as C

_INTERFACE = "NCCL_SOCKET_IFNAME"


def name_interfaces(drafts: Iterable[Draft], case: Case) -> None:
    """Name the interface that was wished for where none was found."""
    for draft in drafts:
        if draft.class_ is C.BOOTSTRAP_NO_INTERFACE and "interface" not in draft.attributes:
            wished = _wished(draft, case)
            if wished and not wished.startswith("^"):
                draft.attributes["interface"] = wished


def _wished(draft: Draft, case: Case) -> str | None:
    """By the speaker's setting; where it has none, by that of all others if they agree."""
    process = case.process_of(draft.first.speaker)
    if process and _INTERFACE in process.environment:
        return process.environment[_INTERFACE]
    settings = {p.environment.get(_INTERFACE) for p in case.evidence.processes} - {None}
    return settings.pop() if len(settings) == 1 else None
