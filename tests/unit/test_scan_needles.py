import pytest

from ncdiag.read.log_reader import LogReader

# What jobs print by the million while nothing is wrong: of these, only facts may be looked for.
ORDINARY = [
    "n1:40:41 [0] NCCL INFO Channel 00/0 : 0[0] -> 1[1] via P2P/CUMEM",
    "n1:40:41 [0] NCCL INFO Channel 03/0 : 0[0] -> 9[1] [send] via NET/IB/2/GDRDMA",
    "n1:40:41 [0] NCCL INFO Channel 03/0 : 8[0] -> 1[1] [receive] via NET/Socket/0",
    "n1:40:41 [0] NCCL INFO Channel 02/16 :    0   1   2   3",
    "n1:40:41 [0] NCCL INFO Ring 00 : 7 -> 0 -> 1",
    "n1:40:41 [0] NCCL INFO Trees [0] 1/-1/-1->0->-1 [1] 1/-1/-1->0->-1",
    "n1:40:41 [0] NCCL INFO Connected all rings, use ring PXN 0 GDR 1",
    "n1:40:41 [0] NCCL INFO Connected all trees",
    "n1:40:41 [0] NCCL INFO threadThresholds 8/8/64 | 16/8/64 | 512 | 512",
    "n1:40:41 [0] NCCL INFO 24 coll channels, 24 collnet channels, 16 nvls channels",
    "n1:40:41 [0] NCCL INFO comm 0x7f00 rank 0 nRanks 16 nNodes 2 localRanks 8 localRank 0 MNNVL 0",
    "n1:40:41 [0] NCCL INFO NVLS multicast support is available on dev 0 (NVLS_NCHANNELS 16)",
    "n1:40:41 [0] NCCL INFO Setting affinity for GPU 0 to ff,ffffffff",
    "n1:40:41 [0] NCCL INFO NCCL_IB_HCA set to mlx5_0,mlx5_1",
    "n1:40:41 [0] NCCL INFO NCCL_SOCKET_IFNAME set by environment to eth0",
    "n1:40:41 [0] NCCL INFO NET/IB : Using [0]mlx5_0:1/IB [RO]; OOB eth0:10.7.0.1<0>",
    "n1:40:41 [0] NCCL INFO NET/IB: NCCL Dev 0 IbDev 0 Port 1 qpn 77 mtu 5 LID 9 fifoRkey=0x1",
    "n1:40:41 [0] NCCL INFO GPU Direct RDMA Enabled for GPU 0 / HCA 0 (distance 3 <= 4), read 1",
    "n1:40:41 [0] NCCL INFO New proxy send connection 4 from local rank 0, transport 2",
    "n1:40:41 [0] NCCL INFO Connected to proxy localRank 0 -> connection 0x7f01",
    "n1:40:41 [0] NCCL INFO CUDA Dev 0[0], IB NIC distance :  PHB",
    "n1:40:41 [0] NCCL INFO AllReduce: 1024 Bytes -> Algo RING proto LL channel{Lo..Hi}={0..1}",
    "step 120 | loss 2.31 | lr 3.0e-04 | 812 tokens/s | 41.2% MFU",
    "  3%|3         | 300/10000 [00:12<06:27, 25.04it/s, loss=2.1]",
    "2026-03-01 10:11:12,345 - trainer - INFO - epoch 3 step 400 grad norm 0.71",
    "(Worker pid=77, ip=10.7.0.2) step 120 done",
]


@pytest.mark.parametrize("line", ORDINARY)
def test_no_needle_lies_in_what_jobs_print_all_the_time(line: str) -> None:
    assert [needle for needle in LogReader("log").needles if needle in line.encode()] == []


def test_needles_are_long_enough_to_be_worth_a_look() -> None:
    reader = LogReader("log")
    short = sorted(needle for needle in reader.needles if len(needle.strip()) < 3)
    assert short == [b".c:", b".h:"] or not short
