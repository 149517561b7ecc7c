"""Failed calls, found by the process that made them: jobs have tens of thousands of processes."""

from collections.abc import Iterable, Iterator

from ncdiag.diagnose.postmortem.case import Case
from ncdiag.diagnose.postmortem.draft import Draft
from ncdiag.model.log import Event, Speaker

Call = tuple[Draft, Event]
# Calls of a draft that are tried for an ending of which no line tells whose it is.
_TRIED_BLINDLY = 64


class FailedCalls:
    """The first call of each process in each draft."""

    def __init__(self, drafts: Iterable[Draft], case: Case) -> None:
        self._by_key: dict[object, list[Call]] = {}
        self._any: list[Call] = []
        for draft in drafts:
            seen: set[object] = set()
            self._any += [(draft, event) for event in draft.events[:_TRIED_BLINDLY]]
            for event in draft.events:
                for key in self._keys_of(event, case):
                    if key not in seen:
                        seen.add(key)
                        self._by_key.setdefault(key, []).append((draft, event))

    def near(self, ending: Event, case: Case) -> Iterator[Call]:
        """Calls that may belong to the process that ended: its own first, then nobody's."""
        for key in self._keys_of(ending, case):
            yield from self._by_key.get(key, ())
        yield from self._any

    @staticmethod
    def _keys_of(event: Event, case: Case) -> Iterator[object]:
        yield from _keys(event.speaker)
        if host := case.hosts.of_event(event):
            yield "host", host


def _keys(speaker: Speaker) -> Iterator[object]:
    if speaker.rank is not None:
        yield "rank", speaker.rank
    if speaker.label is not None:
        yield "label", speaker.label
    if speaker.host and speaker.pid:
        yield "process", speaker.host, speaker.pid
