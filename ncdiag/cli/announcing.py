"""``--junit``, ``--events`` and ``--webhook``: a verdict told to other systems.

None of them changes an exit code: what cannot be written or sent is a line on stderr.
"""

import fcntl
import os
import socket
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from ncdiag.cli import console
from ncdiag.model.errors import NcdiagError, UndecidedError, UsageError
from ncdiag.model.secrets import WEBHOOK_VARIABLE
from ncdiag.model.text import visible
from ncdiag.report.announce.announcement import Announcement, Status, together

if TYPE_CHECKING:  # of which one brings numpy
    from ncdiag.model.bench import BenchReport
    from ncdiag.model.burn_in import BurnInReport
    from ncdiag.model.finding import Postmortem
    from ncdiag.model.health import HealthReport
    from ncdiag.model.straggler import StragglerReport
    from ncdiag.model.verdict import SweepReport

    Report = SweepReport | BenchReport | BurnInReport | HealthReport | Postmortem | StragglerReport

_LOCK_S: Final = 5.0
_LOCK_AGAIN_S: Final = 0.05
# By the kind of report: what makes its announcement, which loads no other kind.
_MAKERS: Final = {
    "SweepReport": "of_sweep",
    "BenchReport": "of_bench",
    "BurnInReport": "of_burn_in",
    "HealthReport": "of_health",
    "Postmortem": "of_postmortem",
    "StragglerReport": "of_stragglers",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Outlets:
    """Where verdicts are told; nothing is there unless it was asked for."""

    junit: Path | None = None
    events: Path | None = None
    webhook: str | None = None
    always: bool = False

    def __bool__(self) -> bool:
        return bool(self.junit or self.events or self.webhook)

    def announce(
        self, *reports: "Report", command: str | None = None, where: Path | None = None
    ) -> None:
        """Tell what ``reports`` concluded, all in one; ``where`` is their directory.

        ``command`` is the one that was called, where the kind of report does not tell it.
        """
        if not self or not reports:
            return
        announcement = together(
            [announcement_of(report, command=command, where=where) for report in reports]
        )
        if self.junit is not None:
            _tried("--junit", lambda: _write_junit(self.junit, announcement))
        if self.events is not None:
            _tried("--events", lambda: _append_events(self.events, announcement))
        if self.webhook is not None and (self.always or announcement.status is not Status.PASSED):
            _tried("--webhook", lambda: _post(self.webhook, announcement))


def outlets(asked: Mapping[str, Any], environment: Mapping[str, str] = os.environ) -> Outlets:
    """The outlets that a command's options name, before anything is measured.

    Raises :class:`UsageError` for what could not be written or sent in the end.
    """
    found = Outlets(
        junit=asked["junit"],
        events=asked["events"],
        webhook=asked["webhook"] or environment.get(WEBHOOK_VARIABLE) or None,
        always=asked["webhook_always"],
    )
    made = asked.get("output")  # the report's folder, which is made before these are written
    for path, option, begins, what in (
        (found.junit, "--junit", b"<?xml", "JUnit XML"),
        (found.events, "--events", b"{", "events"),
    ):
        if path is not None and (made is None or path.absolute().parent != made.absolute()):
            check_folder(path, option)
        if path is not None:
            _check_file(path, option, begins, what)
    if found.webhook is not None:
        from ncdiag.cli.posting import check_url  # with TLS

        check_url(found.webhook, "--webhook" if asked["webhook"] else WEBHOOK_VARIABLE)
    elif found.always:
        raise UsageError(f"--webhook-always needs --webhook, or the variable {WEBHOOK_VARIABLE}")
    return found


def announcement_of(
    report: "Report", *, command: str | None = None, where: Path | None = None
) -> Announcement:
    """What ``report`` announces, whatever it is a report of."""
    name = _MAKERS[type(report).__name__]
    make = getattr(import_module(f"ncdiag.report.announce.{name}"), name)
    path = None if where is None else str(where.absolute())
    found: Announcement = make(report, where=path)
    return replace(
        found,
        command=command or found.command,
        started=found.started or f"{datetime.now(UTC):%Y-%m-%dT%H:%M:%SZ}",
    )


def _tried(option: str, do: Callable[[], None]) -> None:
    try:
        do()
    except (NcdiagError, OSError) as error:
        text = error.strerror or type(error).__name__ if isinstance(error, OSError) else error
        console.messages().print(f"ncdiag: {option}: {visible(str(text))}", soft_wrap=True)


def _write_junit(path: Path | None, announcement: Announcement) -> None:
    from ncdiag.report.announce.junit import render_junit
    from ncdiag.report.write import write_file

    if path is not None:
        write_file(path, render_junit(announcement))


def _append_events(path: Path | None, announcement: Announcement) -> None:
    """Append all events at once; several runs may share a file, and none begins inside a line."""
    from ncdiag.report.announce.events import render_events

    if path is None:
        return
    data = render_events(announcement)
    try:
        # Of a pipe that nobody reads, not blocking is an error at once.
        flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_NONBLOCK | os.O_CLOEXEC
        with os.fdopen(os.open(path, flags, 0o644), "ab", buffering=0) as file:
            _lock(file.fileno(), path)
            left = memoryview(data if _ends_whole(path) else b"\n" + data)
            while left:
                left = left[os.write(file.fileno(), left) :]
    except OSError as error:
        raise UndecidedError(f"cannot append to {path}: {error.strerror}") from error


def _lock(number: int, path: Path) -> None:
    """Wait for others that append, but not for one that keeps the file to itself."""
    until_s = time.monotonic() + _LOCK_S
    while True:
        try:
            fcntl.flock(number, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if time.monotonic() >= until_s:
                raise UndecidedError(
                    f"cannot append to {path}: another process kept it locked for {_LOCK_S:g} s"
                ) from None
            time.sleep(_LOCK_AGAIN_S)
        else:
            return


def _ends_whole(path: Path) -> bool:
    """Whether nobody was killed in the middle of the last line, as far as we may see."""
    if not path.is_file() or not path.stat().st_size:
        return True
    try:
        with path.open("rb") as file:
            file.seek(-1, os.SEEK_END)
            return file.read() == b"\n"
    except PermissionError:  # what may be written but not read
        return True


def _post(url: str | None, announcement: Announcement) -> None:
    from ncdiag.cli.posting import post
    from ncdiag.report.announce.slack import render_slack

    if url is not None:
        post(url, render_slack(announcement, sender=socket.gethostname()))


def check_folder(path: Path, option: str) -> None:
    """Refuse a file in a folder that is not there: a typing error would go unnoticed for long.

    Raises :class:`UsageError`.
    """
    folder, shown = path.absolute().parent, visible(str(path))
    if path.is_dir():
        raise UsageError(f"{option} {shown} is a folder; name a file to write")
    if not folder.is_dir():
        where = visible(str(folder))
        raise UsageError(f"{option} {shown}: there is no folder {where}; make it, or name another")


def _check_file(path: Path, option: str, begins: bytes, what: str) -> None:
    """Refuse what could not be written, or is something else. Raises :class:`UsageError`."""
    shown = visible(str(path))
    if path.is_dir():
        raise UsageError(f"{option} {shown} is a folder; name a file to write")
    if path.exists():
        if not os.access(path, os.W_OK):
            raise UsageError(f"{option} {shown} may not be written to")
        if path.is_file() and not _begins(path, begins):
            raise UsageError(f"{option} {shown} is there and holds no {what}; name another file")
        return
    folder = next(one for one in path.absolute().parents if one.exists())
    if not folder.is_dir() or not os.access(folder, os.W_OK | os.X_OK):
        raise UsageError(f"{option} {shown} cannot be made in {visible(str(folder))}")


def _begins(path: Path, with_: bytes) -> bool:
    try:
        with path.open("rb") as file:
            head = file.read(len(with_))
    except OSError:  # what may be written but not read
        return True
    return not head or head == with_
