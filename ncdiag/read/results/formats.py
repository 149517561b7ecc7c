"""Every format of results that can be read, told apart by what a file holds."""

from collections.abc import Callable
from typing import NamedTuple

from ncdiag.model.errors import UsageError
from ncdiag.model.imported import ForeignResults
from ncdiag.model.text import visible
from ncdiag.read import perftest
from ncdiag.read.results import (
    clusterkit,
    mpigraph,
    nccl_tests,
    nvbandwidth,
    osu,
    rccl,
    superbench,
)
from ncdiag.read.results.text import without_prefixes

HEAD_BYTES = 65536
MAX_BYTES = 64 << 20
# A file that is given by its name may begin with this much of what launchers and libraries say.
_DEEPEST = 4 << 20


class Format(NamedTuple):
    """One format: what it is called, whether a beginning shows it, and its reader.

    ``read`` takes any bytes and a path for messages, and raises :class:`UsageError` with one line
    where nothing in them can be used.
    """

    name: str
    recognises: Callable[[bytes], bool]
    read: Callable[[bytes, str], ForeignResults]


FORMATS = (
    Format("nvbandwidth (text, JSON)", nvbandwidth.recognises, nvbandwidth.read),
    Format("RCCL's JSON and CSV", rccl.recognises, rccl.read),
    Format("SuperBench JSONL", superbench.recognises, superbench.read),
    Format("ClusterKit matrices (text, JSON)", clusterkit.recognises, clusterkit.read),
    Format("mpiGraph", mpigraph.recognises, mpigraph.read),
    Format("OSU osu_bw and osu_mbw_mr", osu.recognises, osu.read),
    Format("perftest (text, JSON)", perftest.recognises, perftest.read),
    Format("nccl-tests and rccl-tests (text, JSON)", nccl_tests.recognises, nccl_tests.read),
)


def format_of(head: bytes) -> Format | None:
    """The format of a file that begins with ``head`` (``HEAD_BYTES`` of it)."""
    for text in dict.fromkeys((head, without_prefixes(head))):
        for one in FORMATS:
            if one.recognises(text):
                return one
    return None


def read_results(data: bytes, path: str) -> ForeignResults:
    """What a file holds; raises :class:`UsageError` with one line for any other content."""
    if len(data) > MAX_BYTES:
        raise UsageError(f"{visible(path)}: more than {MAX_BYTES >> 20} MiB: not read")
    found = format_of(data[:HEAD_BYTES])
    if found is None or found.read is not nccl_tests.read:  # which takes prefixes off itself
        data = without_prefixes(data)
        found = format_of(data[:HEAD_BYTES]) or format_of(data[:_DEEPEST])
    if found is None:
        known = ", ".join(one.name for one in FORMATS)
        raise UsageError(f"{visible(path)}: not a known format of results; known are {known}")
    return found.read(data, path)
