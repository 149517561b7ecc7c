"""``--record``: keep a report in the store."""

from pathlib import Path

from ncdiag.model.bench import BenchReport
from ncdiag.model.errors import UsageError
from ncdiag.model.verdict import SweepReport


def keep(report: SweepReport | BenchReport, store: Path | None) -> None:
    """Add ``report`` to the store at ``store`` (default: in the user's data directory)."""
    raise UsageError(f"--record: there is no store yet ({store}, {type(report).__name__})")
