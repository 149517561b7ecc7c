"""Reads all inputs into one record of evidence."""

import os
from collections import deque
from collections.abc import Callable, Iterator, Sequence

from ncdiag.logs.plan import Input, batches_of, inputs_of
from ncdiag.logs.read_input import Job, read_input
from ncdiag.logs.sources import sources
from ncdiag.logs.workers import Crew, Told, read_batch, seldom_collecting
from ncdiag.model.log import InputSummary, LogEvidence
from ncdiag.read.merge import EvidenceSum

Progress = Callable[[int, int], None]

DEFAULT_MAX_BYTES = 1 << 40
# Below this a second process costs more than it saves.
_ALONE_BYTES = 8 << 20


def read_logs(
    paths: Sequence[str],
    *,
    jobs: int | None = None,
    max_bytes: int | None = None,
    progress: Progress | None = None,
) -> LogEvidence:
    """Read ``paths``; ``progress`` is told the bytes done and the bytes there are, on disk.

    ``jobs`` is the number of processes (default: one a core), ``max_bytes`` the most that is read
    of one input, after decompression.
    """
    inputs = inputs_of(sources(paths), DEFAULT_MAX_BYTES if max_bytes is None else max_bytes)
    total = sum(one.job.size or 0 for one in inputs)
    told = _teller(progress, total)
    processes = jobs or len(os.sched_getaffinity(0))
    if total < _ALONE_BYTES:
        processes = 1
    batches = batches_of(inputs, processes)
    with seldom_collecting():
        if processes == 1 or len(batches) == 1:
            return _joined(inputs, batches, (read_batch(batch, told) for batch in batches), told)
        with Crew(batches, processes, told) as crew:
            return _joined(inputs, batches, crew.results(), told)


def _joined(
    inputs: Sequence[Input],
    batches: Sequence[Sequence[Job]],
    results: Iterator[LogEvidence],
    told: Told,
) -> LogEvidence:
    """Everything in the order of the inputs; streams are read on the way."""
    together = EvidenceSum()
    ahead = deque(batches)
    read: set[str] = set()
    for one in inputs:
        if one.error is not None:
            summary = InputSummary(path=one.job.name, error=one.error)
            together.add(LogEvidence(inputs=[summary]))
        elif one.stream is not None:
            together.add(read_input(one.job, told, one.stream))
        else:
            while one.job.path not in read or (ahead and ahead[0][0].start):
                batch = ahead.popleft()
                read.update(job.path for job in batch)
                together.add(next(results), [job.name for job in batch if job.start])
    return together.result()


def _teller(progress: Progress | None, total: int) -> Told:
    """Adds up what was read and tells of it."""
    done = 0

    def told(count: int) -> None:
        nonlocal done
        done += count
        if progress:
            progress(min(done, total), total)

    return told
