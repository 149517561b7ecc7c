"""RAS reports."""

from typing import Any

import pytest

from ncdiag.model.log import RasIssue, RasMember, RasReport


def report(
    bench: Any,
    kind: Any,
    members: Any,
    *,
    counts: Any = None,
    ranks: Any = 8,
    op: Any = "AllReduce",
    complete: Any = True,
) -> Any:
    issue = RasIssue(
        kind=kind,
        place=bench.place(),
        group="#0-0",
        ranks=ranks,
        op=op,
        counts=counts or {},
        members=members,
        text=f"#0-0 {kind}",
    )
    return RasReport(place=bench.place(), issues=[issue], complete=complete, version="2.26.2")


def member(rank: Any, operation: Any = None, host: Any = "10.0.0.7") -> Any:
    return RasMember(rank=rank, host=host, pid="9", gpus="0", operation=operation)


def test_ranks_behind_are_suspect(bench: Any, post: Any, names: Any) -> None:
    behind = [member(3, 40)]
    answer = post(ras=[report(bench, "MISMATCH", behind, counts={900: 7, 40: 1})])
    finding = answer.findings[0]
    assert finding.class_ == "ras_mismatch"
    assert names.suspects(finding) == ["3"]
    assert finding.attributes == {"op": "AllReduce", "group": "#0-0"}
    assert not names.isolated(answer)


def test_ranks_ahead_are_not_suspect(bench: Any, post: Any, names: Any) -> None:
    ahead = [member(4, 901), member(5, 901)]
    answer = post(ras=[report(bench, "MISMATCH", ahead, counts={900: 6, 901: 2})])
    finding = answer.findings[0]
    assert not names.suspects(finding)
    assert "6 ranks at 900" in finding.explanation
    assert finding.confidence < 0.5


def test_a_rank_that_cannot_exist_is_not_reported(bench: Any, post: Any) -> None:
    odd = [member(3, 40), member(77, 40)]
    answer = post(ras=[report(bench, "MISMATCH", odd, counts={900: 6, 40: 2})])
    assert answer.findings[0].ranks == (3,)


def test_a_dead_process_is_a_root_and_isolates_only_when_seen_again(
    bench: Any, post: Any, names: Any
) -> None:
    dead = report(bench, "DEAD", [member(None)])
    answer = post(ras=[dead])
    finding = answer.findings[0]
    assert (finding.class_, finding.role) == ("ras_incomplete", "root")
    assert finding.attributes == {"process": "9", "peer": "10.0.0.7"}
    assert "10.0.0.7" in names.suspects(finding)
    assert not names.isolated(answer)


def test_a_clean_report_is_ok_and_a_cut_one_is_not(bench: Any, post: Any) -> None:
    whole = RasReport(place=bench.place(), complete=True)
    assert post(ras=[whole]).verdict == "ok"
    cut = RasReport(place=bench.place(), complete=False)
    assert post(ras=[cut]).verdict == "inconclusive"


def _apart(rank: int, status: str) -> RasMember:
    return RasMember(rank=rank, host="10.0.0.7", pid="9", gpus="0", operation=None, status=status)


def test_a_rank_whose_status_is_not_that_of_most_is_suspect(
    bench: Any, post: Any, names: Any
) -> None:
    given = report(bench, "MISMATCH", [_apart(6, "INIT"), _apart(0, "RUNNING")], op=None)
    given.issues[0].statuses = {"RUNNING": 7, "INIT": 1}
    finding = post(ras=[given]).findings[0]
    assert names.suspects(finding) == ["6"]
    assert "rank 6 is at INIT" in finding.explanation


def test_errors_that_ranks_report_stand_for_the_results_they_quote(
    bench: Any, post: Any, names: Any
) -> None:
    members = [_apart(1, "Unhandled system error"), _apart(2, "Internal error")]
    answer = post(ras=[report(bench, "ERROR", members, op=None)])
    assert sorted(names.classes(answer)) == ["internal_error", "unhandled_system_error"]
    assert answer.findings[0].confidence < 0.5


@pytest.mark.parametrize(
    ("text", "expected"),
    [("System error", "unhandled_system_error"), ("Remote process error", "remote_error")],
)
def test_results_in_the_words_of_the_reports(
    bench: Any, post: Any, names: Any, text: str, expected: str
) -> None:
    answer = post(ras=[report(bench, "ERROR", [_apart(1, text)], op=None)])
    assert names.classes(answer) == [expected]


def test_answers_that_came_late_are_a_warning(bench: Any, post: Any, names: Any) -> None:
    answer = post(ras=[report(bench, "TIMEOUT", [], op=None)])
    assert names.classes(answer) == ["ras_incomplete"]
    assert not names.roots(answer)
