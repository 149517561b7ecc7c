"""The model against what was published, by the table that the benchmark prints."""

import importlib.util
import re
from pathlib import Path
from types import ModuleType

import pytest

BENCHMARK = Path(__file__).parents[2] / "benchmarks" / "expect_published.py"


def load() -> ModuleType:
    spec = importlib.util.spec_from_file_location("expect_published", BENCHMARK)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


published = load()


@pytest.mark.parametrize("row", published.MEASURED, ids=lambda row: row.what)
def test_no_measured_row_is_off_by_more_than_the_bound(row: object) -> None:
    assert abs(row.error) <= published.WORST_BOUND  # type: ignore[attr-defined]


def test_the_whole_table_holds_and_is_printed(capsys: pytest.CaptureFixture[str]) -> None:
    assert published.main() == 0
    out = capsys.readouterr().out
    assert "held" in out
    assert all(row.what in out for row in (*published.MEASURED, *published.ELSEWHERE))


def test_the_last_lines_say_how_many_rows_count_and_how_many_do_not(
    capsys: pytest.CaptureFixture[str],
) -> None:
    published.main()
    *rows, bounds, beside = capsys.readouterr().out.splitlines()
    off = sum("%!" in line for line in rows)
    assert f"{len(published.MEASURED)} rows counted" in bounds
    uncounted = len(published.ELSEWHERE) + len(published.curve_points())
    assert f"{uncounted} rows, {off} of them above 15%" in beside
    assert off > 0


def test_the_page_has_every_row_that_the_model_does_not_meet() -> None:
    page = (BENCHMARK.parents[1] / "docs" / "expect.md").read_text()
    known = page.partition("Known to be off")[2].partition("`expect` prints")[0]
    figures = set(re.findall(r"\d+(?:\.\d)?", known))
    off = [row for row in published.curve_points() if published.is_off(row)]
    assert len(off) > 5
    assert [row.what for row in off if _shown(row.expected()) not in figures] == []
    assert [row.what for row in off if _shown(row.middle) not in figures] == []


def _shown(gb_per_s: float) -> str:
    return f"{gb_per_s:.1f}" if gb_per_s < 10 else f"{gb_per_s:.0f}"


def test_a_model_that_is_off_does_not_hold(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    wrong = published.MEASURED[0]._replace(measured=(200,))
    monkeypatch.setattr(published, "MEASURED", (wrong, *published.MEASURED[1:]))
    assert published.main() == 1
    assert "NOT HELD" in capsys.readouterr().out
