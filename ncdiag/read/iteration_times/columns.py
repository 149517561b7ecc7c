"""Which column of a table holds what, by its name."""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final

from ncdiag.model.errors import UsageError
from ncdiag.model.straggler import TimeKind
from ncdiag.model.text import visible

_RANK: Final = frozenset({"rank", "global_rank", "rank_id"})
_ITERATION: Final = frozenset({"iteration", "iter", "step", "global_step", "iteration_id"})
_HOST: Final = frozenset({"host", "hostname", "node", "node_name"})
_GPU: Final = frozenset({"gpu", "local_rank", "device", "gpu_id"})
_GROUP: Final = frozenset({"group", "stage", "pp", "pp_rank", "pipeline_rank", "pipeline_stage"})
_TIME_WORDS: Final = frozenset({"time", "duration", "elapsed", "latency", "seconds"})
# Points of time, and none that pass.
_NO_TIME_WORDS: Final = frozenset({"start", "end", "begin", "finish", "stamp", "since", "at"})
_SECONDS: Final = {
    **dict.fromkeys(("s", "sec", "secs", "second", "seconds"), 1.0),
    **dict.fromkeys(("ms", "msec", "millis", "milliseconds"), 1e-3),
    **dict.fromkeys(("us", "usec", "micros", "microseconds"), 1e-6),
    **dict.fromkeys(("ns", "nsec", "nanos", "nanoseconds"), 1e-9),
}
_KINDS: Final = (
    ({"compute", "forward", "backward", "fwd", "bwd", "gemm", "kernel"}, TimeKind.COMPUTE),
    (
        {"comm", "collective", "communication", "allreduce", "exposed", "nccl"},
        TimeKind.COLLECTIVE,
    ),
)
_WIDE_RANK: Final = re.compile(r"(?:rank_?)?(\d{1,7})", re.ASCII)
_SHOWN: Final = 12


@dataclass(frozen=True, slots=True)
class Columns:
    """The names under which a record has its parts; ``seconds`` is what a unit of time is."""

    rank: str
    time: str
    seconds: float
    kind: TimeKind
    iteration: str | None = None
    host: str | None = None
    gpu: str | None = None
    group: str | None = None
    unit_known: bool = True


def plain(name: str) -> str:
    """``Elapsed time (ms)`` as ``elapsed_time_ms``."""
    return re.sub(r"[^a-z0-9]+", "_", name.strip().lower()).strip("_")


def find_columns(names: Sequence[str], wanted: str | None = None) -> Columns:
    """The columns of a table with one row a rank and iteration; raises :class:`UsageError`.

    ``wanted`` is the column of times that was asked for.
    """
    by_plain = {plain(name): name for name in reversed(names)}
    rank = _one_of(_RANK, by_plain)
    if rank is None:
        raise UsageError(
            f"no column of ranks among {_listed(names)}; it is called rank, "
            "or there is one column a rank, called rank0, rank1 and so on"
        )
    time = _time(names, wanted)
    unit = _unit(time)
    return Columns(
        rank=rank,
        time=time,
        seconds=unit or 1.0,
        kind=kind_of(time),
        iteration=_one_of(_ITERATION, by_plain),
        host=_one_of(_HOST, by_plain),
        gpu=_one_of(_GPU, by_plain),
        group=_one_of(_GROUP, by_plain),
        unit_known=unit is not None,
    )


def wide_ranks(names: Sequence[str]) -> dict[int, int] | None:
    """Where each rank stands in a table with one column a rank; ``None`` for any other table."""
    found = {}
    others = []
    for place, name in enumerate(names):
        if match := _WIDE_RANK.fullmatch(plain(name)):
            found[place] = int(match[1])
        else:
            others.append(plain(name))
    if len(found) < 2 or len(set(found.values())) < len(found) or set(others) - _ITERATION:
        return None
    return found


def kind_of(name: str) -> TimeKind:
    """What a column of that name times; whole iterations, where it does not say."""
    words = set(plain(name).split("_"))
    return next((kind for some, kind in _KINDS if words & some), TimeKind.ITERATION)


def _one_of(known: frozenset[str], by_plain: dict[str, str]) -> str | None:
    return next((name for plain_name, name in by_plain.items() if plain_name in known), None)


def _time(names: Sequence[str], wanted: str | None) -> str:
    if wanted is not None:
        for name in names:
            if plain(name) == plain(wanted):
                return name
        raise UsageError(f"no column {visible(wanted)!r} among {_listed(names)}")
    found = [name for name in names if _is_time(name)]
    if not found:
        raise UsageError(
            f"no column of times among {_listed(names)}; name it like compute_time_ms, "
            "or choose one with --column"
        )
    if len(found) > 1:
        raise UsageError(f"several columns of times: {_listed(found)}; choose one with --column")
    return found[0]


def _is_time(name: str) -> bool:
    words = plain(name).split("_")
    return bool(_TIME_WORDS & set(words)) and not _NO_TIME_WORDS & set(words)


def _unit(name: str) -> float | None:
    """Seconds of a unit of the column; ``None`` where its name does not tell."""
    return _SECONDS.get(plain(name).split("_")[-1])


def _listed(names: Iterable[str]) -> str:
    some = list(names)
    more = f" and {len(some) - _SHOWN} more" if len(some) > _SHOWN else ""
    return visible(", ".join(name[:40] for name in some[:_SHOWN])) + more
