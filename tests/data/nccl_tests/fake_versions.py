# Plain Python without types: started thousands of times, and the standard library is all it has.
# ruff: noqa: ANN001, ANN002, ANN201, ANN202, ANN204, ANN206, PLR0917
"""Which version is played, and what that version prints and knows."""

import os

# Program: since, redop column, root column, per-rank count in a size.
PROGRAMS = {
    "all_reduce_perf": ((2, 0, 0), True, False, False),
    "all_gather_perf": ((2, 0, 0), False, False, True),
    "broadcast_perf": ((2, 0, 0), False, True, False),
    "reduce_scatter_perf": ((2, 0, 0), True, False, True),
    "reduce_perf": ((2, 0, 0), True, True, False),
    "alltoall_perf": ((2, 9, 0), False, False, True),
    "alltoallv_perf": ((2, 19, 0), False, False, True),
    "scatter_perf": ((2, 10, 0), False, True, True),
    "gather_perf": ((2, 11, 0), False, True, True),
    "sendrecv_perf": ((2, 10, 0), False, False, False),
    "hypercube_perf": ((2, 10, 0), False, False, True),
}
# Those whose results in place are not checked.
UNCHECKED_IN_PLACE = {"alltoall_perf", "alltoallv_perf", "sendrecv_perf"}
RCCL = "rccl-2024-09"


class Version:
    """A version, asked for what it does."""

    def __init__(self, text):
        self.text = text
        self.rccl = text == RCCL
        # rccl-tests of that time were taken from nccl-tests 2.13.
        numbers = [2, 13, 9] if self.rccl else [int(part) for part in text.split(".")]
        self.number = (*numbers, 0, 0)[:3]

    @classmethod
    def chosen(cls):
        return cls(os.environ.get("FAKE_NCCL_TESTS_VERSION", "2.19.6"))

    def since(self, *number):
        """Whether it is as new as that."""
        return self.number >= (*number, 0, 0)[:3]

    @property
    def warmup(self):
        return 1 if self.since(2, 16, 8) and not self.rccl else 5

    @property
    def uniform(self):
        """Whether every program prints the same five columns, and counts wrong elements."""
        return self.since(2, 13) or self.rccl

    @property
    def own_codes(self):
        """Whether the exit code is the result of the test."""
        return self.since(2, 17, 3) and not self.rccl

    @property
    def json(self):
        """The version of its JSON reports, 0 for none."""
        if self.rccl or not self.since(2, 17, 3):
            return 0
        return 3 if self.since(2, 19, 6) else 2 if self.since(2, 19, 2) else 1

    @property
    def wrong_width(self):
        return 6 if self.own_codes else 5

    def announcement(self, flags):
        """The line that says what will be run."""
        step, kind = (flags.f, "factor") if flags.f > 1 else (flags.i, "bytes")
        text = (
            f"# nThread {flags.t} nGpus {flags.g} minBytes {flags.b} maxBytes {flags.e} "
            f"step: {step}({kind}) warmup iters: {flags.w} iters: {flags.n} "
        )
        if not self.uniform:
            return text + f"validation: {flags.c} "
        text += f"agg iters: {flags.m} validation: {flags.c} graph: {flags.G}"
        return text + (f" unalign: {flags.u}" if self.since(2, 18, 2) else "")

    def rank_line(self, rank, pid, host, device, bus, gpu):
        """One line of the table of ranks; ``bus`` is the number of the PCI bus."""
        if self.rccl:
            group, where = "", f"0000:{bus:02x}:00.0"
        else:
            group = " Group  0" if self.since(2, 13, 4) else ""
            where = f"0000:{bus:02x}:00" if self.since(2, 14, 1) else f"0x{bus:02x}"
        lead = "#  Rank" if group else "#   Rank"
        who = f"Pid {pid:6d} on {host:>10s} device {device:2d}"
        return f"{lead} {rank:2d}{group} {who} [{where}] {gpu}"

    def time(self, value, width=7):
        return fitted(value, width) if self.own_codes else _old_time(value)

    def rate(self, value, width=6):
        return fitted(value, width) if self.own_codes else f"{value:{width}.2f}"


def fitted(value, width):
    """A number in so many columns: as many decimals as there is room for, else an exponent."""
    power, most = 0, 1
    while value >= most:
        most *= 10
        power += 1
    if power < width - 2:
        return f"{value:{width}.2f}"
    if power < width - 1:
        return f"{value:{width}.1f}"
    if power < width + 1:
        return f"{value:{width}.0f}"
    return f"{value:{width}.1e}" if width >= 7 else f"{value:{width}.0e}"


def _old_time(value):
    decimals = 0 if value >= 10_000 else 1 if value >= 100 else 2
    return f"{value:7.{decimals}f}"
