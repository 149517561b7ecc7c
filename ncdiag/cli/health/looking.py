"""The steps of ``ncdiag health``: who is asked what, asking, and judging the answers."""

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

from ncdiag.health.check_choice import CheckChoice
from ncdiag.health.checks.check import ExpectedHost
from ncdiag.health.checks.judge import judge_fleet
from ncdiag.health.collect import collect_health
from ncdiag.health.readings import Readings
from ncdiag.model.health import HealthFacts, HealthReport
from ncdiag.model.host import Host

if TYPE_CHECKING:
    from ncdiag.cli.way import Way

Tell = Callable[[str, str], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class HealthPlan:
    """Who is asked what. Without a ``way`` it is this host, or one that was recorded in ``root``.

    ``gpus`` and ``nics`` are what a host should have of which the hosts file does not say.
    """

    hosts: Sequence[Host]
    way: "Way | None" = None
    root: Path = Path("/")
    interval_s: float | None = None
    checks: CheckChoice = field(default_factory=CheckChoice)
    gpus: int | None = None
    nics: tuple[str, ...] = ()

    @property
    def expected(self) -> Mapping[str, ExpectedHost]:
        """What each host should have."""
        return {
            host.name: ExpectedHost(
                gpus=self.gpus if host.gpus is None else host.gpus,
                nics=host.nics or self.nics,
                gpus_from="--gpus" if host.gpus is None else "the hosts file",
                nics_from="the hosts file" if host.nics else "--nic",
            )
            for host in self.hosts
        }


def ask(plan: HealthPlan, tell: Tell) -> Readings:
    """The facts of all hosts; a host that gives none has an error instead."""
    if plan.way is None:
        return _ask_here(plan)
    from ncdiag.health.fleet_health import ask_by_launcher  # with launchers and the fleet

    return ask_by_launcher(
        plan.hosts,
        plan.way.launcher_for(plan.hosts),
        tell,
        interval_s=plan.interval_s,
    )


def _ask_here(plan: HealthPlan) -> Readings:
    [host] = plan.hosts
    before = {}
    if plan.interval_s is not None:
        before[host.name] = collect_health(plan.root)
        time.sleep(plan.interval_s)
    facts = collect_health(plan.root)
    return Readings(facts={host.name: facts}, before=before)


def look(
    plan: HealthPlan, tell: Tell, earlier: Mapping[str, HealthFacts] | None = None
) -> HealthReport:
    """Ask and judge once, of the checks that were chosen.

    ``earlier`` are the facts of hosts as they were read before, from which rising counters are
    told where nothing was read twice now.
    """
    started = f"{datetime.now(UTC):%Y-%m-%dT%H:%M:%SZ}"
    began_s = time.monotonic()
    readings = ask(plan, tell)
    seconds = time.monotonic() - began_s
    before = readings.before or earlier or {}
    hosts, differences = judge_fleet(
        readings.facts,
        before=before,
        expected=plan.expected,
        errors=readings.errors,
        hosts=[host.name for host in plan.hosts],
    )
    return HealthReport(
        started=started,
        seconds=seconds,
        hosts=tuple(map(plan.checks.narrowed, hosts)),
        differences=differences,
        interval_s=_interval_s(before, readings.facts)
        if plan.interval_s is None
        else plan.interval_s,
    )


def _interval_s(
    before: Mapping[str, HealthFacts], facts: Mapping[str, HealthFacts]
) -> float | None:
    """The time between two readings of a watch, by the clock of a host that did not set it back."""
    between = (now.taken_s - before[host].taken_s for host, now in facts.items() if host in before)
    return next((seconds for seconds in between if seconds > 0), None)
