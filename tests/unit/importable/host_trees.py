"""Builds folders that look like the files of a host, for what reads its health."""

import os
from collections.abc import Mapping, Sequence
from pathlib import Path

import msgspec

from ncdiag.model.gpu_parts import EccCounts, LinkCapability, NvlinkFacts, RetiredMemory
from ncdiag.model.health import GpuHealth

GPU_BUSES = ("18", "2a", "3a", "5d", "9a", "ab", "ba", "db")
NIC_BUSES = ("19", "2b", "3b", "5e", "9b", "ac", "bb", "dc")
IB_COUNTERS = {
    "link_downed": "0",
    "link_error_recovery": "0",
    "port_rcv_data": "123456789012",
    "port_rcv_errors": "0",
    "port_xmit_data": "123456789012",
    "port_xmit_wait": "5120",
    "symbol_error": "0",
}
IB_HW_COUNTERS = {"local_ack_timeout_err": "0", "out_of_sequence": "0", "packet_seq_err": "0"}
AER = {
    "aer_dev_correctable": "RxErr 0\nBadTLP 0\nTOTAL_ERR_COR 0",
    "aer_dev_nonfatal": "Undefined 0\nTOTAL_ERR_NONFATAL 0",
    "aer_dev_fatal": "Undefined 0\nTOTAL_ERR_FATAL 0",
}
LIMITS = """\
Limit                     Soft Limit           Hard Limit           Units
Max cpu time              unlimited            unlimited            seconds
Max stack size            8388608              unlimited            bytes
Max core file size        0                    unlimited            bytes
Max processes             8245000              8245000              processes
Max open files            1048576              1048576              files
Max locked memory         unlimited            unlimited            bytes"""
MOUNTINFO = """\
21 1 259:2 / / rw,relatime shared:1 - ext4 /dev/nvme0n1p2 rw
22 21 0:5 / /proc rw,nosuid - proc proc rw
23 21 0:6 / /dev rw,nosuid - devtmpfs udev rw,size=4096k
24 23 0:25 / /dev/shm rw,nosuid,nodev - tmpfs tmpfs rw
25 21 0:31 / /home rw,relatime shared:9 - nfs4 filer:/export/home rw,vers=4.2"""
MOUNTS = """\
[{"path": "/", "kind": "ext4", "device": "/dev/nvme0n1p2", "total_bytes": 1900000000000,
  "free_bytes": 1500000000000, "total_inodes": 118000000, "free_inodes": 117000000,
  "read_only": false},
 {"path": "/dev/shm", "kind": "tmpfs", "device": "tmpfs", "total_bytes": 1080000000000,
  "free_bytes": 1080000000000, "read_only": false},
 {"path": "/home", "kind": "nfs4", "device": "filer:/export/home",
  "total_bytes": 90000000000000, "free_bytes": 41000000000000, "read_only": false}]"""
CHRONY = """\
Reference ID    : 0A010203 (10.1.2.3)
Stratum         : 3
System time     : 0.000012345 seconds fast of NTP time
Last offset     : -0.000002345 seconds
Leap status     : Normal"""
DRIVER = """\
NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  570.124.06  Release Build  (root@build)
GCC version:  gcc version 12.3.0"""
DMESG = """\
[    0.000000] Linux version 6.8.0-55-generic (build@host) (gcc 13.3.0)
[    9.120011] mlx5_core 0000:19:00.0: firmware version: 28.43.1014
[   11.904410] nvidia-nvlink: Nvlink Core is being initialized, major device number 511
[   14.310020] IPv6: ADDRCONF(NETDEV_CHANGE): eno1: link becomes ready"""
XID_79 = """
[90211.402110] pcieport 0000:5c:01.0: pciehp: Slot(12): Link Down
[90211.417729] NVRM: Xid (PCI:0000:5d:00): 79, pid=4711, name=python, GPU has fallen off the bus.
[90211.430001] NVRM: Xid (PCI:0000:5d:00): 154, GPU recovery action changed from 0x0 (None) to 0x2
[90213.000001] NVRM: Xid (PCI:0000:5d:00): 79, pid=4711, name=python, GPU has fallen off the bus."""


class HostTree:
    """A folder of a host's files; later files overwrite earlier ones."""

    def __init__(self, root: Path) -> None:
        self.root = root

    def write(self, name: str, text: str) -> None:
        """A file with a line end, as the kernel writes them."""
        path = self.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"{text}\n")

    def write_all(self, folder: str, files: Mapping[str, str]) -> None:
        """Some files of one folder."""
        for name, text in files.items():
            self.write(f"{folder}/{name}", text)

    def link(self, name: str, target: str) -> None:
        """A relative link to what has the name ``target`` below the root."""
        path = self.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.symlink_to(os.path.relpath(self.root / target, path.parent))

    def pci(self, bus: str, kind: str, vendor: str, *, lanes: str = "16", **links: str) -> str:
        """A device below a port of its own; returns its folder. ``links`` lead to it by class."""
        address, port = f"0000:{bus}:00.0", f"0000:{int(bus, 16) - 1:02x}:01.0"
        above = f"sys/devices/pci0000:00/{port}"
        folder = f"{above}/{address}"
        speeds = {"max_link_speed": "32.0 GT/s PCIe", "max_link_width": lanes}
        self.write_all(above, {"class": "0x060400", "vendor": "0x8086", **speeds})
        self.write_all(folder, {"class": kind, "vendor": vendor, **speeds, **AER})
        self.write_all(
            folder, {"current_link_speed": "32.0 GT/s PCIe", "current_link_width": lanes}
        )
        for name, there in ((address, folder), (port, above)):
            if not (self.root / "sys/bus/pci/devices" / name).is_symlink():
                self.link(f"sys/bus/pci/devices/{name}", there)
        for class_, name in links.items():
            self.write(f"{folder}/{class_}/{name}/dev_port", "0")
        return folder

    def hca(self, name: str, bus: str, **files: str) -> None:
        """An adapter with one port of InfiniBand."""
        device = self.pci(bus, "0x020700", "0x15b3", infiniband=name)
        folder = f"sys/class/infiniband/{name}"
        self.write_all(folder, {"fw_ver": "28.43.1014", "board_id": "MT_0000000838"})
        port = {
            "state": "4: ACTIVE",
            "phys_state": "5: LinkUp",
            "link_layer": "InfiniBand",
            "rate": "400 Gb/sec (4X NDR)",
        }
        self.write_all(f"{folder}/ports/1", port | files)
        self.write_all(f"{folder}/ports/1/counters", IB_COUNTERS)
        self.write_all(f"{folder}/ports/1/hw_counters", IB_HW_COUNTERS)
        self.link(f"{folder}/device", device)

    def ethernet(self, name: str, bus: str, driver: str = "ice", **files: str) -> None:
        """A port of Ethernet."""
        device = self.pci(bus, "0x020000", "0x8086", lanes="8", net=name)
        (self.root / f"sys/bus/pci/drivers/{driver}").mkdir(parents=True, exist_ok=True)
        self.write(f"sys/bus/pci/drivers/{driver}/new_id", "")
        self.link(f"{device}/driver", f"sys/bus/pci/drivers/{driver}")
        told = {
            "operstate": "up",
            "speed": "25000",
            "mtu": "1500",
            "type": "1",
            "carrier_changes": "2",
            "statistics/rx_errors": "0",
            "statistics/tx_errors": "0",
        }
        self.write_all(f"sys/class/net/{name}", told | files)
        self.link(f"sys/class/net/{name}/device", device)

    def host(self, name: str) -> None:
        """What every host has."""
        self.write_all(
            "proc",
            {
                "sys/kernel/hostname": name,
                "sys/kernel/osrelease": "6.8.0-55-generic",
                "sys/kernel/numa_balancing": "0",
                "sys/kernel/random/boot_id": "0f2c7d0e-77aa-4a0f-9c1d-51d0a2a1c0de",
                "uptime": "90500.12 8000000.00",
                "loadavg": "3.10 2.80 2.50 2/3123 77001",
                "meminfo": "MemTotal:       2113000000 kB\nMemAvailable:   2050000000 kB",
                "self/limits": LIMITS,
                "self/mountinfo": MOUNTINFO,
                "1/stat": "1 (systemd) S 0 1 1 0 -1",
                "modules": "nfs 999424 2 - Live 0x0\next4 999424 2 - Live 0x0",
            },
        )
        self.write("sys/devices/system/cpu/online", "0-111")
        self.write("sys/devices/system/cpu/cpufreq/policy0/scaling_governor", "performance")
        self.write("sys/kernel/iommu_groups/0/type", "identity")
        self.ethernet("eno1", "05")
        self.write_all("recorded", {"clock.txt": CHRONY, "mounts.json": MOUNTS, "dmesg.txt": DMESG})
        self.services({"chronyd": "active", "slurmd": "active"})

    def services(self, states: Mapping[str, str]) -> None:
        """What systemctl printed."""
        blocks = (
            f"Id={unit}.service\nLoadState=loaded\nActiveState={state}"
            for unit, state in states.items()
        )
        missing = "Id=openibd.service\nLoadState=not-found\nActiveState=inactive"
        self.write("recorded/systemctl.txt", "\n\n".join((*blocks, missing)))

    def gpus(self, gpus: Sequence[GpuHealth]) -> None:
        """What NVML said."""
        told = {"gpus": gpus, "versions": {"driver": "570.124.06", "cuda": "12.8"}}
        self.write("recorded/nvml.json", msgspec.json.encode(told).decode())


def healthy_gpu(index: int) -> GpuHealth:
    """A GPU at rest."""
    return GpuHealth(
        index=index,
        uuid=f"GPU-00000000-0000-0000-0000-00000000000{index}",
        name="NVIDIA H100 80GB HBM3",
        pci_address=f"0000:{GPU_BUSES[index]}:00.0",
        vbios="96.00.99.00.01",
        memory_total_bytes=85_520_809_984,
        memory_free_bytes=84_940_000_000,
        temperature_c=31.0,
        temperature_limit_c=87.0,
        memory_temperature_c=38.0,
        memory_temperature_limit_c=95.0,
        power_w=71.0,
        power_limit_w=700.0,
        default_power_limit_w=700.0,
        sm_clock_mhz=345,
        max_sm_clock_mhz=1980,
        utilization=0.0,
        throttle_reasons=("gpu_idle",),
        persistence_mode=True,
        mig_mode=False,
        ecc_mode=True,
        compute_mode="default",
        ecc=EccCounts(
            volatile_corrected=0,
            volatile_uncorrected=0,
            aggregate_corrected=0,
            aggregate_uncorrected=0,
        ),
        retired=RetiredMemory(correctable=0, uncorrectable=0, pending=False, failure=False),
        nvlinks=tuple(NvlinkFacts(link=link, active=True) for link in range(18)),
        pcie=LinkCapability(
            current_gigatransfers_per_s=32.0,
            current_lanes=16,
            max_gigatransfers_per_s=32.0,
            max_lanes=16,
        ),
        pcie_replays=0,
        processes=(),
        recovery_action=0,
        fabric_state="completed",
    )


def healthy_8_gpus(root: Path) -> HostTree:
    """A host with eight GPUs and an adapter of InfiniBand beside each."""
    tree = HostTree(root)
    tree.host("gpu001")
    for number, (gpu, nic) in enumerate(zip(GPU_BUSES, NIC_BUSES, strict=True)):
        tree.pci(gpu, "0x030200", "0x10de")
        tree.hca(f"mlx5_{number}", nic)
    tree.gpus([healthy_gpu(index) for index in range(8)])
    modules = ("nvidia_peermem", "nvidia", "mlx5_core", "mlx5_ib", "ib_core")
    tree.write("proc/modules", "\n".join(f"{name} 16384 0 - Live 0x0" for name in modules))
    tree.write("proc/driver/nvidia/version", DRIVER)
    tree.write("sys/module/mlx5_core/version", "24.10-2.1.8")
    tree.services(
        {"nvidia-fabricmanager": "active", "nvidia-persistenced": "active", "chronyd": "active"}
    )
    return tree


def xid_79(root: Path) -> HostTree:
    """A host of which a GPU has fallen off the bus, as its kernel tells; little else is known."""
    tree = HostTree(root)
    tree.host("gpu002")
    gpus = [healthy_gpu(index) for index in range(8)]
    gpus[3] = GpuHealth(
        index=3, pci_address="0000:5d:00.0", lost=True, reason="GPU is lost", uuid=gpus[3].uuid
    )
    tree.gpus(gpus)
    tree.write("recorded/dmesg.txt", DMESG + XID_79)
    return tree


def cpu_only(root: Path) -> HostTree:
    """A host without accelerators."""
    tree = HostTree(root)
    tree.host("cpu001")
    return tree


MADE_BY = {"healthy-8-gpus-ib": healthy_8_gpus, "xid-79": xid_79, "cpu-only": cpu_only}
