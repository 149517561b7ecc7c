"""Counters of NICs and times of processors, read below a made-up root."""

from pathlib import Path

import pytest

from ncdiag.health.counters import Counters, read_counters
from ncdiag.health.cpu import CpuTimes, read_cpu_times
from ncdiag.model.host import Nic, NicKind


def write(root: Path, path: str, text: str) -> None:
    file = root / path
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text)


def test_an_interface_counts_bytes(tmp_path: Path) -> None:
    write(tmp_path, "sys/class/net/eth0/statistics/tx_bytes", "1500\n")
    write(tmp_path, "sys/class/net/eth0/statistics/rx_bytes", "70\n")
    nic = Nic(name="eth0", kind=NicKind.ETHERNET, interface="eth0")
    assert read_counters(nic, tmp_path) == Counters(tx_bytes=1500, rx_bytes=70)


def test_an_rdma_port_counts_words_of_four_bytes(tmp_path: Path) -> None:
    port = "sys/class/infiniband/mlx5_0/ports/2/counters"
    write(tmp_path, f"{port}/port_xmit_data", "1000\n")
    write(tmp_path, f"{port}/port_rcv_data", "25\n")
    nic = Nic(name="mlx5_0:2", kind=NicKind.INFINIBAND, interface="ib0", hca="mlx5_0", hca_port=2)
    assert read_counters(nic, tmp_path) == Counters(tx_bytes=4000, rx_bytes=100)


def test_counters_that_are_not_there_raise_what_the_caller_expects(tmp_path: Path) -> None:
    nic = Nic(name="eth0", kind=NicKind.ETHERNET, interface="eth0")
    with pytest.raises(OSError, match="tx_bytes"):
        read_counters(nic, tmp_path)
    write(tmp_path, "sys/class/net/eth0/statistics/tx_bytes", "many\n")
    with pytest.raises(ValueError, match="many"):
        read_counters(nic, tmp_path)


def test_a_counter_that_was_reset_has_moved_nothing() -> None:
    assert Counters(5, 100).since(Counters(50, 40)) == Counters(0, 60)


def test_steal_is_busy_and_waiting_for_a_disk_is_idle(tmp_path: Path) -> None:
    # user nice system idle iowait irq softirq steal guest guest_nice
    write(tmp_path, "proc/stat", "cpu  10 0 5 70 10 0 1 4 9 9\ncpu0 1 2 3\n")
    assert read_cpu_times(tmp_path) == CpuTimes(idle=80, total=100, stolen=4)


@pytest.mark.parametrize("text", ["", "cpu\n", "intr 1 2 3 4 5\n", "cpu  1 2 x 4 5\n"])
def test_a_stat_file_without_the_sum_of_processors_is_refused(tmp_path: Path, text: str) -> None:
    write(tmp_path, "proc/stat", text)
    with pytest.raises(ValueError, match=r"proc/stat|unpack|invalid literal"):
        read_cpu_times(tmp_path)


def test_the_idle_share_is_that_of_the_time_between() -> None:
    before, after = CpuTimes(idle=100, total=1000), CpuTimes(idle=150, total=1200)
    assert after.idle_share_since(before) == 0.25
    assert before.idle_share_since(before) is None


@pytest.mark.parametrize(("stolen", "idle"), [(20, 0.25), (21, 0.0)])
def test_where_a_hypervisor_takes_over_a_tenth_nothing_was_idle(stolen: int, idle: float) -> None:
    before = CpuTimes(idle=100, total=1000, stolen=7)
    after = CpuTimes(idle=150, total=1200, stolen=7 + stolen)
    assert after.idle_share_since(before) == idle


def test_an_old_kernel_tells_of_no_steal(tmp_path: Path) -> None:
    write(tmp_path, "proc/stat", "cpu  10 0 5 70 10\n")
    assert read_cpu_times(tmp_path) == CpuTimes(idle=80, total=95)
