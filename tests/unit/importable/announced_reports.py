"""A report of every kind that is announced, with text from outside in it."""

from burn_in_reports import burn_in_report
from health_reports import finding, host_health, report
from reports_for_stores import small_bench

from ncdiag.model.bench import BenchFinding, BenchFindingKind, BenchReport, BenchSeverity
from ncdiag.model.burn_in import BurnInReport
from ncdiag.model.health import HealthReport, Severity
from ncdiag.model.straggler import SlowRank, StragglerReport, StragglerVerdict, TimeKind


def bench(text: str = "") -> BenchReport:
    from dataclasses import replace

    from ncdiag.model.verdict import Verdict

    fault = BenchFinding(
        kind=BenchFindingKind.SLOW_RANK,
        severity=BenchSeverity.FAULT,
        text=f"rank 3 takes longest{text}",
        next="ncdiag health",
        host="h1",
    )
    return replace(
        small_bench(1), verdict=Verdict.FAULTY, findings=(fault,), unreachable={"h9": f"ssh{text}"}
    )


def health(text: str = "") -> HealthReport:
    return report(
        host_health("a", finding("xid", Severity.FATAL, f"Xid 79{text}", "gpu3")),
        host_health("b", finding("clock", Severity.WARNING, f"the clock is off{text}")),
        host_health("c", finding("gpu_mig", Severity.NOTE, "MIG is on")),
    )


def burn_in(text: str = "") -> BurnInReport:
    return burn_in_report(text=text)


def stragglers(text: str = "") -> StragglerReport:
    slow = SlowRank(
        rank=13,
        ratio=1.2,
        score=9.0,
        windows=2,
        windows_total=2,
        rules=("robust",),
        host=f"gpu002{text}",
        place=f"gpu002{text} gpu5",
    )
    return StragglerReport(
        kind=TimeKind.COMPUTE,
        verdict=StragglerVerdict.FOUND,
        ranks=16,
        iterations=20,
        groups=1,
        median_s=0.4,
        slow=(slow,),
    )
