"""Manifests as YAML, with a word before them on how to use them."""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final

import yaml

from ncdiag import __version__
from ncdiag.report.manifests.objects import daemonset, job, mpijob, volcano
from ncdiag.report.manifests.pods import Manifest
from ncdiag.report.manifests.wishes import Kind, Wishes

# Words of a command are not broken over lines.
_WIDTH = 1000
# What kubectl's YAML takes for a number or a truth value where Python's does not (1e3, y): such
# text is put in quotes, as is all that begins as a number does.
_MISTAKEN: Final = re.compile(r"[-+]?\.?\d.*|[yYnN]", re.DOTALL)


@dataclass(frozen=True, slots=True)
class _Form:
    """One kind of manifest; ``head`` says how it is used, a comment line each."""

    objects: Callable[[Wishes], list[Manifest]]
    head: tuple[str, ...]


KINDS: Final[Mapping[Kind, _Form]] = {
    Kind.JOB: _Form(
        job,
        (
            "Kubernetes 1.31 or later. The image needs ncdiag with its extra torch, and kubectl.",
            "Its first pod measures all: kubectl logs{namespace} job/{name}",
        ),
    ),
    Kind.MPIJOB: _Form(
        mpijob,
        (
            "Kubeflow's MPI operator 0.5 or later. The image needs ncdiag with its extra torch,",
            "Open MPI and sshd. Result: kubectl logs{namespace} -l ncdiag-role=driver,app={name}",
        ),
    ),
    Kind.VOLCANO: _Form(
        volcano,
        (
            "Volcano 1.8 or later. The image needs ncdiag with its extra torch, and sshd.",
            "Result: kubectl logs{namespace} -l ncdiag-role=driver,app={name}",
        ),
    ),
    Kind.DAEMONSET: _Form(
        daemonset,
        (
            "Idle pods. The image needs ncdiag with its extra torch. Measure from outside:",
            "ncdiag sweep{namespace_option} --selector app={name}",
        ),
    ),
}


def render(kind: Kind, wishes: Wishes) -> str:
    """The manifest; one document for each object."""
    chosen = KINDS[kind]
    known = {
        "name": wishes.name,
        "namespace": f" -n {wishes.namespace}" if wishes.namespace else "",
        "namespace_option": f" --namespace {wishes.namespace}" if wishes.namespace else "",
    }
    head = [f"# By ncdiag {__version__}, for kubectl apply -f -"]
    head += [f"# {line.format(**known)}" for line in chosen.head]
    return "\n".join(head) + "\n" + "".join(map(_document, chosen.objects(wishes)))


class _Dumper(yaml.SafeDumper):
    """Writes text so that no reader of YAML takes it for anything else."""


def _text(dumper: yaml.SafeDumper, value: str) -> yaml.ScalarNode:
    style = "|" if "\n" in value else "'" if _MISTAKEN.fullmatch(value) else None
    return dumper.represent_scalar("tag:yaml.org,2002:str", value, style=style)


_Dumper.add_representer(str, _text)


def _document(manifest: Manifest) -> str:
    text = yaml.dump(
        manifest, Dumper=_Dumper, sort_keys=False, width=_WIDTH, default_flow_style=False
    )
    return f"---\n{text}"
