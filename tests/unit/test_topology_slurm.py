"""Slurm's topology, as topology.conf, topology.yaml and scontrol write it; and what is wrong."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ncdiag.diagnose.topology.check import check
from ncdiag.model.topology import (
    NotATopologyError,
    SlurmTopology,
    TopologySeverity,
    TruncatedTopologyError,
)
from ncdiag.read.topology.read_topology import read_topology
from ncdiag.read.topology.slurm_names import Names

TREE = """\
# Two rooms # of racks
SwitchName=top Switches=room[1-2] LinkSpeed=100
switchname=room1 SWITCHES=rack1,rack2   # the old one
SwitchName=room2 \\
    Switches="rack3"

SwitchName=rack1 Nodes=n[001-003,010]
SwitchName=rack2 Nodes=a[1-2]b[08-09],login
SwitchName=rack3 Nodes=n[011-012]"""

BLOCKS = """\
BlockName=b1 Nodes=n[01-04]
BlockName=b2 Nodes=n[05-08]
BlockSizes=4,8
"""

YAML = """\
# three at once
- topology: flat
  cluster_default: false
  flat: true
- topology: tree
  cluster_default: true
  tree:
    switches:
      - switch: top
        children: rack[1-2]
      - switch: rack1
        nodes: "n[01-02]"
      - switch: rack2
        nodes: n03,n04
- topology: blocks
  block:
    block_sizes:
      - 2
      - 4
    blocks: [{block: b1, nodes: "n[01-02]"}, {block: b2, nodes: "n[03-04]"}]
"""

SHOWN = """\
SwitchName=rack1 Level=0 LinkSpeed=1 Nodes=n[1-2]
SwitchName=rack2 Level=0 LinkSpeed=1 Nodes=n[3-4]
SwitchName=top Level=1 LinkSpeed=1 Nodes=n[1-4] Switches=rack[1-2]
"""

ALL = {"tree": TREE, "blocks": BLOCKS, "yaml": YAML, "shown": SHOWN}


def slurm(text: str) -> SlurmTopology:
    read = read_topology(text.encode())
    assert isinstance(read, SlurmTopology)
    return read


def below(text: str) -> dict[str, tuple[str, ...]]:
    return {one.name: one.switches + one.nodes for one in slurm(text).switches}


def found(text: str) -> list[tuple[str, str, str]]:
    return [(one.severity.value, one.name, one.where) for one in check(slurm(text))]


def test_a_tree_with_comments_continued_lines_and_any_case() -> None:
    assert slurm(TREE).plugin == "tree"
    assert below(TREE) == {
        "top": ("room1", "room2"),
        "room1": ("rack1", "rack2"),
        "room2": ("rack3",),
        "rack1": ("n001", "n002", "n003", "n010"),
        "rack2": ("a1b08", "a1b09", "a2b08", "a2b09", "login"),
        "rack3": ("n011", "n012"),
    }


def test_blocks_and_their_sizes() -> None:
    read = slurm(BLOCKS)

    assert (read.plugin, read.block_sizes) == ("block", (4, 8))
    assert [len(block.nodes) for block in read.switches] == [4, 4]


def test_of_several_topologies_the_clusters_default_counts() -> None:
    assert slurm(YAML).plugin == "tree"
    assert below(YAML) == {
        "top": ("rack1", "rack2"),
        "rack1": ("n01", "n02"),
        "rack2": ("n03", "n04"),
    }
    blocks = slurm(YAML.replace("default: true", "default: false").replace("tree:", "other:"))
    assert (blocks.plugin, blocks.block_sizes) == ("block", (2, 4))


def test_scontrol_lists_nodes_of_higher_switches_which_are_not_theirs() -> None:
    assert below(SHOWN)["top"] == ("rack1", "rack2")
    assert found(SHOWN) == []


@pytest.mark.parametrize("name", ALL)
def test_cut_anywhere_it_is_read_or_refused(name: str) -> None:
    text = ALL[name]
    outcomes = set()
    for end in range(len(text)):
        try:
            outcomes.add(type(read_topology(text[:end].encode())))
        except (NotATopologyError, TruncatedTopologyError) as error:
            outcomes.add(type(error))
    assert outcomes == {SlurmTopology, NotATopologyError, TruncatedTopologyError}


@pytest.mark.parametrize(
    "text",
    [
        TREE[: TREE.index("3,010")],
        TREE[: TREE.index("Nodes=n[011")],
        TREE[: TREE.index("Nodes=n[011") + 6],
        TREE[: TREE.index('    Switches="rack3')],
        TREE[: TREE.rindex("Name=")],
        "BlockSizes=4\n",
        YAML[: YAML.index("[01-02]") + 3],
        YAML[: YAML.index('nodes: "n[01') + 6],
        YAML[: YAML.index("children")],
    ],
)
def test_an_end_within_a_record_is_told(text: str) -> None:
    with pytest.raises(TruncatedTopologyError):
        read_topology(text.encode())


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("SwitchName=a Nodes=n[1-2000000]\n", "more than 1,000,000 names"),
        ("SwitchName=a Nodes=n[1-9999]m[1-9999]\n", "more than 1,000,000 names"),
        ("SwitchName=a Nodes=n[1-9]\nSwitchName=b Nodes=m[1-999999]\n", "line 2: more than"),
        ("SwitchName=a Nodes=n[3-1]\nSwitchName=b Nodes=n5\n", "counts down"),
        ("SwitchName=a Nodes=n[1-\nSwitchName=b Nodes=n5\n", "line 1"),
        ("SwitchName=a Nodes=n[x]\n", "no list of names"),
        ("SwitchName=a Nodes=" + "n" * 300 + "[1-2]\n", "more than 255 characters"),
        ("- topology: a\n  tree: &x\n    switches: [*x]\n", "anchors and aliases"),
        ("- topology: !!python/name:os.system a\n  tree: a\n", "tags"),
        ("- topology: a\n  tree: " + "[" * 500, "levels deep"),
        ("- topology: a\n  flat: true\n", "flat"),
        ("- topology: a\n  tree: {switches: [{nodes: n1}, {switch: b, nodes: n2}]}\n", "whole"),
    ],
)
def test_what_cannot_be_meant_is_refused_at_once(text: str, told: str) -> None:
    with pytest.raises(NotATopologyError, match=told):
        read_topology(text.encode())


def test_names_keep_their_zeros_and_their_order() -> None:
    assert Names().expand("b[10,08-09],a,b08") == ("b10", "b08", "b09", "a")
    assert Names().expand("r[1-2]n[01-02]-ib") == ("r1n01-ib", "r1n02-ib", "r2n01-ib", "r2n02-ib")


def test_healthy_ones_have_no_findings() -> None:
    assert found(TREE) == []
    assert found(BLOCKS) == []
    assert found(YAML) == []
    assert found("SwitchName=only Nodes=n[1-9]\n") == []


def test_a_node_in_two_places_is_named() -> None:
    twice = "slurm_node_in_two_leaves"

    assert found(TREE.replace("n[011-012]", "n[002,011-012]")) == [("degraded", twice, "n002")]
    assert found(BLOCKS.replace("05-08", "03-08")) == [("degraded", twice, "n[03-04]")]


def test_a_switch_without_a_line_is_named() -> None:
    text = TREE.replace("rack1,rack2", "rack1,rack2,rack9")

    assert found(text) == [("degraded", "slurm_undefined_switch", "rack9")]


def test_a_rack_that_was_forgotten_in_its_root_is_told_from_separate_islands() -> None:
    rootless = "slurm_no_common_root"

    assert found(TREE.replace("room[1-2]", "room1")) == [("degraded", rootless, "room2")]
    islands = "SwitchName=a Nodes=n[1-4]\nSwitchName=b Nodes=n[5-8]\n"
    assert found(islands) == [("info", rootless, "a, b")]
    ring = "SwitchName=a Switches=b\nSwitchName=b Switches=a\n"
    assert [one.severity for one in check(slurm(ring))] == [TopologySeverity.DEGRADED]


def test_ten_thousand_nodes_take_no_time() -> None:
    lines = [f"SwitchName=rack{i} Nodes=n[{i * 10:05}-{i * 10 + 9:05}]\n" for i in range(1000)]
    text = "SwitchName=top Switches=rack[0-999]\n" + "".join(lines)

    assert found(text) == []
    assert sum(len(one.nodes) for one in slurm(text).switches) == 10_000


PIECES = sorted({line for text in ALL.values() for line in text.split("\n")})


@settings(max_examples=150, deadline=None)
@given(st.lists(st.sampled_from(PIECES) | st.text(max_size=60), max_size=12))
def test_any_lines_in_any_order_are_read_or_refused(lines: list[str]) -> None:
    outcome: object
    try:
        outcome = check(read_topology("\n".join(lines).encode("utf-8", "surrogatepass")))
    except (NotATopologyError, TruncatedTopologyError) as error:
        outcome = str(error)
    assert not isinstance(outcome, str) or "\n" not in outcome


def ring_of(text: str) -> list[tuple[str, str]]:
    return [(one.where, one.severity.value) for one in check(slurm(text))]


def test_switches_below_each_other_are_a_ring_wherever_they_stand() -> None:
    ring = "SwitchName=a Switches=b\nSwitchName=b Switches=a{more}\n"
    leaf = "SwitchName=l Nodes=n[1-4]\n"

    assert ring_of(ring.format(more="") + leaf) == [("a", "degraded")]
    assert ring_of(ring.format(more=",l") + leaf) == [("a", "degraded")]
    assert ring_of("SwitchName=r Switches=a\n" + ring.format(more=",l") + leaf) == [
        ("a", "degraded")
    ]
    assert ring_of("SwitchName=a Switches=a,l\n" + leaf) == [("a", "degraded")]
    two = ring.format(more="") + "SwitchName=x Switches=y\nSwitchName=y Switches=x\n"
    assert ring_of(two) == [("a", "degraded"), ("x", "degraded")]
    assert ring_of("SwitchName=r Switches=l\n" + leaf) == []


def test_many_rings_are_told_in_time() -> None:
    pairs = "".join(
        f"SwitchName=a{at} Switches=b{at}\nSwitchName=b{at} Switches=a{at}\n" for at in range(3000)
    )

    assert len(ring_of(pairs)) == 3000
