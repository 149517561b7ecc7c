"""Which checks an operator wants, and what then remains of a judged host."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from ncdiag.health.checks.check import Check, Scope
from ncdiag.health.checks.table import CHECKS
from ncdiag.model.errors import UsageError
from ncdiag.model.health import HostFitness, HostHealth, Severity
from ncdiag.model.text import did_you_mean, visible

_FITNESS = {
    Severity.FATAL: HostFitness.FATAL,
    Severity.FAULT: HostFitness.FAULTY,
    Severity.WARNING: HostFitness.WARNING,
}


@dataclass(frozen=True, slots=True)
class CheckChoice:
    """Some of all checks by id; ``None`` is all of them."""

    ids: frozenset[str] | None = None

    def narrowed(self, host: HostHealth) -> HostHealth:
        """``host`` with what these checks say of it, and nothing else."""
        ids = self.ids
        if ids is None or host.facts is None:
            return host
        findings = tuple(one for one in host.findings if one.check in ids)
        passed = tuple(one for one in host.passed if one in ids)
        not_known = tuple(one for one in host.not_known if one.check in ids)
        fitness = next(
            (
                word
                for severity, word in _FITNESS.items()
                if any(one.severity is severity for one in findings)
            ),
            HostFitness.HEALTHY if passed or findings else HostFitness.UNKNOWN,
        )
        return replace(host, fitness=fitness, findings=findings, passed=passed, not_known=not_known)


def choose_checks(only: Sequence[str], skip: Sequence[str]) -> CheckChoice:
    """The checks of ``only``, all where it is empty, without those of ``skip``.

    Raises :class:`UsageError` for one that is not there, and where none remains.
    """
    for name in (*only, *skip):
        if find_check(name).scope is Scope.SWEEP and name in only:
            raise UsageError(f"{name} needs a measurement: ncdiag burn-in makes it")
    if not only and not skip:
        return CheckChoice()
    ids = frozenset(only or CHECKS) - frozenset(skip)
    if not ids:
        raise UsageError("--skip leaves none of the checks of --only")
    return CheckChoice(ids)


def find_check(name: str) -> Check:
    """The check with this id; raises :class:`UsageError` where there is none of this name."""
    if name not in CHECKS:
        raise UsageError(
            f"no check is called {visible(name)!r}; ncdiag health --list-checks names all"
            f"{did_you_mean(name, CHECKS)}"
        )
    return CHECKS[name]
