"""What a report on GPUs comes to, and the one error of every reader of such reports."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from ncdiag.model.errors import UndecidedError
from ncdiag.model.health import GpuHealth

# A rack of 72 GPUs is the most that one operating system has seen; MIG slices are not counted.
MAX_GPUS = 1024


class GpuReportError(UndecidedError):
    """The input is no report on GPUs, or one that ends too early to be told from a whole one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GpuReport:
    """GPUs as one program tells of them; ``versions`` maps ``driver``, ``cuda`` and ``vbios``."""

    gpus: tuple[GpuHealth, ...] = ()
    versions: Mapping[str, str] = field(default_factory=dict)


def with_vbios(versions: Mapping[str, str], gpus: tuple[GpuHealth, ...]) -> dict[str, str]:
    """``versions`` with those of the GPUs' own firmware, each once."""
    found = sorted({gpu.vbios for gpu in gpus if gpu.vbios})
    return {**versions, "vbios": ", ".join(found)} if found else dict(versions)
