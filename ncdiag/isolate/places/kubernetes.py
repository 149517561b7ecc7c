"""Kubernetes: a node is cordoned and tainted, and annotated with why and by which plan.

All of it is one patch, which the API server refuses where the node has changed since it was read
(``metadata.resourceVersion``): there is no half of it, and nobody's change is written over. A node
that was cordoned by somebody else is left alone.
"""

from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from typing import Any, Final, TypeVar

import msgspec

from ncdiag.isolate.places.base import (
    MARK,
    Asked,
    LeftAloneError,
    Standing,
    explained,
    told,
    with_aliases,
)
from ncdiag.model.errors import UndecidedError, UsageError
from ncdiag.model.isolation import PlaceState
from ncdiag.model.json_text import encode
from ncdiag.model.text import visible

TAINT: Final = "ncdiag.io/isolated"
REASON: Final = "ncdiag.io/reason"
RUN: Final = "ncdiag.io/run"
_TAINT: Final = {"key": TAINT, "value": "true", "effect": "NoSchedule"}
_ANSWER_S: Final = 60.0
# A kubelet changes its node about every ten seconds, a patch takes a fraction of one.
_TRIES: Final = 5
_CONFLICT: Final = "(Conflict)"
_ALIASES: Final = frozenset(("Hostname", "InternalDNS", "InternalIP"))
_NOT_INSTALLED: Final = (
    "kubectl is not installed here (https://kubernetes.io/docs/tasks/tools has it for every system)"
)
_OPTION: Final = "--context"
# Without contexts, as in a pod, kubectl asks the one cluster that it runs in.
_NO_CONTEXT: Final = "current-context is not set"
_UNKNOWN: Final = ("context was not found", "does not exist")
# What kubectl says, and the cure; of the silent ones nobody knows whether anything was done.
_REFUSALS: Final = (
    ("(Forbidden)", "this account may not do that: it needs get, list and patch of nodes"),
    ("(Unauthorized)", "log in to the cluster again"),
    *((words, f"kubectl config get-contexts lists contexts, for {_OPTION}") for words in _UNKNOWN),
)
_SILENT: Final = (
    ("was refused", "is kubectl told of a cluster? kubectl config current-context says which"),
    ("Unable to connect", "the API server cannot be reached from here"),
    ("imed out", "the API server cannot be reached from here"),
    ("imeout", "the API server cannot be reached from here"),
    ("deadline exceeded", "the API server cannot be reached from here"),
    ("(ServiceUnavailable)", "try again"),
    ("(InternalError)", "try again"),
    ("(TooManyRequests)", "try again"),
)

_Patch = dict[str, dict[str, Any]]
_Decoded = TypeVar("_Decoded")


class KubernetesPlace:
    """The cluster of a context of kubectl's, by default of the one that is current at first."""

    def __init__(self, context: str | None = None) -> None:
        self._named = context

    @property
    def key(self) -> str:
        """The place, with the context; raises :class:`UndecidedError` where kubectl tells none."""
        return f"kubernetes:{self._context}" if self._context else "kubernetes"

    @cached_property
    def _context(self) -> str | None:
        """The context, which stays the same whatever becomes current meanwhile."""
        if self._named:
            return self._named
        try:
            answer = told(("kubectl", "config", "current-context"), _ANSWER_S, _NOT_INSTALLED)
        except UsageError as error:
            if _NO_CONTEXT in f"{error}":
                return None
            raise UndecidedError(f"{error}") from None
        return answer.decode(errors="replace").strip() or None

    def ask(self) -> Asked:
        """How all nodes stand."""
        try:
            return asked(self._kubectl("get", "nodes", "--output=json"))
        except UsageError as error:
            if self._named and _OPTION in f"{error}":
                raise
            raise UndecidedError(f"{error}") from None

    def isolate(self, name: str, reason: str, run: str) -> None:
        """Cordon, taint and annotate the node."""

        def patch_of(node: "_Node") -> _Patch | None:
            now = _standing(node)
            if now.state is PlaceState.OURS:
                return None
            if now.state is not PlaceState.AVAILABLE:
                raise LeftAloneError(now.why or now.state.value)
            return _patch(node, {REASON: reason, RUN: run}, [_TAINT], cordoned=True)

        self._change(name, patch_of)

    def release(self, name: str, reason: str) -> None:
        """Take away what :meth:`isolate` put there; other taints stay."""

        def patch_of(node: "_Node") -> _Patch | None:
            now = _standing(node)
            if now.state is PlaceState.AVAILABLE:
                return None
            if now.state is not PlaceState.OURS or now.reason != reason:
                raise LeftAloneError(f"changed since: {now.why or now.reason}")
            return _patch(node, {REASON: None, RUN: None}, [], cordoned=False)

        self._change(name, patch_of)

    def _change(self, name: str, patch_of: Callable[["_Node"], "_Patch | None"]) -> None:
        """Patch the node as it is now; where it changes at that moment, look again."""
        for _ in range(_TRIES):
            answer = self._kubectl("get", "node", name, "--output=json")
            patch = patch_of(_decoded(answer, _Node))
            if patch is None:
                return
            what = encode(patch).decode()
            try:
                self._kubectl("patch", "node", name, "--type=merge", f"--patch={what}")
            except UsageError as error:
                if _CONFLICT not in f"{error}":
                    raise
            else:
                return
        raise UsageError(f"the node changed {_TRIES} times while it was being patched; try again")

    def _kubectl(self, *arguments: str) -> bytes:
        verb, *more = arguments
        where = (f"--context={self._context}",) if self._context else ()
        argv = ("kubectl", verb, *where, f"--request-timeout={_ANSWER_S:g}s", *more)
        try:
            return told(argv, _ANSWER_S + 5, _NOT_INSTALLED)
        except UsageError as error:
            raise explained(error, _REFUSALS, _SILENT) from None


def asked(answer: bytes) -> Asked:
    """The nodes of ``kubectl get nodes --output=json``; raises :class:`UndecidedError`."""
    nodes = _decoded(answer, _Nodes).items
    more = (
        (address.address, node.metadata.name)
        for node in nodes
        for address in node.status.addresses or ()
        if address.type in _ALIASES
    )
    return with_aliases({node.metadata.name: _standing(node) for node in nodes}, more)


def _standing(node: "_Node") -> Standing:
    name, annotations = node.metadata.name, node.metadata.annotations or {}
    reason = annotations.get(REASON)
    tainted = any(taint.get("key") == TAINT for taint in node.spec.taints or ())
    if tainted and (reason or "").startswith(MARK):
        return Standing(state=PlaceState.OURS, name=name, reason=reason)
    if node.spec.unschedulable:
        return Standing(state=PlaceState.THEIRS, name=name, why="it was cordoned by somebody else")
    if tainted:
        why = f"it has the taint {TAINT} without ncdiag's annotation"
        return Standing(state=PlaceState.THEIRS, name=name, why=why)
    for condition in node.status.conditions or ():
        if condition.type == "Ready" and condition.status != "True":
            why = f"it is not ready: {visible(condition.reason or condition.status)}"
            return Standing(state=PlaceState.THEIRS, name=name, why=why)
    return Standing(state=PlaceState.AVAILABLE, name=name)


def _patch(
    node: "_Node",
    annotations: Mapping[str, str | None],
    more: Sequence[Mapping[str, str]],
    *,
    cordoned: bool,
) -> "_Patch":
    """A merge patch of the node as it was read; in one, ``None`` takes a field away."""
    taints = [*(taint for taint in node.spec.taints or () if taint.get("key") != TAINT), *more]
    version = node.metadata.resource_version
    return {
        "metadata": {"resourceVersion": version, "annotations": annotations},
        "spec": {"unschedulable": cordoned or None, "taints": taints or None},
    }


def _decoded(answer: bytes, kind: type[_Decoded]) -> _Decoded:
    try:
        return msgspec.json.decode(answer, type=kind)
    except (msgspec.MsgspecError, RecursionError) as error:
        raise UndecidedError(f"kubectl did not answer with nodes ({visible(f'{error}')})") from None


# --- the part of Kubernetes's answer that is read ---


class _Read(msgspec.Struct, frozen=True, rename="camel"):
    """Further fields are there and do not matter."""


class _Metadata(_Read, frozen=True):
    name: str
    resource_version: str
    annotations: dict[str, str] | None = None


class _Spec(_Read, frozen=True):
    unschedulable: bool | None = None
    taints: tuple[dict[str, Any], ...] | None = None


class _Address(_Read, frozen=True):
    type: str
    address: str


class _Condition(_Read, frozen=True):
    type: str
    status: str
    reason: str | None = None


class _Status(_Read, frozen=True):
    addresses: tuple[_Address, ...] | None = None
    conditions: tuple[_Condition, ...] | None = None


class _Node(_Read, frozen=True):
    metadata: _Metadata
    spec: _Spec = _Spec()
    status: _Status = _Status()


class _Nodes(_Read, frozen=True):
    items: tuple[_Node, ...]
