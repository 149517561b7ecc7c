"""What the settings of a process add to its messages."""

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest

from ncdiag.model.finding import Postmortem
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
