"""What large logs are full of: pieces of lines that say nothing of a failure."""

TEXT = b"""\
] NCCL INFO Channel 07/0 : 13[5] -> 14[6] via P2P/IPC/read
] NCCL INFO Channel 12/0 : 69[5] -> 77[5] [send] via NET/IB/4(7)/GDRDMA
] NCCL INFO Channel 03/1 : 77[0] -> 69[5] [receive] via NET/OFI/2/GDRDMA/Shared
] NCCL INFO Trees [0] 14/-1/-1->13->12 [1] 14/21/-1->13->5
] NCCL INFO comm 0x55d0c3f9a8e0 rank 13 nRanks 1024 nNodes 128 localRanks 8 localRank 5 MNNVL 0
] NCCL INFO AllReduce: opCount 1f3a sendbuff 0x7f2c64000000 recvbuff 0x7f2c64000000
 count 8912896 datatype 9 op 0 root 0 comm 0x55d0c3f9a8e0 [nranks=1024] stream 0x55d0b76e4d10
] NCCL INFO NET/IB : Using [0]mlx5_0:1/IB [1]mlx5_3:1/RoCE [RO]; OOB eth0:10.20.30.41<0>
] NCCL INFO NET/Socket : Using [0]eth0:10.20.30.41<0>
] NCCL INFO NET/OFI Selected provider is efa, fabric is efa (found 4 nics)
] NCCL INFO NCCL_SOCKET_IFNAME set by environment to eth0
] NCCL INFO NCCL_IB_HCA set to mlx5_0,mlx5_3
] NCCL INFO Bootstrap: Using eth0:10.20.30.41<0>
] NCCL INFO Connected all rings, use ring PXN 1 GDR 1
] NCCL INFO Connected all trees
] NCCL INFO Connected NVLS tree
] NCCL INFO threadThresholds 8/8/64 | 8192/8/64 | 512 | 512
] NCCL INFO Setting affinity for GPU 5 to ffff0000,00000000,ffff0000
] NCCL INFO 24 coll channels, 24 collnet channels, 16 nvls channels, 2 p2p channels per peer
] NCCL INFO NVLS multicast support is available on dev 5 (NVLS_NCHANNELS 16)
] NCCL INFO NVLS multicast support is not available on dev 5
] NCCL INFO P2P Chunksize set to 524288
] NCCL INFO Using network IB
] NCCL INFO cudaDriverVersion 12040
] NCCL INFO Assigned NET plugin IB to comm
] NCCL INFO GPU Direct RDMA Enabled for GPU 5 / HCA 3 (distance 4 <= 5), read 0 mode Default
] NCCL INFO [Proxy Progress] Device 5 CPU core 71
] NCCL INFO Broadcast: 4194304 Bytes -> Algo 1 proto 2 time 37.4
] NCCL INFO ncclCommInitRankConfig comm 0x55d0c3f9a8e0 rank 13 nranks 1024 cudaDev 5 nvmlDev 5
] NCCL INFO Connection to proxy localRank 5 -> connection 0x7f2c64000000
] NCCL INFO New proxy recv connection 21 from local rank 5, transport 2
2031-04-05 06:07:08,910 - trainer - INFO - step 1200/90000 | loss 2.3451 | grad norm 0.871
 iteration     1200/  900000 | consumed samples:      614400 | global batch size:   512
 | elapsed time per iteration (ms): 5120.3 | learning rate: 2.9E-04 | lm loss: 2.345E+00
 | loss scale: 1.0 | number of skipped iterations:   0 | number of nan iterations:   0 |
[2031-04-05 06:07:08,910] [INFO] [logging.py:96:log_dist] [Rank 0] step=1200, skipped=0
{'loss': 2.3451, 'grad_norm': 0.871, 'learning_rate': 0.00029, 'epoch': 0.12}
  7%|###       | 1200/17000 [1:42:24<22:28:16,  5.12s/it]
Apr  5 06:07:08 node12 kernel: [184467.440737] usb 1-4: new full-speed device number 7
Apr  5 06:07:08 node12 systemd[1]: Started Session 412 of user root.
"""
