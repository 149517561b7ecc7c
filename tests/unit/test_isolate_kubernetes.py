import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ncdiag.isolate.places import kubernetes
from ncdiag.isolate.places.base import Asked, LeftAloneError, given_reason
from ncdiag.isolate.places.kubernetes import KubernetesPlace, asked
from ncdiag.model.errors import NcdiagError, UndecidedError, UsageError
from ncdiag.model.isolation import PlaceState

KUBECTL = Path(__file__).parents[1] / "data" / "kubectl"
REASON = given_reason("gpu fell off the bus")
OTHERS = {"key": "nvidia.com/gpu", "value": "present", "effect": "NoSchedule"}


def node(name: str, **spec: Any) -> dict[str, Any]:
    return {
        "metadata": {"name": name, "resourceVersion": "7", "annotations": {"other": "stays"}},
        "spec": {"podCIDR": "10.1.0.0/24", **spec},
        "status": {
            "addresses": [
                {"type": "Hostname", "address": f"{name}-machine"},
                {"type": "InternalIP", "address": f"10.0.0.{name[-1]}"},
            ]
        },
    }


@pytest.fixture
def nodes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[], dict[str, Any]]:
    """The nodes that the kubectl on PATH knows now, by name."""
    file = tmp_path / "nodes.json"
    monkeypatch.setenv("KUBECTL_NODES", str(file))
    monkeypatch.setenv("PATH", f"{KUBECTL}:{os.environ['PATH']}")
    monkeypatch.delenv("KUBECTL_SAYS", raising=False)
    monkeypatch.delenv("KUBECTL_CONTEXT", raising=False)
    items = [node("n1", taints=[OTHERS]), node("n2"), node("n3", unschedulable=True)]
    file.write_text(json.dumps({"kind": "List", "items": items}))
    return lambda: nodes_of(file)


def nodes_of(file: Path) -> dict[str, Any]:
    return {item["metadata"]["name"]: item for item in json.loads(file.read_text())["items"]}


Nodes = Callable[[], dict[str, Any]]


def test_isolating_cordons_taints_and_annotates_and_releasing_takes_only_that_back(
    nodes: Nodes,
) -> None:
    before = nodes()
    place = KubernetesPlace()
    place.isolate("n1", REASON, "plan-1")
    now = nodes()["n1"]
    assert now["spec"]["unschedulable"] is True
    assert now["spec"]["taints"] == [
        OTHERS,
        {"key": "ncdiag.io/isolated", "value": "true", "effect": "NoSchedule"},
    ]
    assert now["metadata"]["annotations"] == {
        "other": "stays",
        "ncdiag.io/reason": REASON,
        "ncdiag.io/run": "plan-1",
    }
    assert place.ask().of("n1").state is PlaceState.OURS
    place.release("n1", REASON)
    after = nodes()
    after["n1"]["metadata"]["resourceVersion"] = "7"
    assert after == before


def test_doing_it_twice_changes_nothing(nodes: Nodes) -> None:
    place = KubernetesPlace()
    place.isolate("n2", REASON, "plan-1")
    once = nodes()
    place.isolate("n2", REASON, "plan-2")
    assert nodes() == once
    place.release("n2", REASON)
    once = nodes()
    place.release("n2", REASON)
    assert nodes() == once


def test_a_node_cordoned_by_others_is_left_alone(nodes: Nodes) -> None:
    before = nodes()
    place = KubernetesPlace()
    assert place.ask().of("n3").state is PlaceState.THEIRS
    with pytest.raises(LeftAloneError, match="cordoned by somebody else"):
        place.isolate("n3", REASON, "plan-1")
    with pytest.raises(LeftAloneError, match="changed since: it was cordoned"):
        place.release("n3", REASON)
    assert nodes() == before


def test_a_node_that_is_not_ready_is_out_already(nodes: Nodes) -> None:
    tired = node("n4", taints=None)
    tired["status"]["conditions"] = [
        {"type": "Ready", "status": "Unknown", "reason": "NodeStatusUnknown"}
    ]
    found = asked(json.dumps({"items": [*nodes().values(), tired]}).encode()).of("n4")
    assert (found.state, found.why) == (
        PlaceState.THEIRS,
        "it is not ready: NodeStatusUnknown",
    )


def test_another_reason_means_that_somebody_changed_it(nodes: Nodes) -> None:
    place = KubernetesPlace()
    place.isolate("n2", REASON, "plan-1")
    before = nodes()
    with pytest.raises(LeftAloneError, match="changed since: ncdiag: gpu fell off"):
        place.release("n2", given_reason("another"))
    assert nodes() == before


def test_a_node_that_changes_meanwhile_is_looked_at_again(
    nodes: Nodes, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The kubelet writes to its node between our reading and our patch."""
    decoded, changes = kubernetes._decoded, [b"x", b"x"]
    file = tmp_path / "nodes.json"

    def meddled(answer: bytes, kind: type[Any]) -> Any:
        if changes:
            changes.pop()
            file.write_text(file.read_text().replace('"7"', '"8"').replace('"9"', '"10"'))
        return decoded(answer, kind)

    monkeypatch.setattr(kubernetes, "_decoded", meddled)
    KubernetesPlace().isolate("n2", REASON, "plan-1")
    assert changes == []
    assert nodes()["n2"]["spec"]["unschedulable"] is True


def test_nodes_are_found_by_what_their_machines_are_called(nodes: Nodes) -> None:
    found = asked(json.dumps({"items": list(nodes().values())}).encode())
    assert found.own_name("n1-machine.cluster.example") == "n1"
    assert found.own_name("10.0.0.2") == "n2"
    assert found.of("n9").state is PlaceState.MISSING


def test_the_context_is_passed_on_and_part_of_the_key(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program = tmp_path / "kubectl"
    program.write_text(f'#!/bin/sh\necho "$@" > {tmp_path}/asked\necho \'{{"items": []}}\'\n')
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    place = KubernetesPlace("blue")
    place.ask()
    asked_for = (tmp_path / "asked").read_text().split()
    assert asked_for == ["get", "--context=blue", "--request-timeout=60s", "nodes", "--output=json"]
    assert place.key == "kubernetes:blue"


def test_the_current_context_is_asked_for_once_and_stays(
    nodes: Nodes, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A node of the same name in the cluster that becomes current meanwhile is another one."""
    assert KubernetesPlace().key == "kubernetes"
    (tmp_path / "blue.json").write_bytes((tmp_path / "nodes.json").read_bytes())
    monkeypatch.setenv("KUBECTL_NODES", str(tmp_path / "{context}.json"))
    monkeypatch.setenv("KUBECTL_CONTEXT", "blue")
    place = KubernetesPlace()
    assert place.key == KubernetesPlace("").key == "kubernetes:blue"
    monkeypatch.setenv("KUBECTL_CONTEXT", "nodes")
    before = nodes()
    place.isolate("n1", REASON, "p1")
    assert (place.key, KubernetesPlace().key) == ("kubernetes:blue", "kubernetes:nodes")
    assert nodes_of(tmp_path / "blue.json")["n1"]["spec"]["unschedulable"] is True
    assert nodes() == before


def test_a_configuration_that_tells_no_context_is_one_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program = tmp_path / "kubectl"
    program.write_text("#!/bin/sh\necho 'error: error loading config file \"x\"' >&2\nexit 1\n")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    with pytest.raises(UndecidedError, match="kubectl config: error: error loading config file"):
        _ = KubernetesPlace().key


@pytest.mark.parametrize(
    ("says", "kind", "line"),
    [
        (
            'Error from server (Forbidden): nodes is forbidden: User "eve" cannot list',
            UndecidedError,
            "needs get, list and patch of nodes",
        ),
        ("Unable to connect to the server: dial tcp", UndecidedError, "cannot be reached"),
        ('error: context "x" does not exist', UndecidedError, "get-contexts lists contexts"),
    ],
)
def test_what_kubectl_refuses_is_one_line(
    nodes: Nodes,
    monkeypatch: pytest.MonkeyPatch,
    says: str,
    kind: type[NcdiagError],
    line: str,
) -> None:
    monkeypatch.setenv("KUBECTL_SAYS", says)
    with pytest.raises(kind, match=line):
        KubernetesPlace().ask()
    assert nodes()["n2"] == node("n2")


def test_a_context_that_was_named_and_is_not_there_is_wrong_use(
    nodes: Nodes, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KUBECTL_SAYS", 'error: context "x" does not exist')
    with pytest.raises(UsageError, match="get-contexts lists contexts"):
        KubernetesPlace("x").ask()
    assert nodes()["n2"] == node("n2")


@pytest.mark.parametrize("answer", [b"", b"no", b'{"items": [{"metadata": {}}]}', b"[" * 9999])
def test_an_answer_that_is_no_list_of_nodes_is_one_line(answer: bytes) -> None:
    with pytest.raises(UndecidedError, match="kubectl did not answer with nodes"):
        asked(answer)


@given(
    st.binary()
    | st.recursive(
        st.none() | st.booleans() | st.integers() | st.text(),
        lambda inner: (
            st.lists(inner)
            | st.dictionaries(
                st.sampled_from(["items", "metadata", "name", "resourceVersion", "spec", "taints"]),
                inner,
            )
        ),
        max_leaves=8,
    ).map(lambda document: json.dumps(document).encode())
)
def test_any_answer_is_read_or_one_line(answer: bytes) -> None:
    said, found = "", Asked({})
    try:
        found = asked(answer)
    except UndecidedError as error:
        said = f"{error}"
    assert not said or "kubectl did not answer with nodes" in said
    assert all(one.state is not PlaceState.OURS for one in found.standings.values())
