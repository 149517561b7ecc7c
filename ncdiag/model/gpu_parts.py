"""Parts of a GPU, and links of it and of other devices; the rest is :mod:`ncdiag.model.health`."""

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True, kw_only=True)
class EccCounts:
    """Errors of a GPU's memory: ``volatile`` since the driver was loaded, ``aggregate`` ever."""

    volatile_corrected: int | None = None
    volatile_uncorrected: int | None = None
    aggregate_corrected: int | None = None
    aggregate_uncorrected: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class RetiredMemory:
    """Rows that were remapped (Ampere and later) or pages that were retired (before).

    ``pending`` waits for a reset or reboot; ``failure`` says that no spare rows are left.
    """

    correctable: int | None = None
    uncorrectable: int | None = None
    pending: bool | None = None
    failure: bool | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class NvlinkFacts:
    """One NVLink of a GPU; ``errors`` maps counters such as ``replay`` or ``crc_flit``."""

    link: int
    active: bool | None = None
    errors: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class LinkCapability:
    """A PCIe link: as it runs now, and the most that both its ends can do."""

    current_gigatransfers_per_s: float | None = None
    current_lanes: int | None = None
    max_gigatransfers_per_s: float | None = None
    max_lanes: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class GpuProcess:
    """A process that holds memory of a GPU."""

    pid: int
    name: str | None = None
    memory_bytes: int | None = None
