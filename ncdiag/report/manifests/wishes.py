"""What the operator wants of a manifest, each value checked: none can be more than it says."""

import itertools
import re
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from ncdiag.model.errors import UsageError
from ncdiag.model.text import visible

# Kubernetes gives 63 characters, and pods get the name with a role and a number behind it.
_MAX_NAME = 40
_MAX_IMAGE = 512
_MAX_SUBDOMAIN = 253

_LABEL = r"[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?"
_RFC_1123: Final = re.compile(_LABEL)
_SUBDOMAIN: Final = re.compile(rf"{_LABEL}(?:\.{_LABEL})*")
_PART: Final = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9._-]{0,61}[A-Za-z0-9])?")
# Each separator is one of a kind only: were there two ways to read one, a long name that is wrong
# would be read in two to the power of their number.
_PATH_PART = r"[a-z0-9]+(?:(?:[._]|__|-+)[a-z0-9]+)*"
_IMAGE: Final = re.compile(
    r"(?:[A-Za-z0-9.-]+(?::\d{1,5})?/)?"  # a registry
    rf"{_PATH_PART}(?:/{_PATH_PART})*"
    r"(?::\w[\w.-]{0,127})?(?:@sha256:[0-9a-f]{64})?",
    re.ASCII,
)
_QUANTITY: Final = re.compile(r"[1-9]\d{0,8}(?:Ki|Mi|Gi|Ti)")


class Kind(StrEnum):
    """What a manifest is of."""

    JOB = "job"
    MPIJOB = "mpijob"
    VOLCANO = "volcano"
    DAEMONSET = "daemonset"


@dataclass(frozen=True, slots=True, kw_only=True)
class Wishes:
    """How many pods, of what, where; raises :class:`UsageError` for what Kubernetes would refuse.

    ``node_selector`` and ``rdma_resources`` are ``KEY=VALUE``; of the latter ``=N`` may be left
    out. ``sweep_arguments`` are passed on to ``ncdiag sweep``.
    """

    image: str
    name: str = "ncdiag"
    namespace: str | None = None
    nodes: int = 2
    gpus_per_node: int = 8
    rdma_resources: Sequence[str] = ()
    node_selector: Sequence[str] = ()
    shm_size: str = "16Gi"
    host_network: bool = False
    results_claim: str | None = None
    deadline_s: int = 3600
    sweep_arguments: Sequence[str] = ()

    def __post_init__(self) -> None:
        _check("--name", self.name, _RFC_1123, "lower-case letters, digits and -", _MAX_NAME)
        if self.namespace is not None:
            _check("--namespace", self.namespace, _RFC_1123, "lower-case letters, digits and -", 63)
        if self.results_claim is not None:
            _check(
                "--results-claim",
                self.results_claim,
                _SUBDOMAIN,
                "lower-case letters, digits, - and .",
                _MAX_SUBDOMAIN,
            )
        wanted = "a reference in lower case, as registry/name:tag"
        _check("--image", self.image, _IMAGE, wanted, _MAX_IMAGE)
        _check("--shm-size", self.shm_size, _QUANTITY, "a size as 512Mi or 16Gi", 12)
        self.rdma_limits()
        self.selected()
        for argument in self.sweep_arguments:
            if "\0" in argument or not argument.isprintable():
                raise UsageError(f"not an argument of sweep: '{visible(argument)}'")

    def engine(self) -> str | None:
        """The engine that the sweep is told to measure by, the last one if told several times."""
        told = None
        for word, after in itertools.zip_longest(self.sweep_arguments, self.sweep_arguments[1:]):
            option, equals, value = word.partition("=")
            if option == "--engine":
                told = value if equals else after
        return told

    def rdma_limits(self) -> dict[str, str]:
        """Each RDMA resource with how many of it a pod takes."""
        limits = {}
        for resource in self.rdma_resources:
            name, _, count = resource.partition("=")
            _check_qualified("--rdma-resource", name, "rdma/hca_shared_devices_a")
            if "/" not in name or not re.fullmatch(r"[1-9]\d{0,2}", count or "1", re.ASCII):
                raise UsageError(
                    f"--rdma-resource: not a resource: '{visible(resource)}'; as the node tells "
                    "it: rdma/hca_shared_devices_a, or nvidia.com/mlnxnics=8 for eight"
                )
            limits[name] = count or "1"
        return limits

    def selected(self) -> dict[str, str]:
        """The labels that nodes must have."""
        labels = {}
        for label in self.node_selector:
            key, equals, value = label.partition("=")
            _check_qualified("--node-selector", key, "gpu-pool=h100")
            if not equals or (value and not _PART.fullmatch(value)):
                raise UsageError(
                    f"--node-selector: not a label: '{visible(label)}'; as KEY=VALUE, gpu-pool=h100"
                )
            labels[key] = value
        return labels


def _check_qualified(option: str, name: str, example: str) -> None:
    prefix, slash, part = name.rpartition("/")
    right = _PART.fullmatch(part) and (not slash or _SUBDOMAIN.fullmatch(prefix))
    if not right or len(prefix) > _MAX_SUBDOMAIN:
        raise UsageError(f"{option}: '{visible(name)}' is no name of Kubernetes; as {example}")


def _check(option: str, value: str, pattern: re.Pattern[str], rule: str, limit: int) -> None:
    if len(value) > limit:
        raise UsageError(f"{option}: {len(value)} characters are too many, {limit} at most")
    if not pattern.fullmatch(value):
        raise UsageError(f"{option}: Kubernetes does not take '{visible(value)}'; {rule}")
