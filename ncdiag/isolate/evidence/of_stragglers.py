"""Evidence of iteration times: hosts whose ranks are slower than those they are compared with."""

from ncdiag.isolate import words
from ncdiag.model.isolation import EvidenceKind, EvidencePiece
from ncdiag.model.straggler import SlowRank, StragglerReport, StragglerVerdict

_SUREST = 0.99


def of_stragglers(
    report: StragglerReport,
    run: str,
    *,
    seen_s: float,
    source: str = "stragglers",
    where: str | None = None,
) -> tuple[EvidencePiece, ...]:
    """What ``report`` says of hosts; ranks whose host is not known accuse nobody."""
    if report.verdict is not StragglerVerdict.FOUND:
        return ()
    return tuple(
        EvidencePiece(
            host=one.host,
            kind=EvidenceKind.STRAGGLER,
            class_=words.SLOW_RANK,
            source=source,
            run=run,
            seen_s=seen_s,
            text=f"rank {one.rank} takes {one.ratio:.2f} times as long as its peers, in "
            f"{one.windows} of {one.windows_total} windows",
            confidence=_confidence(one, report),
            component=f"rank {one.rank}",
            report=where,
        )
        for one in report.slow
        if one.host is not None
    )


def _confidence(one: SlowRank, report: StragglerReport) -> float:
    """How much of the time it was slow, less what would be found in healthy ranks by chance."""
    by_chance = min(report.expected_false_alarms / max(len(report.slow), 1), 1.0)
    share = one.windows / one.windows_total if one.windows_total else 0.0
    return min(share * (1.0 - by_chance), _SUREST)
