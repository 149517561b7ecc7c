"""Checks that take more than one host's facts: of a fleet, and of a sweep's result."""

from ncdiag.health.checks.check import Check, Scope
from ncdiag.health.checks.limits import Limits
from ncdiag.model.finding import FindingClass
from ncdiag.model.health import HealthFinding, Severity, Source
from ncdiag.model.units import format_share
from ncdiag.model.verdict import HostStatus, HostVerdict

PAIR_BANDWIDTH = Check(
    id="pair_bandwidth",
    title="Bandwidth to other hosts",
    severity=Severity.FAULT,
    meaning="The links of this host reach less than 80 % of what they should. It is a fault where "
    "the sweep found the host itself at fault, and no switch or peer.",
    fix="ncdiag sweep again with this host and other partners; then ib_port_slow, pcie_downtrained",
    scope=Scope.SWEEP,
    class_=FindingClass.SLOW_NODE,
)
CLOCK_SKEW = Check(
    id="clock_skew",
    title="Clock against the fleet",
    severity=Severity.WARNING,
    meaning="The clock of this host differs from those of most hosts, by more than asking took.",
    fix="timedatectl; chronyc tracking; chronyc makestep",
    sources=(Source.PROC, Source.CLOCK),
    scope=Scope.FLEET,
    configuration=True,
)
UNLIKE_FLEET = Check(
    id="unlike_fleet",
    title="Unlike the fleet",
    severity=Severity.WARNING,
    meaning="A version, setting or count differs from that of nearly all hosts. With two hosts, or "
    "without a clear majority, nobody is the odd one.",
    fix="Bring it to what the others have, or keep such hosts in a job of their own",
    scope=Scope.FLEET,
    configuration=True,
)
CHECKS = (PAIR_BANDWIDTH, CLOCK_SKEW, UNLIKE_FLEET)


def check_bandwidth(
    host_verdict: HostVerdict, host: str, *, limits: Limits | None = None
) -> HealthFinding | None:
    """What a sweep says of ``host``; ``None`` where it is well or could not be told."""
    least = (limits or Limits()).pair_bandwidth_share
    efficiency = host_verdict.efficiency
    told = host_verdict.status not in {HostStatus.UNREACHABLE, HostStatus.INCONCLUSIVE}
    if host_verdict.name != host or efficiency is None or not told or efficiency >= least:
        return None
    faulty = host_verdict.status is HostStatus.FAULTY
    return HealthFinding(
        check=PAIR_BANDWIDTH.id,
        severity=PAIR_BANDWIDTH.severity if faulty else Severity.WARNING,
        text=f"links of this host reach {format_share(efficiency)} of what they should",
        next=PAIR_BANDWIDTH.fix,
        class_=str(PAIR_BANDWIDTH.class_),
        measured=format_share(efficiency),
        limit=format_share(least),
    )
