"""Records in, one output format a module."""

from ncdiag.report.write import write_all

__all__ = ["write_all"]
