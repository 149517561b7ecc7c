"""The model against what was published, by the table that the benchmark prints."""

import importlib.util
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


def test_a_model_that_is_off_does_not_hold(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    wrong = published.MEASURED[0]._replace(measured=(200,))
    monkeypatch.setattr(published, "MEASURED", (wrong, *published.MEASURED[1:]))
    assert published.main() == 1
    assert "NOT HELD" in capsys.readouterr().out
