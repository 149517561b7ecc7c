"""The model of collectives: factors, bytes on the links, limits, and curves."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ncdiag.expect.collective import CollectiveExpectation, Conditions, expect_collective
from ncdiag.expect.hardware import MACHINES, find_machine
from ncdiag.expect.machine import LinkLayer, Machine, Rail
from ncdiag.expect.traffic import Algorithm, Collective, Layout, bus_factor, traffic, tree_load
from ncdiag.model.errors import UsageError
from ncdiag.model.host import PcieLink

H100 = find_machine("h100-8x400g")
A100 = find_machine("a100-8x200g")
NVL72 = find_machine("gb200-nvl72")
ALL_REDUCE = Collective.ALL_REDUCE

machines = st.sampled_from(list(MACHINES.values()))
collectives = st.sampled_from(Collective)
node_counts = st.integers(2, 200)


def expect(machine: Machine, nodes: int = 1, **options: object) -> CollectiveExpectation:
    return expect_collective(machine, ALL_REDUCE, nodes, **options)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("collective", "factor"),
    [
        ("all_reduce", 1.75),
        ("all_gather", 0.875),
        ("reduce_scatter", 0.875),
        ("alltoall", 0.875),
        ("gather", 0.875),
        ("broadcast", 1),
        ("reduce", 1),
        ("sendrecv", 1),
    ],
)
def test_bus_factors_of_eight_gpus_are_those_of_nccl_tests(collective: str, factor: float) -> None:
    assert bus_factor(Collective(collective), 8) == factor


def test_in_the_switch_each_gpu_sends_the_size_and_its_part_of_it() -> None:
    layout = Layout(ranks=8, domains=1, hosts=1)
    sent = traffic(ALL_REDUCE, Algorithm.NVLS, layout, multicast=True)
    assert sent.in_switch == 9 / 8
    ring = traffic(ALL_REDUCE, Algorithm.RING, layout, multicast=True)
    assert (ring.fabric, ring.network) == (1.75, 0)


def parent(rank: int, ranks: int) -> int:
    """Parent in NCCL's binary tree, whose leaves are the odd ranks (src/graph/trees.cc)."""
    bit = rank & -rank
    above = (rank ^ bit) | (bit << 1)
    return above if above < ranks else rank ^ bit


@pytest.mark.parametrize("domains", [2, 3, 4, 5, 6, 7, 8, 9, 31, 32, 33, 100, 255])
def test_the_busiest_domain_of_a_double_tree_is_that_of_the_trees_nccl_builds(
    domains: int,
) -> None:
    sent = [0.0] * domains
    for child in range(1, domains):
        above = parent(child, domains)
        # The second tree is mirrored for even numbers, shifted for odd ones.
        second = (
            (domains - 1 - child, domains - 1 - above)
            if domains % 2 == 0
            else ((child + 1) % domains, (above + 1) % domains)
        )
        for lower, upper in ((child, above), second):
            sent[lower] += 0.5  # half of the size up
            sent[upper] += 0.5  # and down again
    assert tree_load(domains) == max(sent)


def test_eight_h100_by_nvls() -> None:
    found = expect(H100)
    assert found.algorithm is Algorithm.NVLS
    assert found.binding == "NVLink SHARP (NVLS)"
    assert found.busbw_gb_per_s == pytest.approx(18 * 20.6 * 0.85 * 8 / 9 * 1.75)
    assert dict(found.others)[Algorithm.RING] == pytest.approx(370.8)


def test_a_ring_between_hosts_is_bound_by_the_nics_of_one_host() -> None:
    found = expect(A100, 4, algorithm=Algorithm.RING)
    assert found.binding == "NIC"
    assert found.busbw_gb_per_s == pytest.approx(8 * 25 * 4096 / 4122)
    assert found.algbw_gb_per_s == pytest.approx(found.busbw_gb_per_s / bus_factor(ALL_REDUCE, 32))


def test_two_hosts_exceed_their_nics_by_trees_and_more_hosts_do_not() -> None:
    nics = 8 * 25 * 4096 / 4122
    two, three = expect(A100, 2), expect(A100, 3)
    assert two.algorithm is Algorithm.TREE
    assert two.busbw_gb_per_s > nics
    assert three.busbw_gb_per_s <= nics
    assert expect(A100, 3, algorithm=Algorithm.TREE).busbw_gb_per_s > nics


def test_sharp_halves_what_goes_over_the_network() -> None:
    slow = replace(H100, rails=H100.rails[:2])
    ring = expect(slow, 8, algorithm=Algorithm.RING)
    sharp = expect(slow, 8, algorithm=Algorithm.SHARP)
    assert sharp.busbw_gb_per_s == pytest.approx(ring.busbw_gb_per_s * bus_factor(ALL_REDUCE, 64))


def test_all_to_all_counts_what_leaves_the_host_against_one_gpus_share_of_the_nics() -> None:
    found = expect_collective(H100, Collective.ALLTOALL, 4)
    nic = 50 * 4096 / 4122
    assert found.busbw_gb_per_s == pytest.approx(nic * 31 / 24)


def test_trays_of_one_rack_are_one_domain_and_racks_are_several() -> None:
    assert expect(NVL72, 18).algorithm is Algorithm.NVLS
    between = expect_collective(NVL72, Collective.ALL_GATHER, 36)
    assert between.binding == "NVLink"  # 18 trays have 72 NICs
    assert expect(NVL72, 36).algorithm is Algorithm.NVLSTREE


@pytest.mark.parametrize(
    ("nodes", "smallest"), [(19, 1), (20, 2), (37, 1), (36, 18), (40, 4), (18 * 7 + 5, 5)]
)
def test_the_rack_with_the_fewest_trays_binds(nodes: int, smallest: int) -> None:
    found = expect(NVL72, nodes, algorithm=Algorithm.RING)
    nics = smallest * 4 * 50 * 4096 / 4122
    assert found.busbw_gb_per_s == pytest.approx(min(nics, 18 * 40.1 * 72 / 71))
    uneven = [line for line in found.derivation if "filled with 18 hosts" in line.why]
    assert len(uneven) == (smallest != 18)
    assert all(f"the last has {smallest}" in line.why for line in uneven)


def test_a_ring_that_leaves_a_host_by_each_gpus_nic_spares_one_link_in_eight() -> None:
    mi300x = find_machine("mi300x-8x400g")
    ring = expect(mi300x, 4, algorithm=Algorithm.RING)
    assert ring.busbw_gb_per_s == pytest.approx(7 * 48 * 8 / 7)
    fewer = replace(mi300x, rails=tuple(replace(one, gbit_per_s=800.0) for one in mi300x.rails[:7]))
    assert expect(fewer, 4, algorithm=Algorithm.RING).busbw_gb_per_s == pytest.approx(7 * 48)


def test_trees_count_as_nccl_counts_them() -> None:
    found = expect(A100, 1, algorithm=Algorithm.TREE)
    assert found.algbw_gb_per_s == pytest.approx(12 * 20 / 2 * 0.92)


@pytest.mark.parametrize(("nodes", "each"), [(2, 57.7), (4, 45.5)])
def test_trees_of_nvls_are_bound_by_their_heads(nodes: int, each: float) -> None:
    found = expect(H100, nodes, algorithm=Algorithm.NVLSTREE)
    assert found.busbw_gb_per_s == pytest.approx(8 * each)
    few = replace(H100, rails=H100.rails[:4])
    assert expect(few, nodes, algorithm=Algorithm.NVLSTREE).busbw_gb_per_s <= 4 * each * 1.0001


@pytest.mark.parametrize(
    ("machine", "collective", "gpus", "busbw"),
    [
        ("mi300x-8x400g", "sendrecv", 8, 48),
        ("mi355x-8x400g", "sendrecv", 8, 57.6),
        ("mi300x-8x400g", "alltoall", 8, 7 * 48),
        ("mi300x-8x400g", "alltoall", 4, 3 * 48),
        ("mi300x-8x400g", "all_gather", 8, 7 * 48),
        ("mi355x-8x400g", "all_reduce", 8, 7 * 57.6),
        ("mi250x-4x200g", "sendrecv", 2, 4 * 36),
        ("mi250x-4x200g", "sendrecv", 8, 36),
        ("v100-4x100g", "sendrecv", 2, 20),
        ("v100-4x100g", "sendrecv", 8, 20),
        ("v100-4x100g", "broadcast", 8, 6 * 20),
        ("h100-8x400g", "sendrecv", 8, 18 * 20.6),
    ],
)
def test_without_switches_the_slowest_pair_decides(
    machine: str, collective: str, gpus: int, busbw: float
) -> None:
    found = expect_collective(find_machine(machine), Collective(collective), 1, gpus_per_node=gpus)
    assert found.busbw_gb_per_s == pytest.approx(busbw)


def test_what_has_no_link_takes_room_on_those_of_others() -> None:
    v100 = find_machine("v100-4x100g")
    found = expect_collective(v100, Collective.ALLTOALL, 1)
    assert found.busbw_gb_per_s < 6 * 20 / 2
    assert any("messages on one way" in line.formula for line in found.derivation)


def test_pairs_of_bridged_gpus_meet_by_the_host() -> None:
    found = expect_collective(find_machine("a100-pcie"), Collective.SENDRECV, 1)
    assert found.binding == "PCIe host bridge"
    two = expect_collective(find_machine("a100-pcie"), Collective.SENDRECV, 1, gpus_per_node=2)
    assert two.busbw_gb_per_s == pytest.approx(12 * 20)


def test_between_hosts_a_neighbour_can_be_slower_than_the_nic() -> None:
    found = expect_collective(find_machine("v100-4x100g"), Collective.SENDRECV, 4)
    assert found.busbw_gb_per_s == pytest.approx(12.5 * 4096 / 4122)
    fast = replace(find_machine("v100-4x100g"), rails=H100.rails)
    assert expect_collective(fast, Collective.SENDRECV, 4).binding == "NVLink"


def test_what_is_known_to_be_off_is_said() -> None:
    assert any("do not judge" in note for note in expect(NVL72, 18).notes)
    assert any("do not judge" in note for note in expect(NVL72, 36).notes)
    assert expect(NVL72, 2).notes == expect(H100).notes == ()
    mi355x = find_machine("mi355x-8x400g")
    assert expect_collective(mi355x, Collective.ALLTOALL, 1).notes
    assert any("of theory there" in note for note in expect(A100, 4).notes)


def test_what_is_known_to_be_off_judges_no_machine() -> None:
    mi355x = find_machine("mi355x-8x400g")
    for off in (expect(NVL72, 18), expect_collective(mi355x, Collective.ALLTOALL, 1)):
        assert off.unreliable
        assert not off.judges(8 << 30)
    between_hosts, inside = expect(A100, 4), expect(H100)
    assert not between_hosts.unreliable
    sizes = [2 << 20, 4 << 20, 64 << 20, 128 << 20]
    assert [between_hosts.judges(size) for size in sizes] == [True, False, False, True]
    assert all(inside.judges(size) for size in sizes)


def test_without_gpudirect_rdma_every_byte_crosses_the_host_bridge_twice() -> None:
    with_it = expect(A100, 4)
    without = expect(A100, 4, conditions=Conditions(gdr=False))
    assert without.binding == "host memory (no GPUDirect RDMA)"
    assert without.busbw_gb_per_s < 0.6 * with_it.busbw_gb_per_s


def test_a_smaller_mtu_leaves_less_and_an_unknown_one_is_refused() -> None:
    whole = expect(A100, 4).busbw_gb_per_s
    small = expect(A100, 4, conditions=Conditions(mtu_bytes=1024)).busbw_gb_per_s
    assert small == pytest.approx(whole * (1024 / 1050) / (4096 / 4122))
    with pytest.raises(UsageError, match="RDMA has no MTU of 9000"):
        expect(A100, 4, conditions=Conditions(mtu_bytes=9000))


def test_nics_of_different_rates_count_as_many_times_the_slowest_used() -> None:
    slow = replace(H100.rails[0], gbit_per_s=100.0)
    found = expect(replace(H100, rails=(*H100.rails[:7], slow)), 8, algorithm=Algorithm.RING)
    assert found.busbw_gb_per_s == pytest.approx(7 * 50 * 4096 / 4122)
    assert any("slower" in line.why for line in found.derivation)


def test_a_narrow_slot_binds() -> None:
    narrow = replace(H100.rails[0], slot=PcieLink(gigatransfers_per_s=16.0, lanes=16))
    found = expect(replace(H100, rails=(narrow,) * 8), 8, algorithm=Algorithm.RING)
    assert found.binding == "PCIe of the NIC"


@pytest.mark.parametrize(
    ("machine", "options", "complaint"),
    [
        ("a100-8x200g", {"algorithm": Algorithm.NVLS}, "has no NVLS"),
        ("h100-8x400g", {"algorithm": Algorithm.NVLSTREE}, "between NVLink domains"),
        ("h100-8x400g", {"nodes": 2, "algorithm": Algorithm.NVLS}, "inside one NVLink domain"),
        ("h100-4x400g", {"nodes": 2, "algorithm": Algorithm.SHARP}, "no SHARP"),
        ("h100-8x400g", {"algorithm": Algorithm.P2P}, "does not do all_reduce by p2p"),
        ("h100-8x400g", {"gpus_per_node": 9}, "has 8 GPUs, so 9"),
        ("h100-8x400g", {"gpus_per_node": 1}, "needs two GPUs"),
        ("h100-8x400g", {"nodes": 0}, "number of nodes"),
        ("h100-8x400g", {"nodes": 10**9}, "number of nodes"),
    ],
)
def test_what_cannot_be_is_one_clear_line(
    machine: str, options: dict[str, object], complaint: str
) -> None:
    with pytest.raises(UsageError, match=complaint):
        expect(find_machine(machine), **{"nodes": 1, **options})  # type: ignore[arg-type]


@given(machines, collectives, node_counts)
def test_larger_messages_never_get_less_bandwidth_nor_less_time(
    machine: Machine, collective: Collective, nodes: int
) -> None:
    found = expect_collective(machine, collective, nodes)
    rates = [point.busbw_gb_per_s for point in found.curve]
    times = [point.time_us for point in found.curve]
    assert rates == sorted(rates)
    assert times == sorted(times)
    assert rates[-1] <= found.busbw_gb_per_s * 1.000001


@given(machines, collectives, node_counts)
def test_more_nics_are_never_slower(machine: Machine, collective: Collective, nodes: int) -> None:
    fewer = replace(machine, rails=machine.rails[: max(1, len(machine.rails) // 2)])
    more = expect_collective(machine, collective, nodes)
    assert more.busbw_gb_per_s >= expect_collective(fewer, collective, nodes).busbw_gb_per_s * 0.999


@given(machines, st.lists(st.sampled_from([10.0, 100.0, 200.0, 400.0]), min_size=1, max_size=9))
def test_one_more_nic_of_any_rate_is_never_slower(machine: Machine, rates: list[float]) -> None:
    rails = tuple(
        Rail(name=f"r{number}", gbit_per_s=rate, layer=LinkLayer.ROCE)
        for number, rate in enumerate(rates)
    )
    ring = {"nodes": 4, "algorithm": Algorithm.RING}
    more = expect(replace(machine, rails=rails), **ring)  # type: ignore[arg-type]
    if len(rails) > 1:
        fewer = expect(replace(machine, rails=rails[:-1]), **ring)  # type: ignore[arg-type]
        assert more.busbw_gb_per_s >= fewer.busbw_gb_per_s * 0.999


@given(machines, collectives, node_counts, st.sampled_from([1, 2, 4, 8, 16]))
def test_fewer_lanes_are_never_faster(
    machine: Machine, collective: Collective, nodes: int, lanes: int
) -> None:
    def narrowed(slot: PcieLink | None) -> PcieLink | None:
        return None if slot is None else replace(slot, lanes=min(lanes, slot.lanes))

    narrow = replace(
        machine,
        gpu_slot=narrowed(machine.gpu_slot),
        rails=tuple(replace(rail, slot=narrowed(rail.slot)) for rail in machine.rails),
    )
    wide = expect_collective(machine, collective, nodes)
    assert expect_collective(narrow, collective, nodes).busbw_gb_per_s <= wide.busbw_gb_per_s


def test_small_messages_are_judged_by_latency_and_large_ones_by_bandwidth() -> None:
    found = expect(H100, 16)
    assert found.at(8).latency_share > 0.99
    assert found.at(8).time_us == pytest.approx(found.at(1024).time_us, rel=0.01)
    assert found.at(16 * 2**30).latency_share < 0.05
    assert found.at(16 * 2**30).busbw_gb_per_s == pytest.approx(found.busbw_gb_per_s, rel=0.05)
