"""Single links: which figure counts, against which yardstick, and what that makes of it."""

from collections.abc import Mapping, Sequence

import numpy as np
import pytest

from ncdiag.diagnose.judge import judge, outlier_line
from ncdiag.diagnose.table import LinkTable, tabulate
from ncdiag.diagnose.thresholds import Thresholds
from ncdiag.diagnose.yardstick import fleet_median, upper_quantile, yardsticks
from ncdiag.model.evidence import SweepEvidence
from ncdiag.model.host import Host
from ncdiag.model.measurement import Expectation, LinkKey, Measurement, Purpose

THRESHOLDS = Thresholds()
STATUSES = ("healthy", "degraded", "faulty", "inconclusive", "error")


def _one(
    figure: float | None,
    purpose: Purpose = Purpose.ROUND,
    *,
    idle: float = 0.8,
    link: tuple[str, str, int] = ("a", "b", 0),
) -> Measurement:
    return Measurement(
        source=link[0],
        target=link[1],
        rail=link[2],
        round=1,
        purpose=purpose,
        engine="made-up",
        measured_gbit_per_s=figure,
        idle=None if figure is None else idle,
        error="timed out" if figure is None else None,
    )


def _table(
    measurements: Sequence[Measurement], expected: Mapping[LinkKey, float] | float | None = 1.0
) -> LinkTable:
    def expectation(link: LinkKey) -> Expectation | None:
        figure = expected.get(link) if isinstance(expected, Mapping) else expected
        return None if figure is None else Expectation(gbit_per_s=figure, derivation="given")

    names = dict.fromkeys(end for one in measurements for end in (one.source, one.target))
    evidence = SweepEvidence(
        hosts=[Host(name=name, address=name) for name in names],
        unreachable={},
        nics={},
        measurements=measurements,
        expectation=expectation,
        planned=lambda: iter(()),
    )
    return tabulate(evidence, THRESHOLDS)


def _beside_healthy(*mine: Measurement, share: float = 1.0) -> list[Measurement]:
    """``mine`` (of a->b), and a fleet of other hosts that reach ``share``."""
    names = "cdefgh"
    others = [
        _one(share, link=(source, target, 0))
        for source in names
        for target in names
        if source != target
    ]
    return [*mine, *others]


def _status(*mine: Measurement, expected: float | None = 1.0, share: float = 1.0) -> str:
    judged = judge(_table(_beside_healthy(*mine, share=share), expected), THRESHOLDS)
    (found,) = [status for status in STATUSES if getattr(judged, status)[0]]
    return found


QUIET = Purpose.QUIET


@pytest.mark.parametrize(
    ("measurements", "figure"),
    [
        ([_one(0.5)], 0.5),
        ([_one(0.5), _one(0.9, QUIET)], 0.9),
        ([_one(0.9), _one(0.5, QUIET)], 0.5),
        ([_one(0.9), _one(0.3, QUIET), _one(0.8, QUIET)], 0.8),
        ([_one(0.5), _one(0.9)], 0.9),
        ([_one(0.5), _one(None, QUIET)], 0.5),
        ([_one(None), _one(0.7, QUIET)], 0.7),
        ([_one(0.9), _one(0.3, QUIET, idle=0.1), _one(0.6, QUIET)], 0.6),
        ([_one(0.3, idle=0.1), _one(0.2, QUIET, idle=0.1)], 0.2),
    ],
)
def test_the_quiet_figure_counts_before_that_of_the_round(
    measurements: list[Measurement], figure: float
) -> None:
    table = _table(measurements)
    assert table.judged.tolist() == [figure]
    assert table.shown[0].measured_gbit_per_s == figure
    assert table.tests.tolist() == [len(measurements)]


@pytest.mark.parametrize(
    ("share", "status"),
    [
        (0.10, "faulty"),
        (0.70, "faulty"),
        (0.799, "faulty"),
        (0.80, "degraded"),
        (0.88, "degraded"),
        (0.93, "healthy"),
        (1.00, "healthy"),
        (2.00, "healthy"),
    ],
)
@pytest.mark.parametrize("expected", [1.0, None], ids=["rate", "no-rate"])
def test_a_link_is_judged_by_the_two_lines(
    share: float, status: str, expected: float | None
) -> None:
    assert _status(_one(share), expected=expected) == status


def test_what_reaches_its_expectation_is_healthy_whatever_the_fleet_does() -> None:
    assert _status(_one(0.96), share=1.5) == "healthy"
    assert _status(_one(0.94), share=1.5) == "degraded"


def test_a_fleet_that_is_alike_has_no_degraded_link() -> None:
    judged = judge(_table(_beside_healthy(_one(0.88), share=0.88)), THRESHOLDS)
    assert judged.healthy.all()


def test_a_scattered_fleet_has_a_lower_line_for_outliers() -> None:
    random = np.random.default_rng(1)
    names = "abcdefgh"
    noisy = [
        _one(float(random.normal(1, 0.03)), link=(source, target, 0))
        for source in names
        for target in names
        if source != target
    ]
    sharp = yardsticks(_table(_beside_healthy()))
    assert outlier_line(sharp, THRESHOLDS) == 1 - THRESHOLDS.outlier_by
    assert outlier_line(yardsticks(_table(noisy)), THRESHOLDS) < 0.9


def test_a_busy_cpu_makes_a_slow_figure_inconclusive_but_not_a_good_one() -> None:
    assert _status(_one(0.3, idle=0.14)) == "inconclusive"
    assert _status(_one(0.9, idle=0.14)) == "inconclusive"
    assert _status(_one(0.3, idle=0.16)) == "faulty"
    assert _status(_one(0.96, idle=0.0)) == "healthy"
    assert _status(_one(0.3, idle=0.1), _one(0.3, QUIET)) == "faulty"
    assert _status(_one(0.3, idle=0.1), _one(0.99, QUIET)) == "healthy"
    assert _status(_one(0.3), _one(0.3, QUIET, idle=0.1)) == "inconclusive"


def test_no_figure_at_all_is_an_error_and_zero_is_a_fault() -> None:
    assert _status(_one(None), _one(None, QUIET)) == "error"
    assert _status(_one(0.0)) == "faulty"


def test_a_fleet_of_zeros_without_expectation_can_not_be_judged() -> None:
    judged = judge(_table([_one(0.0)], None), THRESHOLDS)
    assert judged.inconclusive.all()


def test_hosts_of_different_rates_are_compared_by_efficiency() -> None:
    names = "abcdef"
    slow_half = set("abc")
    links = [(source, target, 0) for source in names for target in names if source != target]
    rates = {LinkKey(*link): 0.4 if slow_half & set(link[:2]) else 1.0 for link in links}
    table = _table([_one(rates[LinkKey(*link)] * 0.98, link=link) for link in links], rates)
    assert judge(table, THRESHOLDS).healthy.all()
    assert yardsticks(table).ratio == pytest.approx(1.0)


def _median(shares: Mapping[tuple[str, str], float]) -> float:
    table = _table([_one(share, link=(*link, 0)) for link, share in shares.items()])
    return fleet_median(table.fabric, table.judged, table.busy)


@pytest.mark.parametrize(
    ("hosts", "slow"),
    [
        ("abc", lambda link: "a" in link),
        ("abcdefgh", lambda link: (link[0] in "abcd") != (link[1] in "abcd")),
        ("abcdefgh", lambda link: bool(set(link) & set("abc"))),
        ("ab", lambda link: link[0] == "a"),
    ],
    ids=["one-of-three", "slow-uplink", "three-of-eight", "one-way"],
)
def test_the_fleets_median_stays_fast_though_much_is_slow(hosts: str, slow: object) -> None:
    assert callable(slow)
    links = [(source, target) for source in hosts for target in hosts if source != target]
    assert _median({link: 0.2 if slow(link) else 1.0 for link in links}) == 1.0


def test_the_best_rail_is_the_yardstick_of_all() -> None:
    rails = [
        _one(1.0 if rail == 0 else 0.4, link=(source, target, rail))
        for rail in range(2)
        for source in "abc"
        for target in "abc"
        if source != target
    ]
    table = _table(rails)
    assert fleet_median(table.fabric, table.judged, table.busy) == 1.0


def test_figures_of_busy_hosts_do_not_bend_the_yardstick() -> None:
    mixed = [_one(0.1, idle=0.0, link=(end, "z", 0)) for end in "abcd"]
    mixed += [_one(1.0, link=("x", "y", 0))]
    table = _table(mixed)
    assert fleet_median(table.fabric, table.judged, table.busy) == 1.0


def test_no_figures_give_no_yardstick() -> None:
    table = _table([_one(None)])
    assert np.isnan(fleet_median(table.fabric, table.judged, table.busy))


def test_the_upper_quantile_is_a_measured_value_of_each_group() -> None:
    groups = np.array([1, 0, 0, 1, 1, 1, 7])
    values = np.array([4.0, 1.0, 2.0, 3.0, 2.0, 1.0, 5.0])
    assert upper_quantile(groups, values).tolist() == [2.0, 4.0, 5.0]
