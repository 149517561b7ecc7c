"""The objects of each kind of manifest."""

from typing import Final

from ncdiag.model.errors import UsageError
from ncdiag.report.manifests.pods import (
    CONTAINER,
    IDLE,
    Manifest,
    keep_results,
    labels,
    measured_pod,
    metadata,
    sweeping_pod,
    told,
)
from ncdiag.report.manifests.wishes import Wishes

# Pod 0 waits for the others and measures them, itself among them; all words come as arguments.
# Those that never get ready cost themselves alone, but without them nothing is called healthy (0).
# A refusal is waited out: the account's rights may be newer than what the API server knows.
_FIRST_SWEEPS: Final = """\
if [ "$JOB_COMPLETION_INDEX" != 0 ]; then exec sleep infinity; fi
selector=$1 nodes=$2 end=$(($(date +%s) + $3))
shift 3
count_ready() {
  ready=0
  for one in $(kubectl get pods --selector="$selector" --request-timeout=30s --output="$READY"); do
    [ "$one" != True ] || ready=$((ready + 1))
  done
}
READY='jsonpath={.items[*].status.conditions[?(@.type=="Ready")].status}'
count_ready
while [ "$ready" -lt "$nodes" ] && [ "$(date +%s)" -lt "$end" ]; do
  sleep 5
  count_ready
done
[ "$ready" -lt "$nodes" ] || exec "$@"
echo "ncdiag: only $ready of $nodes pods are ready: the others are not measured" >&2
"$@" && exit 3
"""
# How long that waits, and how much of the deadline at most: the rest is for the sweep.
_READY_S: Final = 600
_READY_SHARE: Final = 3
# Keys are made for the job, and pods get new addresses: there is nothing to compare a key with.
_NEW_HOST_KEYS: Final = (
    "--ssh-option=StrictHostKeyChecking=no",
    "--ssh-option=UserKnownHostsFile=/dev/null",
)
# They need MPI, which has no way into the pods of a job.
_BY_MPI: Final = frozenset(("mpi", "nccl-tests"))
_SSHD: Final = ("/usr/sbin/sshd", "-De")
# In the node's own network its port 22 is taken by the node's sshd.
_NODE_PORT: Final = 2222


def daemonset(wishes: Wishes) -> list[Manifest]:
    """Idle pods on every node, for ``--launcher kubernetes``."""
    pod = measured_pod(wishes, IDLE)
    pod["spec"]["restartPolicy"] = "Always"  # a DaemonSet knows no other
    del pod["spec"]["affinity"]  # and puts one on each node by itself
    spec = {"selector": {"matchLabels": labels(wishes, "worker")}, "template": pod}
    return [_object("apps/v1", "DaemonSet", wishes, spec)]


def job(wishes: Wishes) -> list[Manifest]:
    """An indexed Job whose first pod measures all, by kubectl exec and the rights to do that.

    Raises :class:`UsageError` for a sweep that has to reach them another way.
    """
    if (engine := wishes.engine()) in _BY_MPI:
        raise UsageError(
            f"--engine {engine} starts MPI programs by ssh, which the pods of a job have not: "
            "take mpijob, or --engine torch"
        )
    selector = ",".join(f"{key}={value}" for key, value in labels(wishes, "worker").items())
    sweep = ("ncdiag", "sweep", "--launcher", "kubernetes", f"--selector={selector}")
    wait_s = min(_READY_S, wishes.deadline_s // _READY_SHARE)
    # Kubernetes would put variables in for $(NAME).
    script = _FIRST_SWEEPS.replace("$(", "$$(")
    first = ("sh", "-c", script, "sh", selector, str(wishes.nodes), str(wait_s))
    command = (*first, *sweep, f"--container={CONTAINER}", *told(wishes))
    pod = measured_pod(wishes, command)
    pod["spec"] |= {"serviceAccountName": wishes.name, "subdomain": wishes.name}
    keep_results(wishes, pod["spec"])
    spec = {
        "completionMode": "Indexed",
        "completions": wishes.nodes,
        "parallelism": wishes.nodes,
        "backoffLimit": 0,
        "activeDeadlineSeconds": wishes.deadline_s,
        # Kubernetes 1.31 and later; the others idle, and end with the first.
        "successPolicy": {"rules": [{"succeededIndexes": "0"}]},
        "template": pod,
    }
    return [*_rights(wishes), _service(wishes), _object("batch/v1", "Job", wishes, spec)]


def mpijob(wishes: Wishes) -> list[Manifest]:
    """An MPIJob of the MPI operator: its launcher runs the sweep by Open MPI over the workers."""
    where = ("--launcher", "openmpi", "--nodes", "/etc/mpi/hostfile", *_by_ssh(wishes))
    spec = {
        "slotsPerWorker": max(wishes.gpus_per_node, 1),
        "launcherCreationPolicy": "WaitForWorkersReady",
        "runPolicy": {
            "cleanPodPolicy": "Running",
            "backoffLimit": 0,
            "activeDeadlineSeconds": wishes.deadline_s,
        },
        "mpiReplicaSpecs": {
            "Launcher": {"replicas": 1, "template": sweeping_pod(wishes, *where)},
            "Worker": {"replicas": wishes.nodes, "template": _reached_by_ssh(wishes)},
        },
    }
    return [_object("kubeflow.org/v2beta1", "MPIJob", wishes, spec)]


def volcano(wishes: Wishes) -> list[Manifest]:
    """A Job of Volcano, whose ssh plugin lets its driver into the workers, all started at once."""
    where = ("--launcher", "ssh", "--nodes", "/etc/volcano/worker.host", *_by_ssh(wishes))
    end_all = [
        {"event": "TaskCompleted", "action": "CompleteJob"},
        {"event": "PodFailed", "action": "AbortJob"},
    ]
    spec = {
        "schedulerName": "volcano",
        "minAvailable": wishes.nodes + 1,
        "maxRetry": 1,
        "plugins": {"ssh": [], "svc": []},
        "tasks": [
            {
                "name": "driver",
                "replicas": 1,
                "policies": end_all,
                "template": sweeping_pod(wishes, *where),
            },
            {"name": "worker", "replicas": wishes.nodes, "template": _reached_by_ssh(wishes)},
        ],
    }
    return [_object("batch.volcano.sh/v1alpha1", "Job", wishes, spec)]


def _reached_by_ssh(wishes: Wishes) -> Manifest:
    if not wishes.host_network:
        return measured_pod(wishes, _SSHD)
    pod = measured_pod(wishes, (*_SSHD, "-p", str(_NODE_PORT)))
    [container] = pod["spec"]["containers"]
    # So that no two pods that want it are put on one node.
    container["ports"] = [{"containerPort": _NODE_PORT, "hostPort": _NODE_PORT}]
    return pod


def _by_ssh(wishes: Wishes) -> tuple[str, ...]:
    port = (f"--ssh-option=Port={_NODE_PORT}",) if wishes.host_network else ()
    return (*_NEW_HOST_KEYS, *port)


def _object(version: str, kind: str, wishes: Wishes, spec: Manifest) -> Manifest:
    return {"apiVersion": version, "kind": kind, "metadata": metadata(wishes), "spec": spec}


def _service(wishes: Wishes) -> Manifest:
    spec = {
        "clusterIP": "None",
        "publishNotReadyAddresses": True,
        "selector": labels(wishes, "worker"),
    }
    return _object("v1", "Service", wishes, spec)


def _rights(wishes: Wishes) -> list[Manifest]:
    """An account that may list pods and start programs in them, and nothing else."""
    group = "rbac.authorization.k8s.io"
    account: Manifest = {
        "apiVersion": "v1",
        "kind": "ServiceAccount",
        "metadata": metadata(wishes),
    }
    rules = [
        {"apiGroups": [""], "resources": ["pods"], "verbs": ["get", "list", "watch"]},
        {"apiGroups": [""], "resources": ["pods/exec"], "verbs": ["create", "get"]},
    ]
    role = {
        "apiVersion": f"{group}/v1",
        "kind": "Role",
        "metadata": metadata(wishes),
        "rules": rules,
    }
    subject = {"kind": "ServiceAccount", "name": wishes.name}
    if wishes.namespace:
        subject["namespace"] = wishes.namespace
    binding = {
        "apiVersion": f"{group}/v1",
        "kind": "RoleBinding",
        "metadata": metadata(wishes),
        "subjects": [subject],
        "roleRef": {"apiGroup": group, "kind": "Role", "name": wishes.name},
    }
    return [account, role, binding]
