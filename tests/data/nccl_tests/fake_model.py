# Plain Python without types: started thousands of times, and the standard library is all it has.
# ruff: noqa: ANN001, ANN201, ANN202, ANN204
"""What the played hardware does: how long each iteration of each rank takes, and what fails."""

import os

import fake_mpi
from fake_flags import _UNITS, OPS, TYPES
from fake_versions import PROGRAMS, UNCHECKED_IN_PLACE


def setting(name, default=""):
    """A setting of the environment."""
    return os.environ.get(f"FAKE_NCCL_TESTS_{name}", default)


class Row:
    """One size to be run; ``times`` holds microseconds by iteration for each process."""

    def __init__(self, model, type_, op, root, size):
        width = TYPES[type_]
        parts = model.ranks if model.parted else 1
        self.count = size // (parts * width)
        self.size = self.count * parts * width
        self.type, self.op, self.root = type_, op, root


class Model:
    """Everything there is to know of the run that is played."""

    def __init__(self, program, flags, version):
        self.program, self.flags, self.version = program, flags, version
        stem = program[: program.index("_perf") + len("_perf")] if "_perf" in program else program
        self.kind = stem if stem in PROGRAMS else "all_reduce_perf"
        _, self.has_op, self.has_root, self.parted = PROGRAMS[self.kind]
        self.job = fake_mpi.join(alone=bool(setting("NO_MPI")))
        self.per_process = flags.t * flags.g
        self.ranks = self.job.size * self.per_process
        self.library = int(setting("LIBRARY", "23007"))
        self.plateau = float(setting("PLATEAU", "48"))
        self.latency_us = float(setting("LATENCY_US", "20"))
        self.noise = float(setting("NOISE", "0"))
        self.hosts = [self.job.hosts[n // self.per_process] for n in range(self.ranks)]
        slow, _, share = setting("SLOW_RANK").partition(":")
        self.slow_rank, self.slow_share = int(slow or -1), float(share or 1)
        self._random = None
        if self.noise:
            import random

            self._random = random.Random(int(setting("SEED", "0")))

    def rows(self):
        """Every size to run, in order."""
        flags = self.flags
        ops = (OPS if flags.o == "all" else (flags.o,)) if self.has_op else ("none",)
        types = tuple(TYPES) if flags.d == "all" else (flags.d,)
        roots = range(self.ranks) if flags.r < 0 else (flags.r,)
        roots = roots if self.has_root else (-1,)
        for type_, op, root in ((t, o, r) for t in types for o in ops for r in roots):
            size = flags.b
            while size <= flags.e:
                yield Row(self, type_, op, root, size)
                size = size * flags.f if flags.f > 1 else size + flags.i

    @property
    def factor(self):
        """Bus bandwidth over algorithm bandwidth."""
        if self.kind == "all_reduce_perf":
            return 2 * (self.ranks - 1) / self.ranks
        if self.kind in {"sendrecv_perf", "broadcast_perf", "reduce_perf"}:
            return 1.0
        return (self.ranks - 1) / self.ranks

    def times_us(self, row):
        """How long the iterations of each process take."""
        if self.job.carries_bytes:
            self.job.exchange(row.size, self.flags.n)
            return [self.job.exchange(row.size, self.flags.n)] * self.job.size
        self.job.loop(2 * self.flags.n * row.size)
        share = self._cliff(row.size) * self._slow_hosts()
        # One GPU alone moves nothing over a bus.
        rate = self.plateau * 1e3 * share / (self.factor or 1)
        usual = self.latency_us + row.size / rate
        return [
            [self._jitter(usual / self._share_of(process)) for _ in range(max(1, self.flags.n))]
            for process in range(self.job.size)
        ]

    def wrong(self, row, *, in_place):
        """How many elements are wrong; None where nobody looked."""
        if not self.flags.c or (in_place and self.kind in UNCHECKED_IN_PLACE):
            return None
        size, _, count = setting("WRONG").partition(":")
        if size and bytes_of(size) == row.size:
            return int(count or 1)
        bad = set(filter(None, setting("WRONG_HOSTS").split(",")))
        return 1 if bad & set(self.job.hosts) else 0

    def _cliff(self, size):
        where, _, share = setting("CLIFF").partition(":")
        if not where:
            return 1.0
        at = bytes_of(where.rstrip("+"))
        return float(share) if size == at or (where.endswith("+") and size > at) else 1.0

    def _slow_hosts(self):
        shares = dict(part.split("=") for part in setting("SLOW_HOSTS").split(",") if part)
        return min((float(shares[host]) for host in self.job.hosts if host in shares), default=1.0)

    def _share_of(self, process):
        return self.slow_share if process == self.slow_rank else 1.0

    def _jitter(self, value):
        if self._random is None:
            return value
        return value * (1 + self.noise * (2 * self._random.random() - 1))


def bytes_of(text):
    """The bytes of 8, 4K, 64M and so on."""
    unit = _UNITS.get(text[-1:].upper(), 0)
    return int(text[:-1] if unit else text) << unit
