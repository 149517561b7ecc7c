"""From measurements to causes; pure functions, thresholds in one place."""

from ncdiag.diagnose.diagnosis import diagnose
from ncdiag.diagnose.suspects import suspected_hosts, suspects

__all__ = ["diagnose", "suspected_hosts", "suspects"]
