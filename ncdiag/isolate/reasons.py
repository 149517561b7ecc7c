"""What is said of a host in one line: in a list, in a drain reason, in a ticket."""

from dataclasses import dataclass
from typing import Final

from ncdiag.isolate.cases import Standing
from ncdiag.isolate.policy import LemonRule, Rule
from ncdiag.model.isolation import Action
from ncdiag.model.text import visible
from ncdiag.model.units import format_count, format_duration, format_share

_MAX_TEXT: Final = 200


@dataclass(frozen=True, slots=True, kw_only=True)
class Summary:
    """The case against one host: of the class ``class_``, which goes furthest.

    ``later`` counts pieces that are dated later than now. ``by_word`` says that an operator took
    the host off the list before.
    """

    host: str
    standing: Standing
    class_: str
    rule: Rule | None
    confidence: float
    accusing: int
    runs: int
    partners: int
    until_s: float | None
    sticky: bool
    later: int
    by_word: bool


def explain(case: Summary, action: Action, text: str, score: float | None, lemon: LemonRule) -> str:
    """Why, in one line; ``text`` is what the newest piece says, ``score`` that of a lemon."""
    line = _released(case) if action is Action.RELEASE else _against(case, score, lemon)
    if text and action is not Action.RELEASE and case.standing is not Standing.NOTHING:
        short = text if len(text) <= _MAX_TEXT else f"{text[:_MAX_TEXT]}..."
        line += f": {visible(short)}"
    if case.later:
        pieces = format_count(case.later, "piece")
        line += f" ({pieces} of evidence dated later than now, counted as seen now)"
    return line


def _released(case: Summary) -> str:
    if case.by_word and case.standing is Standing.NOTHING:
        return "an operator cleared it, and nothing was seen since"
    if case.standing is Standing.NOTHING:
        return "nothing speaks against it any more"
    return "nothing that could isolate it speaks against it any more"


def _against(case: Summary, score: float | None, lemon: LemonRule) -> str:
    if score is not None:
        return f"lemon, score {score:.1f} of {lemon.threshold:g} over weeks" + (
            f"; now {visible(case.class_)}" if case.class_ else ""
        )
    name, rule = visible(case.class_), case.rule
    if rule is None or case.standing is Standing.NOTHING:
        return "nothing speaks against it"
    runs = f"{case.accusing} of {format_count(case.runs, 'run')}"
    partners = format_count(case.partners, "partner")
    lines = {
        Standing.INCONCLUSIVE: f"{name}, inconclusive",
        Standing.UNSURE: f"{name}, less sure than {format_share(rule.confidence)}",
        Standing.WATCHED: f"{name}, which isolates nobody by itself",
        Standing.FEW_PARTNERS: f"{name}, with {partners} where it takes {rule.partners}",
        Standing.UNCONFIRMED: f"{name}, {runs} where it takes {rule.confirmations} of {rule.of}",
        Standing.IN_GRACE: f"{name}, within {format_duration(rule.grace_s)} after a boot",
        Standing.ISOLATE: f"{name}, {runs}" if case.runs > 1 else name,
    }
    return lines[case.standing]
