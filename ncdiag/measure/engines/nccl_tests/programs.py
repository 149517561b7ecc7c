"""The programs of nccl-tests: where they are, what they know, and what their end means."""

import os
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

# Of the two that packages bring, the one with this ending was built with MPI.
_SUFFIXES: Final = ("_mpi", "")
_HOME = "NCCL_TESTS_HOME"
_OPTION = re.compile(r"\[-(\w),\s?--\w+")
BUILD_HINT = "bin/build-nccl-tests SOURCE --mpi PATH"


def program_of(pair_test: str) -> str:
    """The name of the program of ``--pair-test``."""
    return f"{pair_test}_perf"


def find(name: str, folder: str | None, environment: Mapping[str, str]) -> tuple[str | None, str]:
    """The path of a program, and where it was looked for, in words.

    ``folder`` is the operator's and stands alone; else NCCL_TESTS_HOME does; else PATH is searched.
    """
    named = folder or environment.get(_HOME)
    if named:
        roots = [Path(named), Path(named) / "build"]
        looked = f"{named} and {named}/build" + ("" if folder else f" ({_HOME})")
    else:
        roots = [Path(part) for part in environment.get("PATH", "").split(os.pathsep) if part]
        looked = f"PATH ({_HOME} is not set, and there is no --nccl-tests-dir)"
    found = (root / f"{name}{suffix}" for suffix in _SUFFIXES for root in roots)
    path = next((path for path in found if path.is_file() and os.access(path, os.X_OK)), None)
    return (str(path.absolute()) if path else None), looked


def missing_here(pair_test: str) -> str | None:
    """Why the program of ``pair_test`` is not on this very host; hosts need it, not the driver."""
    path, looked = find(program_of(pair_test), None, os.environ)
    if path:
        return None
    return f"{program_of(pair_test)} is not there: looked in {looked} (build it: {BUILD_HINT})"


def options_of(usage: str) -> frozenset[str]:
    """The letters of the options that a program's usage names."""
    return frozenset(_OPTION.findall(usage))


@dataclass(frozen=True, slots=True)
class Cause:
    """A line a program prints when it fails; ``told`` may use the pattern's groups.

    ``sample`` is a line that must match, ``near_miss`` one that must not.
    """

    pattern: str
    told: str
    sample: str
    near_miss: str


# In order: the first row that matches any line tells, so a cause stands before what follows of it.
CAUSES: Final = (
    Cause(
        r"error while loading shared libraries: (?P<library>lib(?:cuda|nccl|mpi|pmi)[\w.+-]*)",
        "it was built for another CUDA, NCCL or MPI: {library} cannot be loaded there (load that "
        f"version, as with --remote-setup, or build it again: {BUILD_HINT})",
        "x: error while loading shared libraries: libcudart.so.12: cannot open shared object file",
        "error while loading libcudart",
    ),
    Cause(
        r"error while loading shared libraries: (?P<library>[\w.+-]+)",
        "{library} cannot be loaded there",
        "x: error while loading shared libraries: libz.so.1: cannot open shared object file",
        "shared libraries were loaded",
    ),
    Cause(
        r"Invalid number of GPUs: (?P<asked>\d+) requested but only (?P<found>\d+)",
        "it has too few GPUs: {asked} asked for, {found} found",
        "Invalid number of GPUs: 1 requested but only 0 were found.",
        "Number of GPUs: 8",
    ),
    Cause(
        r"Test CUDA failure \S+ '(?P<why>[^']*)",
        "CUDA failed: {why}",
        "gpu1: Test CUDA failure common.cu:943 'CUDA driver version is insufficient'",
        "gpu1: Test CUDA success",
    ),
    Cause(
        r"NCCL WARN (?P<why>(?!NCCL_)[^\n]*(?:rror|ail|imed out|nvalid|Could not|not found)[^\n]*)",
        "NCCL failed: {why}",
        "gpu1:42:49 [0] transport/net_ib.cc:295 NCCL WARN NET/IB : Got async event : port error",
        "gpu1:42:49 [0] NCCL INFO NET/IB : No device found.",
    ),
    Cause(
        r"Test NCCL failure \S+ '(?P<why>[^']*)",
        "NCCL failed: {why}",
        "gpu1: Test NCCL failure common.cu:1005 'unhandled system error / '",
        "gpu1: Test NCCL success",
    ),
    Cause(
        r"Test timeout \((?P<seconds>\d+)s\)",
        "timed out: nothing came of it for {seconds} s",
        "gpu1: Test timeout (30s) common.cu:441",
        "timeout: 30",
    ),
    Cause(
        r"invalid option|unrecognized option|option requires an argument",
        "it does not know an option that it was given",
        "sendrecv_perf: invalid option -- 'T'",
        "option T is valid",
    ),
    Cause(
        r"invalid sizes? specified for '(?P<which>\w+)'|invalid sizes for '\w+'",
        "it does not take the sizes it was given",
        "invalid size specified for 'minbytes'",
        "sizes: 8 to 64",
    ),
)

# Since 2.17.3 the exit code is the result of the test; before, it was 0, or 1 for whatever went
# wrong. So 1 says nothing, and the other codes only what no line has told already.
CODES: Final[Mapping[int, str]] = {
    1: "it failed, and did not say how",
    2: "CUDA failed",
    3: "NCCL failed",
    4: "timed out: nothing came of it",
    5: "it has too few GPUs, or lacks what the test needs",
    6: "it was used wrongly",
    7: "wrong data",
    126: "it cannot be run there",
    127: "it is not there",
    255: "it does not accept its arguments",
}
WRONG_DATA_CODE = 7


def why_ended(code: int, lines: Sequence[str]) -> str | None:
    """Why a program that printed ``lines`` ended so; ``None`` if all is well.

    A code of 0 is no proof: an option that is not known ends with it as well.
    """
    for cause in CAUSES:
        for told in _told(cause, lines):
            return told
    if code == 0:
        return None
    if code < 0:
        return f"it was killed by signal {-code}"
    return CODES.get(code, f"it ended with exit code {code}, and did not say why")


def _told(cause: Cause, lines: Sequence[str]) -> Iterator[str]:
    for line in lines:
        if found := re.search(cause.pattern, line):
            yield cause.told.format(
                **{k: (v or "").strip(" /") for k, v in found.groupdict().items()}
            )
