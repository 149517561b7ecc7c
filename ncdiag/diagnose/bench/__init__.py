"""Judges what a collective reached: plateau, expectation, cliffs, noise, slow ranks, scaling."""

from ncdiag.diagnose.bench.judge import Judgement, judge

__all__ = ["Judgement", "judge"]
