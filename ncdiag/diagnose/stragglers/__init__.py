"""Slow ranks from the times of their iterations."""

from ncdiag.diagnose.stragglers.find import Settings, find_stragglers

__all__ = ["Settings", "find_stragglers"]
