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
from ncdiag.model.finding import FindingClass

__all__ = ["GUIDE", "Guide"]

GUIDE: Mapping[FindingClass, Guide] = {
    **verbs.GUIDE,
    **sockets.GUIDE,
    **library.GUIDE,
    **gpu.GUIDE,
    **kernel.GUIDE,
    **framework.GUIDE,
    **results.GUIDE,
}
