"""What is said of the outcomes of an audit, and what to do about them."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Final

from ncdiag.diagnose.collectives import folded
from ncdiag.diagnose.env_audit.job import Job, got_as_far
from ncdiag.model.audit import Outcome, Taker
from ncdiag.model.environment import Setting
from ncdiag.model.log import NcclProcess
from ncdiag.model.nodes import fold
from ncdiag.model.text import visible
from ncdiag.model.units import format_count
from ncdiag.profiles import catalogue

MORE_TO_SEE: Final = (
    "run the job once with NCCL_DEBUG=INFO and NCCL_DEBUG_SUBSYS=INIT,ENV,NET, and audit its logs"
)
_MOST_SHOWN_CHARS: Final = 120
_MOST_LISTED: Final = 4
_MOST_NAMES_CHARS: Final = 60


Words = tuple[str, str]


def words(outcome: Outcome, setting: Setting, some: Sequence[NcclProcess], job: Job) -> Words:
    """What happened to ``some`` processes, and what to do about it."""
    return _WORDS[outcome](setting, some, job)


def _overridden(setting: Setting, some: Sequence[NcclProcess], job: Job) -> Words:
    took = listed({shown(p.environment.get(setting.name)) for p in some})
    asked = "unset" if setting.value is None else shown(setting.value)
    who = on(job.who(some), len(job.processes))
    return f"{setting.name} was to be {asked}, and is {took} {who}", find(setting.name)


def _defaulted(setting: Setting, some: Sequence[NcclProcess], job: Job) -> Words:
    name = setting.name
    given = {f"{shown(v)} (it uses {shown(d)})" for p in some for v, d in [p.defaulted[name]]}
    who = on(job.who(some), len(job.processes))
    known = catalogue.variable(name)
    cure = f"it reads: {', '.join(known.values)}" if known and known.values else "give it a number"
    return f"{name}: NCCL would not take {listed(given)} {who}", cure


def _ignored(setting: Setting, some: Sequence[NcclProcess], job: Job) -> Words:
    who = on(job.who(some), len(job.processes))
    return f"{setting.name} is not read by the NCCL in use {who}", _unread(setting.name, job)


def _not_taken(setting: Setting, some: Sequence[NcclProcess], job: Job) -> Words:
    who = on(job.who(some), len(job.processes))
    return (
        f"{setting.name}={shown(setting.value)} was not taken {who}: others print it, these do not",
        "the launcher did not forward it there; compare srun -l env, or mpirun -x and -genv",
    )


def _unseen(setting: Setting, some: Sequence[NcclProcess], job: Job) -> Words:
    if len(some) == len(job.processes):
        return f"{setting.name}: no log says anything of it", MORE_TO_SEE
    who = on(job.who(some), len(job.processes))
    message = f"{setting.name}: the logs do not tell what was taken {who}"
    if all(got_as_far(process, job) for process in some):
        message += ", as NCCL reads it only where it needs it"
    return message, MORE_TO_SEE


_WORDS: Final[Mapping[Outcome, Callable[[Setting, Sequence[NcclProcess], Job], Words]]] = {
    Outcome.OVERRIDDEN: _overridden,
    Outcome.DEFAULTED: _defaulted,
    Outcome.IGNORED: _ignored,
    Outcome.NOT_TAKEN: _not_taken,
    Outcome.UNSEEN: _unseen,
}


def _unread(name: str, job: Job) -> str:
    known = catalogue.variable(name)
    if known and known.replaced_by:
        return f"set {known.replaced_by} instead"
    if known and known.since and job.version and job.version < known.since:
        return f"it is read from {'.'.join(map(str, known.since))} on: leave it out, or update"
    return "leave it out"


def find(name: str) -> str:
    """How to find what set a variable to another value."""
    return (
        f"find what else sets {name}: a script, the launcher's options, os.environ in the "
        "program, a nccl.conf (ncdiag env lint FILE...)"
    )


def on(takers: Sequence[Taker], of: int) -> str:
    """``on rank 3 (gpu1)``; all of them are ``on all ranks``. Long lists are numbers."""
    if of > 1 and len(takers) == of:
        return "on all ranks"
    names = list(dict.fromkeys(visible(one.host) for one in takers if one.host))
    hosts = _brief(fold(names), len(names), "host")
    ranks = [one.rank for one in takers if one.rank is not None]
    if len(ranks) == len(takers):
        named = _brief(f"rank{'s' * (len(ranks) > 1)} {folded(ranks)}", len(ranks), "rank")
        return f"on {named} ({hosts})" if names else f"on {named}"
    count = format_count(len(takers), "process")
    return f"in {count} on {hosts}" if names else f"in {count}"


def _brief(text: str, count: int, thing: str) -> str:
    return text if len(text) <= _MOST_NAMES_CHARS else format_count(count, thing)


def listed(texts: Iterable[str]) -> str:
    """The first few, and how many more."""
    some = sorted(texts)
    more = f" and {len(some) - _MOST_LISTED} more" if len(some) > _MOST_LISTED else ""
    return ", ".join(some[:_MOST_LISTED]) + more


def shown(value: str | None) -> str:
    """A value as it can be printed."""
    if value is None:
        return "not set"
    text = visible(value)
    return text if len(text) <= _MOST_SHOWN_CHARS else f"{text[:_MOST_SHOWN_CHARS]}..."
