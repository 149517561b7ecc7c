"""Every number that a check hangs on, with its unit and where it comes from."""

from dataclasses import dataclass, field, fields
from typing import TypeVar

Number = TypeVar("Number", int, float)

_OURS = "chosen by ncdiag: "


def _limit(value: Number, unit: str, source: str) -> Number:
    """A field that carries its unit and source; to its reader it is the number."""
    made: Number = field(default=value, metadata={"unit": unit, "source": source})
    return made


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """Where a fact becomes a finding; counts of errors are between two readings."""

    gpu_free_bytes: float = _limit(
        10e9, "bytes", "what a training job takes at once: less is free only where something runs"
    )
    gpu_free_share: float = _limit(
        0.5, "share of memory", _OURS + "for GPUs with less memory than twice the limit in bytes"
    )
    stale_process_bytes: float = _limit(
        100e6, "bytes", _OURS + "below it a process holds a context at most"
    )
    gpu_temperature_c: float = _limit(
        85.0, "°C", "slowdown begins at 85 to 95 °C on data sheets of data centre GPUs"
    )
    gpu_temperature_margin_c: float = _limit(
        5.0, "°C", _OURS + "closer to the GPU's own limit, the next load reaches it"
    )
    memory_temperature_c: float = _limit(
        95.0, "°C", "JEDEC HBM: refresh doubles above 85 °C, and most GPUs slow down by 95 °C"
    )
    hot_spot_c: float = _limit(
        100.0, "°C", "GPUs of AMD tell their hottest spot, and slow down at 100 to 110 °C"
    )
    clock_share_of_peers: float = _limit(
        0.97,
        "share of peers",
        _OURS + "clocks of one model differ by less than two steps of 15 MHz",
    )
    power_limit_share: float = _limit(
        0.99, "share of default", _OURS + "rounding of the limit to whole watts"
    )
    aggregate_ecc_errors: int = _limit(
        10, "uncorrectable errors ever", _OURS + "more than single rows that were swapped out"
    )
    corrected_ecc_per_h: float = _limit(
        1000.0,
        "errors an hour",
        _OURS + "far more than a healthy GPU corrects, which is none on most days",
    )
    retired_pages: int = _limit(
        60, "pages", "NVIDIA Dynamic Page Retirement: a board with so many is to be replaced"
    )
    pcie_replays_per_h: float = _limit(
        100.0, "replays an hour", _OURS + "a link within specification replays less than once a day"
    )
    pair_bandwidth_share: float = _limit(0.8, "share of expected", "--faulty-below of a sweep")
    symbol_errors_per_h: float = _limit(
        120.0, "errors an hour", "InfiniBand specification: bit error rate of 1e-12"
    )
    least_errors: int = _limit(
        10, "errors", _OURS + "fewer make no rate: two readings may be seconds apart"
    )
    corrected_pcie_per_h: float = _limit(
        100.0, "errors an hour", _OURS + "a link within specification has less than one a day"
    )
    corrected_events: int = _limit(
        100, "events in the kernel log", _OURS + "far more than a healthy host sees between boots"
    )
    nvswitch_events: int = _limit(
        10, "events in the kernel log", _OURS + "rare ones mean nothing, many a bad link"
    )
    flaps: int = _limit(
        3, "losses of one link", _OURS + "one is maintenance of a switch, two its end"
    )
    repeated_after_s: float = _limit(
        60.0, "seconds", "post-mortems: signs further apart are independent of one another"
    )
    application_faults: int = _limit(
        3, "Xids of one GPU", _OURS + "several programs, rather than one that is started again"
    )
    application_spread_s: float = _limit(
        3600.0, "seconds", _OURS + "further apart than the faults of one job"
    )
    boot_grace_s: float = _limit(
        600.0, "seconds", _OURS + "links train and services start after a boot"
    )
    memlock_bytes: float = _limit(
        4e9, "bytes", _OURS + "registered buffers of a rank; RDMA wants it without limit"
    )
    shm_bytes: float = _limit(
        1e9, "bytes", "NCCL and data loaders; containers get 64 MB unless told otherwise"
    )
    shm_free_bytes: float = _limit(
        256e6, "bytes", _OURS + "segments of NCCL for eight ranks take about as much"
    )
    files_warning: int = _limit(
        1024, "open files", "what Linux gives by default; anything less was set by hand"
    )
    files_note: int = _limit(4096, "open files", _OURS + "sockets of a job of some hundred ranks")
    clock_offset_s: float = _limit(
        0.5, "seconds", _OURS + "logs of hosts further apart have no certain order"
    )
    clock_skew_s: float = _limit(
        1.0, "seconds", _OURS + "beyond what asking took: certificates and logs go wrong"
    )
    mount_free_share: float = _limit(0.05, "share of space", _OURS + "writers begin to fail")
    mount_free_bytes: float = _limit(
        10e9, "bytes", _OURS + "five per cent of a large file system are still enough"
    )
    mount_free_inodes_share: float = _limit(
        0.02, "share of inodes", _OURS + "writers begin to fail"
    )
    blocked_interval_s: float = _limit(
        10.0, "seconds", _OURS + "a process that waits for a disk is done by then"
    )
    least_alike: int = _limit(
        3, "things alike", "two that disagree have no third to settle it (as in topo check)"
    )
    one_odd_of: int = _limit(
        3, "things alike", "more odd ones are a second design, not a fault (as in topo check)"
    )


@dataclass(frozen=True, slots=True)
class LimitRow:
    """One limit as a manual shows it."""

    name: str
    value: float
    unit: str
    source: str


def limit_rows(limits: Limits) -> tuple[LimitRow, ...]:
    """Every limit with its unit and source, in the order of their definition."""
    return tuple(
        LimitRow(one.name, getattr(limits, one.name), one.metadata["unit"], one.metadata["source"])
        for one in fields(limits)
    )
