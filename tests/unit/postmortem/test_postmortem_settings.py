"""What the settings of a process add to its messages."""

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest

from ncdiag.model.finding import Postmortem
from ncdiag.model.log import GroupProgress
from tests.unit.postmortem.conftest import Bench

SETTING = "NCCL_SOCKET_IFNAME"


@pytest.mark.parametrize(
    ("own", "other", "interface"),
    [("ib7", "eth4", "ib7"), (None, "eth4", "eth4"), ("^lo", "^lo", None), (None, None, None)],
)
def test_the_interface_that_was_wished_for(
    bench: Bench,
    post: Callable[..., Postmortem],
    *,
    names: SimpleNamespace,
    own: str | None,
    other: str | None,
    interface: str | None,
) -> None:
    processes: list[Any] = [
        bench.process("oak1", environment={} if own is None else {SETTING: own}),
        bench.process("oak2", environment={} if other is None else {SETTING: other}),
    ]
    event = bench.event("bootstrap_no_interface", "oak1", pid="1")
    found = names.of(post(event, processes=processes), "bootstrap_no_interface")
    assert found.attributes.get("interface") == interface


def test_a_name_in_the_message_goes_first(
    bench: Bench, post: Callable[..., Postmortem], names: SimpleNamespace
) -> None:
    process = bench.process("oak1", environment={SETTING: "eth4"})
    event = bench.event("bootstrap_no_interface", "oak1", pid="1", interface="ib7")
    found = names.of(post(event, processes=[process]), "bootstrap_no_interface")
    assert found.attributes["interface"] == "ib7"


def test_the_interface_that_the_speaker_uses(bench: Bench, post: Any) -> None:
    event = bench.event("bootstrap_connect_failed", "oak1", pid="1", peer="172.17.0.1")
    one = bench.process("oak1", interfaces=["docker0"])
    assert post(event, processes=[one]).findings[0].attributes["interface"] == "docker0"
    two = bench.process("oak1", interfaces=["eth0", "eth1"])
    assert "interface" not in post(event, processes=[two]).findings[0].attributes


def test_the_group_in_which_the_rank_tells_of_the_same_work(bench: Bench, post: Any) -> None:
    event = bench.event("torch_watchdog_timeout", rank=1, seq="41")

    def group(name: str | None) -> GroupProgress:
        return GroupProgress(rank=1, group=name, place=bench.place(), timed_out=41)

    def told(*records: GroupProgress) -> str | None:
        return post(event, progress=list(records)).findings[0].attributes.get("group")

    assert told(group(None), group("PG 3")) == "3"
    assert told(group("dp"), group("dp")) == "dp"
    assert told(group("dp"), group("tp")) is None


def test_a_job_has_one_store(bench: Bench, post: Any) -> None:
    beat = bench.event("store_failure", error="RendezvousConnectionError")
    lost = bench.event("store_failure", error="reset", peer="oak7", role="consequence")
    assert post(beat, lost).findings[0].attributes["peer"] == "oak7"
    other = bench.event("store_failure", error="reset", peer="oak8", role="consequence")
    assert "peer" not in post(beat, lost, other).findings[0].attributes
