"""Processes that differ from their peers."""

from collections import Counter
from typing import Any


def verbs(bench: Any, host: Any, direct: Any = 0, plain: Any = 0, **fields: Any) -> Any:
    fields.setdefault("nics", ["mlx5_0", "mlx5_1"])
    transports = Counter({"NET/IB": direct + plain})
    return bench.process(
        host,
        networks=["IB"],
        gdr_channels=direct,
        plain_channels=plain,
        transports=transports,
        **fields,
    )


def test_gpudirect_at_one_end_only_names_the_host_without(
    bench: Any, post: Any, names: Any
) -> None:
    answer = post(processes=[verbs(bench, "a", direct=8), verbs(bench, "b", plain=8)])
    finding = answer.findings[0]
    assert finding.class_ == "low_bandwidth_gdr_one_sided"
    assert dict(finding.attributes) == {"host": "b"}
    assert names.suspects(finding) == ["b"]
    assert not names.isolated(answer)


def test_adapters_that_say_so_are_enough_without_channels(
    bench: Any, post: Any, names: Any
) -> None:
    off = verbs(bench, "b", hca_gdr={"mlx5_0": False})
    on = verbs(bench, "a", hca_gdr={"mlx5_0": True})
    assert names.roots(post(processes=[on, off])) == ["low_bandwidth_gdr_one_sided"]


def test_some_channels_without_on_each_host_are_no_difference(
    bench: Any, post: Any, names: Any
) -> None:
    both = [verbs(bench, host, direct=4, plain=4) for host in "ab"]
    assert not names.roots(post(processes=both))


def test_gpudirect_off_everywhere_is_a_warning(bench: Any, post: Any, names: Any) -> None:
    answer = post(processes=[verbs(bench, host, plain=8) for host in "ab"])
    assert names.classes(answer) == ["gdr_disabled"]
    assert answer.verdict == "ok"


def test_a_socket_network_without_gpudirect_is_no_warning(
    bench: Any, post: Any, names: Any
) -> None:
    sockets = [bench.process(host, networks=["Socket"], plain_channels=4) for host in "ab"]
    assert not names.classes(post(processes=sockets))


def test_sockets_beside_verbs_are_a_fallback(bench: Any, post: Any, names: Any) -> None:
    answer = post(processes=[verbs(bench, "a", direct=4), bench.process("b", networks=["Socket"])])
    fallback = names.of(answer, "network_fallback")
    assert fallback.role == "warning"
    assert "b" in names.suspects(fallback)


def test_sockets_where_verbs_were_asked_for_are_a_fallback(
    bench: Any, post: Any, names: Any
) -> None:
    def on_sockets(host: Any, **environment: Any) -> Any:
        return bench.process(host, networks=["Socket"], environment=environment)

    asked = [on_sockets(host, NCCL_IB_HCA="mlx5") for host in "ab"]
    assert names.classes(post(processes=asked)) == ["network_fallback"]
    refused = [on_sockets(host, NCCL_IB_HCA="mlx5", NCCL_IB_DISABLE="1.") for host in "ab"]
    assert not names.classes(post(processes=refused))
    assert not names.classes(post(processes=[asked[0]]))


def test_sockets_where_the_plugin_was_refused_are_a_fallback(
    bench: Any, post: Any, names: Any
) -> None:
    def refused(host: Any) -> Any:
        return bench.process(host, networks=["Socket"], ofi={"refused": "sendrecv"})

    assert names.classes(post(processes=[refused(host) for host in "ab"])) == ["network_fallback"]
    assert not names.classes(post(processes=[refused("a")]))


def test_a_host_with_fewer_adapters_than_its_peers_is_named(
    bench: Any, post: Any, names: Any
) -> None:
    processes = [verbs(bench, host, direct=4) for host in "abc"]
    processes.append(verbs(bench, "d", direct=4, nics=["mlx5_0"]))
    finding = names.of(post(processes=processes), "network_fallback")
    assert "d" in names.suspects(finding)
    assert finding.role == "warning"
    alike = [verbs(bench, host, direct=4) for host in "abcd"]
    assert not names.classes(post(processes=alike))


def test_an_adapter_slower_than_on_most_hosts_is_named(bench: Any, post: Any, names: Any) -> None:
    def at(host: Any, speed: Any) -> Any:
        return verbs(bench, host, direct=4, nic_speeds_mbit_per_s={"mlx5_0": speed})

    slow = [at("a", "400000"), at("b", "400000"), at("c", "200000")]
    finding = names.of(post(processes=slow), "network_fallback")
    assert "c" in names.suspects(finding)
    assert "200000" in finding.explanation
    assert not names.classes(post(processes=slow[1:]))


def test_ranks_with_fewer_devices_than_rank_0_counts_are_named(
    bench: Any, post: Any, names: Any
) -> None:
    def on(host: Any, rank: Any, **fields: Any) -> Any:
        state = bench.communicator(rank, 2, completed=True)
        return verbs(bench, host, direct=4, communicators=[state], **fields)

    count = {"net_devices": {0: 8, 1: 7}, "net_devices_max": 8}
    finding = names.of(post(processes=[on("a", 0, **count), on("b", 1)]), "network_fallback")
    assert finding.ranks == (1,)
    assert "b" in names.suspects(finding)


def test_that_it_is_off_said_of_one_host_of_several_is_a_difference(
    bench: Any, post: Any, names: Any
) -> None:
    off = verbs(bench, "b", hca_gdr={"mlx5_0": False})
    answer = post(processes=[verbs(bench, "a"), off, verbs(bench, "c")])
    assert names.suspects(answer.findings[0]) == ["b"]
    everywhere = [verbs(bench, host, hca_gdr={"mlx5_0": False}) for host in "ab"]
    assert not names.roots(post(processes=everywhere))
