"""Compares an environment profile with what NCCL's processes print of their environment.

NCCL prints a variable when it first reads it, at ``NCCL_DEBUG=INFO`` with the subsystem ``ENV``. So
a line proves what was taken; a missing line proves something only where a peer prints that variable
and the silent process got to where it is read. Everything else is undecided.
"""

from collections.abc import Iterator, Sequence

from ncdiag.diagnose.env_audit.job import (
    Job,
    got_as_far,
    mentions,
    own_version,
    speaks,
    tells,
    version_of,
)
from ncdiag.diagnose.env_audit.reading import comes_to_read
from ncdiag.diagnose.env_audit.values import (
    ONE_RANK,
    OWN_TO_EACH,
    can_be_printed,
    differs_by_host,
    is_unread,
    same,
)
from ncdiag.diagnose.env_audit.words import MORE_TO_SEE, find, listed, on, shown, words
from ncdiag.model.audit import (
    AuditFinding,
    Effective,
    EnvAudit,
    Outcome,
    SettingAudit,
)
from ncdiag.model.environment import Profile, Setting
from ncdiag.model.log import LogEvidence, NcclProcess
from ncdiag.profiles import catalogue
from ncdiag.profiles.versions import in_range

_MOST_GAPS = 10

Judged = tuple[SettingAudit, list[AuditFinding]]


def audit(profile: Profile, evidence: LogEvidence) -> EnvAudit:
    """What every process of ``evidence`` took of ``profile``."""
    job = Job.of(evidence)
    asked = {one.name: one for one in profile.settings}
    also = sorted({name for p in job.processes for name in p.environment} - asked.keys())
    judged = [_judge(asked[name], job) for name in sorted(asked)]
    settings = [setting for setting, _ in judged]
    settings += [_found(name, job) for name in also if name.startswith(("NCCL_", "RCCL_"))]
    findings = [
        *_of_versions(profile, job),
        *(finding for _, some in judged for finding in some),
        *(finding for one in settings if (finding := _differing(one, job))),
        *_of_coverage(settings, job),
    ]
    order = list(Outcome)
    return EnvAudit(
        profile=profile.name,
        processes=len(job.processes),
        telling=sum(map(tells, job.processes)),
        ranks=job.ranks,
        versions=job.versions,
        settings=tuple(settings),
        findings=tuple(sorted(findings, key=lambda one: order.index(one.outcome))),
    )


def _judge(setting: Setting, job: Job) -> Judged:
    """The outcome for each process, and a finding for each outcome that somebody has to see."""
    name = setting.name
    if not can_be_printed(name):
        return _by_level(setting, job)
    seen = any(mentions(process, name) for process in job.processes)
    groups: dict[Outcome, list[NcclProcess]] = {}
    for process in job.processes:
        groups.setdefault(_outcome(setting, process, job, seen=seen), []).append(process)
    findings = [
        AuditFinding(outcome, name, *words(outcome, setting, some, job), job.who(some))
        for outcome, some in groups.items()
        if outcome is not Outcome.TAKEN
    ]
    counted = {outcome: len(groups[outcome]) for outcome in Outcome if outcome in groups}
    return _told(setting, _effective(name, job), counted), findings


def _told(
    setting: Setting, effective: tuple[Effective, ...], outcomes: dict[Outcome, int]
) -> SettingAudit:
    return SettingAudit(
        variable=setting.name,
        requested=setting.value,
        in_profile=True,
        effective=effective,
        outcomes=outcomes,
    )


def _outcome(setting: Setting, process: NcclProcess, job: Job, *, seen: bool) -> Outcome:
    name = setting.name
    if name in process.defaulted:
        return Outcome.DEFAULTED
    if name in process.environment:
        taken = setting.value is not None and same(name, setting.value, process.environment[name])
        return Outcome.TAKEN if taken else Outcome.OVERRIDDEN
    if setting.value is None:
        return Outcome.TAKEN if _would_print(name, process, job) else Outcome.UNSEEN
    if name in process.unused or is_unread(name, own_version(process) or job.version):
        return Outcome.IGNORED
    if not seen:
        return Outcome.UNSEEN
    return _silent(name, process, job)


def _silent(name: str, process: NcclProcess, job: Job) -> Outcome:
    """What it means that a process does not print what others print."""
    if name in ONE_RANK:
        return Outcome.TAKEN
    return Outcome.NOT_TAKEN if _would_print(name, process, job) else Outcome.UNSEEN


def _would_print(name: str, process: NcclProcess, job: Job) -> bool:
    return got_as_far(process, job) and comes_to_read(process, name)


def _by_level(setting: Setting, job: Job) -> Judged:
    """What NCCL does not print: who prints lines of INFO has that level, and no more is known."""
    outcome = Outcome.BEYOND
    asked = (setting.value or "").upper()
    if setting.name == "NCCL_DEBUG" and job.processes and all(map(speaks, job.processes)):
        outcome = Outcome.TAKEN if asked in {"INFO", "TRACE"} else Outcome.OVERRIDDEN
    findings = []
    if outcome is Outcome.OVERRIDDEN:
        message = f"NCCL_DEBUG was to be {shown(setting.value)}, and lines of INFO are printed"
        who = job.who(job.processes)
        findings.append(AuditFinding(outcome, setting.name, message, find(setting.name), who))
    return _told(setting, (), {outcome: len(job.processes)}), findings


def _found(name: str, job: Job) -> SettingAudit:
    """A variable that is set though the profile does not know it."""
    return SettingAudit(
        variable=name,
        requested=None,
        in_profile=False,
        effective=_effective(name, job),
        outcomes={},
    )


def _effective(name: str, job: Job) -> tuple[Effective, ...]:
    groups: dict[str | None, list[NcclProcess]] = {}
    for process in job.processes:
        default = process.defaulted.get(name)
        value = default[1] if default else process.environment.get(name)
        groups.setdefault(value, []).append(process)
    return tuple(Effective(value, job.who(some)) for value, some in groups.items())


def _differing(setting: SettingAudit, job: Job) -> AuditFinding | None:
    """Ranks that disagree where NCCL needs them to agree; what the profile says is judged above."""
    known = catalogue.variable(setting.variable)
    if setting.variable in OWN_TO_EACH or not (known and known.same_on_all_ranks):
        return None
    asked = setting.requested if setting.in_profile else None
    if asked is not None and not differs_by_host(asked):
        return None
    told = {one.value: one for one in setting.effective if one.value is not None}
    name = setting.variable
    silent = [p for p in job.processes if not mentions(p, name) and _would_print(name, p, job)]
    if len(told) + bool(silent) < 2:
        return None
    parts = [f"{shown(value)} {on(one.takers, 0)}" for value, one in told.items()]
    if silent:
        parts.append(f"not set {on(job.who(silent), 0)}")
    return AuditFinding(
        Outcome.DIFFERS,
        setting.variable,
        f"{setting.variable} must be the same on all ranks, and is {listed(parts)}",
        f"set it in one place for all of them; {find(setting.variable)}",
        job.who(job.processes),
    )


def _of_versions(profile: Profile, job: Job) -> Iterator[AuditFinding]:
    for text in job.versions:
        version = version_of(text)
        if profile.nccl and version and not in_range(version, profile.nccl):
            yield AuditFinding(
                Outcome.VERSION,
                None,
                f"the profile is meant for NCCL {profile.nccl}, and {shown(text)} ran",
                "choose a profile for this release, or the release for the profile",
            )


def _of_coverage(settings: Sequence[SettingAudit], job: Job) -> Iterator[AuditFinding]:
    """Who is not heard of at all, and whether anything could be."""
    outcomes = {outcome for one in settings for outcome in one.outcomes}
    message = ""
    if not job.processes:
        message = "no process of NCCL is in these logs"
    elif not job.any_tells and Outcome.UNSEEN in outcomes:
        message = "no process prints its environment"
    elif outcomes == {Outcome.BEYOND}:
        message = "NCCL prints nothing of what this profile sets"
    if message:
        yield AuditFinding(Outcome.UNSEEN, None, message, MORE_TO_SEE)
    if job.ranks and job.covered and (gaps := list(_gaps(sorted(job.covered), job.ranks))):
        missing = sum(last - first + 1 for first, last in gaps)
        named = ",".join(f"{a}-{b}" if a < b else f"{a}" for a, b in gaps[:_MOST_GAPS])
        more = ",..." if len(gaps) > _MOST_GAPS else ""
        message = f"{missing} of {job.ranks} ranks are in none of these logs: {named}{more}"
        yield AuditFinding(Outcome.UNSEEN, None, message, "add the logs of all ranks")


def _gaps(covered: Sequence[int], ranks: int) -> Iterator[tuple[int, int]]:
    """The first and last of each run of ranks that are missing."""
    start = 0
    for rank in (*covered, ranks):
        if rank > start:
            yield start, rank - 1
        start = rank + 1
