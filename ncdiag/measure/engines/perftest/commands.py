"""The command lines of perftest's programs; pure."""

import math
from collections.abc import Mapping
from typing import Final

from ncdiag.measure.engines.base import Timing
from ncdiag.measure.engines.perftest.messages import Build
from ncdiag.model.host import Nic

# The program's own default for bandwidth. A NIC's limit on messages is far above what it takes to
# fill 400 Gbit/s with these, and a slow link still moves enough of them to tell its rate.
MESSAGE_BYTES: Final = 64 * 1024
_LEAST_ITERATIONS = 5  # perftest takes no fewer (perftest_parameters.h, MIN_ITER)
# How NCCL is told to use the fabric is how it should be measured: (variable, option, most).
_FABRIC_OPTIONS: Final = (
    ("NCCL_IB_GID_INDEX", "-x", 255),
    ("NCCL_IB_SL", "-S", 15),
    ("NCCL_IB_TC", "--tclass=", 255),
)
# Reading turns the payload's way round: it goes to the side that connects.
READS: Final = frozenset({"ib_read_bw"})


def planned_s(timing: Timing) -> float:
    """Seconds that one direction moves payload, as far as time bounds it."""
    if timing.max_bytes is not None:
        return timing.warmup_s + timing.measure_s
    return _measured_s(timing) + 2 * _margin_s(timing)


def side_argv(
    build: Build,
    nic: Nic,
    timing: Timing,
    variables: Mapping[str, str],
    *,
    gpu_memory: bool,
) -> tuple[str, ...]:
    """What both sides are started with: all but the TCP port and the address of the other."""
    argv = [build.path, "-d", nic.hca or "", "-i", str(nic.hca_port or 1), "-s", str(MESSAGE_BYTES)]
    argv += _length(timing)
    argv += ["-F", "--report_gbits"]
    for variable, option, most in _FABRIC_OPTIONS:
        text = variables.get(variable, "").strip()
        if text.isdecimal() and int(text) <= most:
            argv += [option + text] if option.endswith("=") else [option, text]
    if gpu_memory:
        # The one GPU that is visible; the second option must come after the first.
        argv.append("--use_cuda=0")
        if build.cuda_dmabuf:
            argv.append("--use_cuda_dmabuf")
    return tuple(argv)


def server_argv(argv: tuple[str, ...], port: int) -> tuple[str, ...]:
    """The side that waits."""
    return (*argv, "-p", str(port))


def client_argv(argv: tuple[str, ...], build: Build, address: str, port: int) -> tuple[str, ...]:
    """The side that connects to ``address``."""
    ipv6 = ("--ipv6-addr",) if ":" in address and build.ipv6 else ()
    return (*argv, *ipv6, "-p", str(port), address)


def _length(timing: Timing) -> list[str]:
    """How long to measure: whole seconds with a margin at both ends, or so many messages."""
    if timing.max_bytes is not None:
        iterations = max(_LEAST_ITERATIONS, timing.max_bytes // MESSAGE_BYTES)
        # Looking for the best of all intervals takes the square of their number.
        return ["-n", str(iterations), "-N"]
    margin_s = _margin_s(timing)
    return ["-D", str(_measured_s(timing) + 2 * margin_s), "-f", str(margin_s)]


def _measured_s(timing: Timing) -> int:
    return max(1, math.ceil(timing.measure_s))


def _margin_s(timing: Timing) -> int:
    """An RDMA NIC sends at its rate from the first message on: less than a second is not worth one.

    The margin is left out of the figure, at the beginning and at the end.
    """
    return math.ceil(timing.warmup_s) if timing.warmup_s >= 1 else 0
