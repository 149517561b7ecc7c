"""What NCCL and RCCL processes say of themselves, generation by generation."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scanned import scanned

from ncdiag.model.log import LogEvidence, NcclProcess, Speaker
from ncdiag.model.place import Place
from ncdiag.read.line import Line
from ncdiag.read.nccl.reader import NcclReader
from ncdiag.read.nccl.versions import versions


def read_bytes(data: bytes) -> LogEvidence:
    return scanned(NcclReader(), data)


def read(*messages: str, prefix: str = "oak1:100:101 [0] NCCL INFO ") -> LogEvidence:
    return read_bytes("\n".join(prefix + message for message in messages).encode())


def process(*messages: str, prefix: str = "oak1:100:101 [0] NCCL INFO ") -> NcclProcess:
    (only,) = read(*messages, prefix=prefix).processes
    return only


GENERATIONS = {
    "2.4": (
        "Bootstrap : Using [0]eth0:10.1.0.1<0>",
        "NET/IB : Using [0]mlx5_0:1/IB ; OOB eth0:10.1.0.1<0>",
        "Using internal Network IB",
        "Ring 00 : 1 -> 0 [receive] via NET/IB/0/GDRDMA",
        "Ring 00 : 0[0] -> 1[1] via P2P/IPC",
        "comm 0x7f0000001000 rank 0 nranks 16 cudaDev 0 nvmlDev 0 - Init COMPLETE",
    ),
    "2.7": (
        "Bootstrap : Using [0]eth0:10.1.0.1<0> [1]eth1:10.2.0.1<0>",
        "NET/Plugin : No plugin found (libnccl-net.so), using internal implementation",
        "NET/IB : Using [0]mlx5_0:1/IB [1]mlx5_1:1/RoCE ; OOB eth0:10.1.0.1<0>",
        "Using network IB",
        "Channel 00/02 :    0   1   2   3",
        "Channel 00 : 15[1b000] -> 0[1a000] [receive] via NET/IB/0",
        "Channel 00 : 0[1a000] -> 1[1b000] via direct shared memory",
        "comm 0x7f0000001000 rank 0 nranks 16 cudaDev 0 busId 1a000 - Init COMPLETE",
    ),
    "2.12": (
        "Bootstrap : Using eth0:10.1.0.1<0>",
        "NET/IB : Using [0]mlx5_0:1/IB [RO]; OOB eth0:10.1.0.1<0>",
        "Using network IB",
        "Channel 00/0 : 15[1b000] -> 0[1a000] [receive] via NET/IB/0(3)/GDRDMA/Shared",
        "comm 0x7f0000001000 rank 0 nranks 16 cudaDev 0 busId 1a000 - Init COMPLETE",
    ),
    "2.16": (
        "cudaDriverVersion 12000",
        "Bootstrap : Using eth0:10.1.0.1<0>",
        "NET/IB : Using [0]mlx5_0:1/IB [RO]; OOB eth0:10.1.0.1<0>",
        "Using network IB",
        "NET/IB : GPU Direct RDMA Enabled for HCA 0 'mlx5_0'",
        "Channel 00/0 : 15[1b000] -> 0[1a000] [receive] via NET/IB/0/GDRDMA",
        "comm 0x7f0000001000 rank 0 nranks 16 cudaDev 0 busId 1a000 commId 0x12 - Init COMPLETE",
    ),
    "2.18": (
        (
            "comm 0x7f0000001000 rank 0 nranks 16 cudaDev 0 busId 1a000 commId 0x1234abcd "
            "- Init START"
        ),
        "NET/IB : Using [0]mlx5_0:1/IB [RO]; OOB eth0:10.1.0.1<0>",
        "Using network IB",
        "NVLS multicast support is available on dev 0",
        "16 coll channels, 16 nvls channels, 16 p2p channels, 2 p2p channels per peer",
        "Channel 00/0 : 15[7] -> 0[0] [receive] via NET/IB/0/GDRDMA",
        (
            "comm 0x7f0000001000 rank 0 nranks 16 cudaDev 0 busId 1a000 commId 0x1234abcd "
            "- Init COMPLETE"
        ),
    ),
    "2.21": (
        (
            "ncclCommInitRank comm 0x7f0000001000 rank 0 nranks 16 cudaDev 0 nvmlDev 0 busId 1a000 "
            "commId 0x1234abcd - Init START"
        ),
        "NET/IB : Using [0]={[0] mlx5_0:1/IB, [1] mlx5_1:1/IB} [RO]; OOB eth0:10.1.0.1<0>",
        "Using network IB",
        "comm 0x7f0000001000 rank 0 nRanks 16 nNodes 2 localRanks 8 localRank 0 MNNVL 0",
        (
            "ncclCommInitRank comm 0x7f0000001000 rank 0 nranks 16 cudaDev 0 nvmlDev 0 busId 1a000 "
            "commId 0x1234abcd - Init COMPLETE"
        ),
    ),
    "2.24": (
        "Bootstrap: Using eth0:10.1.0.1<0>",
        (
            "ncclCommInitRankConfig comm 0x7f0000001000 rank 0 nranks 16 cudaDev 0 nvmlDev 0 "
            "busId 1a000 commId 0x1234abcd - Init START"
        ),
        "NET/IB : Made virtual device [0] name=mlx5_0 speed=400000 ndevs=1",
        "NET/IB : Using [0]mlx5_0:1/IB [RO]; OOB eth0:10.1.0.1<0>",
        "Using network IB",
        "comm 0x7f0000001000 rank 0 nRanks 16 nNodes 2 localRanks 8 localRank 0 MNNVL 0",
        "Init timings - ncclCommInitRankConfig: rank 0 nranks 16 total 0.50 (kernels 0.10)",
        "Connected all rings, use ring PXN 1 GDR 1",
        (
            "ncclCommInitRankConfig comm 0x7f0000001000 rank 0 nranks 16 cudaDev 0 nvmlDev 0 "
            "busId 1a000 commId 0x1234abcd - Init COMPLETE"
        ),
    ),
    "2.27": (
        (
            "ncclCommInitRankConfig comm 0x7f0000001000 rank 0 nranks 16 cudaDev 0 nvmlDev 0 "
            "busId 1a000 commId 0x1234abcd - Init START"
        ),
        (
            "NET/IB: [0] mlx5_0:uverbs0:1/IB provider=Mlx5 speed=400000 context=0x55 "
            "pciPath=/sys/devices/pci0000:15 ar=1"
        ),
        "NET/IB : Using [0]mlx5_0:1/IB [RO]; OOB eth0:10.1.0.1<0>",
        "Assigned NET plugin IB to comm",
        "Using network IB",
        (
            "ncclCommInitRankConfig comm 0x7f0000001000 rank 0 nranks 16 cudaDev 0 nvmlDev 0 "
            "busId 1a000 commId 0x1234abcd - Init COMPLETE"
        ),
    ),
    "2.29": (
        (
            "[Rank 0] ncclCommInitRankConfig comm 0x7f0000001000 rank 0 nranks 16 cudaDev 0 "
            "busId 1a000 commId 0x1234abcd - Init START"
        ),
        "NET/IB : Using [0]mlx5_0:1/IB [RO]; OOB eth0:10.1.0.1<0>",
        "Using network IB",
        (
            "ncclCommInitRankConfig comm 0x7f0000001000 rank 0 nranks 16 cudaDev 0 nvmlDev 0 "
            "busId 1a000 commId 0x1234abcd - Init COMPLETE"
        ),
    ),
    "2.31": (
        (
            "[Rank 0] ncclCommInitRankConfig comm 0x7f0000001000 rank 0 nranks 16 cudaDev 0 "
            "busId 1a000 commId 0x1234abcd - Init START"
        ),
        "NET/IB : Using [0]mlx5_0:1:0:1/IB [RO]; OOB eth0:10.1.0.1<0>",
        "Using network IB",
        "Rank 0: 1 Net devices",
        (
            "ncclCommInitRankConfig comm 0x7f0000001000 rank 0 nranks 16 cudaDev 0 nvmlDev 0 "
            "busId 1a000 commId 0x1234abcd - Init COMPLETE"
        ),
    ),
}


@pytest.mark.parametrize("generation", GENERATIONS)
def test_a_start_up_of_each_generation(generation: str) -> None:
    found = process(*GENERATIONS[generation])
    (comm,) = found.communicators
    assert (comm.rank, comm.ranks, comm.pointer) == (0, 16, "0x7f0000001000")
    assert comm.completed
    assert comm.completed.line == len(GENERATIONS[generation])
    assert comm.ended is None
    assert found.networks == ["IB"]
    assert found.nics[0] == "mlx5_0"
    assert found.addresses[0] == "10.1.0.1"
    if "START" in " ".join(GENERATIONS[generation]):
        assert comm.started
        assert comm.comm_id == "0x1234abcd"


def test_the_first_releases_do_not_name_themselves() -> None:
    found = process(
        "NET/IB : Using interface ib0 for sideband communication",
        "Using internal Network IB",
        "Ring 00 : 3 -> 0 via NET/IB/0/GDRDMA",
        "Ring 00 : 0[0] -> 1[1] via P2P/direct pointer",
        "comm 0x7f0000001000 rank 0 nranks 4 - COMPLETE",
        prefix="oak1:100:101 [0] INFO ",
    )
    assert found.networks == ["IB"]
    assert found.interfaces == ["ib0"]
    assert found.channel_ranks == {0}
    assert found.transports == {"NET/IB": 1, "P2P": 1}
    assert found.communicators[0].completed
    assert (found.communicators[0].rank, found.communicators[0].ranks) == (0, 4)


def test_details_of_the_generations() -> None:
    made = {name: process(*lines) for name, lines in GENERATIONS.items()}
    assert made["2.4"].transports == {"NET/IB": 1, "P2P": 1}
    assert made["2.4"].gdr_channels == 1
    assert made["2.4"].channel_ranks == {0}
    assert made["2.7"].transports == {"NET/IB": 1, "SHM": 1}
    assert (made["2.7"].gdr_channels, made["2.7"].plain_channels) == (0, 1)
    assert made["2.7"].addresses == ["10.1.0.1", "10.2.0.1"]
    assert made["2.7"].nics == ["mlx5_0", "mlx5_1"]
    assert made["2.12"].pxn is True
    assert made["2.12"].gdr_channels == 1
    assert made["2.16"].hca_gdr == {"mlx5_0": True}
    assert made["2.18"].nvls is True
    assert made["2.21"].nics == ["mlx5_0", "mlx5_1"]
    assert made["2.21"].communicators[0].nodes == 2
    assert made["2.21"].communicators[0].local_ranks == 8
    assert made["2.24"].nic_speeds_mbit_per_s == {"mlx5_0": "400000"}
    assert made["2.24"].pxn is True
    assert made["2.24"].connected
    assert made["2.24"].communicators[0].progressed
    assert made["2.27"].nic_speeds_mbit_per_s == {"mlx5_0": "400000"}
    assert made["2.31"].net_devices == {0: 1}


def test_rccl() -> None:
    evidence = read_bytes(
        b"elm1:7:7 [0] NCCL INFO RCCL version : 2.22.3-HEAD:00aa11b\n"
        b"HIP version  : 6.4.1\n"
        b"ROCm version : 6.4.0\n"
        b"Hostname     : elm1\n"
        b"Librccl path : /opt/rocm/lib/librccl.so.1\n"
        b"elm1:8:8 [1] NCCL INFO NET/Plugin: Could not find: librccl-net.so. Using internal\n"
        b"elm1:8:8 [1] NCCL INFO Channel 00/0 : 1[1] -> 0[0] via P2P/IPC comm 0x55a0b0 nRanks 02\n"
        b"elm1:7:7 [0] NCCL INFO Connected all rings comm 0x55c0d0 nRanks 02 busId c3000\n"
        b"elm1:7:7 [0] NCCL INFO comm 0x55c0d0 rank 0 nRanks 02 busId c3000 - Init COMPLETE"
    )
    first, second = evidence.processes
    assert (first.library, second.library) == ("RCCL", "RCCL")
    assert first.versions == ["2.22.3-HEAD:00aa11b"]
    assert evidence.hosts.keys() == {"elm1"}
    assert first.communicators[0].ranks == 2
    assert first.communicators[0].completed
    assert second.communicators[0].progressed
    assert second.transports == {"P2P": 1}


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("NCCL version 2.21.5+cuda12.4", ["2.21.5+cuda12.4"]),
        (
            "NCCL version 2.7.8+cuda10.2NCCL version 2.8.3+cuda11.0",
            ["2.7.8+cuda10.2", "2.8.3+cuda11.0"],
        ),
        ("NCCL version 2.26.2 compiled with CUDA 12.6", ["2.26.2"]),
        ("RCCL version 2.18.3+hip6.0 HEAD:1234567+", ["2.18.3+hip6.0"]),
        ("RCCL version : 2.22.3-HEAD:1a2b3c4", ["2.22.3-HEAD:1a2b3c4"]),
        ("RCCL version : 2.22.3-HEAD:1a2b3c4+", ["2.22.3-HEAD:1a2b3c4+"]),
        ("RCCL version : 2.22.3+", []),
        ("... unhandled system error, NCCL version 2.19.3", ["2.19.3"]),
        ("engine is using nccl==2.20.5", ["2.20.5"]),
        ("NCCL version 2.10.3 or newer is needed", []),
        ("requires NCCL version >= 2.10", []),
        ("NCCL git version main 0123abc", []),
        ("nvidia-nccl-cu12==2.20.5", []),
    ],
)
def test_versions(text: str, found: list[str]) -> None:
    assert [version for _, version in versions(text)] == found


def test_bare_version_lines_belong_to_no_process() -> None:
    evidence = read_bytes(b"NCCL version 2.9.9+cuda11.2\nNCCL version 2.9.9+cuda11.2")
    assert evidence.versions == [("NCCL", "2.9.9+cuda11.2")]
    assert evidence.processes == []
    assert evidence.inputs[0].kinds == ["nccl"]


def test_a_version_in_a_sentence_is_no_nccl_log() -> None:
    evidence = read_bytes(b"RuntimeError: remote process exited, NCCL version 2.21.5")
    assert evidence.versions == [("NCCL", "2.21.5")]
    assert evidence.inputs[0].kinds == []


START = (
    "ncclCommInitRank comm {0} rank 3 nranks 8 cudaDev 3 nvmlDev 3 busId 1a000 "
    "commId {1} - Init START"
)
COMPLETE = START.replace("START", "COMPLETE")
LAYOUT = "comm {0} rank 3 nRanks 8 nNodes 2 localRanks 4 localRank 3 MNNVL 0"
ENDED = "comm {0} rank 3 nranks 8 cudaDev 3 busId 1a000 - {1} COMPLETE"


def test_a_split_communicator_has_a_parent() -> None:
    found = process(
        "ncclCommSplit comm 0x7f0000002000 rank 1 nranks 4 cudaDev 0 nvmlDev 0 busId 1a000 parent "
        "0x7f0000001000 splitCount 1 color 7 key 1- Init START",
        "ncclCommShrink comm 0x7f0000003000 rank 1 nranks 3 cudaDev 0 nvmlDev 0 busId 1a000 parent "
        "0x7f0000001000 childCount 1 color 7 key 1 - Init COMPLETE",
    )
    split, shrunk = found.communicators
    assert (split.parent, split.rank, split.ranks) == ("0x7f0000001000", 1, 4)
    assert split.started
    assert split.completed is None
    assert shrunk.completed


def test_memory_used_again_is_another_communicator() -> None:
    found = process(
        START.format("0x7f0000001000", "0x1"),
        COMPLETE.format("0x7f0000001000", "0x1"),
        ENDED.format("0x7f0000001000", "Destroy"),
        START.format("0x7f0000001000", "0x2"),
    )
    first, second = found.communicators
    assert first.ended
    assert not first.aborted
    assert (second.comm_id, second.completed) == ("0x2", None)


def test_the_same_lines_twice_are_one_communicator() -> None:
    found = process(
        START.format("0x7f0000001000", "0x1"),
        START.format("0x7f0000001000", "0x1"),
        COMPLETE.format("0x7f0000001000", "0x1"),
        START.format("0x7f0000001000", "0x1"),
    )
    (comm,) = found.communicators
    assert comm.completed


def test_an_abort_is_told_from_a_destruction() -> None:
    (comm,) = process(
        START.format("0x7f0000001000", "0x1"), ENDED.format("0x7f0000001000", "Abort")
    ).communicators
    assert comm.aborted
    assert comm.ended


@pytest.mark.parametrize(
    "step",
    [
        "Channel 00/02 :    0   1   2   3   4   5   6   7",
        "Trees [0] 1/-1/-1->3->-1 [1] 1/-1/-1->3->-1",
        "Channel 00/0 : 3[3] -> 4[4] via P2P/CUMEM",
        "Connected all trees",
        "Ring 00 : 2 -> 3 -> 4",
        "Init timings - ncclCommInitRank: rank 3 nranks 8 total 1.00 (kernels 0.1)",
        LAYOUT.format("0x7f0000001000"),
    ],
)
def test_a_later_step_shows_that_the_start_up_went_on(step: str) -> None:
    prefix = "oak1:100:101 [3] NCCL INFO "
    (comm,) = process(START.format("0x7f0000001000", "0x1"), step, prefix=prefix).communicators
    assert comm.progressed
    assert comm.progressed.line == 2


@pytest.mark.parametrize(
    "line", ["Bootstrap: Using eth0:10.1.0.1<0>", "Using network IB", "cudaDriverVersion 12040"]
)
def test_what_a_rank_does_alone_is_no_step_of_the_start_up(line: str) -> None:
    (comm,) = process(START.format("0x7f0000001000", "0x1"), line).communicators
    assert comm.progressed is None


def test_a_step_goes_to_the_communicator_of_its_device() -> None:
    lines = [
        "oak1:9:9 [0] NCCL INFO "
        + START.format("0x7f0000001000", "0x1").replace("cudaDev 3", "cudaDev 0"),
        "oak1:9:9 [1] NCCL INFO "
        + START.format("0x7f0000002000", "0x1").replace("cudaDev 3", "cudaDev 1"),
        "oak1:9:9 [1] NCCL INFO Connected all rings",
    ]
    (found,) = read_bytes("\n".join(lines).encode()).processes
    assert [bool(comm.progressed) for comm in found.communicators] == [False, True]


def test_calls() -> None:
    call = (
        "{}: opCount {} sendbuff 0x1 recvbuff 0x2 count {} datatype 7 op 0 root 0 "
        "comm 0x7f0000001000 [nranks=8] stream 0x5"
    )
    (comm,) = process(
        call.format("AllReduce", "a", 100),
        call.format("AllReduce", "b", 100),
        call.format("AllGather", "b", 50),
        call.format("AllReduce", "b", 100),
        call.format("Send", "c", 100),
        call.format("Broadcast", "d", 9) + " task 0 globalrank 3",
    ).communicators
    assert comm.calls == {10: ("AllReduce", "100", "7"), 13: ("Broadcast", "9", "7")}
    assert comm.ranks == 8
    assert comm.last_call
    assert comm.last_call.line == 6


def test_only_the_newest_calls_are_kept() -> None:
    lines = [
        f"AllReduce: opCount {n:x} sendbuff 0x1 recvbuff 0x2 count 4 datatype 7 op 0 root 0 "
        "comm 0x7f0000001000 [nranks=8] stream 0x5"
        for n in range(1000)
    ]
    (comm,) = process(*lines).communicators
    assert max(comm.calls) == 999
    assert len(comm.calls) <= 64


def test_a_call_that_a_pager_cut() -> None:
    (comm,) = (
        read_bytes(
            b"oak1:5:5 [0] NCCL INFO AllReduce: opCount c sendbuff 0x7f1 recvbuff 0x7f2 coun$\n"
            b" 4096 datatype 7 op 0 root 0 comm 0x7f0000001000 [nranks=6] stream 0x5"
        )
        .processes[0]
        .communicators
    )
    assert comm.ranks == 6
    assert comm.calls == {12: ("AllReduce", "4096", "7")}


def test_api_calls() -> None:
    (comm,) = (
        read_bytes(
            b"oak1:5:5 NCCL CALL ncclGroupStart()\n"
            b"oak1:5:5 NCCL CALL ncclAllReduce(7f10,7f20,256,7,0,0,0x7f0000001000,0x7f5)\n"
            b"oak1:5:5 NCCL CALL ncclSend(0,7f20,64,2,0,1,0x7f0000001000,0x7f5)"
        )
        .processes[0]
        .communicators
    )
    assert comm.api_calls == 2


def test_a_back_trace() -> None:
    found = process(
        "misc/socket.cc:46 -> 6",
        "transport/net_socket.cc:493 (ncclNetSocketTest) -> 6",
        "bootstrap.cc:77 -> 2 (Operation now in progress)",
        "/build/nccl/src/group.cc:64 -> 2 [Async thread]",
        "include/net.h:32 -> 2",
        "channel.cc:41 Cuda Alloc Size 1024 pointer 0x7f",
    )
    assert [frame[1:] for frame in found.chain] == [(46, 6), (493, 6), (77, 2), (64, 2), (32, 2)]
    assert found.chain_bootstrap
    assert found.chain_socket
    assert process(*["proxy.cc:1 -> 3"] * 500).chain[-1] == ("proxy.cc", 1, 3)
    assert len(process(*["proxy.cc:1 -> 3"] * 500).chain) <= 32


def test_environment_and_secrets() -> None:
    found = process(
        "NCCL_DEBUG set by environment to INFO",
        "NCCL_IB_TIMEOUT set by environment to 22.",
        "NCCL_SOCKET_IFNAME set to eth0",
        "NCCL_NET_SHARED_SECRET_KEY set by environment to 3.",
        "WANDB_API_KEY set by environment to abcdef",
        "NET/OFI Setting FI_EFA_FORK_SAFE environment variable to 1",
    )
    assert found.environment == {
        "NCCL_DEBUG": "INFO",
        "NCCL_IB_TIMEOUT": "22",
        "NCCL_SOCKET_IFNAME": "eth0",
        "NCCL_NET_SHARED_SECRET_KEY": "3",
        "WANDB_API_KEY": "[redacted]",
        "FI_EFA_FORK_SAFE": "1",
    }


def test_libfabric() -> None:
    found = process(
        "NET/OFI Initializing aws-ofi-nccl 1.14.0",
        "NET/OFI Using Libfabric version 1.22",
        "NET/OFI Plugin selected platform: AWS",
        "NET/OFI Using transport protocol RDMA (platform set)",
        "NET/OFI Selected provider is efa, fabric is efa-direct (found 16 nics)",
        "Using network AWS Libfabric",
        "Channel 00/0 : 8[0] -> 0[0] [receive] via NET/AWS Libfabric/0/GDRDMA/Shared",
    )
    assert found.networks == ["AWS Libfabric"]
    assert found.transports == {"NET/AWS Libfabric": 1}
    assert found.ofi == {
        "version": "1.14.0",
        "libfabric": "1.22",
        "platform": "AWS",
        "protocol": "RDMA",
        "provider": "efa",
        "nics": "16",
    }


def test_sockets_are_nics_where_they_carry_the_data() -> None:
    found = process(
        "NET/IB : No device found.",
        "NET/IB : Using [RO]; OOB eth0:10.1.0.1<0>",
        "NET/Socket : Using [0]eth0:10.1.0.1<0> [1]veth1:fe80::1%veth1<0>",
        "Using network Socket",
        "NET/Socket : GPU Direct RDMA Disabled for HCA 0 'eth0'",
        "Channel 00/0 : 0[0] -> 1[0] [send] via NET/Socket/0",
    )
    assert found.nics == ["eth0", "veth1"]
    assert found.addresses == ["10.1.0.1", "fe80::1%veth1"]
    assert found.hca_gdr == {}
    assert found.transports == {"NET/Socket": 1}


def test_gpudirect_is_counted_at_either_end() -> None:
    found = process(
        "NET/IB : GPU Direct RDMA Disabled for HCA 1 'mlx5_1'",
        "Channel 00/0 : 0[0] -> 8[0] [send] via NET/IB/0/GDRDMA",
        "Channel 01/0 : 8[0] -> 0[0] [receive] via NET/IB/1(2)",
        "Channel 00 : 0[0] -> 8[0] [send] via NET/IB/0/GDRDMA(PCI)/Shared",
    )
    assert (found.gdr_channels, found.plain_channels) == (2, 1)
    assert found.hca_gdr == {"mlx5_1": False}


@pytest.mark.parametrize(
    ("line", "gdr"),
    [
        ("GPU Direct RDMA Enabled for GPU 1a000 / HCA 0 (distance 4 <= 4), read 1", True),
        ("GPU Direct RDMA Disabled for GPU 1 / HCA 0 (distance 8 > 4)", False),
        ("GPU Direct RDMA Enabled for GPU 0 - NET 0 (distance 4 <= 4)", True),
    ],
)
def test_gpudirect_per_gpu(line: str, *, gdr: bool) -> None:
    found = process("NET/IB : Using [0]mlx5_0:1/IB [RO]; OOB eth0:10.1.0.1<0>", line)
    assert found.hca_gdr == {"mlx5_0": gdr}


@pytest.mark.parametrize(
    ("lines", "nvls"),
    [
        (["NVLS multicast support is available on dev 0 (NVLS_NCHANNELS 16)"], True),
        (["NVLS multicast support is not available on dev 0"], False),
        (["8 coll channels, 0 collnet channels, 0 nvls channels, 8 p2p channels"], False),
        (
            [
                "NVLS multicast support is available on dev 0",
                "Failed to bind NVLink SHARP (NVLS) memory. Proceeding without NVLS support.",
            ],
            False,
        ),
        (["8 coll channels, 8 p2p channels, 1 p2p channels per peer"], None),
    ],
)
def test_nvls(lines: list[str], *, nvls: bool | None) -> None:
    assert process(*lines).nvls is nvls


@pytest.mark.parametrize(
    ("lines", "sharp"),
    [
        (["CollNet 00/0 : 0 [send] via COLLNET/SHARP/0/GDRDMA"], True),
        (["rank 0 Connected CollNet"], True),
        (["8 coll channels, 8 collnet channels, 0 nvls channels, 8 p2p channels"], None),
        (
            ["Communicator has 1 nodes which is less than CollNet threshold 2, disabling CollNet"],
            False,
        ),
        (["Cannot initialize CollNet, using point-to-point network instead"], False),
    ],
)
def test_sharp(lines: list[str], *, sharp: bool | None) -> None:
    assert process(*lines).sharp is sharp


def test_local_devices() -> None:
    found = process("Rank 5 has 7 local Net devices (max 8).")
    assert found.net_devices == {5: 7}
    assert found.net_devices_max == 8


def test_processes_are_told_apart_by_host_and_pid() -> None:
    evidence = read_bytes(
        b"oak1:1:5 [0] NCCL INFO Using network IB\n"
        b"oak2:1:5 [0] NCCL INFO Using network Socket\n"
        b"oak1:2:5 [1] NCCL INFO Using network IB\n"
        b"oak1:1:9 [0] NCCL WARN something\n"
    )
    assert [(p.host, p.pid, p.networks) for p in evidence.processes] == [
        ("oak1", "1", ["IB"]),
        ("oak2", "1", ["Socket"]),
        ("oak1", "2", ["IB"]),
    ]
    assert evidence.processes[0].last
    assert evidence.processes[0].last.line == 4


def told_by(*hosts: str) -> LogEvidence:
    """What is read of a line of each host, all of the same process id."""
    reader, evidence = NcclReader(), LogEvidence()
    for number, host in enumerate(hosts):
        speaker, place = Speaker(host=host, pid="1"), Place("a.log", number)
        evidence.hosts.setdefault(host, place)
        text = f"Using network {host}"
        line = Line(text=text, place=place, speaker=speaker, level="INFO")
        reader.read(line, [b"Using network "])
    reader.finish(evidence)
    return evidence


@pytest.mark.parametrize("garbled", ["driveoak1", "0x7f00aa11bak1"])
def test_a_name_that_other_text_ran_into_is_the_known_one(garbled: str) -> None:
    evidence = told_by("oak1", garbled, *["oak1"] * 8)
    assert [p.host for p in evidence.processes] == ["oak1"]
    assert evidence.processes[0].networks == ["oak1", garbled]
    assert evidence.hosts.keys() == {"oak1"}


def test_two_hosts_are_not_one_because_their_names_end_alike() -> None:
    assert {p.host for p in told_by("oak1", "soak1").processes} == {"oak1", "soak1"}


def test_lines_that_repeat_what_is_known_teach_nothing() -> None:
    reader = NcclReader()
    speaker = Speaker(host="oak1", pid="1")
    for number in range(100):
        text = f"Channel {number % 4:02d}/0 : 0[0] -> 1[1] [send] via NET/IB/0"
        line = Line(text=text, place=Place("a.log", number), speaker=speaker, level="INFO")
        reader.read(line, [b" via "])
    assert reader.learned == 1
    line = Line(text="Using network IB", place=Place("a.log", 1), speaker=speaker, level="INFO")
    reader.read(line, [b"Using network "])
    assert reader.learned == 2


def test_facts_are_among_the_needles() -> None:
    reader = NcclReader()
    assert reader.facts < reader.needles
    assert b" via " in reader.facts
    assert b"Init START" not in reader.facts
    assert b": opCount " not in reader.facts


WHOLE = "\n".join(
    f"oak1:100:101 [0] NCCL INFO {line}" for lines in GENERATIONS.values() for line in lines
).encode()


def test_a_log_cut_anywhere_is_read() -> None:
    for cut in range(0, len(WHOLE), 37):
        for part in (WHOLE[:cut], WHOLE[cut:]):
            read_bytes(part)


@settings(max_examples=60, deadline=None)
@given(st.binary(max_size=400), st.integers(0, len(WHOLE)))
def test_any_bytes_are_read(noise: bytes, at: int) -> None:
    read_bytes(WHOLE[max(0, at - 500) : at] + noise + WHOLE[at : at + 500])
    read_bytes(b"oak1:100:101 [0] NCCL INFO comm 0x" + noise)
