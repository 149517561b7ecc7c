"""Reads what ``ncdiag parse-log`` is given, and shows how far it is: a bar, on a terminal only."""

import io
from collections.abc import Sequence
from types import TracebackType
from typing import TYPE_CHECKING, Self

from rich.console import Console

from ncdiag.logs.read_input import Job, read_input
from ncdiag.logs.read_logs import read_logs
from ncdiag.model.errors import NcdiagError, UsageError
from ncdiag.model.log import InputSummary, LogEvidence
from ncdiag.model.text import visible
from ncdiag.read.merge import joined

if TYPE_CHECKING:
    from rich.progress import Progress, TaskID


def read_evidence(
    paths: Sequence[str],
    ras: str | None,
    messages: Console,
    *,
    max_bytes: int,
    jobs: int | None,
) -> LogEvidence:
    """All that ``paths`` and the RAS service hold; one line on stderr for what cannot be read.

    Raises :class:`UsageError` where nothing can.
    """
    told = [] if ras is None else [_ask(ras, max_bytes, needed=not paths)]
    if paths:
        with ReadingBar(messages) as bar:
            told.append(read_logs(paths, jobs=jobs, max_bytes=max_bytes, progress=bar.progress))
    evidence = told[0] if len(told) == 1 else joined(told)
    _tell_errors(evidence.inputs, paths, messages)
    return evidence


def _tell_errors(inputs: Sequence[InputSummary], paths: Sequence[str], messages: Console) -> None:
    """A line for each input with an error; an error where there are no others."""
    if not inputs:
        raise UsageError(f"{', '.join(paths)}: no file is there")
    bad = [one for one in inputs if one.error]
    if all(one.error and not one.bytes for one in inputs):
        more = f" (and {len(bad) - 1} more cannot be read)" if len(bad) > 1 else ""
        raise UsageError(f"{bad[0].path}: {bad[0].error}{more}")
    for one in bad:
        messages.print(f"ncdiag: {visible(one.path)}: {visible(one.error or '')}", soft_wrap=True)


def _ask(target: str, max_bytes: int, *, needed: bool) -> LogEvidence:
    """The report of a running job, read as if it stood in a file.

    One that cannot be had ends the command only where it is ``needed``.
    """
    from ncdiag.logs import ras_live

    host, port = ras_live.address(target)
    name = f"ras://{host}:{port}"
    job = Job(path=name, name=name, every_line=True, max_bytes=max_bytes)
    try:
        report = ras_live.fetch(host, port)
    except NcdiagError as error:
        if needed:
            raise
        why = str(error).removeprefix(f"{host}:{port}: ")
        return LogEvidence(inputs=[InputSummary(path=name, error=why)])
    return read_input(job, ready=io.BytesIO(report))


class ReadingBar:
    """Shows how much of the logs is read, once that takes long enough to look at."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._bar: Progress | None = None
        self._task: TaskID | None = None

    def __enter__(self) -> Self:
        if self._console.is_terminal:
            from rich.progress import (
                BarColumn,
                DownloadColumn,
                Progress,
                TextColumn,
                TimeRemainingColumn,
                TransferSpeedColumn,
            )

            self._bar = Progress(
                TextColumn("reading"),
                BarColumn(bar_width=20),
                DownloadColumn(),
                TransferSpeedColumn(),
                TimeRemainingColumn(),
                console=self._console,
                transient=True,
            )
            self._task = self._bar.add_task("reading", total=None)
            self._bar.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._bar:
            self._bar.stop()

    def progress(self, done_bytes: int, total_bytes: int) -> None:
        """So much is read of so much; a total of 0 is not known."""
        if self._bar and self._task is not None:
            self._bar.update(self._task, completed=done_bytes, total=total_bytes or None)
