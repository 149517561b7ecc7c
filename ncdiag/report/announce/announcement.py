"""One record of a verdict, whatever command it comes from; what outlets write is made of it."""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Final

from ncdiag.model.errors import ExitCode
from ncdiag.model.text import visible
from ncdiag.report.exposition import ended


class Status(StrEnum):
    """How one host or check came out; ``warning`` changes no verdict."""

    PASSED = "passed"
    FAILED = "failed"
    UNDECIDED = "undecided"
    WARNING = "warning"


_WEIGHT: Final = (Status.PASSED, Status.WARNING, Status.UNDECIDED, Status.FAILED)
STATUS_OF_EXIT: Final = {
    ExitCode.DONE: Status.PASSED,
    ExitCode.WRONG: Status.FAILED,
    ExitCode.UNDECIDED: Status.UNDECIDED,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Item:
    """One host or check: ``about`` says what ``name`` is (``host``, ``link``, ``check``).

    ``host`` is the host it is on, where it is on one. ``text`` says why, ``next`` what to do.
    """

    about: str
    name: str
    status: Status
    text: str = ""
    next: str = ""
    host: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Announcement:
    """What a run of ``command`` concluded; ``verdict`` is the word that the command itself uses.

    ``status`` is what that word comes to. ``started`` is UTC in ISO 8601, empty where nothing
    was measured. ``isolate`` are the hosts to leave out, ``items`` all hosts and checks, ``report``
    where to read more.
    """

    command: str
    verdict: str
    status: Status
    headline: str
    started: str = ""
    seconds: float = 0.0
    isolate: tuple[str, ...] = ()
    items: tuple[Item, ...] = field(default=())
    report: str | None = None
    interrupted: bool = False

    @property
    def findings(self) -> tuple[Item, ...]:
        """What did not pass, the worst first; of a host nothing that a check on it tells."""
        told = {(item.host, item.status) for item in self.items}
        return tuple(
            item
            for status in (Status.FAILED, Status.UNDECIDED, Status.WARNING)
            for item in self.items
            if item.status is status and not (item.about == "host" and (item.name, status) in told)
        )

    def count(self, status: Status) -> int:
        """How many hosts came out so: a host with several findings by the worst of them."""
        return Counter(worst_by_host(self.items).values())[status]

    @property
    def ended(self) -> str:
        """When it ended, UTC in ISO 8601."""
        end = ended(self.started, self.seconds)
        return self.started if end is None else f"{end:%Y-%m-%dT%H:%M:%SZ}"


def worst_by_host(items: Iterable[Item]) -> dict[str, Status]:
    """Each host that is named, with the worst that is said of it."""
    found: dict[str, Status] = {}
    for item in items:
        host = item.name if item.about == "host" else item.host
        if host is not None:
            found[host] = max(found.get(host, Status.PASSED), item.status, key=_WEIGHT.index)
    return found


def together(announcements: Sequence[Announcement]) -> Announcement:
    """One announcement of several of one command: the worst verdict, and what each found."""
    if len(announcements) == 1:
        return announcements[0]
    worst = max(announcements, key=lambda one: _WEIGHT.index(one.status))
    return replace(
        worst,
        headline="; ".join(one.headline for one in announcements),
        seconds=sum(one.seconds for one in announcements),
        isolate=tuple(dict.fromkeys(host for one in announcements for host in one.isolate)),
        items=tuple(item for one in announcements for item in one.items),
        interrupted=any(one.interrupted for one in announcements),
    )


def one_line(text: str) -> str:
    """``text`` from outside on one line, with nothing hidden in it."""
    return visible(" ".join(text.split()))
