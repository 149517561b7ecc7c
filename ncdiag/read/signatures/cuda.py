"""Rows for failed CUDA and HIP calls: one a form of the message and a kind of its error text."""

import re
from typing import NamedTuple

from ncdiag.model.finding import FindingClass as C
from ncdiag.read.line import Line
from ncdiag.read.signatures.fragments import ONLY_WARN, SPOKEN, Refine, signature
from ncdiag.read.signatures.row import OUTSIDE, Signature

_NVLS = r"transport/(?:nvls|multicast|mc_arena)|\bnvls\.cc"
# A call of TensorFlow's or XLA's that failed while a program ran, not while one was looked for.
STREAM_CALL = (
    r"(?:failed to query event|Error (?:recording|querying|polling)"
    r"|(?:could not|[Ff]ailed to|unable to) (?:synchronize|wait|record|launch|enqueue))\b"
    r"[^\n]{0,300}?: "
    r"(?=CUDA_ERROR_(?!(?:OUT_OF_MEMORY|NO_DEVICE|NOT_READY|DEINITIALIZED)\b(?!: )))"
)
_NAMED = r"CUDA_ERROR_[A-Z_]{3,60}: "
# Texts that say what state the fabric is in; others are said of any call.
_FABRIC_STATE = (
    r"the operation cannot be performed in the present state|operation not supported"
    r"|operation not permitted|system not yet initialized"
    r"|system has unsupported display driver[^'\n]{0,40}"
    r"|API call is not supported in the installed CUDA driver"
)
_FABRIC = re.compile(_FABRIC_STATE)
_NVLS_LOCATION = re.compile(_NVLS)


class _Kind(NamedTuple):
    """What an error text means; ``code`` is that of the sample."""

    name: str
    class_: C
    text: str
    sample: str
    code: str


_EXACT = (
    _Kind("memory", C.CUDA_OUT_OF_MEMORY, r"out of memory", "out of memory", "2"),
    _Kind(
        "ordinal", C.CUDA_INVALID_DEVICE, r"invalid device ordinal", "invalid device ordinal", "101"
    ),
    _Kind(
        "peers",
        C.PEER_MAPPING_EXHAUSTED,
        r"peer mapping resources exhausted",
        "peer mapping resources exhausted",
        "711",
    ),
    _Kind(
        "nvlink",
        C.NVLINK_ERROR,
        r"uncorrectable NVLink error detected during the execution"
        r"|Invalid access of peer GPU memory over nvlink or a hardware error",
        "uncorrectable NVLink error detected during the execution",
        "220",
    ),
)
_GENERAL = _Kind(
    "general",
    C.CUDA_ERROR,
    rf"(?!{'|'.join(kind.text for kind in _EXACT)}|\d{{1,4}}:)",
    "uncorrectable ECC error encountered",
    "214",
)
_STATE = _Kind(
    "nvls",
    C.NVLS_MULTICAST_FAILED,
    _FABRIC_STATE,
    "system not yet initialized",
    "802",
)


class _Form(NamedTuple):
    """How a failed call is told: the text stands between ``head`` and ``tail``.

    A text without quotes ends where something else may begin. ``sample`` has places for the code
    and the text.
    """

    name: str
    needle: str
    head: str
    tail: str
    sample: str
    source: str
    levels: frozenset[str | None]
    further: tuple[str, ...] = ()


# What an error text may consist of, between quotes and without.
_QUOTED = r"[^'\n]{1,160}"
_BARE = r"[^'\n\\(;]{1,160}"
_CODE = r"(?P<code>\d{1,4})"
_FORMS = (
    _Form(
        "check",
        "Cuda failure",
        rf"\b(?:Cuda|CUDA|HIP|hip) failure:? (?:{_CODE}:? )?'",
        r"(?:'|\Z)",
        "Cuda failure {code} '{text}'",
        "include/checks.h, include/cudawrap.h; the code from 2.19",
        SPOKEN,
        ("CUDA failure", "HIP failure", "hip failure"),
    ),
    _Form(
        "check-unquoted",
        "CUDA failure ",
        rf"\b(?:CUDA|HIP) failure {_CODE}: ",
        "",
        "CUDA failure {code}: {text}",
        "programs that wrap CUDA calls",
        OUTSIDE,
        ("HIP failure ",),
    ),
    _Form(
        "driver",
        "CUDA error ",
        rf"(?<!user buffer: )(?<!\d : )\b(?:CUDA|HIP) error {_CODE} '",
        r"'",
        "Failed to map the imported handle: CUDA error {code} '{text}'",
        "transport/p2p.cc, transport/nvls.cc",
        SPOKEN,
        ("HIP error ",),
    ),
    _Form(
        "test",
        "Test CUDA failure ",
        r"Test CUDA failure (?P<d_where>\S{1,120}:\d{1,6}) '",
        r"'",
        "node7: Test CUDA failure common.cu:412 '{text}'",
        "nccl-tests src/common.h",
        OUTSIDE,
    ),
    _Form(
        "torch",
        "CUDA error: ",
        r"\b(?:CUDA|HIP) error: ",
        "",
        "RuntimeError: CUDA error: {text}",
        "PyTorch c10/cuda",
        OUTSIDE,
        ("HIP error: ",),
    ),
    _Form(
        "count",
        "Unexpected error from cudaGetDeviceCount()",
        r"(?<!initialization: )Unexpected error from cudaGetDeviceCount\(\)\.[^\n]{0,200}? Error "
        rf"{_CODE}: ",
        "",
        "RuntimeError: Unexpected error from cudaGetDeviceCount(). Did you run some cuda functions "
        "before calling NumCudaDevices() that might have already set an error? Error {code}: "
        "{text}",
        "PyTorch c10/cuda",
        OUTSIDE,
    ),
    _Form(
        "peer",
        "failed to peer with device ",
        rf"failed to peer with device \d{{1,4}}(?:\(=[0-9a-f]{{1,12}}\))?: {_CODE} ",
        "",
        "failed to peer with device 3(=1b000): {code} {text}",
        "transport/p2p.cc",
        SPOKEN,
    ),
    _Form(
        "stream",
        "CUDA_ERROR_",
        rf"{STREAM_CALL}(?:{_NAMED}|(?!{_NAMED}))",
        "",
        "Error polling for event status: failed to query event: CUDA_ERROR_LAUNCH_FAILED: {text}",
        "TensorFlow and XLA stream_executor",
        OUTSIDE,
    ),
    _Form(
        "ipc-handle",
        "cudaIpcGetMemHandle failed",
        r"cudaIpcGetMemHandle failed ?: ",
        "",
        "cudaIpcGetMemHandle failed : {text}",
        "transport/p2p.cc",
        SPOKEN,
    ),
)


def _not_of_the_fabric(values: dict[str, str], line: Line) -> dict[str, str] | None:
    """Leave to multicast what it raised about its state or support."""
    # A stack trace stands behind "::".
    values["error"] = values["error"].partition(" :: ")[0].rstrip(" .")
    raised = line.location and _NVLS_LOCATION.search(line.location)
    return None if not values["error"] or (raised and _FABRIC.match(values["error"])) else values


def _code_only(values: dict[str, str], _line: Line) -> dict[str, str] | None:
    values["d_error"] = values.pop("error", "")
    return values


def _detail(values: dict[str, str], _line: Line) -> dict[str, str] | None:
    """A link is named by its Xid: what CUDA says of it is for joining them."""
    return {
        (f"d_{name}" if name in ("error", "code") else name): value
        for name, value in values.items()
    }


def _error_only(values: dict[str, str], _line: Line) -> dict[str, str] | None:
    if "code" in values:
        values["d_code"] = values.pop("code")
    return values


_REFINE: dict[C, Refine] = {
    C.CUDA_ERROR: _not_of_the_fabric,
    C.PEER_MAPPING_EXHAUSTED: _code_only,
    C.NVLINK_ERROR: _detail,
    C.CUDA_OUT_OF_MEMORY: _error_only,
    C.CUDA_INVALID_DEVICE: _error_only,
}


def _row(form: _Form, kind: _Kind, location: str | None = None) -> Signature:
    other = "invalid device ordinal" if kind.class_ == C.CUDA_OUT_OF_MEMORY else "out of memory"
    anything = _QUOTED if form.tail else _BARE
    text = kind.text + (anything if kind is _GENERAL else "")
    return signature(
        f"cuda-{form.name}-{kind.name}",
        kind.class_,
        form.needle,
        f"{form.head}(?P<error>{text}){form.tail}",
        sample=form.sample.format(code=kind.code, text=kind.sample),
        near_miss=form.sample.format(code="2", text=other),
        source=form.source,
        levels=ONLY_WARN if location else form.levels,
        further=form.further,
        location=location,
        refine=_REFINE.get(kind.class_),
    )


ROWS = (
    *(_row(form, _STATE, _NVLS) for form in _FORMS if "WARN" in form.levels),
    *(_row(form, kind) for form in _FORMS for kind in (*_EXACT, _GENERAL)),
)
