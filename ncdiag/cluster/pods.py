"""Pods that stand for the nodes they run on, as kubectl tells of them."""

import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

import msgspec

from ncdiag.cluster.launcher import KubernetesOptions
from ncdiag.cluster.names import check_target
from ncdiag.cluster.processes import Ended, ask
from ncdiag.model.errors import UndecidedError, UsageError
from ncdiag.model.host import Host
from ncdiag.model.text import visible

_TIMEOUT_S = 60.0
_MAX_REASON = 300
_ENDED: Final = ("Succeeded", "Failed")
# What kubectl says, in order, and how to put it right.
_CURES: Final = (
    (
        "(Forbidden)",
        "this account may not do that: it needs get and list of pods, create of pods/exec",
    ),
    ("(Unauthorized)", "log in to the cluster again"),
    ("context was not found", "kubectl config get-contexts lists contexts, for --context"),
    ("does not exist", "kubectl config get-contexts lists contexts, for --context"),
    ("(NotFound)", "look at --namespace"),
    ("unable to parse requirement", "look at --selector"),
    ("was refused", "is kubectl told of a cluster? kubectl config current-context says which"),
)
# Nothing is known of the pods then, and nothing was asked wrongly.
_SILENT: Final = (
    "Unable to connect",
    "i/o timeout",
    "timed out",
    "Timeout",
    "deadline exceeded",
    "(ServiceUnavailable)",
    "(InternalError)",
    "(TooManyRequests)",
)
NOT_INSTALLED: Final = (
    "kubectl is not installed (https://kubernetes.io/docs/tasks/tools has it for every system)"
)
# Some 10 KiB a pod.
_MAX_ANSWER_BYTES = 512 << 20


@dataclass(frozen=True, slots=True, kw_only=True)
class Pod:
    """A pod on a node; ``trouble`` says why nothing can be started in it now."""

    name: str
    node: str
    address: str
    trouble: str | None = None


def kubectl(verb: str, options: KubernetesOptions, *arguments: str) -> tuple[str, ...]:
    """The command, told of context and namespace; values are never words of their own."""
    where = []
    if options.context:
        where.append(f"--context={options.context}")
    if options.namespace:
        where.append(f"--namespace={options.namespace}")
    return ("kubectl", verb, *where, *arguments)


def find_pods(options: KubernetesOptions) -> Mapping[str, Pod]:
    """The pods of the selector by the node they are on.

    Raises :class:`UsageError` where there is none, two share a node, or kubectl refuses, and
    :class:`UndecidedError` where it does not answer.
    """
    if not options.selector:
        raise UsageError(
            "the launcher kubernetes needs --selector, such as --selector app=ncdiag "
            "(ncdiag manifests daemonset prints pods to select)"
        )
    pods: dict[str, Pod] = {}
    for pod in parse_pods(_ask(options)):
        other = pods.setdefault(pod.node, pod)
        if other is not pod:
            raise UsageError(
                f"--selector {options.selector} finds two pods on the node {visible(pod.node)} "
                f"({visible(other.name)}, {visible(pod.name)}), which would share its links: "
                "narrow it to one pod a node"
            )
    if not pods:
        where = f"namespace {options.namespace}" if options.namespace else "this namespace"
        raise UsageError(
            f"--selector {options.selector} finds no pod on any node in {where} "
            "(look at --selector and --namespace)"
        )
    return pods


def hosts_of(pods: Mapping[str, Pod], named: Sequence[Host] | None) -> tuple[Host, ...]:
    """The nodes as hosts, at their pods' addresses; ``named`` chooses, and says more of each.

    A host without a pod stays, to be told of as unreachable.
    """
    if named is None:
        return tuple(Host(name=node, address=pods[node].address or node) for node in sorted(pods))
    return tuple(
        replace(host, address=pods[host.name].address)
        if host.address == host.name and host.name in pods and pods[host.name].address
        else host
        for host in named
    )


def parse_pods(text: bytes) -> list[Pod]:
    """The pods that are on a node, but for those that have ended; raises UndecidedError."""
    try:
        items = msgspec.json.decode(text, type=_List).items
    except msgspec.MsgspecError as error:
        raise UndecidedError(f"kubectl did not answer with a list of pods ({error})") from None
    there = [
        item
        for item in items
        if item.spec.node_name
        and item.status.phase not in _ENDED
        and item.metadata.deletion_timestamp is None
    ]
    try:
        return [_pod(item) for item in there]
    except UsageError as error:
        raise UndecidedError(f"kubectl told of a pod that cannot be: {error}") from None


def _pod(item: "_Item") -> Pod:
    """The pod, none of whose names can be taken for anything but a name; raises UsageError."""
    address = item.status.pod_ip
    return Pod(
        name=check_target(item.metadata.name),
        node=check_target(item.spec.node_name),
        address=check_target(address) if address else "",
        trouble=_trouble(item),
    )


def _ask(options: KubernetesOptions) -> bytes:
    argv = kubectl(
        "get",
        options,
        "pods",
        f"--selector={options.selector}",
        "--output=json",
        f"--request-timeout={_TIMEOUT_S:g}s",
    )
    if shutil.which("kubectl") is None:
        raise UsageError(f"the launcher kubernetes cannot be used: {NOT_INSTALLED}")
    done = ask(argv, timeout_s=_TIMEOUT_S + 5, most_bytes=_MAX_ANSWER_BYTES)
    if done.timed_out:
        raise UndecidedError(f"kubectl gave no answer within {_TIMEOUT_S:g} s")
    if done.code == 0:
        return done.stdout
    last = visible(done.said[-1].strip()) if done.said else _how(done)
    last = last.removeprefix("error: ")[:_MAX_REASON]
    if any(words in last for words in _SILENT):
        raise UndecidedError(
            f"kubectl get pods: {last} (the API server cannot be reached from here)"
        )
    cure = next((f" ({cure})" for words, cure in _CURES if words in last), "")
    raise UsageError(f"kubectl get pods: {last}{cure}")


def _how(done: Ended) -> str:
    if done.code is None:
        return visible(done.error or "it cannot be started")
    return f"killed by signal {-done.code}" if done.code < 0 else f"exit code {done.code}"


def _trouble(item: "_Item") -> str | None:
    if any(one.type == "Ready" and one.status == "True" for one in item.status.conditions):
        return None
    for container in item.status.containers:
        for state in (container.state.waiting, container.state.terminated):
            if state and state.reason:
                return f"its pod {item.metadata.name} is not ready: {state.reason}"
    for one in item.status.conditions:
        if one.status == "False" and (one.message or one.reason):
            return f"its pod {item.metadata.name} is not ready: {one.message or one.reason}"
    return f"its pod {item.metadata.name} is not ready ({item.status.phase or 'no phase'})"


# --- the part of Kubernetes's answer that is read ---


class _Read(msgspec.Struct, frozen=True, rename="camel"):
    """Further fields are there and do not matter."""


class _Metadata(_Read, frozen=True):
    name: str
    deletion_timestamp: str | None = None


class _Spec(_Read, frozen=True):
    node_name: str = ""


class _Why(_Read, frozen=True):
    reason: str = ""


class _State(_Read, frozen=True):
    waiting: _Why | None = None
    terminated: _Why | None = None


class _ContainerStatus(_Read, frozen=True):
    state: _State = _State()


class _Condition(_Read, frozen=True):
    type: str
    status: str
    reason: str | None = ""
    message: str | None = ""


class _Status(_Read, frozen=True):
    phase: str = ""
    pod_ip: str = msgspec.field(name="podIP", default="")
    conditions: tuple[_Condition, ...] = ()
    containers: tuple[_ContainerStatus, ...] = msgspec.field(name="containerStatuses", default=())


class _Item(_Read, frozen=True):
    metadata: _Metadata
    spec: _Spec = _Spec()
    status: _Status = _Status()


class _List(_Read, frozen=True):
    items: tuple[_Item, ...]
