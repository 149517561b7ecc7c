"""NICs found below a made-up /sys."""

from pathlib import Path

import pytest

from ncdiag.health.addresses import interface_addresses, is_loopback, source_address_towards
from ncdiag.health.facts import parse_gpus
from ncdiag.health.nics import find_nics, routed_nic
from ncdiag.model.host import Gpu, NicKind, PcieLink


class Sysfs:
    """Builds the parts of sysfs that are read."""

    def __init__(self, root: Path) -> None:
        self.root = root

    def pci(self, address: str, driver: str, **files: str) -> Path:
        device = self.root / "sys/devices/pci0000:00" / address
        self._write(device, files)
        device.mkdir(parents=True, exist_ok=True)
        where = self.root / "sys/bus/pci/drivers" / driver
        where.mkdir(parents=True, exist_ok=True)
        (device / "driver").symlink_to(where)
        return device

    def net(self, name: str, device: Path | None = None, **files: str) -> None:
        folder = self.root / "sys/class/net" / name
        self._write(folder, {"operstate": "up", "mtu": "1500", **files})
        if device:
            (folder / "device").symlink_to(device)

    def hca(self, name: str, device: Path, ports: dict[int, dict[str, str]]) -> None:
        folder = self.root / "sys/class/infiniband" / name
        for number, files in ports.items():
            port = {"state": "4: ACTIVE", "link_layer": "InfiniBand", "rate": "400 Gb/sec (4X NDR)"}
            self._write(folder / "ports" / str(number), port | files)
        (folder / "device").symlink_to(device)

    def _write(self, folder: Path, files: dict[str, str]) -> None:
        for name, text in files.items():
            path = folder / name.replace("__", "/")
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text + "\n")


GEN5 = {"current_link_speed": "32.0 GT/s PCIe", "current_link_width": "16"}


@pytest.fixture
def sysfs(tmp_path: Path) -> Sysfs:
    return Sysfs(tmp_path)


def test_a_plain_ethernet_nic_is_described_with_its_pcie_link(sysfs: Sysfs) -> None:
    sysfs.net("eth0", sysfs.pci("0000:3b:00.0", "ixgbe", **GEN5), speed="100000", mtu="9000")
    nics, missing = find_nics(["eth0"], None, sysfs.root, {"eth0": ("10.0.0.1", "fd00::1")})
    assert missing == {}
    (nic,) = nics
    assert nic.kind is NicKind.ETHERNET
    assert (nic.interface, nic.address, nic.hca) == ("eth0", "10.0.0.1", None)
    assert (nic.speed_gbit_per_s, nic.mtu) == (100.0, 9000)
    assert nic.pcie == PcieLink(gigatransfers_per_s=32.0, lanes=16)
    assert nic.pci_address == "0000:3b:00.0"


@pytest.mark.parametrize("speed", ["-1", "4294967295", "0", "fast", ""])
def test_a_speed_the_system_does_not_know_is_none(sysfs: Sysfs, speed: str) -> None:
    sysfs.net("eth0", sysfs.pci("0000:3b:00.0", "ixgbe"), speed=speed)
    (nic,), _ = find_nics(["eth0"], None, sysfs.root, {"eth0": ("10.0.0.1",)})
    assert nic.speed_gbit_per_s is None
    assert nic.pcie is None


def test_a_veth_reports_no_speed_though_sysfs_has_one(sysfs: Sysfs) -> None:
    sysfs.net("eth0", speed="10000")
    (nic,), _ = find_nics((), "10.0.0.1", sysfs.root, {"eth0": ("10.0.0.1",)})
    assert (nic.name, nic.speed_gbit_per_s) == ("eth0", None)


def test_a_virtual_device_reports_no_speed(sysfs: Sysfs) -> None:
    sysfs.net("eth0", sysfs.pci("0000:00:03.0", "virtio_net"), speed="25000")
    (nic,), _ = find_nics(["eth0"], None, sysfs.root, {"eth0": ("10.0.0.1",)})
    assert nic.speed_gbit_per_s is None


def test_a_bond_reports_the_speed_of_its_members(sysfs: Sysfs) -> None:
    sysfs.net("bond0", speed="200000", bonding__mode="802.3ad 4")
    (nic,), _ = find_nics(["bond0"], None, sysfs.root, {"bond0": ("10.0.0.1",)})
    assert nic.speed_gbit_per_s == 200.0


def test_without_rdma_the_interface_towards_the_driver_is_found(sysfs: Sysfs) -> None:
    for name in ("eth0", "eth1"):
        sysfs.net(name)
    addresses = {"lo": ("127.0.0.1",), "eth0": ("10.0.0.1",), "eth1": ("10.1.0.1", "10.1.0.7")}
    (nic,), missing = find_nics((), "10.1.0.7", sysfs.root, addresses)
    assert (nic.name, nic.address, missing) == ("eth1", "10.1.0.7", {})


def test_a_loopback_host_is_measured_over_lo_from_its_own_address(sysfs: Sysfs) -> None:
    sysfs.net("lo")
    (nic,), _ = find_nics((), "127.0.0.3", sysfs.root, {"lo": ("127.0.0.1",)})
    assert (nic.name, nic.interface, nic.address) == ("lo", "lo", "127.0.0.3")


@pytest.mark.parametrize("hint", [None, "10.9.9.9"])
def test_an_address_that_no_interface_carries_leaves_nothing_to_measure(
    sysfs: Sysfs, hint: str | None
) -> None:
    nics, missing = find_nics((), hint, sysfs.root, {"eth0": ("10.0.0.1",)})
    assert nics == ()
    assert list(missing) == ["default"]


def test_all_active_rdma_ports_are_rails_in_natural_order(sysfs: Sysfs) -> None:
    for number in (10, 2, 0):
        device = sysfs.pci(f"0000:{number:02x}:00.0", "mlx5_core", **GEN5)
        state = "1: DOWN" if number == 2 else "4: ACTIVE"
        sysfs.hca(f"mlx5_{number}", device, {1: {"state": state}})
    nics, missing = find_nics((), "10.0.0.1", sysfs.root, {"eth0": ("10.0.0.1",)})
    assert [nic.name for nic in nics] == ["mlx5_0", "mlx5_10"]
    assert missing == {}
    assert nics[0].kind is NicKind.INFINIBAND
    assert (nics[0].hca, nics[0].hca_port, nics[0].speed_gbit_per_s) == ("mlx5_0", 1, 400.0)
    assert nics[0].pcie == PcieLink(gigatransfers_per_s=32.0, lanes=16)


def test_ports_of_one_hca_are_told_apart_by_number(sysfs: Sysfs) -> None:
    sysfs.hca("mlx4_0", sysfs.pci("0000:05:00.0", "mlx4_core"), {1: {}, 2: {}})
    nics, _ = find_nics((), None, sysfs.root, {})
    assert [nic.name for nic in nics] == ["mlx4_0:1", "mlx4_0:2"]
    (second,), _ = find_nics(["mlx4_0:2"], None, sysfs.root, {})
    assert second == nics[1]


def test_a_roce_port_is_ethernet_and_knows_its_interface(sysfs: Sysfs) -> None:
    device = sysfs.pci("0000:3b:00.0", "mlx5_core", net__eth2__dev_port="0")
    sysfs.net("eth2", device, speed="400000", mtu="4200")
    sysfs.hca("mlx5_0", device, {1: {"link_layer": "Ethernet"}})
    (nic,), _ = find_nics(["mlx5_0:1"], None, sysfs.root, {"eth2": ("10.2.0.1",)})
    assert (nic.name, nic.kind, nic.interface) == ("mlx5_0:1", NicKind.ETHERNET, "eth2")
    assert (nic.address, nic.mtu, nic.hca_port) == ("10.2.0.1", 4200, 1)


def test_the_address_table_of_a_port_names_its_interface(sysfs: Sysfs) -> None:
    sysfs.hca("mlx5_0", sysfs.pci("0000:3b:00.0", "x"), {1: {"gid_attrs__ndevs__0": "ib0"}})
    (nic,), _ = find_nics((), None, sysfs.root, {"ib0": ("10.3.0.1",)})
    assert (nic.interface, nic.address) == ("ib0", "10.3.0.1")


def test_requested_nics_stay_in_rail_order_and_missing_ones_carry_a_reason(sysfs: Sysfs) -> None:
    sysfs.net("eth1")
    sysfs.net("eth0")
    sysfs.net("eth2", operstate="down")
    sysfs.net("eth3")
    sysfs.hca("mlx5_0", sysfs.pci("0000:3b:00.0", "mlx5_core"), {1: {"state": "2: INIT"}})
    requested = ["eth1", "eth9", "eth2", "eth3", "mlx5_0", "mlx5_0:3", "eth0"]
    nics, missing = find_nics(
        requested, None, sysfs.root, {"eth0": ("10.0.0.1",), "eth1": ("10.0.0.2",)}
    )
    assert [nic.name for nic in nics] == ["eth1", "eth0"]
    assert missing == {
        "eth9": "not found on the host",
        "eth2": "its state is down",
        "eth3": "it has no IP address",
        "mlx5_0": "its state is 2: INIT",
        "mlx5_0:3": "mlx5_0 has no port 3",
    }


@pytest.mark.parametrize("name", ["..", ".", "../../etc", "a/b", "", "mlx5_0:x", "eth0\n", "\x00"])
def test_a_name_that_is_no_device_name_never_becomes_a_path(sysfs: Sysfs, name: str) -> None:
    sysfs.net("eth0")
    nics, missing = find_nics([name], None, sysfs.root, {})
    assert nics == ()
    assert missing == {name: "not found on the host"}


def test_an_unknown_pcie_link_is_none(sysfs: Sysfs) -> None:
    device = sysfs.pci(
        "0000:3b:00.1", "mlx5_core", current_link_speed="Unknown", current_link_width="255"
    )
    sysfs.net("eth0", device, speed="1000")
    (nic,), _ = routed_nic("10.0.0.1", sysfs.root, {"eth0": ("10.0.0.1",)})
    assert nic.pcie is None


def test_the_real_loopback_interface_has_its_address() -> None:
    found = interface_addresses()
    assert "127.0.0.1" in found["lo"]
    assert not any(address.startswith("fe80") for some in found.values() for address in some)


def test_the_way_to_a_loopback_address_is_loopback() -> None:
    address = source_address_towards("127.0.0.9")
    assert address is not None
    assert is_loopback(address)
    assert source_address_towards("no.such.host.invalid") is None


def test_gpus_are_read_from_nvidia_smi_and_rubbish_is_left_out() -> None:
    text = "0, NVIDIA H100 80GB HBM3, 00000000:1B:00.0\nNo devices were found\nx, y, z\n"
    assert parse_gpus(text) == (
        Gpu(index=0, name="NVIDIA H100 80GB HBM3", pci_address="0000:1b:00.0"),
    )
