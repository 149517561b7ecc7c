"""What holds for every server: order and numbering do not matter, and like things are no fault."""

from random import Random

from hypothesis import given, settings
from hypothesis import strategies as st
from servers import (
    classes,
    faults,
    renumbered,
    server,
    shuffled,
    with_adapter,
    with_device,
    with_gpu,
    without_card,
    without_gpu,
)

from ncdiag.diagnose.topology.check import check
from ncdiag.diagnose.topology.classes import BY_NAME
from ncdiag.model.topology import NcclTopology

SERVERS = st.builds(
    server,
    sockets=st.integers(1, 4),
    switches=st.integers(1, 4),
    gpus=st.integers(0, 4),
    cards=st.integers(0, 3),
    ports=st.integers(1, 2),
    gbit_per_s=st.sampled_from([40.0, 56.0, 100.0, 180.0, 200.0, 400.0, 800.0]),
    nvlinks=st.sampled_from([0, 4, 8, 12, 18]),
)


@st.composite
def _with_faults(draw: st.DrawFn) -> NcclTopology:
    """A server with up to three things wrong, or odd."""
    made = draw(SERVERS.filter(lambda s: len(s.gpus) > 1 and bool(s.adapters)))
    for _ in range(draw(st.integers(0, 3))):
        gpu = draw(st.integers(0, len(made.gpus) - 1))
        port = draw(st.integers(0, len(made.adapters) - 1))
        match draw(st.integers(0, 6)):
            case 0:
                made = with_gpu(made, gpu, links=())
            case 1:
                made = with_gpu(made, gpu, gdr=False)
            case 2:
                made = with_adapter(made, port, speed_gbit_per_s=50.0)
            case 3:
                made = with_device(made, made.adapters[port].pci, lanes=4)
            case 4:
                made = with_device(made, made.gpus[gpu].pci, gigatransfers_per_s=8.0)
            case 5 if len(made.gpus) > 2:
                made = without_gpu(made, gpu)
            case 6 if len({a.pci for a in made.adapters}) > 1:
                made = without_card(made, port)
    return made


@settings(max_examples=60, deadline=None)
@given(SERVERS)
def test_a_server_of_like_parts_has_no_fault(made: NcclTopology) -> None:
    assert check(made) == ()


@settings(max_examples=60, deadline=None)
@given(_with_faults(), st.integers(0, 2**32))
def test_the_order_of_a_file_does_not_matter(made: NcclTopology, seed: int) -> None:
    assert classes(shuffled(made, Random(seed))) == classes(made)
    assert sorted(faults(shuffled(made, Random(seed)))) == sorted(faults(made))


@settings(max_examples=60, deadline=None)
@given(_with_faults(), st.integers(0, 2**32))
def test_bus_numbers_do_not_matter(made: NcclTopology, seed: int) -> None:
    assert classes(renumbered(made, Random(seed))) == classes(made)


@settings(max_examples=40, deadline=None)
@given(_with_faults())
def test_every_finding_is_of_the_table_and_says_where_and_what(made: NcclTopology) -> None:
    for finding in check(made):
        assert finding.where
        assert finding.severity in BY_NAME[finding.name].severities
        assert len(finding.explanation) > len(finding.where)
