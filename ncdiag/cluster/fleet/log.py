"""Where Dask's loggers and the hosts' standard error go: to a file or nowhere, never on screen."""

import contextlib
import logging
from pathlib import Path
from types import TracebackType
from typing import IO, Self

from ncdiag.model.errors import UsageError
from ncdiag.model.text import visible

# Those that distributed gives a handler of their own when it is imported (distributed/config.py),
# and asyncio's, which tells of pipes that a lost host leaves behind.
_NOISY = ("distributed", "distributed.client", "bokeh", "tornado", "tornado.application", "asyncio")


class FleetLog:
    """Open while a fleet is; a full disk loses lines, never the fleet."""

    def __init__(self, path: Path | None) -> None:
        self._path = path
        self._file: IO[str] | None = None
        self._handler: logging.Handler = logging.NullHandler()

    def write(self, line: str) -> None:
        """Add a line of text from outside."""
        if self._file:
            with contextlib.suppress(OSError):
                self._file.write(visible(line) + "\n")

    def __enter__(self) -> Self:
        if self._path:
            try:
                self._file = self._path.open("a", buffering=1, encoding="utf-8")
            except OSError as error:
                raise UsageError(f"cannot write {self._path}: {error.strerror}") from None
            self._handler = logging.StreamHandler(self._file)
            self._handler.handleError = _drop  # type: ignore[method-assign] # see the class
        for name in _NOISY:
            logger = logging.getLogger(name)
            logger.handlers = [self._handler]
            logger.propagate = False
            logger.setLevel(logging.WARNING)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        for name in _NOISY:
            logging.getLogger(name).handlers = [logging.NullHandler()]
        if self._file:
            with contextlib.suppress(OSError):
                self._file.close()


def _drop(record: logging.LogRecord) -> None:
    del record
