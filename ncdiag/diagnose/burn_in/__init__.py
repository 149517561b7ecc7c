"""From what the stages of a burn-in found to the hosts that a launch may have; pure."""

from ncdiag.diagnose.burn_in.conclude import Conclusion, conclude

__all__ = ["Conclusion", "conclude"]
