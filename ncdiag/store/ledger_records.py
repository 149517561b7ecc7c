"""What a ledger keeps besides evidence: what ncdiag did to hosts, and who told it to."""

from dataclasses import dataclass
from enum import StrEnum


class ActionState(StrEnum):
    """How far an action got.

    ``intended`` was written down before it was carried out: whoever finds it later, after a run was
    killed, asks the place whether it was.
    """

    INTENDED = "intended"
    DONE = "done"
    FAILED = "failed"


@dataclass(frozen=True, slots=True, kw_only=True)
class ActionRecord:
    """One host isolated (or released) at one place (``slurm``, ``hostfile:/path``) by ncdiag.

    ``number`` names it in the ledger, 0 before it is there. ``plan`` joins the actions of one
    apply or undo. Times are UTC seconds since the epoch. ``error`` is one line where it failed.
    """

    place: str
    host: str
    isolate: bool
    reason: str
    plan: str
    by: str
    intended_s: float
    changed_s: float | None = None
    state: ActionState = ActionState.INTENDED
    error: str | None = None
    number: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditEntry:
    """One change that somebody asked for: ``what`` is ``add``, ``remove``, ``apply`` or ``undo``.

    ``user`` and ``machine`` are who and where, ``command`` is the command line without secrets,
    ``about`` one line of what came of it.
    """

    what: str
    user: str
    machine: str
    command: str
    about: str
    at_s: float
    number: int = 0
