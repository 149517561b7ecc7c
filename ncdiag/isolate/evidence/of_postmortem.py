"""Evidence of a post-mortem: hosts that the logs of a failed job speak against.

A fault carries the time that its line has. Each is a run of its own, told by host, class, component
and that time: the same logs read again, or with others, count once.
"""

from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from typing import Final

from ncdiag.isolate.evidence.times import run_name
from ncdiag.model.finding import Finding, FirstSeen, Postmortem, Role, SuspectKind
from ncdiag.model.isolation import EvidenceKind, EvidencePiece
from ncdiag.model.place import Clock
from ncdiag.read.peel.stamps import Calendar, read

_DAY_S: Final = 86400.0
_DEVICES: Final = ("pci", "hca", "device")
_BLAMELESS: Final = frozenset((SuspectKind.CONFIG, SuspectKind.APPLICATION))


def of_postmortem(
    report: Postmortem, written_s: Mapping[str, float], now_s: float
) -> tuple[EvidencePiece, ...]:
    """What ``report`` says of hosts; ``written_s`` says when each input was last written to.

    Hosts that it would isolate are accused for good, of each class that alone would do, also
    of hardware that broke as a consequence. Other roots that point at a host are kept as
    inconclusive; other consequences and warnings accuse nobody.
    """
    return tuple(_Logs(written_s, now_s).pieces(report))


class _Logs:
    def __init__(self, written_s: Mapping[str, float], now_s: float) -> None:
        self._written_s = written_s
        self._now_s = now_s

    def pieces(self, report: Postmortem) -> Iterator[EvidencePiece]:
        used: set[tuple[str, str]] = set()
        for entry in report.isolate:
            for because in (entry.because, *entry.also):
                finding = _finding_of(entry.host, because, report)
                class_ = finding.class_.value if finding else because.partition(" ")[0]
                if (entry.host, class_) in used:
                    continue
                used.add((entry.host, class_))
                sure = finding.confidence if finding and because in entry.also else entry.confidence
                yield self._piece(entry.host, class_, finding, sure, because)
        for finding in report.findings:
            if finding.role is not Role.ROOT or _blames_no_host(finding):
                continue
            for suspect in finding.suspects:
                key = (suspect.name, finding.class_.value)
                if suspect.kind is SuspectKind.HOST and key not in used:
                    used.add(key)
                    yield self._piece(*key, finding, finding.confidence, None)

    def _piece(
        self,
        host: str,
        class_: str,
        finding: Finding | None,
        confidence: float,
        because: str | None,
    ) -> EvidencePiece:
        first = finding.first_seen if finding else None
        attributes = finding.attributes if finding else {}
        component = next((attributes[name] for name in _DEVICES if name in attributes), None)
        lines = finding.evidence if finding else ()
        told = because or (lines[0].text if lines else "") or class_
        told_by = (first.time or told) if first else told
        return EvidencePiece(
            host=host,
            kind=EvidenceKind.CRASH,
            class_=class_,
            source="parse-log",
            run=run_name("event", host, class_, component, told_by),
            seen_s=self._seen_s(first),
            text=(finding.explanation if finding else "") or told,
            confidence=confidence,
            conclusive=because is not None,
            component=component,
            report=f"{first.path}:{first.line}" if first else None,
        )

    def _seen_s(self, first: FirstSeen | None) -> float:
        """When it happened; at the latest when the log was last written to."""
        if first is None:
            return max(self._written_s.values(), default=self._now_s)
        written_s = min(self._written_s.get(first.path, self._now_s), self._now_s)
        return written_s if first.time is None else event_s(first.time, written_s)


def event_s(text: str, written_s: float) -> float:
    """The time that a stamp tells, in a log that was last written to at ``written_s``.

    A stamp without a zone is taken for UTC. What it leaves out, such as the year, is that which
    makes it the latest time before the log's end; one since boot tells nothing.
    """
    year = datetime.fromtimestamp(written_s, UTC).year
    stamp = read(text, Calendar(year))
    if stamp is None or stamp.moment.clock is Clock.UPTIME:
        return written_s
    seconds = stamp.moment.seconds
    if stamp.moment.clock is Clock.DAY:
        found = written_s // _DAY_S * _DAY_S + seconds
        return found if found <= written_s else found - _DAY_S
    if seconds <= written_s + _DAY_S:
        return min(seconds, written_s)  # without a zone it may seem to lie a day ahead
    before = read(text, Calendar(year - 1))
    return seconds if before is None else before.moment.seconds  # the same where it has a year


def _finding_of(host: str, because: str, report: Postmortem) -> Finding | None:
    """The finding that is why a host is to be left out."""
    class_ = because.partition(" ")[0].rstrip(":")
    own = [one for one in report.findings if one.class_.value == class_]
    naming = [
        one
        for one in own
        if any(suspect.name.partition(":")[0] == host for suspect in one.suspects)
    ]
    return next(iter(naming or own), None)


def _blames_no_host(finding: Finding) -> bool:
    return any(suspect.kind in _BLAMELESS for suspect in finding.suspects)
