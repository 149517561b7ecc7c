"""What tools call collectives, in the words of nccl-tests."""

import re

_NAMES = {
    "allreduce": "all_reduce_perf",
    "allgather": "all_gather_perf",
    "reducescatter": "reduce_scatter_perf",
    "broadcast": "broadcast_perf",
    "reduce": "reduce_perf",
    "alltoall": "alltoall_perf",
    "alltoallv": "alltoallv_perf",
    "gather": "gather_perf",
    "scatter": "scatter_perf",
    "sendrecv": "sendrecv_perf",
    "hypercube": "hypercube_perf",
}


def program_of(name: str) -> str | None:
    """The program of nccl-tests that measures ``name`` (``AllReduce``, ``allreduce``)."""
    plain = re.sub(r"[^a-z]", "", name.lower()[:60]).removesuffix("perf")
    return _NAMES.get(plain)
