"""Reads what ``ncdiag parse-log`` is given, and shows how far it is: a bar, on a terminal only."""

import io
from collections.abc import Sequence
from types import TracebackType
from typing import TYPE_CHECKING, Final, Self

from rich.console import Console

from ncdiag.logs.read_input import Job, read_input
from ncdiag.logs.read_logs import read_logs
from ncdiag.model.errors import UndecidedError, UsageError
from ncdiag.model.log import InputSummary, LogEvidence
from ncdiag.model.text import visible
from ncdiag.read.merge import EvidenceSum

if TYPE_CHECKING:
    from rich.progress import Progress, TaskID

RAS_PORT: Final = 28028
_RAS_TIMEOUT_S = 20.0


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
    together = EvidenceSum()
    if ras is not None:
        together.add(_ask(ras, max_bytes))
    if paths:
        with ReadingBar(messages) as bar:
            together.add(read_logs(paths, jobs=jobs, max_bytes=max_bytes, progress=bar.progress))
    evidence = together.result()
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


def _ask(target: str, max_bytes: int) -> LogEvidence:
    """The report of a running job; it has no end of its own and is read like a log."""
    from ncdiag.logs.ras_live import fetch

    host, port = parse_ras(target)
    name = f"ras://{host}:{port}"
    try:
        report = fetch(host, port, _RAS_TIMEOUT_S)
    except OSError as error:
        why = error.strerror or str(error) or type(error).__name__
        raise UndecidedError(
            f"no RAS report from {host}:{port}: {why}; it needs NCCL 2.24 or later, "
            "a running job, and NCCL_RAS_ADDR when it is asked from another host"
        ) from error
    job = Job(path=name, name=name, every_line=True, max_bytes=max_bytes)
    return read_input(job, ready=io.BytesIO(report))


def parse_ras(target: str) -> tuple[str, int]:
    """Host and port of ``HOST[:PORT]``, an IPv6 address in brackets; raises :class:`UsageError`."""
    from ncdiag.cluster.names import check_port, check_target

    host, colon, port = target.rpartition(":")
    if not colon or target.endswith("]") or (":" in host and not host.endswith("]")):
        host, port = target, str(RAS_PORT)
    if not (port.isascii() and port.isdigit() and len(port) <= 5):
        raise UsageError(f"{port} is no port ({target}); write HOST or HOST:{RAS_PORT}")
    return check_target(host.strip("[]")), check_port(int(port))


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
