"""The processes of a job as an audit of their environment sees them."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from ncdiag.diagnose.postmortem.ranks import world_rank
from ncdiag.model.audit import Taker
from ncdiag.model.errors import UsageError
from ncdiag.model.log import LogEvidence, NcclProcess
from ncdiag.profiles.versions import Version, parse_version


@dataclass(frozen=True, slots=True)
class Job:
    """The processes, and what is known of all of them together."""

    processes: Sequence[NcclProcess]
    takers: Mapping[int, Taker]
    versions: tuple[str, ...]
    version: Version | None
    ranks: int | None
    covered: frozenset[int]
    any_finished: bool
    any_tells: bool

    @classmethod
    def of(cls, evidence: LogEvidence) -> "Job":
        """What ``evidence`` tells of the job; one version only where all say the same."""
        processes = evidence.processes
        texts = dict.fromkeys(v for p in processes for v in p.versions)
        texts |= dict.fromkeys(v for _, v in evidence.versions)
        known = [found for text in texts if (found := version_of(text))]
        members = [(c.ranks, c.rank) for p in processes for c in p.communicators]
        ranks = max((ranks for ranks, _ in members if ranks), default=None)
        return cls(
            processes=processes,
            takers={id(p): _taker(p) for p in processes},
            versions=tuple(texts),
            version=known[0] if len(set(known)) == 1 else None,
            ranks=ranks,
            covered=frozenset(r for size, r in members if size == ranks and r is not None),
            any_finished=any(map(_started_up, processes)),
            any_tells=any(map(tells, processes)),
        )

    def who(self, processes: Iterable[NcclProcess]) -> tuple[Taker, ...]:
        """``processes`` by rank, those without a known one last."""
        return tuple(sorted((self.takers[id(p)] for p in processes), key=_rank_first))


def tells(process: NcclProcess) -> bool:
    """Whether it prints anything of its environment."""
    return bool(process.environment or process.defaulted or process.unused)


def speaks(process: NcclProcess) -> bool:
    """Whether lines of the level INFO are there."""
    known = (process.communicators, process.networks, process.transports, process.interfaces)
    return tells(process) or any(known)


def _started_up(process: NcclProcess) -> bool:
    """Whether its start-up is in the log from the first communicator's beginning to some end."""
    return any(c.completed or c.progressed for c in process.communicators)


def got_as_far(process: NcclProcess, job: Job) -> bool:
    """Whether it would have printed what its peers print: its start-up is there, to the end."""
    if not _started_up(process) and (job.any_finished or not tells(process)):
        return False
    # Nobody may have been asked to print the environment.
    return tells(process) or (job.any_tells and any(c.started for c in process.communicators))


def mentions(process: NcclProcess, name: str) -> bool:
    """Whether it says that it found the variable."""
    return name in process.environment or name in process.defaulted


def own_version(process: NcclProcess) -> Version | None:
    """The version that the process itself printed."""
    return next((found for text in process.versions if (found := version_of(text))), None)


def version_of(text: str) -> Version | None:
    """The version in ``text``, if it is one."""
    try:
        return parse_version(text)
    except UsageError:
        return None


def _taker(process: NcclProcess) -> Taker:
    rank = process.speaker.rank
    return Taker(process.host, process.pid, world_rank(process) if rank is None else rank)


def _rank_first(taker: Taker) -> tuple[bool, int, str, str]:
    return taker.rank is None, taker.rank or 0, taker.host, taker.pid
