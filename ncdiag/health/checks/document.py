"""The manual's page of checks, made from the table."""

from collections.abc import Iterator

from ncdiag.health.checks.check import Check, Scope
from ncdiag.health.checks.limits import Limits, limit_rows
from ncdiag.health.checks.table import CHECKS

_HEAD = """\
# Health checks

Every check of `ncdiag health`, made from the table in `ncdiag/health/checks/table.py`.

*Severity* is the most that a check weighs; it says less where less is sure. A **note** is worth
knowing. A **warning** wants a look and changes no verdict. A **fault** makes the host *faulty*,
out of a launch until it is put right; nobody is drained for it. **Fatal** breaks whatever
runs there: a prolog drains the host.

A check whose sources are absent on a host, denied or silent finds nothing: it is listed as *not
checked*, which is neither good nor bad. *Configuration* says that settings are wrong, and no
hardware. Checks of rising counters need two readings of one boot; a counter that went back was
reset and tells nothing.
"""
_SCOPES = {
    Scope.HOST: "",
    Scope.FLEET: "the facts of at least three hosts",
    Scope.SWEEP: "a sweep's result",
}


def document_checks() -> str:
    """The whole page."""
    limits = Limits()
    rows = "\n".join(
        f"| `{row.name}` | {row.value:,.12g} | {row.unit} | {row.source} |"
        for row in limit_rows(limits)
    )
    table = "\n".join(
        f"| [{check.id}](#{check.id}) | {check.severity} | {check.title} |"
        for check in CHECKS.values()
    )
    checks = "\n".join(line for check in CHECKS.values() for line in _section(check))
    return (
        f"{_HEAD}\n| check | severity | what |\n| --- | --- | --- |\n{table}\n\n{checks}\n"
        "## Limits\n\nEvery number that a check hangs on.\n\n"
        f"| limit | value | unit | source |\n| --- | --- | --- | --- |\n{rows}\n"
    )


def _section(check: Check) -> Iterator[str]:
    yield f"## {check.id}\n"
    kind = " (configuration)" if check.configuration else ""
    yield f"**{check.severity}**{kind}. {check.meaning}\n"
    yield f"*Then:* {_plain(check.fix)}\n"
    read = ", ".join(check.sources) or _SCOPES[check.scope] or "how asking the sources went"
    yield f"*From:* {read}\n"


def _plain(text: str) -> str:
    """A pipe would end a cell of a table, and angle brackets would be taken for HTML."""
    return text.replace("<", "&lt;").replace(">", "&gt;")
