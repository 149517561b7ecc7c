"""The devices that variables choose among, found below a made-up /sys and in hosts files."""

from pathlib import Path

import msgspec
import pytest

from ncdiag.health import devices
from ncdiag.health.devices import devices_here, devices_task, values_here, values_of
from ncdiag.model.host import Host
from ncdiag.profiles.context import HostDevices
from ncdiag.profiles.placeholders import COMPUTE_HCAS, SOCKET_NIC

ROUTES = (
    "Iface\tDestination\tGateway\tFlags\tRefCnt\tUse\tMetric\tMask\tMTU\tWindow\tIRTT\n"
    "eth1\t00000000\t0101A8C0\t0003\t0\t0\t200\t00000000\t0\t0\t0\n"
    "eth0\t00000000\t0100000A\t0003\t0\t0\t100\t00000000\t0\t0\t0\n"
    "eth9\t0000000A\t00000000\t0001\t0\t0\t0\t00FFFFFF\t0\t0\t0\n"
    "damaged\n"
)


def put(root: Path, path: str, text: str = "") -> None:
    file = root / path
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(f"{text}\n")


def hca(
    root: Path,
    name: str,
    *,
    layer: str = "InfiniBand",
    gbit: int = 400,
    state: str = "4: ACTIVE",
    interface: str | None = None,
    ports: int = 1,
) -> None:
    for port in range(1, ports + 1):
        place = f"sys/class/infiniband/{name}/ports/{port}"
        put(root, f"{place}/state", state)
        put(root, f"{place}/link_layer", layer)
        put(root, f"{place}/rate", f"{gbit} Gb/sec (4X NDR)")
        if interface:
            put(root, f"{place}/gid_attrs/ndevs/0", interface)


@pytest.fixture
def root(tmp_path: Path) -> Path:
    put(tmp_path, "proc/net/route", ROUTES)
    put(tmp_path, "sys/class/net/eth0/mtu", "1500")
    return tmp_path


def test_infiniband_is_the_compute_fabric_where_there_is_any(root: Path) -> None:
    for number in (0, 1, 10, 2):
        hca(root, f"mlx5_{number}")
    hca(root, "mlx5_3", layer="Ethernet", interface="eth0")
    hca(root, "mlx5_4", state="1: DOWN")
    hca(root, "mlx5_5", gbit=200)
    found = values_here(root, {})
    assert found.values == {COMPUTE_HCAS: "mlx5_0,mlx5_1,mlx5_2,mlx5_10", SOCKET_NIC: "eth0"}
    assert devices_here(root).hcas == ("mlx5_0", "mlx5_1", "mlx5_2", "mlx5_3", "mlx5_5", "mlx5_10")


def test_of_roce_the_port_of_the_default_route_is_for_management(root: Path) -> None:
    hca(root, "mlx5_0", layer="Ethernet", interface="eth0")
    hca(root, "mlx5_1", layer="Ethernet", interface="eth2")
    hca(root, "mlx5_2", layer="Ethernet", interface="eth3", ports=2)
    assert values_here(root, {}).values[COMPUTE_HCAS] == "mlx5_1,mlx5_2:1,mlx5_2:2"


def test_a_host_with_one_roce_port_uses_it_for_everything(root: Path) -> None:
    hca(root, "mlx5_0", layer="Ethernet", interface="eth0")
    assert values_here(root, {}).values[COMPUTE_HCAS] == "mlx5_0"


def test_what_a_host_does_not_have_is_missing_with_the_reason(tmp_path: Path) -> None:
    found = values_here(tmp_path, {"lo": ("127.0.0.1",), "a": ("10.0.0.1",), "b": ("10.1.0.1",)})
    assert found.values == {}
    assert "no RDMA device" in found.missing[COMPUTE_HCAS]
    assert "no default route" in found.missing[SOCKET_NIC]


def test_without_a_default_route_the_only_interface_is_taken(tmp_path: Path) -> None:
    addresses = {"lo": ("127.0.0.1",), "docker0": ("172.17.0.1",), "eth7": ("10.0.0.1",)}
    assert values_here(tmp_path, addresses).values == {SOCKET_NIC: "eth7"}


def test_the_hosts_file_tells_devices_from_interfaces_by_their_names() -> None:
    nics = ("eth0", "mlx5_0", "ibs3:1", "bnxt_re0", "rocep1s0f0", "ens1f0")
    found = values_of(Host(name="gpu1", address="gpu1", nics=nics))
    assert found.values == {
        COMPUTE_HCAS: "mlx5_0,ibs3:1,bnxt_re0,rocep1s0f0",
        SOCKET_NIC: "eth0,ens1f0",
    }
    nothing = values_of(Host(name="gpu1", address="gpu1"))
    assert nothing.missing[COMPUTE_HCAS] == "no nic= is given for it"
    some = values_of(Host(name="gpu1", address="gpu1", nics=("eth0",)))
    assert some.missing == {COMPUTE_HCAS: "nic= of the hosts file names none"}


def test_gpus_and_switches_of_nvlink_are_seen_without_asking_a_gpu(root: Path) -> None:
    assert (devices_here(root).gpus, devices_here(root).nvlink) == (None, None)
    put(root, "proc/driver/nvidia/gpus/0000:1b:00.0/information")
    put(root, "proc/driver/nvidia/gpus/0000:43:00.0/information")
    put(root, "proc/driver/nvidia-nvswitch/devices/0000:c1:00.0")
    found = devices_here(root)
    assert (found.gpus, found.nvlink, found.interfaces) == (2, True, ("eth0",))


def test_a_host_of_a_fleet_answers_under_the_name_it_is_called(
    monkeypatch: pytest.MonkeyPatch, root: Path
) -> None:
    hca(root, "mlx5_0")
    own = devices_here(root)
    monkeypatch.setattr(devices, "devices_here", lambda: own)
    answer = msgspec.json.decode(devices_task(b"gpu7"), type=HostDevices)
    assert answer == HostDevices("gpu7", ("mlx5_0",), ("eth0",))
