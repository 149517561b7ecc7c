"""What NVML said of a host, recorded as JSON: the records themselves."""

from collections.abc import Mapping
from dataclasses import dataclass, field

import msgspec

from ncdiag.model.health import GpuHealth
from ncdiag.model.text import visible
from ncdiag.read.gpu.reading import MAX_GPUS, GpuReport, GpuReportError

# Eight GPUs with all their links are 20 KB.
MAX_BYTES = 8 << 20


@dataclass(frozen=True, slots=True)
class _Recorded:
    gpus: list[GpuHealth]
    versions: Mapping[str, str] = field(default_factory=dict)


_decoder: msgspec.json.Decoder[_Recorded | list[GpuHealth]] = msgspec.json.Decoder(
    _Recorded | list[GpuHealth]
)


def read_recorded_nvml(data: bytes) -> GpuReport:
    """``{"gpus": [...], "versions": {...}}``, or the GPUs alone.

    Raises :class:`GpuReportError` for anything else.
    """
    if len(data) > MAX_BYTES:
        raise GpuReportError(f"larger than {MAX_BYTES >> 20} MiB: no record of NVML is")
    try:
        found = _decoder.decode(data)
    except (msgspec.DecodeError, RecursionError, UnicodeDecodeError) as error:
        why = visible(" ".join(str(error).split())[:200])
        raise GpuReportError(f"no record of GPUs: {why}") from None
    recorded = _Recorded(found) if isinstance(found, list) else found
    if len(recorded.gpus) > MAX_GPUS:
        raise GpuReportError(f"more than {MAX_GPUS} GPUs, which no host has")
    return GpuReport(gpus=tuple(recorded.gpus), versions=recorded.versions)
