"""The text exposition format of Prometheus, as node_exporter's textfile collector reads it."""

import math
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from datetime import datetime, timedelta

# Of the format (Prometheus documentation, "Exposition formats").
_ESCAPES = str.maketrans({"\\": r"\\", "\n": r"\n", '"': r"\""})

Sample = tuple[Mapping[str, object], float]


def gauge(name: str, text: str, samples: Iterable[Sample]) -> Iterator[str]:
    """The lines of one metric with its help; none where there is no finite figure."""
    lines = [
        f"{name}{_labels(labels)} {value:.10g}\n"
        for labels, value in samples
        if math.isfinite(value)
    ]
    if lines:
        yield f"# HELP {name} {text}\n"
        yield f"# TYPE {name} gauge\n"
        yield from lines


def finished(
    started: str, seconds: float, labels: Mapping[str, object] | None = None
) -> list[Sample]:
    """When what ``started`` then (ISO 8601) ended, since 1970; nothing where that is no time."""
    end = ended(started, seconds)
    with suppress(ValueError, OverflowError, OSError):
        return [] if end is None else [(labels or {}, end.timestamp())]
    return []


def ended(started: str, seconds: float) -> datetime | None:
    """The time ``seconds`` after ``started`` (ISO 8601); ``None`` where that is no time."""
    try:
        return datetime.fromisoformat(started) + timedelta(seconds=seconds)
    except (ValueError, OverflowError):
        return None


def _labels(labels: Mapping[str, object]) -> str:
    pairs = ",".join(f'{key}="{str(text).translate(_ESCAPES)}"' for key, text in labels.items())
    return f"{{{pairs}}}" if pairs else ""
