"""What a diagnosis of imported figures may claim: nothing was measured again by anybody."""

import re
from dataclasses import replace

from ncdiag.measure.imported_inside import without_topology
from ncdiag.measure.journal import Plan
from ncdiag.model.verdict import Culprit, Diagnosis, Verdict

# What is said of a sweep's own measurements, and what can be said of these.
_WORDS = tuple(
    (re.compile(theirs), ours)
    for theirs, ours in (
        (r", \d+ of them measured again in quiet", ", each measured in a run of its own"),
        (r", \d+ of them also in quiet", ""),
        (r", with the fabric quiet;", " in a run of its own;"),
        (r", also alone \(\d+ pairs measured again in quiet\)", ""),
        (
            r"slow with their round, not measured again in quiet: (\d+ links?)",
            r"slow while other pairs were measured, and never measured alone: \1",
        ),
        (r", but not measured again in quiet", ", but only while other pairs were measured"),
    )
)
UNKNOWN_NIC = "nic"
"""What the NIC of a host is called of which results tell none: no command can name it."""
_ITS_COUNTERS = re.compile(rf"ethtool -S {UNKNOWN_NIC}, |, ethtool -S {UNKNOWN_NIC}\b")
_GPU = re.compile(r"gpu(\d+)(?=->|\Z)")
# The same of devices inside a host.
_OF_DEVICES = (
    *_WORDS,
    (re.compile(r"\bboth hosts\b"), "both GPUs"),
    (re.compile(r"\bother hosts\b"), "other GPUs"),
    (re.compile(r"\bno single host\b"), "no single GPU"),
)
_DEVICES = "the links are inside one host, so no host is isolated for them"


def as_imported(diagnosis: Diagnosis, plan: Plan) -> Diagnosis:
    """``diagnosis`` in words that are true of imported figures, with the notes of their import.

    Devices of a host are never isolated, since lists of hosts are made of names. What was cut short
    is never healthy.
    """
    inside = plan.inside is not None
    if inside:
        diagnosis = without_topology(diagnosis)
    cut = plan.cut and diagnosis.verdict is Verdict.HEALTHY
    told = [_told(note, inside=inside) for note in diagnosis.notes]
    notes = (*plan.notes, *told, *((_DEVICES,) if inside else ()))
    return replace(
        diagnosis,
        verdict=Verdict.INCONCLUSIVE if cut else diagnosis.verdict,
        hosts=tuple(
            replace(host, reason=_told(host.reason, inside=inside)) for host in diagnosis.hosts
        ),
        culprits=tuple(_culprit(one, plan) for one in diagnosis.culprits),
        isolate=() if inside else diagnosis.isolate,
        good=() if inside else diagnosis.good,
        notes=notes,
    )


def _culprit(one: Culprit, plan: Plan) -> Culprit:
    """A culprit in true words; what to do about a device is another thing than about a host."""
    todo = _ITS_COUNTERS.sub("", one.next)
    inside = plan.inside is not None
    if inside:
        where = f"on {plan.inside}: " if plan.inside else ""
        numbers = _GPU.findall(one.name)
        what = f"GPU{'s' if len(numbers) > 1 else ''} {' and '.join(numbers)}"
        todo = f"{where}look at {what} with nvidia-smi nvlink -e, nvidia-smi topo -m and dmesg"
    return replace(one, reason=_told(one.reason, inside=inside), next=todo)


def _told(text: str, *, inside: bool) -> str:
    for theirs, ours in _OF_DEVICES if inside else _WORDS:
        text = theirs.sub(ours, text)
    return text
