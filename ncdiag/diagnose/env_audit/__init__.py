"""What every rank took of an environment profile, as the logs prove it."""

from ncdiag.diagnose.env_audit.judge import audit

__all__ = ["audit"]
