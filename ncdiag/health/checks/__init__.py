"""Judges hosts by their health facts: a table of pure rules, and what they say of a host."""

from ncdiag.health.checks.check import Check, ExpectedHost
from ncdiag.health.checks.judge import check_host, compare_fleet, failed_host, judge_fleet
from ncdiag.health.checks.limits import Limits
from ncdiag.health.checks.of_many import check_bandwidth
from ncdiag.health.checks.table import CHECKS

__all__ = [
    "CHECKS",
    "Check",
    "ExpectedHost",
    "Limits",
    "check_bandwidth",
    "check_host",
    "compare_fleet",
    "failed_host",
    "judge_fleet",
]
