"""Where programs of nccl-tests are found, what they are told, and what their end means."""

import re
from pathlib import Path

import pytest

from ncdiag.health.self_report import SelfReport
from ncdiag.measure.engines.base import Timing
from ncdiag.measure.engines.nccl_tests.placement import (
    OWN_VARIABLES,
    rate_gbit_per_s,
    variables_for,
)
from ncdiag.measure.engines.nccl_tests.programs import (
    CAUSES,
    Cause,
    find,
    options_of,
    why_ended,
)
from ncdiag.measure.engines.nccl_tests.shape import arguments, shape_for
from ncdiag.model.host import Host, HostFacts, Nic, NicKind

HCA = Nic(name="mlx5_1", kind=NicKind.INFINIBAND, interface="ib1", hca="mlx5_1", hca_port=1)
ETH = Nic(name="eth1", kind=NicKind.ETHERNET, interface="eth1", speed_gbit_per_s=100)


def program(path: Path) -> str:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("#!/bin/sh\n")
    path.chmod(0o755)
    return str(path)


def test_the_folder_named_stands_before_the_home_and_that_before_path(tmp_path: Path) -> None:
    in_folder = program(tmp_path / "folder/sendrecv_perf")
    at_home = program(tmp_path / "home/build/sendrecv_perf")
    on_path = program(tmp_path / "bin/sendrecv_perf")
    environment = {"PATH": f"/nowhere:{tmp_path}/bin"}
    assert find("sendrecv_perf", None, environment)[0] == on_path
    environment["NCCL_TESTS_HOME"] = f"{tmp_path}/home"
    assert find("sendrecv_perf", None, environment)[0] == at_home
    assert find("sendrecv_perf", f"{tmp_path}/folder", environment)[0] == in_folder


def test_what_was_built_with_mpi_is_taken_first(tmp_path: Path) -> None:
    program(tmp_path / "sendrecv_perf")
    with_mpi = program(tmp_path / "build/sendrecv_perf_mpi")
    assert find("sendrecv_perf", str(tmp_path), {})[0] == with_mpi


def test_it_says_where_it_looked(tmp_path: Path) -> None:
    (tmp_path / "sendrecv_perf").write_text("cannot be run")
    assert find("sendrecv_perf", "/opt/x", {}) == (None, "/opt/x and /opt/x/build")
    home = {"NCCL_TESTS_HOME": str(tmp_path)}
    assert find("sendrecv_perf", None, home)[1].endswith("(NCCL_TESTS_HOME)")
    assert find("sendrecv_perf", None, {})[1].startswith("PATH (NCCL_TESTS_HOME is not set")


def test_the_usage_tells_the_options() -> None:
    old = "\t[-b,--minbytes <min size in bytes>] \n\t [-c, --check <0/1>] \n\t[-h,--help]"
    assert options_of(old) == {"b", "c", "h"}
    assert options_of("no usage at all") == frozenset()


@pytest.mark.parametrize("cause", CAUSES, ids=lambda cause: cause.told[:40])
def test_each_cause_is_told_by_its_sample_alone(cause: Cause) -> None:
    assert why_ended(1, [cause.sample]) == why_ended(0, [cause.sample])
    told = why_ended(0, [cause.sample]) or ""
    assert told.startswith(cause.told.partition("{")[0])
    assert not re.search(cause.pattern, cause.near_miss)


@pytest.mark.parametrize(
    ("code", "why"),
    [
        (0, None),
        (1, "it failed, and did not say how"),
        (2, "CUDA failed"),
        (3, "NCCL failed"),
        (4, "timed out: nothing came of it"),
        (7, "wrong data"),
        (-11, "it was killed by signal 11"),
        (200, "it ended with exit code 200, and did not say why"),
    ],
)
def test_a_code_tells_what_no_line_does(code: int, why: str | None) -> None:
    assert why_ended(code, ["# nThread 1 nGpus 1"]) == why


@pytest.mark.parametrize("rate", [0.5, 1, 25, 100, 400, 800])
@pytest.mark.parametrize("pair_test", ["sendrecv", "all_reduce", "alltoall"])
def test_a_pair_takes_about_the_time_planned(pair_test: str, rate: float) -> None:
    shape = shape_for(pair_test, rate, Timing(measure_s=0.4))
    seconds = shape.timed_bytes(pair_test) / (rate * 1.25e8)
    assert 0.3 <= seconds <= 1.3
    assert (shape.iterations, shape.warmups) == (20, 5)


def test_an_unknown_rate_and_few_bytes_are_minded() -> None:
    assert shape_for("sendrecv", None, Timing()).size_bytes == 64 << 20
    few = shape_for("sendrecv", 400, Timing(max_bytes=64 << 20))
    assert few.timed_bytes("sendrecv") <= 2 * (64 << 20)
    assert shape_for("sendrecv", 400, Timing(max_bytes=1)).size_bytes == 64 << 10


def test_only_options_that_are_known_are_given() -> None:
    shape = shape_for("sendrecv", 400, Timing())
    old = arguments(shape, frozenset("befnwgc"), 80)
    assert old == (
        "-b", "268435456", "-e", "536870912", "-f", "2", "-n", "20", "-w", "5", "-g", "1",
        "-c", "1",
    )  # fmt: skip
    new = arguments(shape, frozenset("befnwgcaITJ"), 80.4)
    assert new[-6:] == ("-a", "3", "-I", "1", "-T", "80")


def test_a_rank_has_one_nic_and_the_gpu_beside_it() -> None:
    report = SelfReport(
        host="a",
        facts=HostFacts(hostname="a", nics=(HCA, ETH)),
        routed_nic=Nic(name="eth0", kind=NicKind.ETHERNET, interface="eth0"),
        nearest_gpu={"mlx5_1": 5, "eth1": 2},
    )
    over_ib = variables_for(report, HCA, "sendrecv")
    assert over_ib["NCCL_IB_HCA"] == "=mlx5_1:1"
    assert over_ib["NCCL_SOCKET_IFNAME"] == "=eth0"
    assert over_ib["CUDA_VISIBLE_DEVICES"] == "5"
    assert "NCCL_ALGO" not in over_ib
    over_ip = variables_for(report, ETH, "all_reduce")
    assert (over_ip["NCCL_NET"], over_ip["NCCL_SOCKET_IFNAME"]) == ("Socket", "=eth1")
    assert over_ip["NCCL_ALGO"] == "Ring"
    # It would push traffic inside a host onto the network, and measure no link.
    assert not {name for name in over_ib | over_ip if "P2P" in name}
    assert {*over_ib, *over_ip} <= OWN_VARIABLES


def test_the_slower_end_gives_the_rate() -> None:
    hosts = {
        "a": Host(name="a", address="a"),
        "b": Host(name="b", address="b", rate_gbit_per_s=25),
    }
    assert rate_gbit_per_s(hosts, {"a": ETH, "b": ETH}) == 25
    assert rate_gbit_per_s(hosts, {"a": HCA, "b": ETH}) is None
