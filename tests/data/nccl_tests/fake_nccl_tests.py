#!/usr/bin/env -S python3 -SE
# Plain Python without types: started thousands of times, and the standard library is all it has.
# ruff: noqa: PTH119
"""A program that prints what nccl-tests print, without a GPU: every layout, option and failure.

Installed under the names of the programs it stands for (``all_reduce_perf`` and so on; the tests'
``nccl_tests_programs`` does it), it behaves as the one it is called. Under an MPI launcher only
rank 0 prints.
Versions: 2.0, 2.9, 2.11, 2.13.0, 2.13.4, ..., 2.19.6, and rccl-2024-09.

What it shall play is in the environment:

FAKE_NCCL_TESTS_VERSION     the version (2.19.6); it knows the options of that version alone
FAKE_NCCL_TESTS_LIBRARY     NCCL's version as a number (23007)
FAKE_NCCL_TESTS_PLATEAU     bus bandwidth of large messages, GB/s (48)
FAKE_NCCL_TESTS_LATENCY_US  time of the smallest message (20)
FAKE_NCCL_TESTS_NOISE       share by which times of iterations go up and down (0)
FAKE_NCCL_TESTS_SEED        of that noise (0)
FAKE_NCCL_TESTS_CLIFF       SIZE:SHARE of the bandwidth at one size, SIZE+:SHARE from there on
FAKE_NCCL_TESTS_SLOW_RANK   RANK:SHARE, seen per process with -I
FAKE_NCCL_TESTS_SLOW_HOSTS  HOST=SHARE,...: whatever they take part in has this share
FAKE_NCCL_TESTS_WRONG       SIZE:COUNT of wrong elements
FAKE_NCCL_TESTS_WRONG_HOSTS HOST,...: one wrong element at each size
FAKE_NCCL_TESTS_HOSTS       names of the ranks' hosts (else this host's own for all)
FAKE_NCCL_TESTS_GPUS        GPUs of each host (8)
FAKE_NCCL_TESTS_NO_MPI      built without MPI: each rank prints a table of its own
FAKE_NCCL_TESTS_NO_LIBRARY  a shared library that cannot be loaded
FAKE_NCCL_TESTS_LOG         NCCL's own lines cut every row in two (unless NCCL_DEBUG_FILE is set)
FAKE_NCCL_TESTS_HANG        rows after which nothing comes any more; with ! even -T does not help
FAKE_NCCL_TESTS_CRASH       cuda:ROWS or nccl:ROWS: what fails after so many rows
FAKE_NCCL_TESTS_DIE         ROWS after which it is killed, its JSON cut short
FAKE_NCCL_TESTS_ERROR       NCCL's last error, told at the end
FAKE_NCCL_TESTS_SECONDS     how long it takes in all (0)
FAKE_NCCL_TESTS_TRAFFIC     peer: two ranks really send one another the bytes, and time them (needs
                            PMI-1); lo: each sends them to itself, so that lo's counters move
"""

import os
import signal
import sys

import fake_flags
import fake_report
from fake_model import Model
from fake_versions import Version


def main() -> int:
    """Play the program; the exit code is the one of its version."""
    name = os.path.basename(sys.argv[0])
    version = Version.chosen()
    if library := os.environ.get("FAKE_NCCL_TESTS_NO_LIBRARY"):
        sys.stderr.write(
            f"{sys.argv[0]}: error while loading shared libraries: {library}: "
            "cannot open shared object file: No such file or directory\n"
        )
        return 127
    try:
        flags = fake_flags.parse(name, sys.argv[1:], version)
    except fake_flags.End as end:
        return end.code
    model = Model(name, flags, version)
    code = fake_report.play(model)
    sys.stdout.flush()
    return code


if __name__ == "__main__":
    # Killed by whoever reads no more, as a program in C is.
    signal.signal(signal.SIGPIPE, signal.SIG_DFL)
    code = main()
    sys.stdout.flush()
    os._exit(code)
