"""Leaves of hosts from a fabric or from Slurm, and the live tools where they fail or hang."""

import os
import stat
from pathlib import Path

import pytest

from ncdiag.cluster.fabric import Placing, live_fabric, place_hosts
from ncdiag.cluster.inventory import parse_hosts
from ncdiag.model.errors import UndecidedError, UsageError
from ncdiag.model.host import Host

TREE = """\
SwitchName=spine Switches=rack[1-2]
SwitchName=rack1 Nodes=gpu[1-2]
SwitchName=rack2 Nodes=gpu[3-4]
"""

# Two rails: every host has an adapter on each of two leaves, gpu3 has lost its first.
RAILS = """\
Switch 64 "S-00000000000000a0" # "MF0;rail0:MQM9700/U1" base port 0 lid 1 lmc 0
[1] "H-0000000000000010"[1](10) # "gpu1.cluster mlx5_2" lid 9 4xNDR
[2] "H-0000000000000020"[1](20) # "GPU2 mlx5_2" lid 9 4xNDR
[40] "S-00000000000000ff"[1] # "spine" lid 1 4xNDR
[41] "S-00000000000000ff"[2] # "spine" lid 1 2xNDR

Switch 64 "S-00000000000000a1" # "MF0;rail1:MQM9700/U1" base port 0 lid 2 lmc 0
[1] "H-0000000000000011"[1](11) # "gpu1.cluster mlx5_10" lid 9 4xNDR
[2] "H-0000000000000021"[1](21) # "GPU2 mlx5_10" lid 9 4xNDR
[3] "H-0000000000000031"[1](31) # "gpu3 mlx5_10" lid 9 4xNDR
[4] "H-0000000000000041"[1](41) # "Mellanox Technologies Aggregation Node" lid 9 4xNDR
[40] "S-00000000000000ff"[3] # "spine" lid 1 4x???
"""


def placed(tmp_path: Path, hosts: str, dump: str) -> Placing:
    file = tmp_path / "fabric.txt"
    file.write_text(dump)
    return place_hosts(parse_hosts(hosts, "hosts.txt"), str(file))


def leaves(placing: Placing) -> dict[str, tuple[str | None, float | None]]:
    return {host.name: (host.leaf, host.uplink_gbit_per_s) for host in placing.hosts}


def test_slurm_tells_the_leaf_and_no_rate(tmp_path: Path) -> None:
    placing = placed(tmp_path, "gpu[1-4]\nlogin1", TREE)

    assert leaves(placing) == {
        "gpu1": ("rack1", None),
        "gpu2": ("rack1", None),
        "gpu3": ("rack2", None),
        "gpu4": ("rack2", None),
        "login1": (None, None),
    }
    assert placing.missing == ("login1",)


def test_blocks_are_leaves_too(tmp_path: Path) -> None:
    placing = placed(tmp_path, "gpu[1-2]", "BlockName=b1 Nodes=gpu1\nBlockName=b2 Nodes=gpu2\n")

    assert leaves(placing) == {"gpu1": ("b1", None), "gpu2": ("b2", None)}


def test_of_several_rails_the_first_decides(tmp_path: Path) -> None:
    assert leaves(placed(tmp_path, "gpu1\ngpu2\ngpu3", RAILS)) == {
        "gpu1": ("rail0", 600.0),
        "gpu2": ("rail0", 600.0),
        "gpu3": ("rail1", None),
    }
    named = placed(tmp_path, "gpu1 nic=eth9,mlx5_10:1\ngpu2", RAILS)
    assert leaves(named) == {"gpu1": ("rail1", None), "gpu2": ("rail0", 600.0)}


def test_what_the_hosts_file_says_stands(tmp_path: Path) -> None:
    hosts = "gpu1 leaf=mine uplink=1gbit\ngpu2 leaf=mine\ngpu3 leaf=rail1 uplink=2gbit"

    assert leaves(placed(tmp_path, hosts, RAILS)) == {
        "gpu1": ("mine", 1.0),
        "gpu2": ("mine", None),
        "gpu3": ("rail1", 2.0),
    }


def test_names_match_with_and_without_domain_and_in_any_case(tmp_path: Path) -> None:
    placing = placed(tmp_path, "gpu1\nGpu2.other.org", RAILS)

    assert placing.missing == ()


def test_addresses_have_no_domain(tmp_path: Path) -> None:
    placing = placed(tmp_path, "10.0.0.1\n10.0.0.2", "SwitchName=a Nodes=10.0.0.2,10\n")

    assert placing.missing == ("10.0.0.1",)


def test_labels_are_such_as_a_hosts_file_can_hold(tmp_path: Path) -> None:
    dump = TREE.replace("SwitchName=rack1", f"SwitchName=a|b\u202e{'c' * 99}")

    leaf = placed(tmp_path, "gpu1\ngpu3", dump).hosts[0].leaf

    assert leaf is not None
    assert leaf.startswith("a_b_ccc")
    assert parse_hosts(f"gpu1 leaf={leaf}", "hosts.txt")[0].leaf == leaf


@pytest.mark.parametrize(
    ("dump", "told"),
    [
        ("SwitchName=a Nodes=other[1-9]\n", "none of the 2 hosts is in it"),
        ("nothing", "no topology dump"),
        ("SwitchName=a Nodes=gpu[1-9999999]\n", "more than 1,000,000"),
        ('<system version="1"><cpu numaid="0"/></system>', "names no leaves"),
    ],
)
def test_a_file_that_gives_no_leaves_is_an_error(tmp_path: Path, dump: str, told: str) -> None:
    with pytest.raises(UsageError, match=told) as caught:
        placed(tmp_path, "gpu[1-2]", dump)
    assert str(caught.value).startswith("--fabric ")


def test_a_file_that_is_cut_short_decides_nothing(tmp_path: Path) -> None:
    with pytest.raises(UndecidedError, match="cut short"):
        placed(tmp_path, "gpu[1-2]", TREE[:-4])


def test_a_file_that_is_not_there_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="No such file"):
        place_hosts((Host(name="a", address="a"),), str(tmp_path / "none"))


def tool(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, script: str) -> None:
    program = tmp_path / "ibnetdiscover"
    program.write_text(f"#!/bin/sh\n{script}\n")
    program.chmod(program.stat().st_mode | stat.S_IXUSR)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")


def test_what_the_tool_prints_comes_back(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tool(tmp_path, monkeypatch, 'echo warned >&2; echo "$#: $1 $2"')

    assert live_fabric("ibnetdiscover", 30, ("-C", "mlx5_0; rm x")) == b"2: -C mlx5_0; rm x\n"


@pytest.mark.parametrize(
    ("script", "told"),
    [
        ("echo half; printf 'no \\033[31mport' >&2; exit 3", r"exit code 3: no \\x1b\[31mport"),
        ("echo 'nobody there' >&2", "printed nothing: nobody there"),
        ("kill -9 $$", "exit code -9"),
    ],
)
def test_a_tool_that_fails_says_nothing_of_the_fabric(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, script: str, told: str
) -> None:
    tool(tmp_path, monkeypatch, script)

    with pytest.raises(UndecidedError, match=told):
        live_fabric("ibnetdiscover", 30)


def test_a_tool_that_hangs_is_ended_with_all_it_started(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pids = tmp_path / "pids"
    os.mkfifo(tmp_path / "never")
    tool(tmp_path, monkeypatch, f"echo $$ >{pids}; cat <{tmp_path}/never")

    with pytest.raises(UndecidedError, match="did not end within 1 s"):
        live_fabric("ibnetdiscover", 1)
    with pytest.raises(ProcessLookupError):
        os.killpg(int(pids.read_text()), 0)


def test_only_these_tools_are_asked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(UsageError, match="ibnetdiscover and iblinkinfo can"):
        live_fabric("sh", 1)
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr("ncdiag.cluster.fabric._SBIN", ())
    with pytest.raises(UsageError, match="infiniband-diags"):
        live_fabric("iblinkinfo", 1)
