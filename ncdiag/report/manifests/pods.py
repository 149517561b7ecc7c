"""What the pods of all kinds have in common."""

from collections.abc import Sequence
from typing import Any, Final

from ncdiag.report.manifests.wishes import Wishes

CONTAINER: Final = "main"
RESULTS: Final = "/results"
_SHM: Final = "/dev/shm"  # noqa: S108 - of the pod
# It does nothing until it is told to end.
IDLE: Final = ("sleep", "infinity")
# Ended by force: what idles, as the first process of its container, does not hear SIGTERM.
_GRACE_S = 5

Manifest = dict[str, Any]


def metadata(wishes: Wishes, *, suffix: str = "") -> Manifest:
    """Name, namespace and labels of an object."""
    found: Manifest = {"name": f"{wishes.name}{suffix}"}
    if wishes.namespace:
        found["namespace"] = wishes.namespace
    return found | {"labels": labels(wishes)}


def labels(wishes: Wishes, role: str | None = None) -> Manifest:
    """What ``--selector`` finds pods by."""
    own = {"app": wishes.name}
    return own | {"ncdiag-role": role} if role else own


def measured_pod(wishes: Wishes, command: Sequence[str], role: str = "worker") -> Manifest:
    """The template of a pod that stands for a node: all its GPUs and NICs, one pod a node."""
    limits = wishes.rdma_limits()
    if wishes.gpus_per_node:
        limits["nvidia.com/gpu"] = str(wishes.gpus_per_node)
    container: Manifest = {
        "name": CONTAINER,
        "image": wishes.image,
        "command": list(command),
        # Registers memory with the NIC, which counts as locked.
        "securityContext": {"capabilities": {"add": ["IPC_LOCK"]}},
        "volumeMounts": [{"name": "shm", "mountPath": _SHM}],
    }
    if limits:
        container["resources"] = {"limits": limits, "requests": dict(limits)}
    shm = {"name": "shm", "emptyDir": {"medium": "Memory", "sizeLimit": wishes.shm_size}}
    spec: Manifest = {
        "restartPolicy": "Never",
        "terminationGracePeriodSeconds": _GRACE_S,
        "containers": [container],
        "volumes": [shm],
        "affinity": {"podAntiAffinity": _apart(wishes, role)},
        # What keeps other work off GPU nodes.
        "tolerations": [{"key": "nvidia.com/gpu", "operator": "Exists", "effect": "NoSchedule"}],
    }
    if wishes.node_selector:
        spec["nodeSelector"] = wishes.selected()
    if wishes.host_network:
        spec |= {"hostNetwork": True, "dnsPolicy": "ClusterFirstWithHostNet"}
    return {"metadata": {"labels": labels(wishes, role)}, "spec": spec}


def sweeping_pod(wishes: Wishes, *sweep: str) -> Manifest:
    """The template of a pod that only starts the sweep of others."""
    container: Manifest = {
        "name": CONTAINER,
        "image": wishes.image,
        "command": ["ncdiag", "sweep", *sweep, *told(wishes)],
    }
    spec: Manifest = {"restartPolicy": "Never", "containers": [container]}
    keep_results(wishes, spec)
    return {"metadata": {"labels": labels(wishes, "driver")}, "spec": spec}


def told(wishes: Wishes) -> list[str]:
    """Where the report goes, and what else the sweep is told.

    Without a volume the report is lost with the pod, and the log is left.
    """
    folder = RESULTS if wishes.results_claim else "/tmp"  # noqa: S108 - of the pod
    # Kubernetes would put variables in for $(NAME).
    more = (argument.replace("$", "$$") for argument in wishes.sweep_arguments)
    return ["--output", f"{folder}/{wishes.name}", "--force", *more]


def keep_results(wishes: Wishes, spec: Manifest) -> None:
    """Mount the volume that reports are kept in, where there is one."""
    if wishes.results_claim:
        [container] = spec["containers"]
        mounts = container.setdefault("volumeMounts", [])
        mounts.append({"name": "results", "mountPath": RESULTS})
        claim = {"claimName": wishes.results_claim}
        spec.setdefault("volumes", []).append({"name": "results", "persistentVolumeClaim": claim})


def _apart(wishes: Wishes, role: str) -> Manifest:
    selector = {"matchLabels": labels(wishes, role)}
    term = {"topologyKey": "kubernetes.io/hostname", "labelSelector": selector}
    return {"requiredDuringSchedulingIgnoredDuringExecution": [term]}
