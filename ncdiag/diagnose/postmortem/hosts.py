"""Which host a name or an address means."""

import re
from collections.abc import Iterable, Mapping

from ncdiag.diagnose.postmortem.names import same_host, short
from ncdiag.diagnose.postmortem.ranks import hosts_of_labels, hosts_of_ranks
from ncdiag.model.finding import FindingClass as C
from ncdiag.model.log import Event, LogEvidence, Speaker

# Addresses that every host may have: loopback, link-local, the default bridge of containers.
_EVERYWHERE = re.compile(
    r"127\.|169\.254\.|172\.17\.|fe80:|::1$|0\.0\.0\.0$|localhost$", re.IGNORECASE
)
_ELIDED = re.compile(r"^\.{2,}[-_.]?|^…[-_.]?")
# What a launcher tells of a process on another host.
_ENDED_ELSEWHERE = frozenset({C.PROCESS_DIED, C.PROCESS_CRASH, C.OOM_KILL})
_BRACKETS = str.maketrans("", "", "[]")
_MAPPED = re.compile(r"^::ffff:(?=\d+\.)", re.IGNORECASE)


class HostBook:
    """Maps names and addresses to one name a host, as far as the evidence proves it.

    An address belongs to the host whose own process listens on it; one that several hosts claim
    belongs to none. ``names`` (addresses or names to names) is the operator's word and goes first.
    """

    def __init__(self, evidence: LogEvidence, names: Mapping[str, str] | None = None) -> None:
        self._given = dict(names or {})
        self._known = list(dict.fromkeys([*_spoken_hosts(evidence), *_named_hosts(evidence)]))
        self._names = frozenset(self._known)
        self._of_rank = hosts_of_ranks(evidence)
        self._of_label = hosts_of_labels(evidence)
        self._owner: dict[str, str | None] = {}
        for process in evidence.processes:
            for address in process.addresses:
                self._claim(address, process.host)
        for event in evidence.events:
            speaker = event.speaker
            if speaker.host and speaker.address:
                self._claim(speaker.address, speaker.host)
            if speaker.host and (gid := event.attributes.get("local_gid")):
                self._claim(gid, speaker.host)
        self._cache: dict[str, str] = {}

    def _claim(self, address: str, host: str) -> None:
        address = _plain(address)
        if _EVERYWHERE.match(address):
            return
        known = self._owner.setdefault(address, host)
        if known and not same_host(known, host):
            self._owner[address] = None

    def resolve(self, name: str) -> str:
        """The host that ``name`` means, or ``name`` itself where nothing better is known."""
        if name not in self._cache:
            self._cache[name] = self._find(name)
        return self._cache[name]

    def _find(self, name: str) -> str:
        name = name.translate(_BRACKETS)
        plain = _plain(name)
        given = self._given.get(name) or self._given.get(plain)
        found = given or self._owner.get(plain) or name
        if short(found) != found and short(found) in self._names:
            return short(found)
        if not _ELIDED.match(found):
            return found
        whole = [host for host in self._known if _elides(found, host)]
        return whole[0] if len(whole) == 1 else found

    def same(self, name: str, other: str) -> bool:
        """Whether two names mean one host."""
        return same_host(self.resolve(name), self.resolve(other))

    def of_speaker(self, speaker: Speaker) -> str | None:
        """The host that speaks; an address counts as a name where no better one is given.

        A line that proves only its rank is of the host on which that rank is known to be.
        """
        name = speaker.host or speaker.address
        if name is None and speaker.rank is not None:
            name = self._of_rank.get(speaker.rank)
        return self.resolve(name) if name else None

    def of_event(self, event: Event) -> str | None:
        """The host an event is about: the one it names as its place, else the one that speaks."""
        details, attributes = event.details, event.attributes
        named = details.get("host") or details.get("node") or attributes.get("host")
        if not named and event.class_name in _ENDED_ELSEWHERE:
            named = details.get("address")
        if not named and (found := self.of_speaker(event.speaker)):
            return found
        named = named or self._of_label.get((event.place.path, event.speaker.label or ""))
        return self.resolve(named) if named else None

    def peer_of(self, event: Event) -> str | None:
        """The other end that an event names, by name, address or GID."""
        peer = event.attributes.get("peer") or event.details.get("far_host")
        if peer:
            resolved = self.resolve(peer)
            if resolved != peer or not _EVERYWHERE.match(_plain(peer)):
                return resolved
        gid = event.attributes.get("remote_gid")
        if gid and (owner := self._owner.get(_plain(gid))):
            return self.resolve(owner)
        return self.resolve(peer) if peer else None


def _spoken_hosts(evidence: LogEvidence) -> Iterable[str]:
    for process in evidence.processes:
        yield process.host
    for event in evidence.events:
        if event.speaker.host:
            yield event.speaker.host
    yield from evidence.hosts


def _named_hosts(evidence: LogEvidence) -> Iterable[str]:
    """Other ends that are given by name, not by address."""
    for event in evidence.events:
        peer = event.attributes.get("peer", "")
        if peer and ":" not in peer and not peer[0].isdigit():
            yield peer


def _plain(address: str) -> str:
    return _MAPPED.sub("", address).lower()


def _elides(elided: str, name: str) -> bool:
    """Whether ``elided`` is ``name`` with its beginning blanked out (``...-47`` for ``node47``)."""
    match = _ELIDED.match(elided)
    rest = elided[match.end() :] if match else ""
    if not rest or _ELIDED.match(name) or not name.endswith(rest):
        return False
    before = name[: -len(rest)]
    # ``...-7`` is not ``node47``: digits go on to the left.
    return not (rest[0].isdigit() and before[-1:].isdigit())
