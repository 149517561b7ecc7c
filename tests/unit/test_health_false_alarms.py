"""Hosts on which other checkers have raised false alarms, and what an operator says of them."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest
from gpu_hosts import (
    FIVE,
    GIB,
    device,
    earlier,
    gpu,
    gpu_host,
    ib_port,
    mount,
    with_ethernet,
    with_gpu,
    with_port,
)

from ncdiag.health.checks import ExpectedHost, check_host, judge_fleet
from ncdiag.model.gpu_parts import LinkCapability, NvlinkFacts, RetiredMemory
from ncdiag.model.health import (
    COLLECTOR_KILLED,
    GpuHealth,
    HealthFacts,
    HostFitness,
    KernelEvent,
    PciDevice,
    PciKind,
    Source,
    SourceReading,
    SourceState,
)
from ncdiag.read.gpu.words import DRIVER_NOT_LOADED

HEALTHY, WARNING, FAULTY, FATAL, _ = HostFitness
ABSENT, FAILED, HUNG = SourceState.ABSENT, SourceState.FAILED, SourceState.TIMED_OUT

JUST_BOOTED: Mapping[str, Any] = {"uptime_s": 120.0, "boot_id": "new"}
NO_SWITCHES = tuple(
    one for one in gpu_host().pci_devices if one.kind not in {PciKind.NVSWITCH, PciKind.BRIDGE}
)
NVLINK_DOWN = "NVLINK system: Failure: GPU 0's NvLink link 0 is currently down"
IN_CONTAINER = (mount(kind="overlay", device="overlay"),)


def gpus(number: int = 8, **changes: Any) -> tuple[GpuHealth, ...]:
    """Some GPUs, all of them changed."""
    return tuple(gpu(index, **changes) for index in range(number))


def links(number: int, **changes: Any) -> tuple[NvlinkFacts, ...]:
    """The links of one GPU."""
    return tuple(NvlinkFacts(link=link, **changes) for link in range(number))


def cards(name: str, **changes: Any) -> HealthFacts:
    """Eight GPUs in slots, on no switch."""
    there = gpus(name=name, **{"fabric_state": None, "nvlinks": None, **changes})
    return gpu_host(gpus=there, pci_devices=NO_SWITCHES, services={})


def devices(kind: PciKind, **changes: Any) -> HealthFacts:
    """A healthy host, all of whose devices of one kind are changed."""
    return gpu_host(
        pci_devices=tuple(
            replace(one, **changes) if one.kind is kind else one for one in gpu_host().pci_devices
        )
    )


def asked(facts: HealthFacts | None = None, **states: SourceState) -> HealthFacts:
    """The same, with some sources in another state; rocm-smi is not installed."""
    told = {"ROCM_SMI": ABSENT, **states}
    sources = tuple(
        SourceReading(source=one, state=told.get(one.name, SourceState.READ)) for one in Source
    )
    return replace(facts or gpu_host(), sources=sources)


def without_driver(**changes: Any) -> HealthFacts:
    """GPUs on the bus, NVIDIA's tools, and no driver."""
    gone = {"NVML": ABSENT, "NVIDIA_SMI": ABSENT, "DCGM": ABSENT}
    facts = asked(gpu_host(gpus=(), modules=("mlx5_core",), services={}, **changes), **gone)
    sources = tuple(
        replace(one, reason=DRIVER_NOT_LOADED) if one.source is Source.NVIDIA_SMI else one
        for one in facts.sources
    )
    return replace(facts, sources=sources)


def of_amd(**changes: Any) -> HealthFacts:
    """A host with GPUs of AMD."""
    there = tuple(
        GpuHealth(index=index, **{"name": "AMD Instinct MI300X", "temperature_c": 40.0, **changes})
        for index in range(8)
    )
    on_bus = tuple(
        device(f"0000:{n + 16:02x}:00.0", PciKind.GPU, vendor="0x1002") for n in range(8)
    )
    facts = gpu_host(gpus=there, pci_devices=on_bus, services={}, modules=("amdgpu",))
    gone = {"NVML": ABSENT, "NVIDIA_SMI": ABSENT, "DCGM": ABSENT, "ROCM_SMI": SourceState.READ}
    return asked(facts, **gone)


def logged(facts: HealthFacts, *events: tuple[str, int]) -> HealthFacts:
    """The same, with Xids or SXids of one GPU in the kernel log."""
    told = tuple(
        KernelEvent(
            class_=class_, code=code, text="", device="0000:13:00.0", since_boot_s=3600.0 + code
        )
        for class_, code in events
    )
    return replace(facts, kernel_events=told)


CASES: Mapping[str, tuple[HealthFacts, HostFitness]] = {
    "cards without NVLink": (cards("NVIDIA L40S"), HEALTHY),
    "cards without a bridge": (
        cards("NVIDIA A100 80GB PCIe", nvlinks=links(12, active=False)),
        HEALTHY,
    ),
    "cards without a bridge, of which DCGM complains": (
        cards("NVIDIA A100 80GB PCIe", nvlinks=links(12, active=False), incidents=(NVLINK_DOWN,)),
        HEALTHY,
    ),
    "GPUs on switches, of which DCGM complains": (with_gpu(incidents=(NVLINK_DOWN,)), FAULTY),
    "a virtual machine with one GPU of a board": (
        gpu_host(
            gpus=gpus(
                1, name="NVIDIA A100-SXM4-40GB", nvlinks=links(12, active=False), fabric_state=None
            ),
            pci_devices=(device("0000:10:00.0", PciKind.GPU),),
            services={},
        ),
        HEALTHY,
    ),
    "a board without any link": (gpu_host(gpus=gpus(nvlinks=links(18, active=False))), FAULTY),
    "a boot, before the fabric is begun": (
        gpu_host(gpus=gpus(fabric_state="not started"), **JUST_BOOTED),
        WARNING,
    ),
    "a fabric that was never begun": (gpu_host(gpus=gpus(fabric_state="not started")), FAULTY),
    "a fabric that failed during the boot": (
        gpu_host(gpus=gpus(fabric_state="failed"), **JUST_BOOTED),
        FAULTY,
    ),
    "GPUs that are split": (
        gpu_host(gpus=gpus(mig_mode=True, memory_free_bytes=GIB, fabric_state="in progress")),
        WARNING,
    ),
    "idle GPUs": (
        devices(PciKind.GPU, link=replace(FIVE, current_gigatransfers_per_s=2.5)),
        HEALTHY,
    ),
    "idle switches": (
        devices(
            PciKind.NVSWITCH,
            link=LinkCapability(
                current_gigatransfers_per_s=2.5,
                current_lanes=2,
                max_gigatransfers_per_s=8.0,
                max_lanes=2,
            ),
        ),
        HEALTHY,
    ),
    "a container with two GPUs of eight": (gpu_host(gpus=gpus(2), mounts=IN_CONTAINER), WARNING),
    "a host whose driver has seven GPUs of eight": (gpu_host(gpus=gpus(7)), FAULTY),
    "GPUs handed to virtual machines": (
        replace(
            devices(PciKind.GPU, driver="vfio-pci"),
            gpus=(),
            sources=without_driver().sources,
            modules=("vfio_pci",),
            services={},
        ),
        HEALTHY,
    ),
    "no driver for the GPUs that are there": (without_driver(), FAULTY),
    "a container without a driver": (without_driver(mounts=IN_CONTAINER), WARNING),
    "NVIDIA's tools on a host without GPUs": (without_driver(pci_devices=()), HEALTHY),
    "a driver that lists no GPUs": (gpu_host(gpus=()), FAULTY),
    "busy GPUs of AMD": (of_amd(temperature_c=92.0, memory_temperature_c=97.0), HEALTHY),
    "hot GPUs of AMD": (of_amd(temperature_c=106.0), FAULTY),
    "a sensor that tells nonsense": (with_gpu(temperature_c=1e308), HEALTHY),
    "Grace with Blackwell": (
        gpu_host(
            gpus=gpus(4, name="NVIDIA GB200"),
            pci_devices=NO_SWITCHES[:4],
            services={"nvidia-imex": "active", "nvidia-fabricmanager": "inactive"},
            settings={"iommu": "on"},
        ),
        HEALTHY,
    ),
    "RoCE": (
        gpu_host(ib_ports=tuple(ib_port(n, link_layer="Ethernet") for n in range(8))),
        HEALTHY,
    ),
    "slower ports of another card, for storage": (
        gpu_host(
            ib_ports=(
                *map(ib_port, range(8)),
                *(ib_port(n, board="MT_0000000223", rate_gbit_per_s=200.0) for n in (8, 9)),
            )
        ),
        HEALTHY,
    ),
    "DCGM that hangs beside a driver that answers": (asked(DCGM=HUNG), WARNING),
    "a driver that hangs beside DCGM": (asked(NVML=HUNG, NVIDIA_SMI=HUNG), FAULTY),
    "a driver of another version than its library": (asked(NVML=FAILED, NVIDIA_SMI=FAILED), FAULTY),
    "a service manager that cannot be asked": (asked(SERVICES=FAILED), WARNING),
    "a program's faults": (
        logged(
            gpu_host(),
            *(("xid_application_fault", code) for code in (13, 31)),
            *(("xid_followup", code) for code in (43, 45)),
        ),
        HEALTHY,
    ),
    "a contained error before its reset": (
        logged(
            with_gpu(retired=RetiredMemory(pending=True, failure=False)), ("gpu_memory_error", 94)
        ),
        FAULTY,
    ),
    "a switch with a fatal error": (logged(gpu_host(), ("nvswitch_fatal", 20034)), FATAL),
    "rows that were swapped out long ago": (
        with_gpu(retired=RetiredMemory(uncorrectable=3, pending=False, failure=False)),
        HEALTHY,
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_a_host_is_judged_as_an_operator_would(case: str) -> None:
    facts, fitness = CASES[case]
    host = check_host("gpu001", facts)
    assert host.fitness is fitness, [(one.check, one.text) for one in host.findings]


def test_counters_that_were_high_for_years_are_no_fault() -> None:
    facts = gpu_host(
        gpus=gpus(nvlinks=links(18, active=True, errors={"replay": 40_000})),
        ib_ports=tuple(ib_port(n, counters={"symbol_error": 10**7}) for n in range(8)),
    )
    assert check_host("a", facts, before=earlier(facts)).fitness is WARNING


def test_a_named_interface_may_come_up_late_in_a_boot() -> None:
    down, expected = with_ethernet(state="down"), ExpectedHost(nics=("eth0",))
    booting = replace(down, **JUST_BOOTED)
    assert check_host("a", booting, expected=expected).fitness is WARNING
    assert check_host("a", down, expected=expected).fitness is FAULTY


def test_the_hosts_file_knows_how_many_gpus_a_container_has() -> None:
    facts = gpu_host(gpus=gpus(2), mounts=IN_CONTAINER)
    assert check_host("a", facts, expected=ExpectedHost(gpus=8)).fitness is FAULTY


@pytest.mark.parametrize(
    "odd", [{"state": "DOWN"}, {"rate_gbit_per_s": 200.0}, {"rate_gbit_per_s": 200.0, "width": 2}]
)
def test_ports_that_are_the_same_on_all_hosts_accuse_none(odd: dict[str, Any]) -> None:
    ports = (*map(ib_port, range(8)), *(ib_port(n, **odd) for n in (8, 9)))
    alike = gpu_host(ib_ports=ports)
    assert check_host("a", alike).fitness is FAULTY
    hosts, _ = judge_fleet({f"gpu{n:03}": alike for n in range(12)})
    assert {one.fitness for one in hosts} == {WARNING}
    assert "nearly all hosts" in hosts[0].findings[0].text
    # Who names them wants them up, and who is alone with it is still accused.
    if "state" in odd:
        named = {"gpu000": ExpectedHost(nics=("mlx5_8",))}
        first, *others = judge_fleet({f"gpu{n:03}": alike for n in range(12)}, expected=named)[0]
        assert first.fitness is FAULTY
        assert {one.fitness for one in others} == {WARNING}
    fleet = {f"gpu{n:03}": with_port(**odd) if n == 3 else gpu_host() for n in range(12)}
    assert [one.host for one in judge_fleet(fleet)[0] if one.fitness is FAULTY] == ["gpu003"]


def test_an_adapter_that_the_hosts_file_names_has_to_be_there() -> None:
    def judged(*nics: str, **changes: Any) -> HostFitness:
        facts = gpu_host(**changes)
        return check_host("a", facts, expected=ExpectedHost(nics=nics)).fitness

    assert judged("mlx5_0", "mlx5_1:1", "ib2") is HEALTHY
    assert judged("mlx5_0", "mlx5_8") is FAULTY
    assert judged("mlx5_0", ib_ports=()) is FAULTY
    # A bond has no device behind it, and is not looked at.
    assert judged("bond0") is HEALTHY
    unasked = asked(INFINIBAND=HUNG).sources
    assert judged("mlx5_0", ib_ports=(), sources=unasked) is WARNING


def test_an_interface_that_is_named_has_to_be_there_as_far_as_the_host_tells() -> None:
    def judged(*nics: str, **changes: Any) -> HostFitness:
        facts = gpu_host(**{"interfaces": ("lo", "eth0", "bond0"), **changes})
        return check_host("a", facts, expected=ExpectedHost(nics=nics)).fitness

    assert judged("eth0", "bond0", "mlx5_0", "ib2") is HEALTHY
    assert judged("eth0", "eth9") is FAULTY
    assert judged("eth9", interfaces=None) is HEALTHY
    # An RDMA device may have any name, and nobody could look.
    assert judged("rocep1s0", sources=asked(INFINIBAND=HUNG).sources) is WARNING


def test_a_finding_names_who_says_what_should_be_there() -> None:
    facts = gpu_host(interfaces=("eth0",))
    wanted = ExpectedHost(gpus=9, nics=("eth9",), gpus_from="--gpus", nics_from="--nic")
    told = {one.check: one.text for one in check_host("a", facts, expected=wanted).findings}
    assert told["gpu_missing"].endswith("there should be 9 (by --gpus)")
    assert told["ethernet_port_down"] == "--nic names it, and there is no such interface"


def test_nobody_power_cycles_a_host_that_has_no_gpus_at_all() -> None:
    nothing = asked(NVML=ABSENT, NVIDIA_SMI=ABSENT, ROCM_SMI=ABSENT, DCGM=ABSENT).sources
    bare = gpu_host(gpus=(), pci_devices=(), sources=nothing)
    [one] = check_host("a", bare, expected=ExpectedHost(gpus=8)).findings
    assert (one.check, one.measured) == ("gpu_missing", "0")
    assert "power-cycle" not in one.next
    assert "container without GPUs" in one.next


def test_a_collector_that_was_killed_says_nothing_against_the_host() -> None:
    def judged(reason: str) -> HostFitness:
        lost = {Source.NVML, Source.NVIDIA_SMI, Source.ROCM_SMI, Source.DCGM, Source.CLOCK}
        sources = tuple(
            replace(one, state=FAILED, reason=reason) if one.source in lost else one
            for one in gpu_host().sources
        )
        return check_host("a", gpu_host(gpus=(), sources=sources)).fitness

    assert judged(COLLECTOR_KILLED) is WARNING
    assert judged("no library") is FAULTY


def test_only_gpus_that_the_driver_should_have_are_counted_on_the_bus() -> None:
    def judged(driver: str | None) -> HostFitness:
        one: PciDevice = device("0000:99:00.0", PciKind.GPU, driver=driver)
        return check_host("a", gpu_host(pci_devices=(*gpu_host().pci_devices, one))).fitness

    assert judged("vfio-pci") is HEALTHY
    assert judged("nouveau") is HEALTHY
    assert judged("nvidia") is FAULTY
    assert judged(None) is FAULTY
