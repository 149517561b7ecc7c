"""What NCCL takes PCIe, CPUs and adapters for, in GB/s each way (its src/graph/topo.h, topo.cc)."""

from ncdiag.model.topology import Adapter, Cpu, PciDevice

# LOC_BW, MLOPART_LOC_BW: within one device, between the partitions of one.
LOCAL_GB_PER_S = 5000.0
PARTITION_GB_PER_S = 2618.0

# kvDictPciGen: 100 Mbit/s of a lane, by GT/s.
_LANE_RATES = {2.5: 15, 5.0: 30, 8.0: 60, 16.0: 120, 32.0: 240, 64.0: 480}
# The spellings NCCL knows; for any other it takes generation 3.
_SPELLINGS = (
    *("2.5 GT/s", "5 GT/s", "8 GT/s", "16 GT/s", "32 GT/s"),
    *(f"{rate} GT/s PCIe" for rate in _LANE_RATES),
)
_LANE_RATE_DEFAULT = 60
_LANES_DEFAULT = 16

# Between two CPUs of one host: *_QPI_BW by Intel's model, the others by architecture and vendor.
_INTEL_GB_PER_S = ((0xCF, 40.0), (0x8F, 22.0), (0x55, 10.0), (0, 6.0))
_AMD_GB_PER_S = 16.0
_ARM_GB_PER_S = 6.0
_POWER_GB_PER_S = 32.0
_ZHAOXIN_GB_PER_S = 6.0

# Adapters that tell no speed, or a negative one, count for 10 Gbit/s.
ADAPTER_DEFAULT_GBIT_PER_S = 10.0


def pcie_gb_per_s(device: PciDevice) -> float | None:
    """GB/s of the link above ``device``: lanes by rate; ``None`` where the dump tells none."""
    if device.gigatransfers_per_s is None or device.lanes is None:
        return None
    rate = _LANE_RATES.get(device.gigatransfers_per_s)
    return None if rate is None else (device.lanes or _LANES_DEFAULT) * rate / 80


def pcie_gb_per_s_as_nccl(device: PciDevice) -> float:
    """GB/s NCCL takes the link above ``device`` for, whatever the dump tells of it."""
    speed = device.link_speed
    known = speed is None or speed.startswith(_SPELLINGS)
    rate = _LANE_RATES.get(device.gigatransfers_per_s or 0.0) if known else None
    return (device.lanes or _LANES_DEFAULT) * (rate or _LANE_RATE_DEFAULT) / 80


def between_cpus_gb_per_s(cpu: Cpu) -> float | None:
    """GB/s from ``cpu`` to another of its host; ``None`` for one that NCCL has no figure for."""
    if cpu.arch == "arm64":
        return _ARM_GB_PER_S
    if cpu.arch == "ppc64":
        return _POWER_GB_PER_S
    if cpu.vendor == "AuthenticAMD":
        return _AMD_GB_PER_S
    if cpu.vendor == "GenuineIntel":
        model = cpu.model_id or 0 if cpu.family_id == 6 else 0
        return next(rate for least, rate in _INTEL_GB_PER_S if model >= least)
    if cpu.vendor is not None and cpu.vendor.strip() in {"CentaurHauls", "Shanghai"}:
        return _ZHAOXIN_GB_PER_S
    return None


def adapter_gb_per_s(adapter: Adapter) -> float:
    """GB/s NCCL takes the adapter's port for; of one known by its PCI class alone, no limit."""
    if not adapter.has_element:
        return LOCAL_GB_PER_S
    speed = adapter.speed_gbit_per_s
    return (speed if speed is not None and speed > 0 else ADAPTER_DEFAULT_GBIT_PER_S) / 8
