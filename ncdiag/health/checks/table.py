"""All checks, by their ids, in the order of the manual."""

from collections.abc import Mapping
from types import MappingProxyType

from ncdiag.health.checks import (
    asked,
    dcgm,
    gpu_heat,
    gpu_memory,
    gpu_presence,
    gpu_settings,
    kernel_log,
    mounts,
    nvlink,
    of_many,
    pcie,
    ports,
    system,
)
from ncdiag.health.checks.check import Check

_ALL = (
    *gpu_presence.CHECKS,
    *gpu_memory.CHECKS,
    *gpu_heat.CHECKS,
    *nvlink.CHECKS,
    *gpu_settings.CHECKS,
    *dcgm.CHECKS,
    *pcie.CHECKS,
    *ports.CHECKS,
    *kernel_log.CHECKS,
    *system.CHECKS,
    *mounts.CHECKS,
    *asked.CHECKS,
    *of_many.CHECKS,
)
CHECKS: Mapping[str, Check] = MappingProxyType({check.id: check for check in _ALL})
