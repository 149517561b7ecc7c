"""How asking went: sources that hang, refuse or fail are findings themselves."""

from collections.abc import Iterator, Sequence

from ncdiag.health.checks.check import (
    GPU_SOURCES,
    Case,
    Check,
    Outcome,
    Silent,
    Trip,
    quoted,
)
from ncdiag.model.health import (
    COLLECTOR_KILLED,
    PciKind,
    Severity,
    Source,
    SourceReading,
    SourceState,
)

# These only read memory of the kernel: where they do not answer, the host or the collector is
# starved, and nothing is said against a driver.
_NEVER_WAIT = (Source.PROC, Source.LIMITS)
# DCGM keeps a library of its own open, and answers also where no program can begin any more.
_DRIVERS = (Source.NVML, Source.NVIDIA_SMI, Source.ROCM_SMI)
_NAMES = {Source.NVML: "NVML", Source.DCGM: "DCGM"}
_WHO = {Source.KERNEL_LOG: "the kernel log"}


def _in_state(case: Case, state: SourceState) -> list[SourceReading]:
    return [one for one in case.facts.sources if one.state is state]


def _nothing_read(case: Case) -> bool:
    return not _in_state(case, SourceState.READ)


def _hung(case: Case) -> Iterator[Outcome]:
    asked = [one for one in case.facts.sources if one.source in GPU_SOURCES]
    if all(one.state is SourceState.ABSENT for one in asked):
        yield Silent("nothing here that tells of GPUs")
        return
    if _nothing_read(case):
        yield Silent("no source answered at all: the host or the collector is starved")
        return
    for one in asked:
        if one.state is SourceState.TIMED_OUT:
            why, severity = _stuck(one.source, case)
            yield Trip(
                text=f"{_NAMES.get(one.source, str(one.source))} gave no answer{why}",
                device=str(one.source),
                severity=severity,
                measured=quoted(one.reason) if one.reason else None,
            )


def _stuck(source: Source, case: Case) -> tuple[str, Severity]:
    """What it means that ``source`` hangs; DCGM does so by itself where drivers answer."""
    if any(one.source in _NEVER_WAIT for one in _in_state(case, SourceState.TIMED_OUT)):
        return ", as others on this host", Severity.WARNING
    if source is Source.DCGM and case.read(*_DRIVERS):
        return ", and the driver does", Severity.WARNING
    return ": a GPU or its driver is stuck", Severity.FAULT


def _others_timed_out(case: Case) -> Iterator[Outcome]:
    yield from _told(
        [one for one in _in_state(case, SourceState.TIMED_OUT) if one.source not in GPU_SOURCES],
        "gave no answer in time",
        case,
    )


def _denied(case: Case) -> Iterator[Outcome]:
    yield from _told(_in_state(case, SourceState.DENIED), "may not be read", case)


def _failed(case: Case) -> Iterator[Outcome]:
    """Failures; drivers of GPUs that fail where GPUs are, with nobody else to ask, are a fault.

    What else cannot be read keeps nobody from running a job.
    """
    failed = _in_state(case, SourceState.FAILED)
    others = [one for one in failed if one.source not in GPU_SOURCES]
    yield from _told(others, "could not be read", case)
    for one in failed:
        if one.source in GPU_SOURCES:
            name = _NAMES.get(one.source, str(one.source))
            yield Trip(
                text=f"{name} failed" + (f": {quoted(one.reason)}" if one.reason else ""),
                device=str(one.source),
                severity=_weight_of_driver(one, case),
            )


def _weight_of_driver(one: SourceReading, case: Case) -> Severity:
    is_ours = one.reason == COLLECTOR_KILLED
    if is_ours or one.source is Source.DCGM or case.read(*_DRIVERS):
        return Severity.WARNING
    has_gpus = case.expected.gpus or any(
        device.kind is PciKind.GPU and "10de" in (device.vendor or "").lower()
        for device in case.facts.pci_devices
    )
    return Severity.FAULT if has_gpus else Severity.NOTE


def _told(readings: Sequence[SourceReading], what: str, case: Case) -> Iterator[Outcome]:
    if not case.facts.sources:
        yield Silent("nothing was asked")
    for one in readings:
        name = _WHO.get(one.source, str(one.source))
        why = f": {quoted(one.reason)}" if one.reason else ""
        yield Trip(text=f"{name} {what}{why}", device=str(one.source), severity=Severity.WARNING)


CHECKS = (
    Check(
        id="hung_program",
        title="Drivers that answer",
        severity=Severity.FAULT,
        meaning="nvidia-smi, NVML or their kin did not answer in time: a GPU or its driver is "
        "stuck, and jobs would hang likewise. Nobody is drained for it.",
        fix="dmesg -T | grep -i xid; ps -eo pid,stat,cmd | grep ' D'; mostly a reboot is needed",
        rule=_hung,
    ),
    Check(
        id="source_timed_out",
        title="Sources that answer",
        severity=Severity.WARNING,
        meaning="Something else did not answer in time: what it would tell is not known.",
        fix="Look whether the host is overloaded, then ask it by hand",
        rule=_others_timed_out,
    ),
    Check(
        id="source_denied",
        title="Sources that may be read",
        severity=Severity.WARNING,
        meaning="Something may not be read by this user: what it would tell is not known.",
        fix="Run as root; for the kernel log: sysctl kernel.dmesg_restrict=0, or group adm",
        rule=_denied,
        configuration=True,
    ),
    Check(
        id="source_failed",
        title="Sources that work",
        severity=Severity.FAULT,
        meaning="Something is there and broken. A driver that fails where there are GPUs is a "
        "fault: nothing can use them.",
        fix="Ask it by hand, and compare the versions of driver and libraries",
        rule=_failed,
    ),
)
