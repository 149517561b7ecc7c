"""Topology dumps as the yardstick of a sweep: ``--topology``."""
# ruff: noqa: RUF001 (a derivation is written with the multiplication sign operators read)

import io
from dataclasses import replace
from pathlib import Path

import pytest
from rich.console import Console

from ncdiag.cli import main
from ncdiag.cli.host_dumps import read_host_dumps
from ncdiag.expect.dumped_nics import as_dumped
from ncdiag.measure.engines.base import Timing
from ncdiag.measure.journal import HostState, Journal, Plan, read_journal
from ncdiag.measure.record import SweepRecord
from ncdiag.model.errors import UndecidedError, UsageError
from ncdiag.model.host import Host, HostDump, HostFacts, Nic, NicKind, PcieLink
from ncdiag.model.measurement import Expectation, LinkKey

DUMP = """<system version="1">
  <cpu numaid="0" arch="x86_64" vendor="AuthenticAMD" familyid="25" modelid="17">
    <pci busid="0000:12:00.0" class="0x020700" link_speed="32.0 GT/s PCIe" link_width="16">
      <nic>
        <net name="mlx5_0" dev="0" speed="SPEED" port="1" guid="0x1" maxconn="131072" gdr="1"/>
      </nic>
    </pci>
  </cpu>
</system>
"""
HOSTS = tuple(Host(name=name, address=name) for name in ("gpu001", "gpu002", "gpu003"))
GEN3 = PcieLink(gigatransfers_per_s=8.0, lanes=16)
GEN5 = PcieLink(gigatransfers_per_s=32.0, lanes=16)
# Came up at half its rate, in a slot that trained down.
DEGRADED = Nic(
    name="mlx5_0",
    kind=NicKind.INFINIBAND,
    hca="mlx5_0",
    hca_port=1,
    mtu=4092,
    speed_gbit_per_s=200.0,
    pcie=GEN3,
)


def dump(speed: int = 400_000) -> str:
    return DUMP.replace("SPEED", str(speed))


def read(path: Path) -> tuple[tuple[HostDump, ...], str]:
    said = io.StringIO()
    found = read_host_dumps(str(path), HOSTS, Console(file=said, width=200))
    return found, said.getvalue()


def record(*dumps: HostDump, hosts: tuple[Host, ...] = HOSTS) -> SweepRecord:
    plan = Plan(
        started="2026-01-02T03:04:05Z",
        hosts=hosts,
        mode="full",
        engine="torch",
        launcher="ssh",
        seed=0,
        faulty_below=0.8,
        timing=Timing(),
        dumps=dumps,
    )
    facts = [
        HostState(name=host.name, facts=HostFacts(hostname=host.name, nics=(DEGRADED,)))
        for host in hosts
    ]
    return SweepRecord.of([plan, *facts])


def expectation(found: SweepRecord, target: str = "gpu002") -> Expectation:
    expected = found.expectation(LinkKey("gpu001", target, 0))
    assert expected is not None
    return expected


def test_one_dump_stands_for_all_hosts_and_is_named(tmp_path: Path) -> None:
    file = tmp_path / "healthy.xml"
    file.write_text(dump())
    dumps, said = read(file)
    assert said == ""
    found = expectation(record(*dumps))
    assert found.gbit_per_s == pytest.approx(400 * 4096 / 4122)
    assert found.derivation == (
        "min(NIC 400 Gbit/s × 0.994 InfiniBand MTU 4096 from healthy.xml, "
        "PCIe gen5 x16 504 Gbit/s × 0.87 TLP from healthy.xml)"
    )


def test_without_dumps_a_hosts_own_facts_count() -> None:
    found = expectation(record())
    assert found.gbit_per_s == pytest.approx(8 * 16 * 128 / 130 * 0.87)
    assert "from" not in found.derivation


def test_a_folder_has_a_dump_for_each_host_and_hosts_without_one_are_named(
    tmp_path: Path,
) -> None:
    (tmp_path / "gpu001.xml").write_text(dump())
    (tmp_path / "gpu002.xml").write_text(dump(100_000))
    dumps, said = read(tmp_path)
    assert "1 of 3 hosts: gpu003" in said
    found = record(*dumps)
    assert expectation(found).gbit_per_s == pytest.approx(100 * 4096 / 4122)
    assert "from gpu002.xml" in expectation(found).derivation
    mixed = expectation(found, "gpu003")
    assert "from gpu001.xml" in mixed.derivation
    assert mixed.gbit_per_s == pytest.approx(8 * 16 * 128 / 130 * 0.87)


def test_an_explicit_rate_wins_over_a_dump(tmp_path: Path) -> None:
    file = tmp_path / "x.xml"
    file.write_text(dump())
    hosts = tuple(replace(host, rate_gbit_per_s=100.0) for host in HOSTS)
    found = expectation(record(*read(file)[0], hosts=hosts))
    assert found.derivation == "rate 100 Gbit/s × 0.994 InfiniBand MTU 4096"


def test_dumps_stay_with_the_sweep_for_resuming_and_reporting(tmp_path: Path) -> None:
    (tmp_path / "x.xml").write_text(dump())
    dumps, _ = read(tmp_path / "x.xml")
    with Journal(tmp_path) as journal:
        journal.append([record(*dumps).plan])
    (plan,) = read_journal(tmp_path)
    assert isinstance(plan, Plan)
    assert plan.dumps == dumps


@pytest.mark.parametrize(
    ("port", "interface", "speed"),
    [(1, None, 400.0), (2, None, 200.0), (None, None, 400.0), (7, "mlx5_0", 400.0)],
)
def test_a_port_is_found_by_its_hca_and_number_else_by_its_interface(
    port: int | None, interface: str | None, speed: float
) -> None:
    described = HostDump(
        host="",
        file="x.xml",
        nics=(replace(DEGRADED, speed_gbit_per_s=400.0, pcie=GEN5),),
    )
    nic = replace(DEGRADED, name="port", hca_port=port, interface=interface)
    assert as_dumped(nic, described).speed_gbit_per_s == speed


def test_what_a_dump_does_not_tell_stands_as_the_host_says_it() -> None:
    silent = replace(DEGRADED, speed_gbit_per_s=None, pcie=None)
    nothing = HostDump(host="", file="x.xml", nics=(silent,))
    assert as_dumped(DEGRADED, nothing) == DEGRADED
    slot_only = HostDump(host="", file="x.xml", nics=(replace(silent, pcie=GEN5),))
    found = as_dumped(DEGRADED, slot_only)
    assert (found.speed_gbit_per_s, found.pcie, found.described_in) == (200.0, GEN5, "x.xml")
    assert as_dumped(DEGRADED, None) == DEGRADED


@pytest.mark.parametrize(
    ("content", "error", "complaint"),
    [
        ("no dump", UsageError, "x.xml"),
        (dump()[:200], UndecidedError, "x.xml"),
        ('<system version="1"><cpu numaid="0"/></system>', UsageError, "names no NIC"),
        ("\tGPU0\tGPU1\nGPU0\t X \tNV18\nGPU1\tNV18\t X \n", UsageError, "no NCCL topology"),
    ],
)
def test_a_dump_that_cannot_be_used_is_one_clear_line(
    tmp_path: Path, content: str, error: type[Exception], complaint: str
) -> None:
    (tmp_path / "x.xml").write_text(content)
    with pytest.raises(error, match=complaint):
        read(tmp_path / "x.xml")


def test_a_folder_without_a_dump_says_how_they_are_called(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"no dump of any host.*gpu001\.xml"):
        read(tmp_path)


def test_the_command_takes_it_and_refuses_it_when_resuming(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "x.xml").write_text(dump())
    options = ["--topology", str(tmp_path / "x.xml"), "--dry-run"]
    assert main.run(["sweep", "--nodes", "gpu[001-003]", *options]) == 0
    assert "gpu[001-003]" in capsys.readouterr().out
    with Journal(tmp_path) as journal:
        journal.append([record().plan])
    assert main.run(["sweep", "--resume", str(tmp_path), *options]) == 2
    assert "--topology cannot change" in capsys.readouterr().err
