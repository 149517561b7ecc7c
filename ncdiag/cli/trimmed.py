"""A console whose lines end with their last character where they go to a file or a pipe."""

from typing import Any

from rich.console import Console


class TrimmedConsole(Console):
    """Tables are padded to their width, which is of use on a terminal alone."""

    def print(self, *objects: Any, **how: Any) -> None:
        """Print as :class:`rich.console.Console` does."""
        if self.is_terminal or self.record or self._buffer_index:  # inside of another's capture
            super().print(*objects, **how)
            return
        with self.capture() as captured:
            super().print(*objects, **how)
        lines = captured.get().split("\n")
        self.file.write("\n".join((*(line.rstrip(" ") for line in lines[:-1]), lines[-1])))
