import pytest

from ncdiag.model.topology import NcclGraphs, NotATopologyError, TruncatedTopologyError
from ncdiag.read.topology.read_topology import read_topology

GRAPHS = """<graphs version="1">
  <graph id="0" pattern="4" crossnic="2" nchannels="2" speedintra="22.5" speedinter="24"
         latencyinter="0.6" typeintra="NVL" typeinter="PIX" samechannels="1">
    <channel>
      <net dev="0x100000001"/><gpu dev="0x3"/><gpu dev="0"/><net dev="2"/>
    </channel>
  </graph>
  <graph id="3" pattern="5" crossnic="0" nchannels="0" speedintra="0" speedinter="0"
         typeintra="LOC" typeinter="LOC" samechannels="0"/>
</graphs>
"""


def graphs(text: str) -> NcclGraphs:
    read = read_topology(text.encode())
    assert isinstance(read, NcclGraphs)
    return read


def test_a_graph_says_its_rates_paths_and_channels() -> None:
    ring, nvls = graphs(GRAPHS).graphs
    assert (ring.id, ring.pattern, ring.nchannels, ring.cross_nic) == (0, "ring", 2, 2)
    assert (ring.intra_gb_per_s, ring.inter_gb_per_s, ring.inter_latency_us) == (22.5, 24.0, 0.6)
    assert (ring.intra_path, ring.inter_path, ring.same_channels) == ("NVL", "PIX", True)
    (channel,) = ring.channels
    assert channel.nets == ("0x100000001", "2")
    assert channel.gpus == ("0x3", "0")
    assert (nvls.id, nvls.pattern, nvls.nchannels, nvls.channels) == (3, "nvls", 0, ())
    assert nvls.inter_latency_us is None


@pytest.mark.parametrize(
    ("number", "name"),
    [
        ("1", "balanced_tree"),
        ("2", "split_tree"),
        ("3", "tree"),
        ("4", "ring"),
        ("5", "nvls"),
        ("6", "collnet_direct"),
        ("9", "9"),
        ("", None),
    ],
)
def test_patterns_have_names(number: str, name: str | None) -> None:
    assert graphs(f'<graphs><graph pattern="{number}"/></graphs>').graphs[0].pattern == name


def test_the_first_releases_had_one_speed_and_one_type() -> None:
    (graph,) = graphs(
        '<graphs version="1"><graph id="0" pattern="4" crossnic="0" nchannels="1" speed="12"'
        ' type="PHB"><channel><gpu rank="1"/><gpu/></channel></graph></graphs>'
    ).graphs
    assert (graph.intra_gb_per_s, graph.inter_gb_per_s) == (12.0, 12.0)
    assert (graph.intra_path, graph.inter_path) == ("PHB", "PHB")
    assert graph.channels[0].gpus == ("1", "?")
    assert graph.same_channels is None


def test_missing_and_odd_attributes_are_unknown() -> None:
    (graph,) = graphs('<graphs><graph nchannels="many" speedintra="inf"/></graphs>').graphs
    assert (graph.id, graph.nchannels, graph.intra_gb_per_s, graph.intra_path) == (
        None,
        None,
        None,
        None,
    )


def test_cut_anywhere_it_is_cut_short() -> None:
    end = GRAPHS.rindex(">") + 1
    for offset in range(GRAPHS.index("<graph id"), end):
        with pytest.raises(TruncatedTopologyError):
            read_topology(GRAPHS[:offset].encode())
    assert len(graphs(GRAPHS[:end]).graphs) == 2


def test_graphs_of_something_else_are_none() -> None:
    with pytest.raises(NotATopologyError, match="without a <graph>"):
        read_topology(b"<graphs><node/></graphs>")
