"""Settings of the kernel that cost performance when they are wrong."""

import re
from collections import Counter
from typing import Final

from ncdiag.health.sources.place import HostRoot
from ncdiag.health.sources.values import whole_number

_GROUPS: Final = "/sys/kernel/iommu_groups"
_POLICIES: Final = "/sys/devices/system/cpu/cpufreq"
_MOST_LOOKED_AT: Final = 1024


def settings(root: HostRoot) -> dict[str, str]:
    """``iommu`` (off, passthrough, on), ``numa_balancing`` (off, on) and ``cpu_governor``."""
    balancing = whole_number(root.text("/proc/sys/kernel/numa_balancing"))
    found = {
        "iommu": _iommu(root),
        "numa_balancing": None if balancing is None else "on" if balancing else "off",
        "cpu_governor": _governor(root),
    }
    return {name: value for name, value in found.items() if value}


def _iommu(root: HostRoot) -> str | None:
    """By what most groups of devices do: ``identity`` is passed through, ``DMA`` translated."""
    if not root.exists(_GROUPS):
        return None
    groups = root.names(_GROUPS)[:_MOST_LOOKED_AT]
    if not groups:
        return "off"
    kinds = Counter(root.text(f"{_GROUPS}/{group}/type") for group in groups)
    most = kinds.most_common(1)[0][0]
    if most is None:  # older kernels do not say
        words = (root.text("/proc/cmdline") or "").split()
        return "passthrough" if {"iommu=pt", "iommu.passthrough=1"} & set(words) else "on"
    return "passthrough" if most == "identity" else "on"


def _governor(root: HostRoot) -> str | None:
    """The governor of the CPUs; several where they are not alike."""
    policies = [name for name in root.names(_POLICIES) if re.fullmatch(r"policy\d{1,5}", name)]
    told = {
        root.text(f"{_POLICIES}/{name}/scaling_governor") for name in policies[:_MOST_LOOKED_AT]
    }
    return ", ".join(sorted(one[:32] for one in told if one)) or None
