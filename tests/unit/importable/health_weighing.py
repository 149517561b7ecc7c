"""How much health checks say that something weighs, for tests of it."""

from dataclasses import replace
from typing import Any

from gpu_hosts import (
    HOUR_S,
    with_event,
    with_gpu,
)

from ncdiag.health.checks import check_host
from ncdiag.model.health import (
    HealthFacts,
    Severity,
)

NOTE, WARNING, FAULT, FATAL = Severity


def severity(check: str, facts: HealthFacts, **how: Any) -> Severity | None:
    """What ``check`` says of ``facts``; ``None`` where it says nothing."""
    host = check_host("gpu001", facts, **how)
    found = [one.severity for one in host.findings if one.check == check]
    return found[0] if found else None


def event(class_: str, **told: Any) -> Severity | None:
    """How much an event of the kernel log weighs."""
    facts = with_event(class_, **told)
    return severity(f"kernel_{class_.removeprefix('kernel_')}", facts)


def on_gpu(class_: str, told: dict[str, Any], **changes: Any) -> Severity | None:
    """The same of an event of GPU 3, of which something else is known as well."""
    facts = replace(with_gpu(**changes), kernel_events=with_event(class_, **told).kernel_events)
    return severity(f"kernel_{class_}", facts)


AGAIN = {"count": 5, "last_since_boot_s": 15 * HOUR_S}
BURST = {"count": 5, "last_since_boot_s": 9 * HOUR_S + 2}
