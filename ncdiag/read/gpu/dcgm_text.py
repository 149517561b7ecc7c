"""What dcgm-exporter serves: Prometheus text with a line for each field of each GPU."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Final

from ncdiag.model.gpu_parts import EccCounts, LinkCapability, NvlinkFacts, RetiredMemory
from ncdiag.model.health import GpuHealth
from ncdiag.read.gpu import values, words
from ncdiag.read.gpu.reading import MAX_GPUS, GpuReport, GpuReportError
from ncdiag.read.topology.text import bus_id

# Eight GPUs with every field that DCGM has are 2 MB.
MAX_BYTES: Final = 8 << 20
_LONGEST_LINE: Final = 16 << 10
_LINE: Final = re.compile(
    r"DCGM_FI_(?:DEV_)?(?P<field>[A-Z0-9_]{1,80})\{(?P<labels>[^\n]{0,8192})\}"
    r"\s{1,8}(?P<value>[-+.\w]{1,40})(?:\s{1,8}-?\d{1,20})?\s{0,8}"
)
_LABEL: Final = re.compile(r'(\w{1,64})="((?:[^"\\]|\\.){0,512})"')
_NVLINK: Final = re.compile(r"NVLINK_(CRC_FLIT|CRC_DATA|REPLAY|RECOVERY)_ERROR_COUNT_L(\d{1,2})")
# dcgm_structs.h: what stands in place of a value that is not there, for each type of value; the
# sixteen numbers from the first on tell why.
_BLANKS: Final = (0x7FFFFFF0, 0x7FFFFFFFFFFFFFF0, 140737488355328)
# dcgmFabricManagerStatus_t; 0, and from 5 on, say that it is not supported or not known.
_FABRIC: Final = {1: "not started", 2: "in progress", 3: "completed", 4: "failed"}


@dataclass(slots=True)
class _Gpu:
    """The fields of one GPU by name, without the prefix."""

    labels: Mapping[str, str]
    fields: dict[str, float] = field(default_factory=dict)
    mig: bool = False

    def number(self, *names: str) -> float | None:
        """The first of these fields that is there."""
        return next((self.fields[name] for name in names if name in self.fields), None)

    def whole(self, *names: str) -> int | None:
        """The same as a whole number that is not negative."""
        return values.count(self.number(*names))

    def switch(self, *names: str) -> bool | None:
        """The same as on or off."""
        value = self.number(*names)
        return None if value is None else value != 0


def read_dcgm_text(data: bytes) -> GpuReport:
    """The GPUs that the exporter tells of; raises :class:`GpuReportError` for anything else."""
    if len(data) > MAX_BYTES:
        raise GpuReportError(f"larger than {MAX_BYTES >> 20} MiB: no exporter serves so much")
    found: dict[tuple[str, str], _Gpu] = {}
    for name, labels, value in _lines(data):
        number = labels.get("gpu", "")
        if not number.isascii() or not number.isdigit() or len(number) > 4:
            continue
        identity = (number, labels.get("UUID") or labels.get("uuid") or "")
        gpu = found.get(identity)
        if gpu is None:
            if len(found) >= MAX_GPUS:
                raise GpuReportError(f"more than {MAX_GPUS} GPUs, which no host has")
            gpu = found[identity] = _Gpu(labels)
        if labels.get("GPU_I_ID"):
            # Of a slice of the GPU, not of all of it.
            gpu.mig = True
        elif not _is_blank(value):
            gpu.fields[name] = value
    if not found:
        raise GpuReportError("no text of dcgm-exporter: it has no line of a GPU")
    drivers = {one.labels.get("DCGM_FI_DRIVER_VERSION", "") for one in found.values()} - {""}
    gpus = sorted(
        (_health(int(number), uuid, gpu) for (number, uuid), gpu in found.items()),
        key=lambda gpu: gpu.index,
    )
    versions = {"driver": ", ".join(sorted(drivers)[:8])} if drivers else {}
    return GpuReport(gpus=tuple(gpus), versions=versions)


def _lines(data: bytes) -> Iterator[tuple[str, dict[str, str], float]]:
    for line in data.decode("utf-8", "replace").splitlines():
        if not line.startswith("DCGM_FI_") or len(line) > _LONGEST_LINE:
            continue
        match = _LINE.fullmatch(line)
        if match is None:
            continue
        value = _value(match["value"])
        if value is not None:
            yield match["field"], dict(_LABEL.findall(match["labels"])), value


def _value(text: str) -> float | None:
    try:
        value = float(text)
    except ValueError:
        return None
    return values.figure(value) if "_" not in text else None


def _is_blank(value: float) -> bool:
    # The largest are beyond what a float tells apart.
    return value >= float(_BLANKS[1]) or any(0 <= value - blank < 16 for blank in _BLANKS)


def _health(index: int, uuid: str, gpu: _Gpu) -> GpuHealth:
    use = gpu.number("GPU_UTIL")
    reasons = gpu.whole("CLOCKS_EVENT_REASONS", "CLOCK_THROTTLE_REASONS")
    mode = gpu.whole("COMPUTE_MODE")
    return GpuHealth(
        index=index,
        uuid=values.name(uuid),
        name=values.name(gpu.labels.get("modelName")),
        pci_address=bus_id(values.name(gpu.labels.get("pci_bus_id"))),
        memory_total_bytes=_memory(gpu, "FB_TOTAL") or _sum_of_memory(gpu),
        memory_free_bytes=_memory(gpu, "FB_FREE"),
        temperature_c=gpu.number("GPU_TEMP"),
        temperature_limit_c=gpu.number("SLOWDOWN_TEMP", "GPU_MAX_OP_TEMP"),
        memory_temperature_c=gpu.number("MEMORY_TEMP"),
        memory_temperature_limit_c=gpu.number("MEM_MAX_OP_TEMP"),
        power_w=gpu.number("POWER_USAGE", "POWER_USAGE_INSTANT"),
        power_limit_w=gpu.number("ENFORCED_POWER_LIMIT", "POWER_MGMT_LIMIT"),
        default_power_limit_w=gpu.number("POWER_MGMT_LIMIT_DEF"),
        sm_clock_mhz=gpu.whole("SM_CLOCK"),
        max_sm_clock_mhz=gpu.whole("MAX_SM_CLOCK"),
        utilization=None if use is None else use / 100,
        throttle_reasons=None if reasons is None else words.throttle_reasons(reasons),
        persistence_mode=gpu.switch("PERSISTENCE_MODE"),
        mig_mode=True if gpu.mig else gpu.switch("MIG_MODE"),
        ecc_mode=gpu.switch("ECC_CURRENT"),
        compute_mode=None if mode is None else words.compute_mode(mode),
        ecc=_ecc(gpu),
        retired=_retired(gpu),
        nvlinks=_nvlinks(gpu),
        pcie=_pcie(gpu),
        pcie_replays=gpu.whole("PCIE_REPLAY_COUNTER"),
        recovery_action=gpu.whole("GET_GPU_RECOVERY_ACTION"),
        fabric_state=_fabric(gpu.whole("FABRIC_MANAGER_STATUS")),
        last_xid=gpu.whole("XID_ERRORS"),
    )


def _memory(gpu: _Gpu, name: str) -> int | None:
    """In bytes; DCGM gives MiB."""
    value = gpu.number(name)
    return None if value is None or value < 0 else int(value * values.MIB)


def _sum_of_memory(gpu: _Gpu) -> int | None:
    free, used = _memory(gpu, "FB_FREE"), _memory(gpu, "FB_USED")
    if free is None or used is None:
        return None
    return free + used + (_memory(gpu, "FB_RESERVED") or 0)


def _ecc(gpu: _Gpu) -> EccCounts | None:
    found = EccCounts(
        volatile_corrected=gpu.whole("ECC_SBE_VOL_TOTAL"),
        volatile_uncorrected=gpu.whole("ECC_DBE_VOL_TOTAL"),
        aggregate_corrected=gpu.whole("ECC_SBE_AGG_TOTAL"),
        aggregate_uncorrected=gpu.whole("ECC_DBE_AGG_TOTAL"),
    )
    return None if found == EccCounts() else found


def _retired(gpu: _Gpu) -> RetiredMemory | None:
    found = RetiredMemory(
        correctable=gpu.whole("CORRECTABLE_REMAPPED_ROWS", "RETIRED_SBE"),
        uncorrectable=gpu.whole("UNCORRECTABLE_REMAPPED_ROWS", "RETIRED_DBE"),
        pending=values.any_of((gpu.switch("ROW_REMAP_PENDING"), gpu.switch("RETIRED_PENDING"))),
        failure=gpu.switch("ROW_REMAP_FAILURE"),
    )
    return None if found == RetiredMemory() else found


def _nvlinks(gpu: _Gpu) -> tuple[NvlinkFacts, ...] | None:
    """Links whose errors are exported one by one; their state is not."""
    links: dict[int, dict[str, int]] = {}
    for name in gpu.fields:
        match = _NVLINK.fullmatch(name)
        value = gpu.whole(name) if match else None
        if match and value is not None:
            links.setdefault(int(match[2]), {})[match[1].lower()] = value
    return tuple(NvlinkFacts(link=link, errors=links[link]) for link in sorted(links)) or None


def _pcie(gpu: _Gpu) -> LinkCapability | None:
    found = LinkCapability(
        current_gigatransfers_per_s=values.gigatransfers(gpu.whole("PCIE_LINK_GEN")),
        current_lanes=gpu.whole("PCIE_LINK_WIDTH"),
        max_gigatransfers_per_s=values.gigatransfers(gpu.whole("PCIE_MAX_LINK_GEN")),
        max_lanes=gpu.whole("PCIE_MAX_LINK_WIDTH"),
    )
    return None if found == LinkCapability() else found


def _fabric(status: int | None) -> str | None:
    return None if status is None else _FABRIC.get(status)
