"""Judges hosts by their facts: every check of the table, and what a host is said to be."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

from ncdiag.health.checks.check import Case, Check, ExpectedHost, Scope, Silent, Trip
from ncdiag.health.checks.fleet import Comparison, compare, usual_ports
from ncdiag.health.checks.limits import Limits
from ncdiag.health.checks.table import CHECKS
from ncdiag.model.health import (
    Difference,
    HealthFacts,
    HealthFinding,
    HostFitness,
    HostHealth,
    NotKnown,
    Severity,
    SourceState,
)
from ncdiag.model.text import visible

_WORST = {severity: number for number, severity in enumerate(reversed(Severity))}
_FITNESS = {
    Severity.FATAL: HostFitness.FATAL,
    Severity.FAULT: HostFitness.FAULTY,
    Severity.WARNING: HostFitness.WARNING,
    Severity.NOTE: HostFitness.HEALTHY,
}


def check_host(
    host: str,
    facts: HealthFacts,
    *,
    before: HealthFacts | None = None,
    expected: ExpectedHost | None = None,
    limits: Limits | None = None,
) -> HostHealth:
    """Judge one host; ``before`` is an earlier reading, which rising counters are told from."""
    return _judged(host, _case(facts, before, expected or ExpectedHost(), limits or Limits()))


def _judged(host: str, case: Case) -> HostHealth:
    findings: list[HealthFinding] = []
    not_known: list[NotKnown] = []
    passed: list[str] = []
    for check in CHECKS.values():
        if check.scope is not Scope.HOST:
            continue
        trips, silent = _outcome(check, case)
        findings.extend(_finding(check, trip) for trip in trips)
        if silent is not None:
            not_known.append(NotKnown(check=check.id, reason=silent))
        elif not trips:
            passed.append(check.id)
    return _host(host, case.facts, findings, not_known, passed)


def failed_host(host: str, error: str) -> HostHealth:
    """A host that gave no facts: nothing is known of it."""
    return HostHealth(host=host, fitness=HostFitness.UNKNOWN, error=visible(error))


def judge_fleet(
    facts: Mapping[str, HealthFacts],
    *,
    before: Mapping[str, HealthFacts] | None = None,
    expected: Mapping[str, ExpectedHost] | None = None,
    limits: Limits | None = None,
    errors: Mapping[str, str] | None = None,
    hosts: Sequence[str] = (),
) -> tuple[tuple[HostHealth, ...], tuple[Difference, ...]]:
    """Judge all hosts, each by itself and against the others, in the order of ``hosts``.

    ``errors`` are of hosts that gave no facts. Without ``hosts`` those with facts come first.
    """
    before, expected, errors = before or {}, expected or {}, errors or {}
    limits = limits or Limits()
    comparison, usual_by_name = compare(facts, limits), usual_ports(facts, limits)
    judged: dict[str, HostHealth] = {}
    for host in dict.fromkeys((*hosts, *facts, *errors)):
        if host in facts:
            wanted = expected.get(host) or ExpectedHost()
            case = _case(facts[host], before.get(host), wanted, limits)
            alone = _judged(host, replace(case, usual_ports=usual_by_name))
            judged[host] = _compared(alone, comparison)
        else:
            judged[host] = failed_host(host, errors.get(host, "no answer"))
    return tuple(judged.values()), comparison.differences


def compare_fleet(
    facts: Mapping[str, HealthFacts], *, limits: Limits | None = None
) -> tuple[tuple[Difference, ...], dict[str, tuple[HealthFinding, ...]]]:
    """In what hosts differ from nearly all others, and what that means for them."""
    comparison = compare(facts, limits or Limits())
    return comparison.differences, dict(comparison.findings)


def _compared(host: HostHealth, comparison: Comparison) -> HostHealth:
    """``host`` with what the comparison found; the same is not said of one device twice."""
    said = {(finding.check, finding.device) for finding in host.findings}
    found = comparison.findings.get(host.host, ())
    more = [one for one in found if (one.check, one.device) not in said]
    tripped = {finding.check for finding in more}
    not_known = [one for one in host.not_known if one.check not in tripped]
    passed = [check for check in host.passed if check not in tripped]
    for check in CHECKS.values():
        if check.scope is Scope.FLEET and check.id not in tripped:
            reason = comparison.not_compared(check.id, host.host)
            if reason is None:
                passed.append(check.id)
            else:
                not_known.append(NotKnown(check=check.id, reason=reason))
    if host.facts is None:
        return host
    return _host(host.host, host.facts, [*host.findings, *more], not_known, passed)


def _case(
    facts: HealthFacts, before: HealthFacts | None, expected: ExpectedHost, limits: Limits
) -> Case:
    """Leave an earlier reading out where counters began anew, or its time says nothing."""
    case = Case(facts=facts, expected=expected, limits=limits)
    if before is None or _rebooted(before, facts):
        return case
    interval_s = facts.taken_s - before.taken_s
    if interval_s < 0:
        return replace(case, clock_went_back_s=-interval_s)
    return replace(case, before=before, interval_s=interval_s) if interval_s > 0 else case


def _rebooted(before: HealthFacts, facts: HealthFacts) -> bool:
    if before.boot_id and facts.boot_id:
        return before.boot_id != facts.boot_id
    if before.uptime_s is None or facts.uptime_s is None:
        return False
    return facts.uptime_s < before.uptime_s


def _outcome(check: Check, case: Case) -> tuple[list[Trip], str | None]:
    """What tripped, and why it is not known where nothing did and nothing could be seen.

    A source that was cut off by its deadline may accuse by what it told, and acquits nobody.
    """
    reason = _unread(check, case)
    if check.rule is None or (reason is not None and not _told_in_part(check, case)):
        return [], reason or "not made here"
    outcomes = list(check.rule(case))
    trips = [one for one in outcomes if isinstance(one, Trip)]
    silent = next((one.reason for one in outcomes if isinstance(one, Silent)), None)
    return trips, None if trips else reason or silent


def _unread(check: Check, case: Case) -> str | None:
    """Why none of the sources of a check was read; ``None`` where one was, or none is needed."""
    if not check.sources or case.read(*check.sources):
        return None
    readings = [one for one in case.facts.sources if one.source in check.sources]
    if not readings:
        return f"not asked: {check.sources[0]}"
    # What is there and broken tells more than what is not there.
    worst = max(readings, key=lambda one: one.state is not SourceState.ABSENT)
    why = f" ({visible(worst.reason)})" if worst.reason else ""
    return f"{worst.source}: {worst.state}{why}"


def _told_in_part(check: Check, case: Case) -> bool:
    return any(
        one.source in check.sources and one.state is SourceState.TIMED_OUT
        for one in case.facts.sources
    )


def _finding(check: Check, trip: Trip) -> HealthFinding:
    class_ = trip.class_ or check.class_
    return HealthFinding(
        check=check.id,
        severity=trip.severity or check.severity,
        text=visible(trip.text),
        next=trip.next or check.fix,
        device=None if trip.device is None else visible(trip.device),
        class_=None if class_ is None else str(class_),
        measured=trip.measured,
        limit=trip.limit,
        configuration=check.configuration,
    )


def _host(
    host: str,
    facts: HealthFacts,
    findings: Sequence[HealthFinding],
    not_known: Sequence[NotKnown],
    passed: Sequence[str],
) -> HostHealth:
    ordered = sorted(findings, key=lambda one: _WORST[one.severity])
    fitness = _FITNESS[ordered[0].severity] if ordered else HostFitness.HEALTHY
    if not any(one.state is SourceState.READ for one in facts.sources):
        fitness = HostFitness.UNKNOWN
    return HostHealth(
        host=host,
        fitness=fitness,
        findings=tuple(ordered),
        not_known=tuple(not_known),
        passed=tuple(passed),
        facts=facts,
    )
