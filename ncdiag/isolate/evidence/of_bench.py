"""Evidence of a benchmark: what its findings say of single hosts."""

from collections.abc import Iterator
from dataclasses import replace

from ncdiag.isolate import words
from ncdiag.isolate.evidence.times import ended_s
from ncdiag.model.bench import BenchFinding, BenchFindingKind, BenchReport, BenchSeverity
from ncdiag.model.isolation import EvidenceKind, EvidencePiece
from ncdiag.model.verdict import Verdict

_CLASSES = {
    BenchFindingKind.SLOW_RANK: (EvidenceKind.STRAGGLER, words.SLOW_RANK),
    BenchFindingKind.WRONG_DATA: (EvidenceKind.DATA, words.DAMAGED_DATA),
    BenchFindingKind.BELOW_EXPECTATION: (EvidenceKind.BANDWIDTH, words.SLOW_HOST),
}
# A rank that is slow in nearly every iteration is slow for sure; that its host is why, is not.
_CONFIDENCE = 0.8


def of_bench(
    report: BenchReport, run: str, *, source: str = "bench", where: str | None = None
) -> tuple[EvidencePiece, ...]:
    """What ``report`` says of hosts; a finding that names no host accuses nobody.

    A bandwidth of one host alone has no partners, which a policy wants two of.
    """
    seen_s = ended_s(report.started, report.seconds)

    def pieces() -> Iterator[EvidencePiece]:
        for finding in report.findings:
            found = _piece(report, finding, run, source, seen_s)
            if found is not None:
                yield found
        if report.verdict is Verdict.HEALTHY and not report.interrupted and report.curves:
            for host in report.curves[-1].hosts:
                yield EvidencePiece(
                    host=host,
                    kind=EvidenceKind.STRAGGLER,
                    class_=words.clean(EvidenceKind.STRAGGLER),
                    source=source,
                    run=run,
                    seen_s=seen_s,
                    text=f"no slow rank in {report.collective}",
                    clears=True,
                )

    return tuple(_with_report(piece, where) for piece in pieces())


def _piece(
    report: BenchReport, finding: BenchFinding, run: str, source: str, seen_s: float
) -> EvidencePiece | None:
    if finding.host is None or finding.kind not in _CLASSES:
        return None
    kind, class_ = _CLASSES[finding.kind]
    sure = finding.severity is BenchSeverity.FAULT and report.verdict is Verdict.FAULTY
    return EvidencePiece(
        host=finding.host,
        kind=kind,
        class_=class_,
        source=source,
        run=run,
        seen_s=seen_s,
        text=f"{report.collective}: {finding.text}",
        confidence=_CONFIDENCE,
        conclusive=sure and kind is not EvidenceKind.BANDWIDTH,
        component=None if finding.rank is None else f"rank {finding.rank}",
    )


def _with_report(piece: EvidencePiece, where: str | None) -> EvidencePiece:
    return replace(piece, report=where)
