"""The report directory of a measuring command: made before anything is measured."""

from datetime import UTC, datetime
from pathlib import Path

from ncdiag.measure.journal import JOURNAL_NAME
from ncdiag.model.errors import UsageError

REPORTS = Path("reports")


def prepare_directory(output: Path | None, command: str, *, force: bool) -> Path:
    """Make the directory that a new report goes to, by default a dated one under ``reports/``.

    ``force`` allows a directory that is not empty: an earlier journal there is removed, other
    files are replaced as the new ones are written. Raises :class:`UsageError`.
    """
    directory = output or REPORTS / f"{command}-{datetime.now(UTC):%Y%m%dT%H%M%SZ}"
    try:
        directory.mkdir(parents=True, exist_ok=True)
        if any(directory.iterdir()) and not force:
            resume = ", or --resume to continue the sweep in it" if command == "sweep" else ""
            ways = "another --output" + (", " if resume else " or ")
            raise UsageError(
                f"{directory} is not empty; give {ways}--force to write over it{resume}"
            )
        (directory / JOURNAL_NAME).unlink(missing_ok=True)
    except OSError as error:
        raise UsageError(f"cannot write to {directory}: {error.strerror}") from error
    return directory
