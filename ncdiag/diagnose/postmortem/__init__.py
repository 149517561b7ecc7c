"""Conclusions from the records of logs: what failed first, why, and whom to isolate."""

from ncdiag.diagnose.postmortem.examine import diagnose

__all__ = ["diagnose"]
