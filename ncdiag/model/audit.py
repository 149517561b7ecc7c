"""What the processes of a job took of an environment profile, as their logs prove it."""

from dataclasses import dataclass
from enum import StrEnum
from typing import NamedTuple

from ncdiag.model.errors import ExitCode


class Taker(NamedTuple):
    """A process whose log was read; ``rank`` is ``None`` where no line proves it."""

    host: str
    pid: str
    rank: int | None


class Outcome(StrEnum):
    """What became of one setting, by what the logs say.

    ``beyond`` means that no log of NCCL could tell: another program reads the variable, or NCCL
    prints it nowhere.
    """

    TAKEN = "taken"
    NOT_TAKEN = "not_taken"
    DEFAULTED = "defaulted"
    OVERRIDDEN = "overridden"
    DIFFERS = "differs"
    IGNORED = "ignored"
    VERSION = "version"
    UNSEEN = "unseen"
    BEYOND = "beyond"


WRONG = frozenset(
    {
        Outcome.NOT_TAKEN,
        Outcome.DEFAULTED,
        Outcome.OVERRIDDEN,
        Outcome.DIFFERS,
        Outcome.IGNORED,
        Outcome.VERSION,
    }
)


@dataclass(frozen=True, slots=True)
class AuditFinding:
    """One thing that is not as the profile says, or cannot be told: for whom, and what to do."""

    outcome: Outcome
    variable: str | None
    message: str
    next: str
    takers: tuple[Taker, ...] = ()


@dataclass(frozen=True, slots=True)
class Effective:
    """A value that was printed, and by whom; ``None`` as value stands for no line about it."""

    value: str | None
    takers: tuple[Taker, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class SettingAudit:
    """One variable: what the profile asks for, what the processes say, and what comes of it.

    ``requested`` is ``None`` where the profile unsets the variable, or does not know it
    (``in_profile``). ``outcomes`` has each process once.
    """

    variable: str
    requested: str | None
    in_profile: bool
    effective: tuple[Effective, ...]
    outcomes: dict[Outcome, int]


@dataclass(frozen=True, slots=True, kw_only=True)
class EnvAudit:
    """The whole answer; ``telling`` of ``processes`` print their environment.

    ``ranks`` is the size of the job, as far as a communicator tells it.
    """

    profile: str
    processes: int
    telling: int
    ranks: int | None
    versions: tuple[str, ...]
    settings: tuple[SettingAudit, ...]
    findings: tuple[AuditFinding, ...]

    @property
    def exit_code(self) -> ExitCode:
        """1 where anything is wrong, 3 where anything that could be told is not."""
        outcomes = {finding.outcome for finding in self.findings}
        if outcomes & WRONG:
            return ExitCode.WRONG
        return ExitCode.UNDECIDED if Outcome.UNSEEN in outcomes else ExitCode.DONE
