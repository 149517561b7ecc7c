"""Kubernetes manifests that run ncdiag, as YAML ready for ``kubectl apply -f -``."""

from ncdiag.report.manifests.render import KINDS, render
from ncdiag.report.manifests.wishes import Kind, Wishes

__all__ = ["KINDS", "Kind", "Wishes", "render"]
