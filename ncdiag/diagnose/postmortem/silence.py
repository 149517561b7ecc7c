"""How long nothing was said, against the pace before."""

from collections.abc import Iterator
from itertools import pairwise

from ncdiag.diagnose.postmortem.case import Case
from ncdiag.diagnose.postmortem.thresholds import (
    CLOCK_SKEW_S,
    PACE_LINES,
    SILENCE_OF_UNKNOWN_PACE_S,
    SILENCE_S,
    SILENCE_TIMES_PACE,
    ZONES_H,
)
from ncdiag.diagnose.postmortem.timeline import seconds_between
from ncdiag.model.log import CommunicatorState, NcclProcess, Pace, Pause
from ncdiag.model.place import Place

# Lines of a launcher or an agent that may stand before the one that tells of the end.
_LINES_BEFORE = 5
_HALF_HOUR_S = 1_800.0


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


def log_silence(case: Case, killed: Place | None) -> Place | None:
    """The last line that a run printed at its pace, long before it was stopped."""
    pace = case.evidence.paces.get(killed.path) if killed else None
    if not killed or not pace or case.finished or not case.ran:
        return None
    quiet = _pause_before(pace, killed)
    if quiet is None or quiet.lines < PACE_LINES:
        return None
    before = [p.seconds for p in pace.pauses if p.after.line <= quiet.before.line]
    longest = max(before, default=0.0)
    if quiet.seconds <= max(SILENCE_S, SILENCE_TIMES_PACE * longest):
        return None
    told_elsewhere = quiet.after is killed and killed.line > pace.last.line
    if told_elsewhere and _zones_apart(quiet.seconds, longest):
        return None
    return None if _went_on_elsewhere(case, quiet) else quiet.before


def _pause_before(pace: Pace, killed: Place) -> Pause | None:
    """The pause that the end of the job, or a few lines before it, put an end to."""
    if pace.last.line < killed.line and killed.line - pace.last.line <= _LINES_BEFORE:
        lasted = seconds_between(pace.last, killed)
        return None if lasted is None else Pause(pace.last, killed, pace.lines, lasted)
    near = [
        pause
        for pause in pace.pauses
        if pause.before.line < killed.line <= pause.after.line + _LINES_BEFORE
    ]
    return next(iter(near), None)


def _zones_apart(seconds: float, pace: float) -> bool:
    """Whether a stamp of another program may be of the same moment, in another zone."""
    slack = pace + CLOCK_SKEW_S
    return seconds % _HALF_HOUR_S < slack and seconds < ZONES_H * 3600 + slack


def _went_on_elsewhere(case: Case, quiet: Pause) -> bool:
    """Whether another input speaks in the midst of the silence."""
    for path, pace in case.evidence.paces.items():
        if path != quiet.before.path:
            late = seconds_between(quiet.before, pace.last)
            left = seconds_between(pace.last, quiet.after)
            if late is not None and left is not None and late > SILENCE_S and left >= 0:
                return True
    return False


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
