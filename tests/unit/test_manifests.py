import os
import shlex
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

from ncdiag.cli import main
from ncdiag.model.errors import UsageError
from ncdiag.report.manifests import KINDS, Kind, Wishes, render

FULL = Wishes(
    image="registry.example:5000/team/ncdiag:1.2@sha256:" + "a" * 64,
    name="check-7",
    namespace="ai",
    nodes=16,
    rdma_resources=("rdma/hca_shared_devices_a", "nvidia.com/mlnxnics=8"),
    node_selector=("gpu-pool=h100", "example.com/zone=a"),
    shm_size="512Mi",
    host_network=True,
    results_claim="reports",
    deadline_s=90,
)
SMALL = Wishes(image="ncdiag", gpus_per_node=0)
# Their schemas are with the operators that bring them; what they hold pods in is Kubernetes's.
FOREIGN = {"mpijob", "volcano"}


def documents(kind: Kind, wishes: Wishes) -> list[dict[str, Any]]:
    return list(yaml.safe_load_all(render(kind, wishes)))


def templates(kind: Kind, wishes: Wishes) -> list[dict[str, Any]]:
    spec = documents(kind, wishes)[-1]["spec"]
    if kind == "mpijob":
        return [replica["template"] for replica in spec["mpiReplicaSpecs"].values()]
    if kind == "volcano":
        return [task["template"] for task in spec["tasks"]]
    return [spec["template"]]


def measured(kind: Kind, wishes: Wishes) -> dict[str, Any]:
    [found] = [
        template["spec"]
        for template in templates(kind, wishes)
        if template["metadata"]["labels"]["ncdiag-role"] == "worker"
    ]
    return dict(found)


@pytest.mark.parametrize("wishes", [FULL, SMALL], ids=["full", "small"])
@pytest.mark.parametrize("kind", KINDS)
def test_kubernetes_own_schemas_take_what_is_printed(kind: Kind, wishes: Wishes) -> None:
    validate = pytest.importorskip(
        "kubernetes_validate", reason="kubernetes-validate is not installed"
    ).validate
    version = "1.33"
    if kind not in FOREIGN:
        for document in documents(kind, wishes):
            validate(document, version, strict=True)
    for template in templates(kind, wishes):
        pod = {"apiVersion": "v1", "kind": "Pod"} | template
        validate(pod, version, strict=True)


def test_those_schemas_can_refuse() -> None:
    package = pytest.importorskip(
        "kubernetes_validate", reason="kubernetes-validate is not installed"
    )
    [document] = documents(Kind.DAEMONSET, SMALL)
    document["spec"]["template"]["spec"]["containrs"] = []
    with pytest.raises(package.ValidationError):
        package.validate(document, "1.33", strict=True)


@pytest.mark.parametrize("kind", KINDS)
def test_a_pod_has_what_nccl_needs_and_a_node_to_itself(kind: Kind) -> None:
    pod = measured(kind, FULL)
    [container] = pod["containers"]
    limits = {
        "nvidia.com/gpu": "8",
        "rdma/hca_shared_devices_a": "1",
        "nvidia.com/mlnxnics": "8",
    }
    assert container["resources"] == {"limits": limits, "requests": limits}
    assert container["securityContext"]["capabilities"]["add"] == ["IPC_LOCK"]
    assert {"name": "shm", "emptyDir": {"medium": "Memory", "sizeLimit": "512Mi"}} in pod["volumes"]
    assert {"name": "shm", "mountPath": "/dev/shm"} in container["volumeMounts"]  # noqa: S108 - of the pod
    assert (pod["hostNetwork"], pod["dnsPolicy"]) == (True, "ClusterFirstWithHostNet")
    assert pod["nodeSelector"] == {"gpu-pool": "h100", "example.com/zone": "a"}
    if kind != "daemonset":
        [term] = pod["affinity"]["podAntiAffinity"][
            "requiredDuringSchedulingIgnoredDuringExecution"
        ]
        assert term["topologyKey"] == "kubernetes.io/hostname"
        assert term["labelSelector"]["matchLabels"] == {"app": "check-7", "ncdiag-role": "worker"}


@pytest.mark.parametrize("kind", KINDS)
def test_the_number_of_nodes_and_the_names_are_everywhere_the_same(kind: Kind) -> None:
    spec = documents(kind, FULL)[-1]["spec"]
    counted = {
        "job": lambda: (spec["completions"], spec["parallelism"]),
        "mpijob": lambda: (spec["mpiReplicaSpecs"]["Worker"]["replicas"], 16),
        "volcano": lambda: (spec["tasks"][1]["replicas"], spec["minAvailable"] - 1),
        "daemonset": lambda: (16, 16),
    }[kind]()
    assert counted == (16, 16)
    for document in documents(kind, FULL):
        assert (document["metadata"]["name"], document["metadata"]["namespace"]) == (
            "check-7",
            "ai",
        )


@pytest.mark.parametrize("kind", sorted(set(KINDS) - {Kind.DAEMONSET}))
def test_the_sweep_that_a_manifest_starts_is_one_that_ncdiag_understands(kind: Kind) -> None:
    [driver, *_] = templates(kind, FULL)
    command = driver["spec"]["containers"][0]["command"]
    words = command[command.index("sweep") :]
    assert "--output /results/check-7 --force" in shlex.join(words)
    assert main.run([*words, "--help"]) == 0


# Plays a kubectl whose answers are the lines of a file, a call each, and then always the last one.
KUBECTL = """#!/bin/sh
cd "$(dirname "$0")"
echo "$@" >>asked
sed -n "$(wc -l <asked)p;\\$p" answers | head -n 1
"""


def first_pod(folder: Path, answers: str, code: int, *, wait_s: int) -> tuple[int, str, str]:
    """How the first pod of a job of two ends, what it says, and what it was started as."""
    [container] = measured(Kind.JOB, SMALL)["containers"]
    sh, option, script, name, selector, nodes, seconds, *sweep = container["command"]
    assert (sh, option, name, nodes, seconds) == ("sh", "-c", "sh", "2", "600")
    assert selector == "app=ncdiag,ncdiag-role=worker"
    (folder / "answers").write_text(answers)
    says = '#!/bin/sh\necho "$@"\nexit ' + str(code)
    for program, text in (("kubectl", KUBECTL), ("ncdiag", says), ("sleep", "#!/bin/sh\n")):
        (folder / program).write_text(text)
        (folder / program).chmod(0o755)
    done = subprocess.run(
        ["sh", "-c", script.replace("$$", "$"), name, selector, nodes, str(wait_s), *sweep],
        env={"PATH": f"{folder}:{os.environ['PATH']}", "JOB_COMPLETION_INDEX": "0"},
        capture_output=True,
        text=True,
        check=False,
    )
    return done.returncode, done.stderr, done.stdout


@pytest.mark.parametrize("code", [0, 1, 2, 3])
def test_the_first_pod_waits_for_all_and_ends_as_its_sweep(tmp_path: Path, code: int) -> None:
    answers = "\nTrue False\nFalse\nTrue True\n"
    ended, says, started = first_pod(tmp_path, answers, code, wait_s=600)
    assert (ended, says) == (code, "")
    assert started.startswith(
        "sweep --launcher kubernetes --selector=app=ncdiag,ncdiag-role=worker"
    )
    asked = (tmp_path / "asked").read_text().splitlines()
    assert len(asked) == 4
    [question] = set(asked)
    assert "get pods --selector=app=ncdiag,ncdiag-role=worker --request-timeout=30s" in question
    assert '{.items[*].status.conditions[?(@.type=="Ready")].status}' in question


@pytest.mark.parametrize(("code", "ends"), [(0, 3), (1, 1), (2, 2), (3, 3)])
def test_a_pod_that_never_gets_ready_costs_itself_alone(
    tmp_path: Path, code: int, ends: int
) -> None:
    ended, says, started = first_pod(tmp_path, "True False\n", code, wait_s=0)
    assert ended == ends
    assert "only 1 of 2 pods are ready" in says
    assert started.startswith("sweep ")


def test_the_wait_leaves_most_of_the_deadline_to_the_sweep() -> None:
    [container] = measured(Kind.JOB, FULL)["containers"]
    assert container["command"][6] == "30"


@pytest.mark.parametrize("kind", [Kind.MPIJOB, Kind.VOLCANO])
def test_in_the_nodes_own_network_sshd_leaves_the_nodes_port_alone(kind: Kind) -> None:
    def both(wishes: Wishes) -> tuple[list[str], dict[str, Any], list[str]]:
        [driver, *_] = templates(kind, wishes)
        [worker] = measured(kind, wishes)["containers"]
        return worker["command"], worker, driver["spec"]["containers"][0]["command"]

    sshd, worker, sweep = both(FULL)
    assert sshd == ["/usr/sbin/sshd", "-De", "-p", "2222"]
    assert worker["ports"] == [{"containerPort": 2222, "hostPort": 2222}]
    assert "--ssh-option=Port=2222" in sweep
    sshd, worker, sweep = both(SMALL)
    assert sshd == ["/usr/sbin/sshd", "-De"]
    assert "ports" not in worker
    assert not any("Port=" in word for word in sweep)


def test_what_goes_to_the_sweep_arrives_as_it_was_typed(capfd: pytest.CaptureFixture[str]) -> None:
    values = ["$(id); 'a' \"b\"", "- y: &z *z", "#no", "$$HOME", "{{x}}"]
    hard = [word for value in values for word in ("--ssh-option", value)]
    assert main.run(["manifests", "mpijob", "--image", "ncdiag", "--", *hard]) == 0
    [document] = yaml.safe_load_all(capfd.readouterr().out)
    launcher = document["spec"]["mpiReplicaSpecs"]["Launcher"]["template"]["spec"]
    told = launcher["containers"][0]["command"][-len(hard) :]
    # What Kubernetes makes of it: $$ is a dollar, and $(NAME) would be a variable.
    assert [one.replace("$$", "$") for one in told] == hard


@pytest.mark.parametrize(
    ("options", "complaint"),
    [
        ({"name": "Check"}, "--name: Kubernetes does not take 'Check'"),
        ({"name": "a\nb: c"}, "--name"),
        ({"name": "-a"}, "--name"),
        ({"name": "a" * 41}, "--name: 41 characters"),
        ({"namespace": "a.b"}, "--namespace"),
        ({"namespace": ""}, "--namespace"),
        ({"image": "a b"}, "--image"),
        ({"image": "a:"}, "--image"),
        ({"image": "$(x)"}, "--image"),
        ({"image": ""}, "--image"),
        ({"image": "a\n"}, "--image"),
        ({"rdma_resources": ("hca",)}, "--rdma-resource: not a resource"),
        ({"rdma_resources": ("rdma/hca=0",)}, "--rdma-resource: not a resource"),
        ({"rdma_resources": ("rdma/h ca",)}, "--rdma-resource"),
        ({"node_selector": ("pool",)}, "--node-selector: not a label"),
        ({"node_selector": ("po ol=x",)}, "--node-selector"),
        ({"node_selector": ("pool=x y",)}, "--node-selector"),
        ({"shm_size": "16GB"}, "--shm-size"),
        ({"results_claim": "../x"}, "--results-claim"),
        ({"sweep_arguments": ("a\0b",)}, "not an argument of sweep"),
    ],
)
def test_what_kubernetes_would_refuse_is_refused_here(
    options: dict[str, Any], complaint: str
) -> None:
    with pytest.raises(UsageError) as raised:
        Wishes(**{"image": "ncdiag"} | options)
    assert complaint in str(raised.value)


@pytest.mark.parametrize("words", [("--engine", "nccl-tests"), ("--engine=mpi",)])
def test_a_job_is_not_told_to_measure_by_mpi_which_cannot_reach_its_pods(
    words: tuple[str, ...],
) -> None:
    wishes = Wishes(image="a", sweep_arguments=("--quick", *words))
    with pytest.raises(UsageError, match="take mpijob, or --engine torch"):
        render(Kind.JOB, wishes)
    assert render(Kind.MPIJOB, wishes)
    by_torch = Wishes(image="a", sweep_arguments=(*words, "--engine", "torch"))
    assert render(Kind.JOB, by_torch)


@pytest.mark.parametrize("image", ["a", "nvcr.io/nvidia/pytorch:25.01-py3", "localhost:5000/a_b/c"])
def test_images_are_named_as_one_is_used_to(image: str) -> None:
    assert Wishes(image=image).image == image


def test_a_daemonset_takes_nothing_for_a_sweep(capfd: pytest.CaptureFixture[str]) -> None:
    assert main.run(["manifests", "daemonset", "--image", "a", "--", "--engine", "x"]) == 2
    assert "a daemonset only idles" in capfd.readouterr().err


@pytest.mark.parametrize("separator", [".", "_", "__", "-", "---", "/"])
def test_a_long_name_of_an_image_that_is_wrong_is_refused_at_once(separator: str) -> None:
    """With two ways to read one separator it would take longer than anybody waits."""
    with pytest.raises(UsageError, match="Kubernetes does not take"):
        Wishes(image=separator.join(["a"] * 120) + "!")


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("text", ["1e3", "7", "0x1f", "0o17", "1_000", "y", "n", "on", "null"])
def test_text_that_reads_like_a_number_or_a_truth_value_stands_in_quotes(
    kind: Kind, text: str
) -> None:
    """kubectl's YAML knows more of them than Python's, and Kubernetes refuses what it reads."""
    wishes = Wishes(image=text, name="ncdiag", namespace=None, node_selector=(f"a={text}",))
    told = render(kind, wishes)
    assert f"image: '{text}'" in told.replace('"', "'")
    assert f"  a: '{text}'" in told.replace('"', "'")
    [pod, *_] = templates(kind, wishes)
    [container] = pod["spec"]["containers"]
    assert container["image"] == text
