"""Crashes of workers that only a handler's bare line and their agent's table tell of."""

from typing import Any

import pytest


@pytest.fixture
def crash(bench: Any) -> Any:
    """What a handler prints, and the agent of process 58."""

    def told(host: str | None = None, label: str | None = None) -> list[Any]:
        bare = bench.event("process_crash", label=label, signal="7")
        report = bench.event(
            "process_crash", host, pid="12", label=label, details={"pid": "58"}, signal="7"
        )
        report.form = "elastic_report"
        return [bare, report]

    return told


@pytest.fixture
def job(bench: Any) -> Any:
    """Two started ranks with their pids."""

    def started(first: str, second: str) -> dict[str, Any]:
        pids = (("a", first), ("b", second))
        return {
            "processes": [
                bench.process(host, pid, communicators=[bench.communicator(n, 2, completed=True)])
                for n, (host, pid) in enumerate(pids)
            ]
        }

    return started


def _suspects(answer: Any, names: Any) -> list[tuple[str, str]]:
    return [(str(s.kind), s.name) for s in names.of(answer, "process_crash").suspects]


def test_a_crash_of_which_only_the_pid_is_known_is_that_process_s(
    crash: Any, post: Any, names: Any
) -> None:
    assert _suspects(post(*crash()), names) == [("application", "pid 58")]


def test_a_pid_of_one_process_of_the_whole_job_proves_rank_and_host(
    crash: Any, job: Any, post: Any, names: Any
) -> None:
    answer = post(*crash(), **job("61", "58"))
    assert _suspects(answer, names) == [("rank", "1"), ("host", "b")]


@pytest.mark.parametrize("where", [{"host": "b"}, {"label": "b"}])
def test_a_pid_that_two_hosts_have_proves_the_rank_where_the_host_is_told(
    crash: Any, job: Any, post: Any, names: Any, where: Any
) -> None:
    both = job("58", "58")
    assert _suspects(post(*crash(), **both), names) == [("application", "pid 58")]
    answer = post(*crash(**where), **both)
    assert _suspects(answer, names) == [("rank", "1"), ("host", "b")]


def test_a_pid_proves_nothing_while_other_ranks_are_unknown(
    crash: Any, job: Any, post: Any, names: Any
) -> None:
    some = {"processes": job("61", "58")["processes"][1:]}
    assert _suspects(post(*crash(), **some), names) == [("application", "pid 58")]


def test_a_connection_refused_by_the_host_of_the_crash_follows_from_it(
    bench: Any, crash: Any, job: Any, post: Any, names: Any
) -> None:
    started = job("61", "58")
    refused = bench.event(
        "bootstrap_connect_failed", "a", pid="61", peer="b", error="Connection refused"
    )
    answer = post(refused, *crash(), **started)
    assert names.roots(answer) == ["process_crash"]
    assert names.of(answer, "bootstrap_connect_failed").role == "consequence"
