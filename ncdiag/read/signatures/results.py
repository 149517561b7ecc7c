"""Rows for result codes of the library, as programs and frameworks quote them.

They say least of all: what the library printed before names the cause. ``result`` in the details
is the code, ``last_error`` the text that the library kept of its last warning.
"""

import re
from typing import NamedTuple

from ncdiag.model.finding import FindingClass as C
from ncdiag.model.finding import Role, Severity
from ncdiag.read.line import Line
from ncdiag.read.signatures.fragments import signature
from ncdiag.read.signatures.row import OUTSIDE, Signature


class Result(NamedTuple):
    """A value of ncclResult_t; ``sure`` says that its text belongs to nothing else."""

    code: int
    name: str
    text: str
    class_: C
    sure: bool


RESULTS = (
    Result(1, "ncclUnhandledCudaError", "unhandled cuda error", C.CUDA_ERROR, sure=True),
    Result(2, "ncclSystemError", "unhandled system error", C.UNHANDLED_SYSTEM_ERROR, sure=True),
    Result(3, "ncclInternalError", "internal error", C.INTERNAL_ERROR, sure=False),
    Result(4, "ncclInvalidArgument", "invalid argument", C.INVALID_USAGE, sure=False),
    Result(5, "ncclInvalidUsage", "invalid usage", C.INVALID_USAGE, sure=False),
    Result(
        6,
        "ncclRemoteError",
        "remote process exited or there was a network error",
        C.REMOTE_ERROR,
        sure=True,
    ),
)

CLASS_OF_CODE = {result.code: result.class_ for result in RESULTS}

_WORK = re.compile(r"WorkNCCL\((?:SeqNum=(?P<seq>\d{1,12}), )?OpType=(?P<op>\w{1,40})")
# What nccl-tests and others add: '<result text> / <last error>'.
_LAST_ERROR = re.compile(r" / (?P<last>[^\n]{1,400}?)'?\s{0,8}$")


def _explained(values: dict[str, str], line: Line) -> dict[str, str] | None:
    if found := _LAST_ERROR.search(line.text):
        values["d_last_error"] = found["last"]
    return values


def _of_a_collective(values: dict[str, str], line: Line) -> dict[str, str] | None:
    if work := _WORK.search(line.text):
        values.update({name: value for name, value in work.groupdict().items() if value})
    return _explained(values, line)


class _Way(NamedTuple):
    """How a program quotes a result; patterns and texts have places for its parts."""

    name: str
    needle: str
    pattern: str
    sample: str
    near_miss: str
    source: str


_WAYS = (
    _Way(
        "tests",
        "Test NCCL failure ",
        r"Test NCCL failure \S{{1,120}} '{text}\b",
        "node7: Test NCCL failure common.cu:1005 '{text} / '",
        "node7: Test NCCL failure common.cu:1005 'no error / '",
        "nccl-tests src/common.h",
    ),
    _Way(
        "torch-block",
        "NCCL error in: ",
        r"NCCL error in: [^\n]{{1,300}}?, {text}\b",
        "DistBackendError: NCCL error in: ../ProcessGroupNCCL.cpp:77, {text}, NCCL version 2.21.5",
        "NCCL error in: ../ProcessGroupNCCL.cpp:77, no error, NCCL version 2.21.5",
        "PyTorch NCCLUtils.hpp",
    ),
    _Way(
        "interpretation",
        "{name}",
        # Not where a program's source is quoted.
        r"(?<!return )(?<!case )(?<![=!]= )\b{name}\b(?!;)",
        "{name}: a line of explanation",
        "ncclSuccess: a line of explanation",
        "PyTorch NCCLUtils.cpp and any program",
    ),
    _Way(
        "call",
        "{text}",
        r"\b(?:NCCL|RCCL|nccl\w{{0,40}}|rccl)\b[^\n']{{0,160}}?[:,)/'] ?'?{text}\b(?!:)",
        "ncclAllReduce failed: {text}",
        "ncclAllReduce done: no error",
        "horovod, TensorFlow, JAX, Paddle, torch.cuda.nccl",
    ),
)
_SURE = _Way(
    "text",
    "{text}",
    r"{text}",
    "what(): {text} (run with NCCL_DEBUG=INFO for details)",
    "what(): no error",
    "init.cc ncclGetErrorString",
)
_DEVELOPERS = _Way(
    "text",
    "please report this issue to the NCCL developers",
    r"internal error - please report this issue to the NCCL developers",
    "what(): internal error - please report this issue to the NCCL developers",
    "please report this issue to the developers",
    "init.cc ncclGetErrorString",
)


def _ways(result: Result) -> tuple[_Way, ...]:
    if result.sure:
        return (*_WAYS, _SURE)
    return (*_WAYS, _DEVELOPERS) if result.class_ == C.INTERNAL_ERROR else _WAYS


def _row(result: Result, way: _Way) -> Signature:
    parts = {"text": result.text, "name": result.name}
    constants = {"d_result": str(result.code)}
    remote = result.class_ == C.REMOTE_ERROR
    if result.class_ == C.INVALID_USAGE:
        constants["error"] = result.text
    return signature(
        f"result-{result.code}-{way.name}",
        result.class_,
        way.needle.format(**parts),
        way.pattern.format(**parts),
        sample=way.sample.format(**parts),
        near_miss=way.near_miss.format(**parts),
        source=way.source,
        levels=OUTSIDE,
        role=Role.CONSEQUENCE if remote else None,
        severity=Severity.FATAL if remote else None,
        constants=constants,
        refine=_of_a_collective if remote else _explained,
    )


ROWS = tuple(_row(result, way) for result in RESULTS for way in _ways(result))
