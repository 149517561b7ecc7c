"""Reads all inputs into one record of evidence."""

from collections.abc import Callable, Sequence
from pathlib import Path

from ncdiag.model.log import InputSummary, LogEvidence
from ncdiag.read.log_reader import LogReader

Progress = Callable[[int, int], None]


def read_logs(
    paths: Sequence[str],
    *,
    jobs: int | None = None,
    max_bytes: int | None = None,
    progress: Progress | None = None,
) -> LogEvidence:
    """Read ``paths``; ``progress`` is told the bytes done and the bytes there are."""
    del jobs, max_bytes
    evidence = LogEvidence()
    for path in paths:
        try:
            data = Path(path).read_bytes()
        except OSError as error:
            evidence.inputs.append(InputSummary(path=path, error=error.strerror))
            continue
        reader = LogReader(path)
        lines = data.splitlines()
        for number, raw in enumerate(lines, 1):
            reader.take(raw, number, [needle for needle in reader.needles if needle in raw])
        read = reader.finish()
        read.inputs[0].bytes, read.inputs[0].lines = len(data), len(lines)
        evidence = _both(evidence, read)
    if progress:
        progress(1, 1)
    return evidence


def _both(first: LogEvidence, second: LogEvidence) -> LogEvidence:
    for name in first.__dataclass_fields__:
        mine, other = getattr(first, name), getattr(second, name)
        if isinstance(mine, dict):
            mine.update({k: v for k, v in other.items() if k not in mine})
        else:
            mine.extend(other)
    return first
