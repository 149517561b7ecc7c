"""What is wrong with settings of environment variables, and what to write instead."""

from collections.abc import Sequence

from ncdiag.model.environment import LintFinding, Setting
from ncdiag.profiles.context import LintContext


def lint(settings: Sequence[Setting], context: LintContext) -> tuple[LintFinding, ...]:
    """What is wrong with ``settings``, errors first, then by the order of the settings."""
    _ = settings, context
    return ()
