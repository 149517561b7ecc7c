import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from announced_reports import bench, burn_in, health
from hypothesis import given
from hypothesis import strategies as st

from ncdiag.model.isolation import EvidenceKind, EvidencePiece
from ncdiag.model.verdict import SweepReport
from ncdiag.report import prometheus
from ncdiag.report.bench.prometheus import render as render_bench
from ncdiag.report.burn_in.prometheus import render as render_burn_in
from ncdiag.report.health.prometheus import render_health_metrics
from ncdiag.report.serve.ledger import render_ledger_metrics
from ncdiag.report.serve.metrics import join_metrics
from ncdiag.store.evidence_table import EvidenceTable
from ncdiag.store.ledger_records import ActionRecord, ActionState

ROOT = Path(__file__).parents[2]
DASHBOARD = ROOT / "docs/grafana-dashboard.json"
PIECE = EvidencePiece(
    host="h1", kind=EvidenceKind.HEALTH, class_="xid", source="health", run="r", seen_s=1.0,
    text="Xid 79",
)  # fmt: skip
ACTION = ActionRecord(
    place="slurm", host='h"1', isolate=True, reason="xid", plan="p", by="me", intended_s=1.0,
    state=ActionState.DONE,
)  # fmt: skip


def test_a_family_and_a_series_are_there_once() -> None:
    first = '# HELP a The first.\n# TYPE a gauge\na{x="1",y="2"} 1\n# TYPE b counter\nb 2\n'
    second = '# HELP a The second.\n# TYPE a counter\na{y="2",x="1"} 9\na{x="3"} 4\n'
    assert join_metrics([first, second]) == (
        '# HELP a The first.\n# TYPE a gauge\na{x="1",y="2"} 1\na{x="3"} 4\n'
        "# HELP b No help was given.\n# TYPE b counter\nb 2\n"
    )


def test_parts_of_a_histogram_stay_with_it() -> None:
    text = (
        "# HELP h H.\n# TYPE h histogram\n"
        'h_bucket{le="1"} 1\nh_bucket{le="+Inf"} 2\nh_sum 3\nh_count 2\n'
    )
    assert join_metrics([text, "a_sum 1\n"]) == (
        f"# HELP a_sum No help was given.\n# TYPE a_sum untyped\na_sum 1\n{text}"
    )


@pytest.mark.parametrize(
    "line",
    ["a", "a b", "a 1 2", "1a 1", "a{x=1} 1", 'a{x="1} 1', 'a{x="1",x="2"} 1', "# TYPE a thing",
     "<script>", 'a{x="\\q"} 1', "a{ 1", "a 0x10", "a 1e"],
)  # fmt: skip
def test_what_is_no_metric_is_counted(line: str) -> None:
    assert join_metrics(["b 1\n", f"{line}\n"]) == (
        "# HELP b No help was given.\n# TYPE b untyped\nb 1\n"
        "# HELP ncdiag_serve_damaged_lines Lines of textfiles that are no metrics.\n"
        "# TYPE ncdiag_serve_damaged_lines gauge\nncdiag_serve_damaged_lines 1\n"
    )


@pytest.mark.parametrize("value", ["1", "-1.5", "+Inf", "-Inf", "NaN", "1e-9", ".5", "1.", "1E+3"])
def test_every_number_of_the_format_is_one(value: str) -> None:
    assert f"\na {value}\n" in join_metrics([f"a {value}\n"])


@given(st.text(), st.text(st.sampled_from('ab{}=",\\ \n#1TYPEHELP')))
def test_joining_what_was_joined_changes_nothing(one: str, two: str) -> None:
    joined = join_metrics([one, two])
    assert join_metrics([joined]) == joined


def rendered(make_report: Callable[..., SweepReport]) -> str:
    """Everything that anything here exports."""
    sweep = make_report(slow_senders={"h3": 0.2}, slow_links={("h5", "h6"): 0.1})
    return join_metrics(
        [
            prometheus.render(sweep),
            render_burn_in(burn_in()),
            render_bench(bench()),
            render_health_metrics(health()),
            render_ledger_metrics([ACTION], [ACTION], EvidenceTable.of([PIECE])),
        ]
    )


def queries() -> list[tuple[str, str]]:
    panels: list[dict[str, Any]] = json.loads(DASHBOARD.read_text())["panels"]
    return [
        (panel["title"], target["expr"]) for panel in panels for target in panel.get("targets", [])
    ]


def test_the_dashboard_asks_for_metrics_and_labels_that_are_there(
    make_report: Callable[..., SweepReport],
) -> None:
    text = rendered(make_report)
    assert len(queries()) >= 20
    for title, query in queries():
        names = re.findall(r"ncdiag_\w+", query)
        assert names, title
        for name in names:
            # One that is only there where something is wrong stands among sources that failed.
            assert f"\n{name}" in text, (title, name)
        for name, chosen in re.findall(r"(ncdiag_\w+)\{(\w+)=", query):
            assert re.search(rf'^{name}\{{[^}}]*\b{chosen}="', text, re.MULTILINE), (title, chosen)


def test_the_legends_of_the_dashboard_name_labels_that_are_there(
    make_report: Callable[..., SweepReport],
) -> None:
    text = rendered(make_report)
    panels = json.loads(DASHBOARD.read_text())["panels"]
    targets = [target for panel in panels for target in panel.get("targets", [])]
    for target in targets:
        name = re.findall(r"ncdiag_\w+", target["expr"])[0]
        for label in re.findall(r"\{\{(\w+)\}\}", target["legendFormat"]):
            assert re.search(rf'^{name}\{{[^}}]*\b{label}="', text, re.MULTILINE), (name, label)


def test_panels_of_the_dashboard_have_names_places_and_numbers_of_their_own() -> None:
    panels = json.loads(DASHBOARD.read_text())["panels"]
    assert len({panel["id"] for panel in panels}) == len(panels)
    cells: set[tuple[int, int]] = set()
    for panel in panels:
        at = panel["gridPos"]
        own = {
            (x, y)
            for x in range(at["x"], at["x"] + at["w"])
            for y in range(at["y"], at["y"] + at["h"])
        }
        assert not cells & own, panel["title"]
        assert max(x for x, _ in own) < 24
        cells |= own


def test_every_metric_of_the_page_is_there(make_report: Callable[..., SweepReport]) -> None:
    text = rendered(make_report) + join_metrics(["no metric"])
    named = set()
    for page in ("serve.md", "outlets.md"):
        named |= set(re.findall(r"ncdiag_[a-z_]+[a-z]\b", (ROOT / "docs" / page).read_text()))
    made = {"ncdiag_serve_unread_textfiles", "ncdiag_serve_ledger_read"}
    whole = {name for name in named if f"\n{name}" not in f"\n{text}"}
    assert whole <= made


def test_the_ledger_says_who_is_out_and_escapes_names() -> None:
    text = render_ledger_metrics([ACTION], [ACTION], EvidenceTable.of([PIECE]))
    assert 'ncdiag_isolation_host_isolated{host="h\\"1",place="slurm"} 1\n' in text
    assert 'ncdiag_isolation_actions{state="done"} 1\n' in text
    assert 'ncdiag_isolation_actions{state="intended"} 0\n' in text
    assert 'ncdiag_isolation_evidence{kind="health"} 1\n' in text
    assert "ncdiag_isolation_hosts_accused 1\n" in text


def test_an_empty_ledger_has_nobody_in_it() -> None:
    text = render_ledger_metrics([], [], EvidenceTable.of([]))
    assert "ncdiag_isolation_hosts 0\n" in text
    assert "ncdiag_isolation_hosts_accused 0\n" in text
