"""From slow links to the fewest components that explain them and contradict no fast one."""

from ncdiag.diagnose.blame.cover import Cover, Rule, Suspect, cover
from ncdiag.diagnose.blame.parts import Part

__all__ = ["Cover", "Part", "Rule", "Suspect", "cover"]
