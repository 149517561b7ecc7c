"""A post-mortem for a terminal: what failed, where and what to do, in the first three lines."""

from rich.console import Console

from ncdiag.model.finding import Postmortem
from ncdiag.model.log import LogEvidence
from ncdiag.report.postmortem.presentable import presentable


def render(
    postmortem: Postmortem, evidence: LogEvidence, console: Console, *, verbose: bool
) -> None:
    """Print the answer; ``verbose`` adds all evidence and tables of what was read."""
    shown = presentable(postmortem)
    console.print(shown.verdict.upper())
    for one in shown.findings:
        console.print(f"{one.role} {one.class_}")
