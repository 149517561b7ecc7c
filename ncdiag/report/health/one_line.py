"""The health of hosts in one line: for Nagios and its kin, and as a reason for Slurm."""

from enum import IntEnum
from typing import Final

from ncdiag.model.health import HealthReport, HostFitness, Severity
from ncdiag.model.text import visible
from ncdiag.model.units import format_count
from ncdiag.report.health import describe

# NRPE of old passes on a kilobyte of all output, and a line of a status page holds less.
_NAGIOS_CHARS: Final = 300
_NAGIOS_TOLD: Final = 3
# What a line of sinfo -R is read at; Slurm itself keeps much more.
_REASON_CHARS: Final = 200


class NagiosCode(IntEnum):
    """Exit codes of a plugin (monitoring-plugins.org, "Development Guidelines")."""

    OK = 0
    WARNING = 1
    CRITICAL = 2
    UNKNOWN = 3


_CODES: Final = {
    HostFitness.HEALTHY: NagiosCode.OK,
    HostFitness.WARNING: NagiosCode.WARNING,
    HostFitness.FAULTY: NagiosCode.CRITICAL,
    HostFitness.FATAL: NagiosCode.CRITICAL,
    HostFitness.UNKNOWN: NagiosCode.UNKNOWN,
}


def render_nagios(report: HealthReport) -> tuple[str, int]:
    """The line, with figures behind the bar, and the exit code that goes with it."""
    code = _CODES[describe.verdict(report)]
    alone = len(report.hosts) == 1
    told = [describe.told(group, alone=alone) for group in _weighty(report)]
    told += [f"{hosts}: {reason}" for hosts, reason in describe.unknown_hosts(report)]
    if len(told) > _NAGIOS_TOLD:
        told[_NAGIOS_TOLD:] = [f"and {len(told) - _NAGIOS_TOLD} more"]
    text = "; ".join((describe.conclusion(report), *told))
    return f"HEALTH {code.name} - {_plain(text, _NAGIOS_CHARS)} | {_figures(report)}", code


def nagios_failure(reason: str) -> tuple[str, int]:
    """The line and the code where nothing could be told at all."""
    code = NagiosCode.UNKNOWN
    return f"HEALTH {code.name} - {_plain(reason, _NAGIOS_CHARS)}", code


def drain_reason(report: HealthReport) -> str | None:
    """``ncdiag: gpu3: Xid 79 ...``, the reason to drain this host; ``None`` where there is none."""
    groups = describe.groups(report, [Severity.FATAL])
    if not groups:
        return None
    more = format_count(len(groups) - 1, "more finding") if len(groups) > 1 else ""
    end = f" (and {more})" if more else ""
    first = _plain(describe.told(groups[0], alone=True), _REASON_CHARS - len(end))
    return f"ncdiag: {first}{end}"


def _weighty(report: HealthReport) -> list[describe.Group]:
    return describe.groups(report, [one for one in Severity if one is not Severity.NOTE])


def _figures(report: HealthReport) -> str:
    """``'label'=value[unit];warning;critical``, as the guidelines have it."""
    numbers = [describe.number_of(host) for host in report.hosts]
    total = {one: sum(number[one] for number in numbers) for one in Severity}
    unknown = describe.counts(report)[HostFitness.UNKNOWN]
    figures = {
        "hosts": f"{len(report.hosts)}",
        "fatal": f"{total[Severity.FATAL]};;0",
        "faults": f"{total[Severity.FAULT]};;0",
        "warnings": f"{total[Severity.WARNING]};0",
        "unknown": f"{unknown}",
        "seconds": f"{report.seconds:.3f}s",
    }
    gpus = [gpu for host in report.hosts if host.facts for gpu in host.facts.gpus]
    if temperatures := [gpu.temperature_c for gpu in gpus if gpu.temperature_c is not None]:
        figures["gpu_temperature_max"] = f"{max(temperatures):g}"
    return " ".join(f"{name}={value}" for name, value in figures.items())


def _plain(text: str, most: int) -> str:
    """One line without what has a meaning of its own there: a bar begins the figures."""
    one_line = visible(" ".join(text.split())).replace("|", "/")
    return one_line if len(one_line) <= most else f"{one_line[: most - 3]}..."
