"""All drafts of a case, found by where they stand: clusters have a fault on every host."""

from collections.abc import Iterable
from functools import cached_property

from ncdiag.diagnose.postmortem.classes import Tier
from ncdiag.diagnose.postmortem.draft import Draft
from ncdiag.diagnose.postmortem.hosts import HostBook
from ncdiag.model.finding import FindingClass as C

_TRANSFERS = (C.IB_COMPLETION_ERROR, C.SOCKET_ERROR, C.OFI_COMPLETION_ERROR)

_Numbered = tuple[int, Draft]


class Docket(list[Draft]):
    """The drafts; which there are, and on which hosts, is settled when it is made."""

    def __init__(self, drafts: Iterable[Draft], hosts: HostBook) -> None:
        super().__init__(drafts)
        self._hosts = hosts
        self._places: dict[C, set[str]] = {}
        self._accused: dict[C, set[str]] = {}

    def of(self, *classes: C) -> list[Draft]:
        """The drafts of some classes."""
        return [draft for class_ in classes for draft in self._by_class.get(class_, ())]

    def hardware_like(self, draft: Draft) -> list[Draft]:
        """Faults of hardware on the host of ``draft``; without one, those of its input."""
        return self._by_place.get(_place(draft), [])

    def hardware_on(self, host: str | None) -> list[Draft]:
        """Faults of hardware with an event on ``host``."""
        return [draft for _, draft in self._hardware.get(host, ())]

    def surer_on(self, hosts: Iterable[str | None]) -> list[Draft]:
        """Faults of hardware on some hosts, and all else that is surer than a failed call."""
        found = [entry for host in set(hosts) for entry in self._hardware.get(host, ())]
        return [draft for _, draft in sorted({*found, *self._ended}, key=_number)]

    def places_of(self, class_: C) -> set[str]:
        """The hosts on which drafts of a class stand."""
        if class_ not in self._places:
            self._places[class_] = {draft.host for draft in self.of(class_) if draft.host}
        return self._places[class_]

    def hosts_of(self, class_: C) -> set[str]:
        """The hosts that drafts of a class draw their conclusions from."""
        if class_ not in self._accused:
            events = (event for draft in self.of(class_) for event in draft.accusing)
            self._accused[class_] = {h for e in events if (h := self._hosts.of_event(e))}
        return self._accused[class_]

    def effects_of(self, cause: Draft) -> list[Draft]:
        """The drafts that ``cause`` explains, once all is explained."""
        return self._effects.get(id(cause), [])

    @cached_property
    def _effects(self) -> dict[int, list[Draft]]:
        found: dict[int, list[Draft]] = {}
        for draft in self:
            if draft.cause:
                found.setdefault(id(draft.cause), []).append(draft)
        return found

    @cached_property
    def named(self) -> set[str]:
        """The hosts that failed transfers name as the other end."""
        events = (event for draft in self.of(*_TRANSFERS) for event in draft.accusing)
        return {host for event in events if (host := self._hosts.peer_of(event))}

    @cached_property
    def _by_class(self) -> dict[C, list[Draft]]:
        found: dict[C, list[Draft]] = {}
        for draft in self:
            found.setdefault(draft.class_, []).append(draft)
        return found

    @cached_property
    def _by_place(self) -> dict[tuple[str | None, str | None], list[Draft]]:
        found: dict[tuple[str | None, str | None], list[Draft]] = {}
        for draft in self:
            if draft.tier is Tier.HARDWARE:
                found.setdefault(_place(draft), []).append(draft)
        return found

    @cached_property
    def _hardware(self) -> dict[str | None, list[_Numbered]]:
        found: dict[str | None, list[_Numbered]] = {}
        for number, draft in enumerate(self):
            if draft.tier is Tier.HARDWARE:
                for host in {self._hosts.of_event(event) for event in draft.strong}:
                    found.setdefault(host, []).append((number, draft))
        return found

    @cached_property
    def _ended(self) -> list[_Numbered]:
        return [(n, draft) for n, draft in enumerate(self) if draft.tier is Tier.ENDED]


def _place(draft: Draft) -> tuple[str | None, str | None]:
    return (draft.host, None) if draft.host else (None, draft.first.place.path)


def _number(entry: _Numbered) -> int:
    return entry[0]
