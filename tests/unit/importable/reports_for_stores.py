"""Reports made by hand for the tests of the store, also those that start processes."""

from ncdiag.model.bench import BenchCurve, BenchPoint, BenchReport
from ncdiag.model.verdict import (
    Diagnosis,
    HostStatus,
    HostVerdict,
    LinkStatus,
    LinkVerdict,
    SweepPlan,
    SweepReport,
    Verdict,
)

HOSTS = ("h1", "h2", "h3")


def at(number: int) -> str:
    """A time of its own for each number up to 9999, in their order."""
    return f"2026-01-01T{number // 3600:02}:{number // 60 % 60:02}:{number % 60:02}Z"


def a_link(
    source: str, target: str, rail: int = 0, gbit_per_s: float | None = 100.0
) -> LinkVerdict:
    return LinkVerdict(
        source=source,
        target=target,
        rail=rail,
        status=LinkStatus.ERROR if gbit_per_s is None else LinkStatus.HEALTHY,
        measured_gbit_per_s=gbit_per_s,
        min_gbit_per_s=gbit_per_s and gbit_per_s * 0.9,
        expected_gbit_per_s=100.0,
        expected_from="100 Gbit/s of eth0",
        fleet_gbit_per_s=99.0,
        bytes=5_000_000_000,
        tests=1,
        idle=0.75,
        round=3,
        error="nothing came" if gbit_per_s is None else None,
    )


def a_sweep(
    started: str,
    links: tuple[LinkVerdict, ...],
    hosts: tuple[HostVerdict, ...] | None = None,
    settings: dict[str, str] | None = None,
) -> SweepReport:
    names = sorted({end for link in links for end in (link.source, link.target)})
    return SweepReport(
        started=started,
        seconds=12.5,
        plan=SweepPlan(mode="full", hosts=3, rounds=3, pairs=3, engine="torch", launcher="ssh"),
        diagnosis=Diagnosis(
            verdict=Verdict.HEALTHY,
            links=links,
            hosts=hosts
            if hosts is not None
            else tuple(
                HostVerdict(name=name, status=HostStatus.HEALTHY, efficiency=1.0) for name in names
            ),
        ),
        settings={"seed": "0"} if settings is None else settings,
        versions={"ncdiag": "1"},
    )


def small_sweep(number: int, gbit_per_s: float | None = 100.0) -> SweepReport:
    """A sweep of three hosts with a time of its own."""
    links = tuple(
        a_link(source, target, gbit_per_s=gbit_per_s)
        for source in HOSTS
        for target in HOSTS
        if source != target
    )
    return a_sweep(at(number), links)


def small_bench(number: int, plateau_gb_per_s: float | None = 400.0) -> BenchReport:
    """A benchmark of two numbers of hosts with a time of its own."""

    def curve(hosts: int) -> BenchCurve:
        return BenchCurve(
            hosts=tuple(f"h{place}" for place in range(hosts)),
            ranks=hosts * 8,
            points=(
                BenchPoint(size_bytes=8, time_us=20.0, algbw_gb_per_s=0.1, busbw_gb_per_s=0.2),
                BenchPoint(
                    size_bytes=2**33,
                    time_us=2e4,
                    algbw_gb_per_s=200.0,
                    busbw_gb_per_s=plateau_gb_per_s,
                    min_busbw_gb_per_s=390.0,
                    max_busbw_gb_per_s=410.0,
                    repeats=3,
                    wrong=0,
                    expected_time_us=1.9e4,
                    expected_busbw_gb_per_s=420.0,
                    cliff=True,
                ),
            ),
            plateau_busbw_gb_per_s=plateau_gb_per_s,
            plateau_from_bytes=2**28,
            expected_busbw_gb_per_s=420.0,
            efficiency=0.95,
            error=None if plateau_gb_per_s else "it died",
        )

    return BenchReport(
        started=at(number),
        seconds=30.0,
        collective="all_reduce",
        engine="nccl-tests",
        launcher="ssh",
        verdict=Verdict.HEALTHY if plateau_gb_per_s else Verdict.INCONCLUSIVE,
        curves=(curve(2), curve(4)),
    )
