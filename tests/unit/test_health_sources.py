"""What each source tells of a host, read below a made-up root."""

from collections.abc import Callable
from pathlib import Path

import pytest
from host_trees import DRIVER, IB_COUNTERS, MADE_BY, HostTree

from ncdiag.health.sources import (
    clock,
    ethernet,
    infiniband,
    limits,
    modules,
    mounts,
    pcie,
    proc,
    services,
    settings,
)
from ncdiag.health.sources.acs import acs_redirects
from ncdiag.health.sources.found import Found
from ncdiag.health.sources.place import HostRoot
from ncdiag.health.sources.versions import versions
from ncdiag.model.health import Clock, EthernetPort, IbPort, PciDevice, PciKind, SourceState

TREES = Path(__file__).parents[1] / "data/health/trees"
HEALTHY = TREES / "healthy-8-gpus-ib"
EVERY = (clock, ethernet, infiniband, limits, modules, mounts, pcie, proc, services)
Make = Callable[[Path], HostTree]


def told(collect: Callable[[HostRoot], Found], root: Path, fact: str) -> object:
    found = collect(HostRoot(root))
    assert (found.state, found.reason) == (SourceState.READ, None)
    return found.facts[fact]


def pci_device(root: Path, address: str) -> PciDevice:
    devices = told(pcie.collect, root, "pci_devices")
    assert isinstance(devices, tuple)
    return next(one for one in devices if one.address == address)


@pytest.fixture
def tree(tmp_path: Path) -> HostTree:
    return HostTree(tmp_path)


@pytest.mark.parametrize("module", EVERY, ids=lambda module: module.__name__.rpartition(".")[2])
def test_a_host_without_any_files_has_no_such_thing(module: object, tmp_path: Path) -> None:
    found = module.collect(HostRoot(tmp_path))  # type: ignore[attr-defined]
    assert (found.state, found.facts) == (SourceState.ABSENT, {})
    assert found.reason


@pytest.mark.parametrize(("name", "make"), MADE_BY.items(), ids=list(MADE_BY))
def test_the_trees_that_others_read_are_what_is_built_here(
    name: str, make: Make, tmp_path: Path
) -> None:
    def files(top: Path) -> dict[str, str]:
        return {
            str(path.relative_to(top)): path.read_text()
            for path in sorted(top.rglob("*"))
            if path.is_file()
        }

    made = make(tmp_path)
    assert files(TREES / name) == files(made.root)


def test_a_port_of_infiniband_is_told_with_rate_width_and_counters(tree: HostTree) -> None:
    tree.hca("mlx5_0", "19", rate="200 Gb/sec (2X NDR)")
    assert told(infiniband.collect, tree.root, "ib_ports") == (
        IbPort(
            hca="mlx5_0",
            port=1,
            link_layer="InfiniBand",
            state="ACTIVE",
            physical_state="LinkUp",
            rate_gbit_per_s=200.0,
            width=2,
            firmware="28.43.1014",
            board="MT_0000000838",
            pci_address="0000:19:00.0",
            counters={name: int(value) for name, value in IB_COUNTERS.items()},
            hw_counters={"local_ack_timeout_err": 0, "out_of_sequence": 0, "packet_seq_err": 0},
        ),
    )


def test_ports_come_in_natural_order_with_their_interfaces(tree: HostTree) -> None:
    tree.hca("mlx5_10", "2b")
    tree.hca("mlx5_2", "19", **{"gid_attrs/ndevs/0": "ens1np0"})
    tree.write("sys/class/infiniband/mlx5_10/device/net/ib0/dev_port", "0")
    ports = infiniband.collect(HostRoot(tree.root)).facts["ib_ports"]
    assert [(port.hca, port.interface) for port in ports] == [
        ("mlx5_2", "ens1np0"),
        ("mlx5_10", "ib0"),
    ]


def test_counters_that_are_no_numbers_are_left_out(tree: HostTree) -> None:
    tree.hca("mlx5_0", "19")
    tree.write("sys/class/infiniband/mlx5_0/ports/1/counters/symbol_error", "N/A")
    tree.write("sys/class/infiniband/mlx5_0/ports/1/counters/link_downed", str(2**64 - 1))
    (port,) = infiniband.collect(HostRoot(tree.root)).facts["ib_ports"]
    assert "symbol_error" not in port.counters
    assert port.counters["link_downed"] == 2**63 - 1


def test_the_names_of_all_interfaces_are_told(tree: HostTree) -> None:
    tree.ethernet("eno1", "05")
    tree.write("sys/class/net/bond0/operstate", "up")
    assert told(ethernet.collect, tree.root, "interfaces") == ("bond0", "eno1")


def test_an_ethernet_port_is_told_with_driver_and_flaps(tree: HostTree) -> None:
    tree.ethernet("eno1", "05", carrier_changes="7")
    assert told(ethernet.collect, tree.root, "ethernet_ports") == (
        EthernetPort(
            name="eno1",
            state="up",
            speed_gbit_per_s=25.0,
            mtu=1500,
            driver="ice",
            pci_address="0000:05:00.0",
            carrier_changes=7,
            counters={"rx_errors": 0, "tx_errors": 0},
        ),
    )


def test_interfaces_of_software_and_ipoib_are_no_ethernet_ports(tree: HostTree) -> None:
    tree.ethernet("ib0", "19", type="32")
    tree.write("sys/class/net/docker0/operstate", "up")
    assert ethernet.collect(HostRoot(tree.root)).state is SourceState.ABSENT


@pytest.mark.parametrize(
    ("driver", "speed"), [("virtio_net", "10000"), ("ice", "-1"), ("ice", "4294967295")]
)
def test_a_speed_that_is_a_guess_is_not_known(tree: HostTree, driver: str, speed: str) -> None:
    tree.ethernet("eno1", "05", driver, speed=speed)
    (port,) = ethernet.collect(HostRoot(tree.root)).facts["ethernet_ports"]
    assert (port.driver, port.speed_gbit_per_s) == (driver, None)


def test_a_link_is_told_with_the_most_that_both_ends_can_do(tree: HostTree) -> None:
    folder = tree.pci("18", "0x030200", "0x10de")
    tree.write(f"{folder}/current_link_width", "8")
    tree.write("sys/devices/pci0000:00/0000:17:01.0/max_link_speed", "16.0 GT/s PCIe")
    device = pci_device(tree.root, "0000:18:00.0")
    assert device.link is not None
    assert (device.kind, device.vendor) == (PciKind.GPU, "0x10de")
    assert (device.link.current_lanes, device.link.max_lanes) == (8, 16)
    assert device.link.max_gigatransfers_per_s == 16.0


def test_a_device_is_told_with_the_driver_that_has_it(tree: HostTree) -> None:
    folder = tree.pci("18", "0x030200", "0x10de")
    assert pci_device(tree.root, "0000:18:00.0").driver is None
    tree.write("sys/bus/pci/drivers/vfio-pci/new_id", "")
    tree.link(f"{folder}/driver", "sys/bus/pci/drivers/vfio-pci")
    assert pci_device(tree.root, "0000:18:00.0").driver == "vfio-pci"


def test_errors_of_a_device_are_the_sums_of_their_kinds(tree: HostTree) -> None:
    folder = tree.pci("18", "0x030200", "0x10de")
    tree.write(f"{folder}/aer_dev_correctable", "RxErr 4\nBadTLP 8\nTOTAL_ERR_COR 12")
    device = pci_device(tree.root, "0000:18:00.0")
    assert device.aer == {"correctable": 12, "nonfatal": 0, "fatal": 0}


@pytest.mark.parametrize(
    ("class_code", "vendor", "kind"),
    [
        (0x030200, 0x10DE, PciKind.GPU),
        (0x030000, 0x10DE, PciKind.GPU),
        (0x120000, 0x1002, PciKind.GPU),
        (0x030000, 0x1A03, None),  # the console of a server
        (0x020700, 0x15B3, PciKind.NIC),
        (0x068000, 0x10DE, PciKind.NVSWITCH),
        (0x068000, 0x8086, None),
        (0x010802, 0x144D, PciKind.NVME),
        (0x060400, 0x8086, PciKind.BRIDGE),
        (0x0C0330, 0x8086, None),
        (None, 0x10DE, None),
    ],
)
def test_a_device_is_known_by_class_and_vendor(
    class_code: int | None, vendor: int, kind: PciKind | None
) -> None:
    assert pcie.kind_of(class_code, vendor) is kind


def test_virtual_functions_and_bridges_above_nothing_are_left_out(tree: HostTree) -> None:
    folder = tree.pci("18", "0x020700", "0x15b3")
    tree.write(f"{folder}/physfn/vendor", "0x15b3")
    tree.pci("2a", "0x030200", "0x10de")
    devices = pcie.collect(HostRoot(tree.root)).facts["pci_devices"]
    assert [device.address for device in devices] == ["0000:29:01.0", "0000:2a:00.0"]


def config(*capabilities: tuple[int, int]) -> bytes:
    """A configuration space with these extended capabilities and the word 6 bytes into each."""
    space = bytearray(4096)
    space[0:2] = b"\x86\x80"
    for number, (identity, control) in enumerate(capabilities):
        at = 0x100 + 0x40 * number
        following = at + 0x40 if number + 1 < len(capabilities) else 0
        space[at : at + 4] = (identity | 1 << 16 | following << 20).to_bytes(4, "little")
        space[at + 6 : at + 8] = control.to_bytes(2, "little")
    return bytes(space)


@pytest.mark.parametrize(
    ("space", "redirects"),
    [
        (config((0x0001, 0), (0x000D, 0b11101)), True),
        (config((0x000D, 0b10011)), False),
        (config((0x0001, 0xFFFF)), False),
        (config(), False),
        (config((0x000D, 0b11101))[:64], None),  # without root
        (b"\xff" * 4096, None),  # gone from the bus
        (b"", None),
    ],
)
def test_acs_is_read_from_the_configuration_space(space: bytes, redirects: bool | None) -> None:  # noqa: FBT001
    assert acs_redirects(space) is redirects


def test_capabilities_that_lead_in_a_circle_end() -> None:
    space = bytearray(config((0x0001, 0), (0x0002, 0)))
    space[0x140:0x144] = (2 | 1 << 16 | 0x100 << 20).to_bytes(4, "little")
    assert acs_redirects(bytes(space)) is False


def test_acs_of_the_bridge_above_a_gpu_is_told(tree: HostTree) -> None:
    tree.pci("18", "0x030200", "0x10de")
    path = tree.root / "sys/devices/pci0000:00/0000:17:01.0/config"
    path.write_bytes(config((0x000D, 0b11101)))
    assert pci_device(tree.root, "0000:17:01.0").acs_redirects is True


def test_proc_tells_load_memory_uptime_and_settings() -> None:
    found = proc.collect(HostRoot(HEALTHY))
    assert found.facts == {
        "uptime_s": 90500.12,
        "boot_id": "0f2c7d0e-77aa-4a0f-9c1d-51d0a2a1c0de",
        "load": 3.1,
        "cpus": 112,
        "memory_total_bytes": 2_113_000_000 * 1024,
        "memory_available_bytes": 2_050_000_000 * 1024,
        "blocked_processes": (),
        "settings": {
            "iommu": "passthrough",
            "numa_balancing": "off",
            "cpu_governor": "performance",
        },
    }


def test_processes_that_no_signal_reaches_are_named(tree: HostTree) -> None:
    tree.write("proc/12/stat", "12 (nvidia-smi) D 1 12 12 0 -1")
    tree.write("proc/13/stat", "13 (a) D (b) S 1 13 13 0 -1")
    tree.write("proc/14/stat", "14 (odd) D) D 1 14 14 0 -1")
    tree.write("proc/15/stat", "15 (cut")
    assert told(proc.collect, tree.root, "blocked_processes") == ("nvidia-smi (12)", "odd) D (14)")


def test_no_more_blocked_processes_are_named_than_tell_something(tree: HostTree) -> None:
    for pid in range(100, 200):
        tree.write(f"proc/{pid}/stat", f"{pid} ({'x' * 200}) D 1")
    blocked = proc.collect(HostRoot(tree.root)).facts["blocked_processes"]
    assert len(blocked) == 64
    assert max(map(len, blocked)) < 80


@pytest.mark.parametrize(
    ("kinds", "cmdline", "iommu"),
    [
        (["identity", "identity", "DMA"], "", "passthrough"),
        (["DMA-FQ", "DMA", "DMA-FQ"], "iommu=pt", "on"),
        ([None], "quiet iommu=pt", "passthrough"),
        ([None], "quiet", "on"),
        ([], "iommu=pt", "off"),
    ],
)
def test_iommu_is_told_by_what_its_groups_do(
    tree: HostTree, kinds: list[str | None], cmdline: str, iommu: str
) -> None:
    tree.write("proc/cmdline", cmdline)
    (tree.root / "sys/kernel/iommu_groups").mkdir(parents=True)
    for number, kind in enumerate(kinds):
        folder = tree.root / f"sys/kernel/iommu_groups/{number}"
        folder.mkdir()
        if kind:
            (folder / "type").write_text(kind)
    assert settings.settings(HostRoot(tree.root)) == {"iommu": iommu}


def test_governors_that_differ_are_all_told(tree: HostTree) -> None:
    for number, governor in enumerate(("powersave", "performance", "powersave")):
        tree.write(f"sys/devices/system/cpu/cpufreq/policy{number}/scaling_governor", governor)
    told_ = settings.settings(HostRoot(tree.root))
    assert told_ == {"cpu_governor": "performance, powersave"}


def test_limits_are_told_in_their_own_units() -> None:
    assert told(limits.collect, HEALTHY, "limits") == {
        "memlock": -1,
        "nofile": 1_048_576,
        "nproc": 8_245_000,
        "stack": 8_388_608,
        "core": 0,
    }


def test_the_limits_of_this_process_are_those_that_python_sees() -> None:
    resource = pytest.importorskip("resource")
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    found = limits.collect(HostRoot()).facts["limits"]
    assert found["nofile"] == soft


def test_modules_and_versions_are_told_together(tree: HostTree) -> None:
    tree.write("proc/modules", "nvidia_peermem 16384 0 - Live 0x0\nnvidia 1 0 - Live 0x0\n")
    tree.write("proc/driver/nvidia/version", DRIVER)
    tree.write("proc/sys/kernel/osrelease", "6.8.0-55-generic")
    tree.write("sys/module/mlx5_core/version", "24.10-2.1.8")
    tree.write("usr/local/cuda-12.8/version.json", '{"cuda": {"version": "12.8.1"}}')
    (tree.root / "usr/local/cuda").symlink_to("cuda-12.8")
    tree.write("usr/lib/x86_64-linux-gnu/libnccl.so.2.26.2", "")
    (tree.root / "usr/lib/x86_64-linux-gnu/libnccl.so.2").symlink_to("libnccl.so.2.26.2")
    tree.write("etc/os-release", 'NAME="Ubuntu"\nPRETTY_NAME="Ubuntu 24.04.2 LTS"')
    found = modules.collect(HostRoot(tree.root))
    assert found.facts["modules"] == ("nvidia", "nvidia_peermem")
    assert found.facts["versions"] == {
        "driver": "570.124.06",
        "kernel": "6.8.0-55-generic",
        "ofed": "24.10-2.1.8",
        "cuda": "12.8.1",
        "nccl": "2.26.2",
        "system": "Ubuntu 24.04.2 LTS",
    }


def test_a_closed_driver_tells_its_version_as_well(tree: HostTree) -> None:
    tree.write(
        "proc/driver/nvidia/version",
        "NVRM version: NVIDIA UNIX x86_64 Kernel Module  535.183.01  Sun May 12 19:39:15 UTC 2024",
    )
    assert versions(HostRoot(tree.root)) == {"driver": "535.183.01"}


def test_services_are_told_without_those_that_are_not_there() -> None:
    assert told(services.collect, HEALTHY, "services") == {
        "nvidia-fabricmanager": "active",
        "nvidia-persistenced": "active",
        "chronyd": "active",
    }


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (
            "System time     : 1.500000000 seconds slow of NTP time\nLeap status     : Normal\n",
            Clock(synchronized=True, offset_s=-1.5, kept_by="chrony"),
        ),
        (
            "System time : 0.000000000 seconds fast of NTP time\nLeap status : Not synchronised\n",
            Clock(synchronized=False, offset_s=0.0, kept_by="chrony"),
        ),
        (
            "       Universal time: Mon\nSystem clock synchronized: no\n     NTP service: active\n",
            Clock(synchronized=False),
        ),
        ("506 Cannot talk to daemon\n", None),
        ("", None),
    ],
)
def test_the_clock_is_as_chrony_or_systemd_says(text: str, expected: Clock | None) -> None:
    assert clock.clock_of(text) == expected


def test_the_kernel_says_whether_its_clock_is_kept() -> None:
    assert clock._kernel_says() in {True, False}
