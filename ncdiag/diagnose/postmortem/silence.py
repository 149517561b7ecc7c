"""How long nothing was said, against the pace before."""

from collections.abc import Iterator
from itertools import pairwise

from ncdiag.diagnose.postmortem.case import Case
from ncdiag.diagnose.postmortem.thresholds import (
    SILENCE_OF_UNKNOWN_PACE_S,
    SILENCE_S,
    SILENCE_TIMES_PACE,
)
from ncdiag.diagnose.postmortem.timeline import seconds_between
from ncdiag.model.log import CommunicatorState, NcclProcess, Place


def row_silence(case: Case, killed: Place | None) -> Iterator[Place]:
    """The last row of a table that was cut off by a long silence, or by a kill."""
    for benchmark in case.evidence.benchmarks[-1:]:
        places = [row.place for row in benchmark.rows if row.place]
        if benchmark.complete or benchmark.failed or not places:
            continue
        gaps = [seconds_between(a, b) for a, b in pairwise(places)]
        paces = [gap for gap in gaps if gap is not None]
        if _silent(case, places[-1], killed, max(paces, default=None)):
            yield places[-1]


def call_silence(
    case: Case, killed: Place | None
) -> Iterator[tuple[NcclProcess, CommunicatorState]]:
    """Communicators whose last call was followed by a silence."""
    for process in case.evidence.processes:
        for state in process.communicators:
            if not state.last_call or state.ended:
                continue
            if _silent(case, state.last_call, killed, _pace(process, state)):
                yield process, state


def _pace(process: NcclProcess, state: CommunicatorState) -> float | None:
    """Seconds from one call to the next, on average."""
    whole = seconds_between(state.completed or state.started or process.first, state.last_call)
    calls = max(state.calls, default=0) or state.api_calls
    return whole / calls if whole is not None and calls else None


def _silent(case: Case, last: Place, killed: Place | None, pace: float | None) -> bool:
    """Whether what follows ``last`` is a silence: by the clock, else because a kill ends it."""
    end = killed or case.evidence.clock_ends.get(last.path)
    lasted = seconds_between(last, end)
    if lasted is not None:
        if pace is None:
            return killed is not None and lasted > SILENCE_OF_UNKNOWN_PACE_S
        return lasted > max(SILENCE_S, SILENCE_TIMES_PACE * pace)
    return killed is not None and not _time_limit_only(case)


def _time_limit_only(case: Case) -> bool:
    """Whether nothing but the scheduler's time limit ended the job."""
    classes = {event.class_name for event in case.evidence.events}
    return "job_time_limit" in classes
