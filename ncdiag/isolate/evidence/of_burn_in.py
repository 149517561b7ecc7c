"""Evidence of a burn-in: whom its stages reject, and who came through."""

from collections.abc import Iterator, Mapping
from dataclasses import replace

from ncdiag.health.checks.check import Check
from ncdiag.isolate import words
from ncdiag.isolate.evidence.of_health import of_health
from ncdiag.isolate.evidence.of_sweep import of_sweep
from ncdiag.isolate.evidence.times import ended_s
from ncdiag.model.burn_in import BurnInReport, HostOutcome, Outcome, StageFinding
from ncdiag.model.isolation import EvidenceKind, EvidencePiece


def of_burn_in(
    report: BurnInReport,
    run: str,
    checks: Mapping[str, Check],
    *,
    source: str = "burn-in",
    where: str | None = None,
) -> tuple[EvidencePiece, ...]:
    """What ``report`` says of hosts; ``checks`` is the table of all health checks.

    Only a finding that held when it was repeated, on a host that the burn-in itself would isolate,
    is conclusive. What its health checks and its sweep found clean is clean as there.
    """
    blank = EvidencePiece(
        host="",
        kind=EvidenceKind.BURN_IN,
        class_="",
        source=source,
        run=run,
        seen_s=ended_s(report.started, report.seconds),
        text="",
        report=where,
    )

    def pieces() -> Iterator[EvidencePiece]:
        for stage in report.stages:
            yield from (
                _accusing(report, finding, blank)
                for finding in stage.findings
                if finding.outcome is not Outcome.GOOD  # a remark
            )
        if not report.interrupted:
            good = (host for host in report.hosts if host.outcome is Outcome.GOOD)
            yield from (_clean(host, blank) for host in good)
        parts: list[EvidencePiece] = []
        if report.health is not None:
            parts += of_health(report.health, run, checks, source=source, where=where)
        if report.sweep is not None:
            parts += of_sweep(report.sweep, run, source=source, where=where)
        yield from (piece for piece in parts if piece.clears)

    return tuple(pieces())


def _clean(host: HostOutcome, blank: EvidencePiece) -> EvidencePiece:
    return replace(
        blank,
        host=host.name,
        class_=words.clean(EvidenceKind.BURN_IN),
        text=f"came through {', '.join(host.stages) or 'all stages'}",
        clears=True,
    )


def _accusing(report: BurnInReport, finding: StageFinding, blank: EvidencePiece) -> EvidencePiece:
    rejected = finding.outcome is Outcome.REJECTED and finding.host in report.isolate
    return replace(
        blank,
        host=finding.host,
        # Data that arrived wrong is not made right by a run in which it did not.
        kind=EvidenceKind.DATA if finding.class_ == words.DAMAGED_DATA else blank.kind,
        class_=finding.class_,
        text=f"{finding.stage.value}: {finding.reason}",
        confidence=finding.confidence,
        conclusive=rejected and finding.isolates and finding.confirmed,
        partners=finding.partners,
        component=finding.component,
    )
