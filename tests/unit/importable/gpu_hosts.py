"""Healthy hosts, and hosts with one part changed, as facts.

``gpu_host()`` has eight GPUs on NVSwitches and eight RDMA ports.
"""

from dataclasses import replace
from typing import Any

from ncdiag.model.gpu_parts import EccCounts, LinkCapability, NvlinkFacts, RetiredMemory
from ncdiag.model.health import (
    Clock,
    EthernetPort,
    GpuHealth,
    HealthFacts,
    IbPort,
    KernelEvent,
    Mount,
    PciDevice,
    PciKind,
    Source,
    SourceReading,
    SourceState,
)

GIB = 1024**3
HOUR_S = 3600.0
FIVE = LinkCapability(
    current_gigatransfers_per_s=32.0,
    current_lanes=16,
    max_gigatransfers_per_s=32.0,
    max_lanes=16,
)


def gpu(index: int = 0, **changes: Any) -> GpuHealth:
    """A healthy GPU of a board with NVSwitches."""
    one = GpuHealth(
        index=index,
        uuid=f"GPU-{index}",
        name="NVIDIA H100 80GB HBM3",
        pci_address=f"00000000:{index + 16:02X}:00.0",
        vbios="96.00.74.00.1A",
        memory_total_bytes=80 * GIB,
        memory_free_bytes=79 * GIB,
        temperature_c=34.0,
        temperature_limit_c=87.0,
        memory_temperature_c=44.0,
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
        compute_mode="Default",
        ecc=EccCounts(
            volatile_corrected=0,
            volatile_uncorrected=0,
            aggregate_corrected=3,
            aggregate_uncorrected=0,
        ),
        retired=RetiredMemory(correctable=0, uncorrectable=0, pending=False, failure=False),
        nvlinks=tuple(
            NvlinkFacts(link=link, active=True, errors={"replay": 0, "crc_flit": 0})
            for link in range(18)
        ),
        pcie=FIVE,
        pcie_replays=0,
        processes=(),
        recovery_action=0,
        fabric_state="completed",
        incidents=(),
        last_xid=0,
    )
    return replace(one, **changes)


def ib_port(number: int = 0, **changes: Any) -> IbPort:
    """A healthy port of a card of its own."""
    one = IbPort(
        hca=f"mlx5_{number}",
        port=1,
        link_layer="InfiniBand",
        state="ACTIVE",
        physical_state="LinkUp",
        rate_gbit_per_s=400.0,
        width=4,
        interface=f"ib{number}",
        firmware="28.39.1002",
        board="MT_0000000838",
        pci_address=f"0000:{number + 64:02x}:00.0",
        counters={"symbol_error": 0, "link_downed": 1, "port_xmit_data": 10},
        hw_counters={"out_of_sequence": 0, "np_cnp_sent": 4},
    )
    return replace(one, **changes)


def device(address: str, kind: PciKind, **changes: Any) -> PciDevice:
    """A device of the PCIe bus with a link at its best."""
    vendor = "0x10de" if kind in {PciKind.GPU, PciKind.NVSWITCH} else "0x15b3"
    aer = {"correctable": 0, "nonfatal": 0, "fatal": 0}
    return replace(
        PciDevice(address=address, kind=kind, vendor=vendor, link=FIVE, aer=aer), **changes
    )


def bridge(**changes: Any) -> PciDevice:
    """A bridge that GPUs hang below."""
    one = PciDevice(address="0000:0f:00.0", kind=PciKind.BRIDGE, acs_redirects=False)
    return replace(one, **changes)


def readings(state: SourceState = SourceState.READ) -> tuple[SourceReading, ...]:
    """All sources in one state."""
    return tuple(SourceReading(source=source, state=state) for source in Source)


def gpu_host(**changes: Any) -> HealthFacts:
    """A healthy host."""
    gpus = tuple(map(gpu, range(8)))
    ports = tuple(map(ib_port, range(8)))
    cards = [device(f"0000:{n + 64:02x}:00.0", PciKind.NIC, name=f"mlx5_{n}") for n in range(8)]
    accelerators = [device(f"0000:{n + 16:02x}:00.0", PciKind.GPU) for n in range(8)]
    switches = [device(f"0000:c{n}:00.0", PciKind.NVSWITCH, link=None) for n in range(4)]
    facts = HealthFacts(
        hostname="gpu001",
        taken_s=1_760_000_000.0,
        uptime_s=40 * 24 * HOUR_S,
        boot_id="b00t",
        sources=readings(),
        gpus=gpus,
        ib_ports=ports,
        ethernet_ports=(
            EthernetPort(
                name="eth0",
                state="up",
                speed_gbit_per_s=100.0,
                driver="mlx5_core",
                pci_address="0000:60:00.0",
                carrier_changes=2,
                counters={"rx_crc_errors": 0, "rx_dropped": 7},
            ),
        ),
        pci_devices=(*accelerators, *cards, *switches, bridge()),
        mounts=(mount(), mount("/data", kind="nfs4", total_bytes=900 * GIB)),
        clock=Clock(synchronized=True, offset_s=0.0001, kept_by="chrony"),
        cpus=192,
        shm_total_bytes=900 * GIB,
        shm_free_bytes=899 * GIB,
        blocked_processes=(),
        limits={"memlock": -1, "nofile": 1_048_576},
        services={"nvidia-fabricmanager": "active"},
        modules=("ib_core", "mlx5_core", "nvidia", "nvidia_peermem"),
        versions={"driver": "550.127.08", "kernel": "5.15.0-122-generic", "cuda": "12.4.1"},
        settings={"iommu": "passthrough", "numa_balancing": "off", "cpu_governor": "performance"},
    )
    return replace(facts, **changes)


def cloud_vm(**changes: Any) -> HealthFacts:
    """An ordinary virtual machine without GPUs or RDMA."""
    there = (Source.ETHERNET, Source.PCIE, Source.PROC, Source.LIMITS, Source.MOUNTS, Source.CLOCK)
    facts = HealthFacts(
        hostname="vm",
        taken_s=1_760_000_000.0,
        uptime_s=5 * HOUR_S,
        boot_id="vm",
        sources=tuple(
            SourceReading(
                source=source,
                state=SourceState.READ if source in there else SourceState.ABSENT,
            )
            for source in Source
        ),
        ethernet_ports=(EthernetPort(name="eth0", state="up", driver="virtio_net"),),
        pci_devices=(device("0000:00:04.0", PciKind.NVME, link=None, aer={}),),
        mounts=(mount(),),
        clock=Clock(synchronized=False),
        cpus=2,
        limits={"memlock": 65_536, "nofile": 1024},
        settings={"iommu": "on"},
    )
    return replace(facts, **changes)


def mount(path: str = "/", **changes: Any) -> Mount:
    """A file system with room."""
    one = Mount(
        path=path,
        kind="ext4",
        device="/dev/sda2",
        total_bytes=400 * GIB,
        free_bytes=300 * GIB,
        total_inodes=1_000_000,
        free_inodes=900_000,
        read_only=False,
    )
    return replace(one, **changes)


def with_gpu(**changes: Any) -> HealthFacts:
    """A healthy host but for its GPU 3."""
    gpus = [gpu(index, **(changes if index == 3 else {})) for index in range(8)]
    return gpu_host(gpus=tuple(gpus))


def with_port(**changes: Any) -> HealthFacts:
    """A healthy host but for its port ``mlx5_5``."""
    ports = [ib_port(number, **(changes if number == 5 else {})) for number in range(8)]
    return gpu_host(ib_ports=tuple(ports))


def with_ethernet(**changes: Any) -> HealthFacts:
    """A healthy host but for ``eth0``."""
    return gpu_host(ethernet_ports=(replace(gpu_host().ethernet_ports[0], **changes),))


def with_device(one: PciDevice) -> HealthFacts:
    """A healthy host with ``one`` in place of the device at its address."""
    others = [each for each in gpu_host().pci_devices if each.address != one.address]
    return gpu_host(pci_devices=(*others, one))


def with_event(class_: str, text: str = "a line of the kernel", **changes: Any) -> HealthFacts:
    """A healthy host whose kernel has logged something, hours after its boot."""
    told = {"device": "0000:13:00.0", "since_boot_s": 9 * HOUR_S, **changes}
    return gpu_host(kernel_events=(KernelEvent(class_=class_, text=text, **told),))


def with_source(source: Source, state: SourceState, reason: str | None = None) -> HealthFacts:
    """A healthy host, one of whose sources did not answer well."""
    return replace(gpu_host(), sources=other(source, state, reason))


def other(
    source: Source, state: SourceState, reason: str | None = None
) -> tuple[SourceReading, ...]:
    """All sources read but for one."""
    return tuple(
        SourceReading(source=one, state=state, reason=reason) if one is source else reading
        for one, reading in zip(Source, readings(), strict=True)
    )


def earlier(facts: HealthFacts, seconds: float = 600.0) -> HealthFacts:
    """The reading of ``facts`` some time before."""
    uptime_s = None if facts.uptime_s is None else facts.uptime_s - seconds
    return replace(facts, taken_s=facts.taken_s - seconds, uptime_s=uptime_s)
