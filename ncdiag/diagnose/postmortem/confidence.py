"""How sure a finding is.

A confidence is the share of cases with such evidence in which the finding would be right, as we
judge it: each class has a base for one sign (``classes``), every further independent sign takes
away a share of the remaining doubt, and an input that was not read whole lowers it.
"""

from ncdiag.diagnose.postmortem.case import Case
from ncdiag.diagnose.postmortem.docket import Docket
from ncdiag.diagnose.postmortem.draft import Draft
from ncdiag.diagnose.postmortem.explain import is_echo
from ncdiag.diagnose.postmortem.thresholds import (
    CUT_SHARE,
    DOUBT_PER_SIGN,
    ECHO_CONFIDENCE,
    MOST_CONFIDENT,
)


def weigh(drafts: Docket, case: Case) -> None:
    """Set the confidence of every draft."""
    cut = any(given.truncated for given in case.evidence.inputs)
    for draft in drafts:
        explains = bool(drafts.effects_of(draft))
        doubt = (1 - draft.confidence) * DOUBT_PER_SIGN ** _signs(draft, case, explains=explains)
        confidence = min(1 - doubt, MOST_CONFIDENT)
        if draft.root and is_echo(draft):
            confidence = ECHO_CONFIDENCE
        draft.confidence = confidence * CUT_SHARE if cut else confidence


def _signs(draft: Draft, case: Case, *, explains: bool) -> int:
    """Independent signs besides the first: other processes that say so, what it explains."""
    if draft.rule.generic or is_echo(draft):
        return 0
    speaking = {case.hosts.of_speaker(event.speaker) for event in draft.accusing} - {None}
    return min(max(len(speaking) - 1, 0), 3) + explains + draft.signs
