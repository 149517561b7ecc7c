"""``ncdiag health --watch``: check again and again, say what changes, keep the metrics fresh."""

import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import TypeVar

from rich.console import Console

from ncdiag.cli import interrupts
from ncdiag.model.errors import NcdiagError
from ncdiag.model.health import HealthFacts, HealthReport, Severity
from ncdiag.model.text import visible
from ncdiag.report.health import describe
from ncdiag.report.health.prometheus import render_health_metrics
from ncdiag.report.write import write_file

Result = TypeVar("Result")
Told = Mapping[tuple[str, str, str | None], tuple[Severity | None, str, str]]
"""What is wrong, by host, check and device: how much it weighs, what it is and what to do."""


class Watch:
    """Looks every ``every_s`` until it is interrupted; no failure of a round ends it.

    ``look`` is given the facts of each host that were read last, and returns a report. Reports
    whose verdict is another one than before are handed to ``announce``.
    """

    def __init__(
        self,
        look: Callable[[Mapping[str, HealthFacts]], HealthReport],
        every_s: float,
        metrics: Path | None,
        output: Console,
        messages: Console,
        *,
        announce: Callable[[HealthReport], None] | None = None,
    ) -> None:
        self._look = look
        self._every_s = every_s
        self._metrics = metrics
        self._output = output
        self._messages = messages
        self._announce = announce
        self._facts: dict[str, HealthFacts] = {}
        self._before: HealthReport | None = None
        self._complaints: dict[str, str] = {}

    def run(self, rounds: int | None = None) -> None:
        """Go on until Ctrl-C or SIGTERM, or for so many rounds; by a clock that never goes back."""
        due_s = time.monotonic()
        while rounds is None or rounds > 0:
            self._round()
            rounds = None if rounds is None else rounds - 1
            # A round that took longer than the time between them delays the next, and no more.
            due_s = max(due_s + self._every_s, time.monotonic())
            if rounds != 0:
                time.sleep(max(due_s - time.monotonic(), 0.0))

    def _round(self) -> None:
        report = self._tried("checking", lambda: self._look(self._facts))
        if report is None:
            return
        if metrics := self._metrics:
            self._tried("metrics", lambda: write_file(metrics, render_health_metrics(report)))
        try:
            for line in changes(self._before, report):
                self._output.print(f"{_now()}  {line}", soft_wrap=True)
        except OSError:
            if not self._metrics:  # nobody is left who would hear of anything
                raise
        changed = self._before is None or describe.verdict(self._before) is not describe.verdict(
            report
        )
        if changed and (announce := self._announce):
            self._tried("telling others", lambda: announce(report))
        self._before = report
        self._facts.update((one.host, one.facts) for one in report.hosts if one.facts)

    def _tried(self, what: str, do: Callable[[], Result]) -> Result | None:
        try:
            done = do()
        except (NcdiagError, OSError) as error:
            self._complain(what, str(error))
            return None
        except Exception as error:
            if interrupts.asked():  # some libraries turn Ctrl-C into an error of their own
                raise KeyboardInterrupt from error
            self._complain(what, f"internal error: {type(error).__name__}: {error}")
            return None
        self._complaints.pop(what, None)
        return done

    def _complain(self, what: str, text: str) -> None:
        """Say what went wrong, once for as long as it does."""
        if self._complaints.get(what) != text:
            with suppress(OSError):
                self._messages.print(f"{_now()}  {what}: {visible(text)}", soft_wrap=True)
        self._complaints[what] = text


def changes(before: HealthReport | None, now: HealthReport) -> Iterator[str]:
    """A line for each finding that came, changed in weight or went, and for the verdict."""
    was, is_now = _told(before), _told(now)
    for key, (severity, text, step) in is_now.items():
        then = f" -> {visible(step)}" if step else ""
        if key not in was:
            yield f"{_severity(severity)}  {_who(key)}: {visible(text)}{then}"
        elif was[key][0] is not severity:
            before_it = f" (it was {was[key][0]})"
            yield f"{_severity(severity)}  {_who(key)}: {visible(text)}{before_it}{then}"
    for key, (_, text, _) in was.items():
        if key not in is_now:
            yield f"{'gone':<8} {_who(key)}: {visible(text)}"
    if before is None or describe.verdict(before) is not describe.verdict(now):
        yield f"{describe.verdict(now).upper()}: {describe.conclusion(now)}"


def _told(report: HealthReport | None) -> Told:
    found: dict[tuple[str, str, str | None], tuple[Severity | None, str, str]] = {}
    for host in report.hosts if report else ():
        if host.error is not None:
            found[host.host, "", None] = (None, host.error, "")
        for one in host.findings:
            found.setdefault((host.host, one.check, one.device), (one.severity, one.text, one.next))
    return found


def _who(key: tuple[str, str, str | None]) -> str:
    host, check, device = key
    return visible(" ".join(part for part in (host, device, check) if part))


def _severity(severity: Severity | None) -> str:
    return f"{severity or 'unknown':<8}"


def _now() -> str:
    return f"{datetime.now(UTC):%Y-%m-%dT%H:%M:%SZ}"
