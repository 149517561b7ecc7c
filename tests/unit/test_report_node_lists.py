import pytest
from ClusterShell.NodeSet import RESOLVER_NOGROUP, NodeSet
from hypothesis import given
from hypothesis import strategies as st

from ncdiag.model.nodes import fold
from ncdiag.report.node_lists import render


def test_a_list_has_one_host_a_line_in_the_given_order() -> None:
    assert render(["b", "a"]) == "b\na\n"
    assert render([]) == ""


@pytest.mark.parametrize(
    ("names", "folded"),
    [
        ([], ""),
        (["gpu001", "gpu002", "gpu003", "gpu007"], "gpu[001-003,007]"),
        (["127.0.0.2", "127.0.0.3"], "127.0.0.[2-3]"),
        (["h1", "[fe80::1%eth0]"], "h1,[fe80::1%eth0]"),
        (["@all", "a,b", "n[1-3]", "x!y"], "@all,a,b,n[1-3],x!y"),
        (["<script>alert(1)</script>"], "<script>alert(1)</script>"),
    ],
)
def test_names_fold_and_odd_ones_stand_for_themselves(names: list[str], folded: str) -> None:
    assert fold(names) == folded


@given(st.sets(st.from_regex(r"[a-z]{1,3}-?[0-9]{0,3}", fullmatch=True)))
def test_folding_loses_and_invents_no_host(names: list[str]) -> None:
    assert set(NodeSet(fold(names), resolver=RESOLVER_NOGROUP)) == names
