import json
import os
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from ncdiag.cli import main
from ncdiag.cluster.launchers import (
    KubernetesOptions,
    LauncherOptions,
    RemoteJob,
    best_launcher,
    choose,
)
from ncdiag.cluster.launchers.kubernetes import KubernetesLauncher
from ncdiag.cluster.pods import find_pods, hosts_of, parse_pods
from ncdiag.model.errors import UndecidedError, UsageError
from ncdiag.model.host import Host

KUBECTL = Path(__file__).parents[1] / "data" / "kubectl"
OPTIONS = KubernetesOptions(selector="app=ncdiag")
READY = [{"type": "Ready", "status": "True"}]
UNSCHEDULED = [{"type": "PodScheduled", "status": "False", "message": "0/4 nodes are available"}]

Set = Callable[[list[dict[str, Any]]], None]


def pod(number: int, node: str | None = None, **status: Any) -> dict[str, Any]:
    told = {"phase": "Running", "podIP": f"10.0.0.{number}", "conditions": READY} | status
    return {
        "metadata": {"name": f"ncdiag-{number}", "labels": {"app": "ncdiag"}},
        "spec": {"nodeName": node or f"gpu{number}"},
        "status": told,
    }


def waiting(reason: str) -> dict[str, Any]:
    unready = [{"type": "Ready", "status": "False", "message": "containers with unready status"}]
    return {
        "containerStatuses": [{"state": {"waiting": {"reason": reason}}}],
        "conditions": unready,
    }


@pytest.fixture
def pods(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Set:
    """Say which pods the kubectl on PATH knows; without a call, two that are ready."""
    file = tmp_path / "pods.json"
    monkeypatch.setenv("KUBECTL_PODS", str(file))
    monkeypatch.setenv("PATH", f"{KUBECTL}:{os.environ['PATH']}")
    monkeypatch.delenv("KUBECTL_SAYS", raising=False)

    def put(items: list[dict[str, Any]]) -> None:
        file.write_text(json.dumps({"kind": "List", "items": items}))

    put([pod(2), pod(1)])
    return put


def test_nodes_are_the_hosts_at_the_addresses_of_their_pods(pods: Set) -> None:
    del pods
    assert hosts_of(find_pods(OPTIONS), None) == (
        Host(name="gpu1", address="10.0.0.1"),
        Host(name="gpu2", address="10.0.0.2"),
    )


def test_named_hosts_keep_what_is_said_of_them_and_their_order(pods: Set) -> None:
    del pods
    named = [
        Host(name="gpu2", address="gpu2", leaf="l1", nics=("eth1",)),
        Host(name="gpu9", address="gpu9"),
        Host(name="gpu1", address="192.168.0.1"),
    ]
    assert hosts_of(find_pods(OPTIONS), named) == (
        Host(name="gpu2", address="10.0.0.2", leaf="l1", nics=("eth1",)),
        Host(name="gpu9", address="gpu9"),
        Host(name="gpu1", address="192.168.0.1"),
    )


@pytest.mark.parametrize(
    ("status", "reason"),
    [
        (waiting("ImagePullBackOff"), "ImagePullBackOff"),
        (waiting("CrashLoopBackOff"), "CrashLoopBackOff"),
        ({"phase": "Pending", "conditions": UNSCHEDULED}, "0/4 nodes are available"),
        ({"phase": "Pending", "conditions": []}, "(Pending)"),
        ({"phase": "Unknown", "conditions": [{"type": "Ready", "status": "Unknown"}]}, "(Unknown)"),
        ({"phase": "Running\x1b[2J", "conditions": []}, r"(Running\x1b[2J)"),
    ],
)
def test_a_pod_that_is_not_ready_makes_its_host_unreachable_and_says_why(
    pods: Set, status: dict[str, Any], reason: str
) -> None:
    pods([pod(1), pod(2, **status)])
    launcher = choose("kubernetes", [], LauncherOptions(python="python", kubernetes=OPTIONS))
    hosts = hosts_of(find_pods(OPTIONS), None)
    ready, unready = launcher.launches(hosts, RemoteJob(module="m"))
    assert ready.argv[:2] == ("kubectl", "exec")
    done = subprocess.run(unready.argv, capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert done.stderr.startswith("its pod ncdiag-2 is not ready")
    assert reason in done.stderr


def test_a_host_without_a_pod_says_so(pods: Set) -> None:
    del pods
    launcher = KubernetesLauncher(LauncherOptions(python="python", kubernetes=OPTIONS))
    [launch] = launcher.launches([Host(name="gpu7", address="gpu7")], RemoteJob(module="m"))
    done = subprocess.run(launch.argv, capture_output=True, text=True, check=False)
    assert done.stderr == "no pod of --selector app=ncdiag is on that node\n"


def test_pods_that_have_ended_or_are_nowhere_yet_are_none(pods: Set) -> None:
    going = pod(4, "gpu1")
    going["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z"
    nowhere = pod(6)
    del nowhere["spec"]["nodeName"]
    pods(
        [pod(1), pod(3, "gpu1", phase="Succeeded"), pod(5, "gpu1", phase="Failed"), going, nowhere]
    )
    assert {node: one.name for node, one in find_pods(OPTIONS).items()} == {"gpu1": "ncdiag-1"}


def test_two_pods_on_a_node_are_refused(pods: Set) -> None:
    pods([pod(1), pod(2, "gpu1")])
    with pytest.raises(UsageError, match=r"two pods on the node gpu1 \(ncdiag-1, ncdiag-2\)"):
        find_pods(OPTIONS)


@pytest.mark.parametrize(
    ("says", "told"),
    [
        (
            (
                'Error from server (Forbidden): pods is forbidden: User "ops" cannot list resource '
                '"pods" in API group "" in the namespace "ai"'
            ),
            "this account may not do that",
        ),
        ('error: context "prod" does not exist', "kubectl config get-contexts"),
        (
            "Error in configuration: context was not found for specified context: prod",
            "kubectl config get-contexts",
        ),
        (
            (
                "The connection to the server localhost:8080 was refused - did you specify the "
                "right host or port?"
            ),
            "is kubectl told of a cluster?",
        ),
        ("error: You must be logged in to the server (Unauthorized)", "log in"),
        ("x\x1b]0;title\x07", r"x\x1b]0;title\x07"),
    ],
)
def test_what_kubectl_refuses_is_told_with_a_cure(
    pods: Set, monkeypatch: pytest.MonkeyPatch, says: str, told: str
) -> None:
    del pods
    monkeypatch.setenv("KUBECTL_SAYS", f"W0101 a warning before it\n{says}")
    with pytest.raises(UsageError) as raised:
        find_pods(OPTIONS)
    assert told in str(raised.value)


@pytest.mark.parametrize(
    "says",
    [
        "Unable to connect to the server: dial tcp: lookup k8s: no such host",
        "Unable to connect to the server: net/http: TLS handshake timeout",
        'error: Get "https://k8s:6443/api/v1/pods": context deadline exceeded',
        "Error from server (ServiceUnavailable): the server is currently unable to handle it",
        "Error from server (Timeout): the server was unable to return a response in time",
    ],
)
def test_a_cluster_that_does_not_answer_decides_nothing(
    pods: Set, monkeypatch: pytest.MonkeyPatch, says: str
) -> None:
    del pods
    monkeypatch.setenv("KUBECTL_SAYS", says)
    with pytest.raises(UndecidedError, match="cannot be reached from here"):
        find_pods(OPTIONS)


def test_no_selector_no_pods_and_no_kubectl_are_told(
    pods: Set, monkeypatch: pytest.MonkeyPatch
) -> None:
    pods([])
    with pytest.raises(UsageError, match=r"finds no pod on any node in this namespace"):
        find_pods(OPTIONS)
    with pytest.raises(UsageError, match="needs --selector"):
        find_pods(KubernetesOptions())
    monkeypatch.setenv("PATH", "/nowhere")
    with pytest.raises(UsageError, match="kubectl is not installed"):
        find_pods(OPTIONS)
    with pytest.raises(UsageError, match="kubectl is not installed"):
        choose("kubernetes", [])


@pytest.mark.parametrize("text", [b"", b"{}", b"[]", b'{"items":[{}]}', b"\xff", b'{"items": 3}'])
def test_an_answer_that_is_no_list_of_pods_decides_nothing(text: bytes) -> None:
    with pytest.raises(UndecidedError, match="did not answer with a list of pods"):
        parse_pods(text)


@pytest.mark.parametrize("name", ["--kubeconfig=/tmp/x", "a b", "a\x1b[2J", "$(x)", "a/b", ""])
def test_a_pod_or_node_whose_name_could_be_anything_else_decides_nothing(name: str) -> None:
    named, placed, addressed = pod(1), pod(1, node=name or "-"), pod(1, podIP=name or "-")
    named["metadata"]["name"] = name
    for one in (named, placed, addressed):
        with pytest.raises(UndecidedError, match="told of a pod that cannot be"):
            parse_pods(json.dumps({"items": [one]}).encode())


def test_an_option_that_kubectl_has_not_fails_here_too(pods: Set) -> None:
    del pods
    done = subprocess.run(
        ["kubectl", "get", "pods", "--selectr=a=b"], capture_output=True, text=True, check=False
    )
    assert done.returncode == 1
    assert done.stderr.startswith("error: ")


# --- auto ---

LOOPBACK = [Host(name="a", address="127.0.0.2"), Host(name="b", address="127.0.0.3")]
OTHERS = [Host(name="n1", address="n1"), Host(name="n2", address="n2")]


@pytest.fixture
def allocation(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Stand in an allocation of n1 to n3."""
    (tmp_path / "srun").write_text("#!/bin/sh\n")
    (tmp_path / "srun").chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    monkeypatch.setenv("SLURM_JOB_ID", "7")
    monkeypatch.setenv("SLURM_JOB_NODELIST", "n[1-3]")


def best(hosts: list[Host], selector: str | None = None) -> tuple[str, str]:
    options = LauncherOptions(python="x", kubernetes=KubernetesOptions(selector=selector))
    return best_launcher(hosts, options)


def test_outside_of_everything_auto_goes_by_the_addresses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("SLURM_JOB_ID", raising=False)
    assert best(LOOPBACK) == ("local", "all hosts are loopback addresses")
    assert best(OTHERS)[0] == "ssh"
    assert best(OTHERS, "app=x")[0] == "kubernetes"


@pytest.mark.usefixtures("allocation")
def test_inside_an_allocation_auto_is_slurm_for_its_own_hosts_alone() -> None:
    assert best(OTHERS)[0] == "slurm"
    assert best([*OTHERS, Host(name="n4", address="n4")]) == (
        "ssh",
        "not all hosts are in the Slurm allocation around us",
    )
    assert best(LOOPBACK)[0] == "local"
    assert best(OTHERS, "app=x")[0] == "kubernetes"


# --- the command ---


def test_a_dry_run_needs_no_nodes_and_says_why_it_is_kubernetes(
    pods: Set, capfd: pytest.CaptureFixture[str]
) -> None:
    del pods
    assert main.run(["sweep", "--selector", "app=ncdiag", "--dry-run"]) == 0
    out = capfd.readouterr().out
    assert "hosts     2: gpu[1-2]" in out
    assert "by the launcher kubernetes (pods are chosen by --selector):" in out


def test_one_pod_is_too_few(pods: Set, capfd: pytest.CaptureFixture[str]) -> None:
    pods([pod(1)])
    assert main.run(["sweep", "--selector", "app=ncdiag", "--dry-run"]) == 2
    assert "finds pods on 1 node, at least 2 needed" in capfd.readouterr().err
