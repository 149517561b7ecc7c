"""Every source with what collects it, imported only when it is asked, and how long it may take."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final, NamedTuple

from ncdiag.model.health import Source


class SourceRow(NamedTuple):
    """``collect`` is ``module:function``; ``deadline_s`` is from the start of the collection."""

    collect: str
    deadline_s: float


# Deadlines: files of the kernel take milliseconds, also 2 s on a host under load; programs that
# ask drivers take seconds when many GPUs have no persistence mode.
_FILES_S: Final = 2.0
_PROGRAM_S: Final = 5.0


def _row(module: str, deadline_s: float) -> SourceRow:
    return SourceRow(f"ncdiag.health.sources.{module}:collect", deadline_s)


SOURCES: Final[Mapping[Source, SourceRow]] = MappingProxyType(
    {
        Source.NVML: _row("gpu_nvml", _PROGRAM_S),
        Source.NVIDIA_SMI: _row("gpu_nvidia_smi", _PROGRAM_S),
        Source.ROCM_SMI: _row("gpu_rocm", _PROGRAM_S),
        Source.DCGM: _row("gpu_dcgm", _PROGRAM_S),
        Source.KERNEL_LOG: _row("kernel_log", _PROGRAM_S),
        Source.INFINIBAND: _row("infiniband", _PROGRAM_S),
        Source.ETHERNET: _row("ethernet", _FILES_S),
        Source.PCIE: _row("pcie", _PROGRAM_S),
        Source.PROC: _row("proc", _FILES_S),
        Source.LIMITS: _row("limits", _FILES_S),
        Source.MOUNTS: _row("mounts", _PROGRAM_S),
        Source.CLOCK: _row("clock", _FILES_S),
        Source.SERVICES: _row("services", _FILES_S),
        Source.MODULES: _row("modules", _FILES_S),
    }
)
