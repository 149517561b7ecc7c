"""Short names for the inputs: what they share is said once."""

import os.path
from collections.abc import Iterable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ncdiag.model.finding import EvidenceLine, FirstSeen

_STDIN = "-"


class ShortPaths:
    """Leaves out the folder that all inputs are in; ``folder`` is that, or empty."""

    def __init__(self, paths: Iterable[str]) -> None:
        folders = {os.path.dirname(path) for path in paths if path != _STDIN}  # noqa: PTH120 - text
        try:
            self.folder = os.path.commonpath(folders) if all(folders) and folders else ""
        except ValueError:  # some are absolute and some are not
            self.folder = ""
        self._prefix = self.folder.rstrip("/") + "/" if self.folder else ""

    def name(self, path: str) -> str:
        """The path without the folder."""
        return "stdin" if path == _STDIN else path.removeprefix(self._prefix)

    def place(self, one: "EvidenceLine | FirstSeen") -> str:
        """``gpu-04.log:211``."""
        return f"{self.name(one.path)}:{one.line}"
