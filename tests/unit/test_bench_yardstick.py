"""What a benchmark is compared with where the operator names no machine."""

import io
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import pytest
from bench_cases import run
from rich.console import Console

from ncdiag.cli.run_bench import Bench, carry_out
from ncdiag.cli.way import Way
from ncdiag.expect.hardware import find_machine
from ncdiag.expect.traffic import Collective
from ncdiag.measure.bench.base import BenchPlan
from ncdiag.measure.bench.sizes import Sizes
from ncdiag.model.bench import BenchReport, BenchRun
from ncdiag.model.host import Gpu, Host, HostFacts, Nic, NicKind
from ncdiag.model.verdict import Verdict
from ncdiag.report.bench import describe, html_report, summary

NAMES = ("n01", "n02")


def facts(gpu: str = "NVIDIA H100 80GB HBM3") -> HostFacts:
    return HostFacts(
        hostname="h",
        gpus=tuple(Gpu(index=n, name=gpu) for n in range(8)),
        nics=tuple(
            Nic(name=f"m{n}", hca=f"m{n}", kind=NicKind.INFINIBAND, speed_gbit_per_s=400.0)
            for n in range(8)
        ),
    )


class Played:
    """An engine whose hosts have these facts, and reach so many GB/s."""

    name = "nccl-tests"
    compares = True
    sizes = Sizes(8, 8 << 30)
    ranks_per_host = 8
    partial = None
    unreachable: Mapping[str, str] = {}
    versions: Mapping[str, str] = {}

    def __init__(self, found: Sequence[HostFacts], gb_per_s: float) -> None:
        self._facts = dict(zip(NAMES, found, strict=True))
        self._rate = gb_per_s

    def start(self, _on_change: Callable[[str, str], None]) -> Mapping[str, HostFacts]:
        return self._facts

    def run(self, hosts: Sequence[str]) -> BenchRun:
        return run(len(hosts), rate=lambda size: self._rate * size / (size + 2**24))

    def close(self) -> None:
        pass


def measured(
    found: Sequence[HostFacts],
    gb_per_s: float,
    *,
    machine: str | None = None,
    variables: Mapping[str, str] | None = None,
) -> BenchReport:
    bench = Bench(
        hosts=tuple(Host(name=name, address=name) for name in NAMES),
        way=Way(launcher="local"),
        engine="nccl-tests",
        plan=BenchPlan(collective=Collective.ALL_REDUCE, variables=variables or {}),
        machine=None if machine is None else find_machine(machine),
        repeat=1,
        store=Path("/nowhere/store"),
    )
    engine = Played(found, gb_per_s)
    return carry_out(bench, engine, Console(file=io.StringIO()), verbose=False)  # type: ignore[arg-type]


def test_it_is_the_machine_that_the_hosts_say_they_are() -> None:
    report = measured([facts(), facts()], 430.0)
    assert report.verdict is Verdict.HEALTHY
    assert describe.headline(report) == "HEALTHY"
    assert describe.yardstick(report).startswith("h100-8x400g, as the hosts say: ")
    assert report.settings["machine"] == "h100-8x400g, as the hosts say"
    assert not any("--machine" in note for note in report.notes)


def test_what_misses_it_is_a_fault() -> None:
    report = measured([facts(), facts()], 150.0)
    assert report.verdict is Verdict.FAULTY
    assert [one.kind.value for one in report.findings] == ["below_expectation"]


def test_the_machine_that_the_operator_names_counts() -> None:
    report = measured([facts(), facts()], 45.0, machine="a100-pcie")
    assert describe.yardstick(report).startswith("a100-pcie: ")


@pytest.mark.parametrize(
    ("found", "variables", "note"),
    [
        ([facts(), facts("NVIDIA H200")], {}, "not alike in GPUs and the rates of their NICs"),
        ([facts("Some GPU")] * 2, {}, "give --machine or --topology"),
        ([facts()] * 2, {"NCCL_IB_HCA": "m0"}, "give --machine or --topology"),
    ],
)
def test_without_any_nobody_is_called_healthy_in_words(
    found: Sequence[HostFacts], variables: Mapping[str, str], note: str
) -> None:
    report = measured(found, 5.0, variables=variables)
    assert report.verdict is Verdict.HEALTHY  # nothing was found: the exit code is 0
    assert any(note in one for one in report.notes)
    first = summary.render(report).splitlines()[0]
    assert first.startswith("ncdiag bench: NO FAULT FOUND - ")
    assert first.endswith(", nothing to compare with")
    page = html_report.render(report)
    assert "No fault found" in page
    assert "Healthy" not in page
