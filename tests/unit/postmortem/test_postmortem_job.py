"""Job, library, network and benchmarks as they are summed up from the records."""

from collections import Counter

import pytest

from ncdiag.diagnose.postmortem.benchmarks import benchmarks
from ncdiag.diagnose.postmortem.job import job_shape, library
from ncdiag.diagnose.postmortem.names import real_hosts, same_host
from ncdiag.diagnose.postmortem.network import network
from ncdiag.model.benchmark import Benchmark, TableRank
from ncdiag.model.log import (
    CommunicatorState,
    InspectorRecord,
    LogEvidence,
    NcclProcess,
    RasReport,
    WorkerFailure,
)
from ncdiag.model.place import Place

HERE = Place("a.log", 1)


def speaks(host: str, rank: int | None, ranks: int | None, nodes: int | None = None) -> NcclProcess:
    comm = CommunicatorState(pointer="0x1", rank=rank, ranks=ranks, nodes=nodes)
    return NcclProcess(host=host, pid=str(rank), communicators=[comm])


def table(*hosts: str, version: str | None = None) -> Benchmark:
    ranks = [TableRank(n, host, str(n), "0", "0000:1b:00", "GPU") for n, host in enumerate(hosts)]
    return Benchmark(place=HERE, ranks=ranks, library_version=version)


def test_nothing_told_is_nothing_said() -> None:
    job = job_shape(LogEvidence())
    assert (job.ranks, job.nodes, job.hosts) == (None, None, ())
    assert library(LogEvidence()).name is None
    found = network(LogEvidence())
    assert (found.name, found.gdr, found.nvls, found.sharp) == (
        None,
        "unknown",
        "unknown",
        "unknown",
    )


def test_the_largest_communicator_counts() -> None:
    evidence = LogEvidence(processes=[speaks("oak1", 0, 4, 1), speaks("oak1", 0, 16, 2)])
    job = job_shape(evidence)
    assert (job.ranks, job.nodes, job.hosts) == (16, 2, ("oak1",))


def test_a_rank_table() -> None:
    job = job_shape(LogEvidence(benchmarks=[table("oak1", "oak1", "oak2", "oak2")]))
    assert (job.ranks, job.nodes, job.hosts) == (4, 2, ("oak1", "oak2"))


def test_nodes_are_unknown_while_a_host_may_be_missing() -> None:
    some = [speaks("oak1", 0, 16), speaks("oak1", 7, 16)]
    assert job_shape(LogEvidence(processes=some)).nodes is None
    both = [*some, speaks("oak2", 8, 16), speaks("oak2", 15, 16)]
    assert job_shape(LogEvidence(processes=both)).nodes == 2


def test_a_report_of_the_library_counts_nodes() -> None:
    report = RasReport(place=HERE, version="2.26.2", nodes=4, largest=32)
    job = job_shape(LogEvidence(ras=[report]))
    assert (job.ranks, job.nodes) == (32, 4)
    assert library(LogEvidence(ras=[report])).versions == ("2.26.2",)


def test_hosts_that_speak_by_other_ways() -> None:
    record = InspectorRecord(
        host="oak4",
        pid="1",
        rank=0,
        ranks=8,
        comm_id="0x1",
        op="AllReduce",
        size=8,
        count=1,
        mean_time_us=1.0,
        mean_busbw_gb_per_s=1.0,
    )
    evidence = LogEvidence(
        hosts={"oak2": HERE},
        failures=[WorkerFailure(place=HERE, host="oak3"), WorkerFailure(place=HERE)],
        inspector=[record],
    )
    assert job_shape(evidence).hosts == ("oak2", "oak3", "oak4")
    assert job_shape(evidence).ranks == 8


@pytest.mark.parametrize(
    ("names", "hosts"),
    [
        (["oak1.site", "oak1", "oak2.site"], ["oak1", "oak2.site"]),
        (["...", "", None, "oak1"], ["oak1"]),
        (["localhost", "oak1"], ["oak1"]),
        (["localhost"], ["localhost"]),
        (["10.1.2.3", "10"], ["10.1.2.3", "10"]),
    ],
)
def test_names_of_hosts(names: list[str | None], hosts: list[str]) -> None:
    assert real_hosts(names) == hosts


def test_a_short_name_and_a_full_one_are_the_same_host() -> None:
    assert same_host("oak1", "oak1.site.example")
    assert not same_host("oak1.north", "oak1.south")
    assert not same_host("10.1.2.3", "10")


def test_each_version_once_as_printed() -> None:
    process = NcclProcess(host="oak1", pid="1", versions=["2.21.5+cuda12.4"])
    evidence = LogEvidence(
        processes=[process],
        versions=[("NCCL", "2.21.5+cuda12.4"), ("NCCL", "2.21.5"), ("NCCL", "2.20.5")] * 2,
        benchmarks=[table("oak1", version="2.22.3")],
    )
    assert library(evidence).name == "NCCL"
    assert library(evidence).versions == ("2.21.5+cuda12.4", "2.20.5")


def test_the_heading_of_a_benchmark_counts_where_no_version_is_printed() -> None:
    found = library(LogEvidence(benchmarks=[table("oak1", version="2.22.3")]))
    assert (found.name, found.versions) == ("NCCL", ("2.22.3",))


def test_rccl() -> None:
    process = NcclProcess(host="elm1", pid="1", library="RCCL")
    assert library(LogEvidence(processes=[process])).name == "RCCL"


def test_the_network_of_all_processes() -> None:
    first = NcclProcess(
        host="oak1",
        pid="1",
        networks=["IB"],
        nics=["mlx5_0"],
        transports=Counter({"NET/IB": 2, "P2P": 1}),
        gdr_channels=2,
        nvls=False,
    )
    second = NcclProcess(
        host="oak2",
        pid="1",
        networks=["IB"],
        nics=["mlx5_1"],
        transports=Counter({"SHM": 2}),
        nvls=True,
        sharp=False,
    )
    found = network(LogEvidence(processes=[first, second]))
    assert found.name == "IB"
    assert found.transports == ("NET/IB", "P2P", "SHM")
    assert found.nics == ("mlx5_0", "mlx5_1")
    assert (found.gdr, found.nvls, found.sharp) == ("on", "on", "off")


@pytest.mark.parametrize(
    ("direct", "plain", "gdr"), [(1, 0, "on"), (0, 3, "off"), (2, 1, "mixed"), (0, 0, "unknown")]
)
def test_gpudirect(direct: int, plain: int, gdr: str) -> None:
    process = NcclProcess(host="oak1", pid="1", gdr_channels=direct, plain_channels=plain)
    assert network(LogEvidence(processes=[process])).gdr == gdr


def test_summaries_of_benchmarks() -> None:
    run = table("oak1", "oak2")
    run.test, run.avg_busbw, run.out_of_bounds, run.complete = "all_reduce_perf", 2.5, 0, True
    (found,) = benchmarks(LogEvidence(benchmarks=[run]))
    assert (found.test, found.ranks, found.complete) == ("all_reduce_perf", 2, True)
    assert (found.avg_busbw_gb_per_s, found.peak_busbw_gb_per_s) == (2.5, None)
