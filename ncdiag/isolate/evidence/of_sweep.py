"""Evidence of a sweep: slow and damaging hosts and NICs, and hosts that were found healthy."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Final

from ncdiag.isolate import words
from ncdiag.isolate.evidence.times import ended_s
from ncdiag.model.isolation import EvidenceKind, EvidencePiece
from ncdiag.model.verdict import (
    Culprit,
    CulpritKind,
    Diagnosis,
    HostStatus,
    LinkStatus,
    LinkVerdict,
    SweepReport,
    Verdict,
)

# Fewer partners prove nothing for a host, as they prove nothing against one.
_MIN_PARTNERS: Final = 2
_ENOUGH: Final = 16
_HOST: Final = "host"
_BAD_LINKS: Final = frozenset((LinkStatus.FAULTY, LinkStatus.DEGRADED))
_DOUBTED: Final = frozenset((HostStatus.INCONCLUSIVE, HostStatus.DEGRADED))


def of_sweep(
    report: SweepReport, run: str, *, source: str = "sweep", where: str | None = None
) -> tuple[EvidencePiece, ...]:
    """What ``report`` says of hosts; ``where`` is its directory.

    Only hosts that the sweep itself would isolate are accused for good. Links, switches, rails and
    the fleet as a whole accuse nobody; whoever could not be reached was not measured.
    """
    if report.plan.endpoint != _HOST:
        return ()
    blank = EvidencePiece(
        host="",
        kind=EvidenceKind.BANDWIDTH,
        class_=words.SLOW_HOST,
        source=source,
        run=run,
        seen_s=ended_s(report.started, report.seconds),
        text="",
        report=where,
    )
    diagnosis = report.diagnosis
    accused: dict[str, list[Culprit]] = {}
    for culprit in diagnosis.culprits:
        if (host := _host_of(culprit, diagnosis)) is not None:
            accused.setdefault(host, []).append(culprit)
    pieces = [*_accusing(accused, diagnosis, blank), *_doubting(accused, diagnosis, blank)]
    if diagnosis.verdict is not Verdict.INCONCLUSIVE and not report.interrupted:
        pieces += _clean(diagnosis, blank)
    return tuple(pieces)


def _accusing(
    accused: Mapping[str, Sequence[Culprit]], diagnosis: Diagnosis, blank: EvidencePiece
) -> Iterator[EvidencePiece]:
    slow = _partners(diagnosis.links, accused, _BAD_LINKS)
    for host, culprits in accused.items():
        for culprit in culprits:
            nic = culprit.kind is CulpritKind.NIC
            class_ = words.SLOW_NIC if nic else words.SLOW_HOST
            yield replace(
                blank,
                host=host,
                kind=EvidenceKind.DATA if culprit.damaged else EvidenceKind.BANDWIDTH,
                class_=words.DAMAGED_DATA if culprit.damaged else class_,
                text=culprit.reason,
                confidence=culprit.confidence,
                conclusive=culprit.status is LinkStatus.FAULTY and host in diagnosis.isolate,
                partners=tuple(sorted(slow[host])),
                component=culprit.name.removeprefix(f"{host}:") if nic else None,
            )


def _doubting(
    accused: Collection[str], diagnosis: Diagnosis, blank: EvidencePiece
) -> Iterator[EvidencePiece]:
    for one in diagnosis.hosts:
        if one.name not in accused and one.status in _DOUBTED:
            text = one.reason or one.status.value
            yield replace(blank, host=one.name, text=text, confidence=0.0, conclusive=False)


def _clean(diagnosis: Diagnosis, blank: EvidencePiece) -> Iterator[EvidencePiece]:
    healthy = {one.name for one in diagnosis.hosts if one.status is HostStatus.HEALTHY}
    fast = _partners(diagnosis.links, healthy, frozenset((LinkStatus.HEALTHY,)))
    for host in (one.name for one in diagnosis.hosts if one.name in healthy):
        partners = len(fast[host])
        if partners >= _MIN_PARTNERS:
            yield replace(
                blank,
                host=host,
                class_=words.clean(EvidenceKind.BANDWIDTH),
                text=f"healthy with {partners} partners" + (" or more" * (partners == _ENOUGH)),
                clears=True,
            )


def _host_of(culprit: Culprit, diagnosis: Diagnosis) -> str | None:
    """The host that is blamed, or whose NIC is."""
    names = (one.name for one in diagnosis.hosts)
    if culprit.kind is CulpritKind.HOST:
        return next((name for name in names if name == culprit.name), None)
    if culprit.kind is CulpritKind.NIC:
        fitting = [name for name in names if culprit.name.startswith(f"{name}:")]
        return max(fitting, key=len, default=None)
    return None


def _partners(
    links: Collection[LinkVerdict], hosts: Collection[str], statuses: Collection[LinkStatus]
) -> Mapping[str, set[str]]:
    """With whom each of ``hosts`` has a link of these statuses; so many that they are enough."""
    found: dict[str, set[str]] = {host: set() for host in hosts}
    for link in links:
        if link.status not in statuses:
            continue
        for host, other in ((link.source, link.target), (link.target, link.source)):
            known = found.get(host)
            if known is not None and len(known) < _ENOUGH:
                known.add(other)
    return found
