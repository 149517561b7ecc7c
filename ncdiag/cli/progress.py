"""What an operator sees while a sweep runs: a bar on a terminal, a few plain lines elsewhere."""

from types import TracebackType
from typing import Self

from rich.console import Console
from rich.progress import BarColumn, TaskID, TextColumn
from rich.progress import Progress as Bar

from ncdiag.measure.sweep import Progress
from ncdiag.model.text import visible
from ncdiag.model.units import format_duration

_COLUMNS = "{task.completed:.0f}/{task.total:.0f} {task.fields[details]}"


class ConsoleWatcher:
    """Shows a sweep's progress on ``console``; ``verbose`` adds a line for each host."""

    def __init__(self, console: Console, *, verbose: bool) -> None:
        self._console = console
        self._verbose = verbose
        self._stage = ""
        self._bar = Bar(
            TextColumn("{task.description}"),
            BarColumn(bar_width=20),
            TextColumn(_COLUMNS),
            console=console,
            transient=True,
            disable=not console.is_terminal or console.quiet,
        )
        self._task: TaskID | None = None

    def __enter__(self) -> Self:
        self._bar.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._bar.stop()

    def host(self, name: str, text: str) -> None:
        """Something became known about reaching a host."""
        if self._verbose:
            self._console.print(f"{visible(name)}: {visible(text)}", soft_wrap=True)

    def progress(self, progress: Progress) -> None:
        """Another step of the sweep is done."""
        details = (
            f"{progress.pairs} pairs, {progress.suspects} suspect, "
            f"{format_duration(progress.left_s)} left"
        )
        if progress.stage != self._stage:
            self._start(progress)
        if self._task is not None:
            self._bar.update(
                self._task, completed=progress.done, total=progress.total, details=details
            )

    def _start(self, progress: Progress) -> None:
        self._stage = progress.stage
        if not self._console.is_terminal:
            left = format_duration(progress.left_s)
            self._console.print(f"{progress.stage}: {progress.total}, about {left}", soft_wrap=True)
        if self._task is not None:
            self._bar.remove_task(self._task)
        self._task = self._bar.add_task(progress.stage, total=progress.total, details="")
