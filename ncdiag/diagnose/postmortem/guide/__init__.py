"""What each class of finding means and how to act on it, for operators."""

from collections.abc import Mapping

from ncdiag.diagnose.postmortem.guide import (
    framework,
    gpu,
    kernel,
    library,
    results,
    sockets,
    verbs,
)
from ncdiag.diagnose.postmortem.guide.record import Guide
from ncdiag.diagnose.postmortem.guide.statuses import BY_STATUS
from ncdiag.model.finding import FindingClass

__all__ = ["GUIDE", "Guide", "guide_of"]

GUIDE: Mapping[FindingClass, Guide] = {
    **verbs.GUIDE,
    **sockets.GUIDE,
    **library.GUIDE,
    **gpu.GUIDE,
    **kernel.GUIDE,
    **framework.GUIDE,
    **results.GUIDE,
}


def guide_of(class_: FindingClass, attributes: Mapping[str, str]) -> Guide:
    """What to do about a finding; a failed transfer is looked for where its status points."""
    guide = GUIDE[class_]
    if class_ is not FindingClass.IB_COMPLETION_ERROR:
        return guide
    special = BY_STATUS.get(attributes.get("status", ""))
    return guide._replace(actions=special[0], next=special[1]) if special else guide
