"""Results, performance, and hangs that no message tells of."""

from ncdiag.diagnose.postmortem.guide.record import Guide
from ncdiag.model.finding import FindingClass as Class

GUIDE = {
    Class.DATA_CORRUPTION: Guide(
        "A collective delivered wrong values. A GPU, a NIC, PCIe or an unsafe protocol setting "
        "can do that, and one run seldom tells which; results computed with these hosts cannot "
        "be trusted.",
        (
            "Use the hosts for nothing that matters until it is found",
            (
                "Halve the set of hosts until the fault stays with one: all_reduce_perf -c 1 on "
                "each half"
            ),
            "Unset NCCL_PROTO (LL128 where it is not safe) and other tuning, and try again",
            "On the host that remains: dcgmi diag -r 3; dmesg -T | grep -iE 'xid|aer|edac'",
        ),
        "mpirun -H HOST all_reduce_perf -b 8 -e 1G -f 2 -g 8 -c 1",
    ),
    Class.SINGLE_RANK_RUN: Guide(
        "A collective was timed over a single rank, so nothing was measured. nccl-tests was built "
        "without MPI, or was not started through it: each process then runs alone and prints its "
        "own table.",
        (
            "Build with MPI=1 MPI_HOME=..., and start it with mpirun or srun --mpi=pmix",
            "Check that the rank table lists all ranks before you believe a figure",
        ),
        "ldd all_reduce_perf | grep libmpi",
    ),
    Class.LOW_BANDWIDTH_GDR_ONE_SIDED: Guide(
        "GPUDirect RDMA works at one end of a link and not at the other. The host without it "
        "copies through its main memory and holds back everybody it talks to.",
        (
            "On the host without it: lsmod | grep nvidia_peermem; modprobe nvidia_peermem",
            "Compare BIOS and kernel with a host that has it: ACS, IOMMU (cat /proc/cmdline)",
            "Measure afterwards: ncdiag sweep --nodes HOST,PEER",
        ),
        "ssh HOST 'lsmod | grep nvidia_peermem; cat /proc/cmdline'",
    ),
    Class.GDR_DISABLED: Guide(
        "GPUDirect RDMA is off on all hosts although the network could do it: data goes through "
        "main memory. The module is not loaded, or GPUs and NICs are too far from one another.",
        (
            (
                "Load the module everywhere: modprobe nvidia_peermem (or use dma-buf, kernel 5.12 "
                "and open driver)"
            ),
            "See the distance: nvidia-smi topo -m; PIX or PXB allows it, SYS does not",
            "Check NCCL_NET_GDR_LEVEL and NCCL_NET_GDR_READ for values that switch it off",
        ),
        "ssh HOST 'lsmod | grep nvidia_peermem; nvidia-smi topo -m'",
    ),
    Class.SLOW_NODE: Guide(
        "One host is slow with every partner, and its partners are fast elsewhere. Its NIC, "
        "PCIe link, GPUDirect or clocks hold it back.",
        (
            "Measure it against two others: ncdiag sweep --nodes HOST,PEER,OTHER",
            (
                "Compare with a healthy host: ibstat (rate), lspci -vvv | grep LnkSta (width), "
                "nvidia-smi -q -d PERFORMANCE, lsmod | grep nvidia_peermem"
            ),
        ),
        "ncdiag sweep --nodes HOST,PEER,OTHER",
    ),
    Class.BANDWIDTH_CLIFF: Guide(
        "Bandwidth drops by half or more from one message size to the next and stays there. The "
        "library changes algorithm or protocol at that size, or a buffer or queue of the network "
        "overflows from there on.",
        (
            "See which choice costs it: NCCL_ALGO=Ring, then Tree; NCCL_PROTO=Simple, then LL128",
            "Unset tuning variables and tuner plug-ins, and compare with the newest release",
            "On RoCE look for pause frames and discards while the large sizes run",
        ),
        "NCCL_ALGO=Ring NCCL_PROTO=Simple all_reduce_perf -b 1M -e 1G -f 2 -g 8",
    ),
    Class.HANG_INIT: Guide(
        "Ranks began to build a communicator and did not finish. Somebody is missing: a rank that "
        "never started, died or cannot be reached, or hosts with unlike sets of GPUs or NICs. The "
        "log may also just end too early.",
        (
            "Find the ranks without a start line, and look at their hosts and logs first",
            (
                "All started: check that each host reaches each other on the chosen interface "
                "(NCCL_SOCKET_IFNAME, firewall)"
            ),
            "See where it waits: py-spy dump --native --pid PID",
        ),
        "NCCL_DEBUG=INFO NCCL_DEBUG_SUBSYS=INIT,BOOTSTRAP,NET,ENV ...",
    ),
    Class.HANG_FIRST_COLLECTIVE: Guide(
        "The start-up went well, and the first collective does not come back. Control traffic "
        "passes and data does not: ACS or IOMMU between GPUs and NICs, peer access, an MTU or "
        "rail that does not work. The log may also just end too early.",
        (
            (
                "Narrow it down, one at a time: NCCL_P2P_DISABLE=1, NCCL_SHM_DISABLE=1, "
                "NCCL_NET_GDR_LEVEL=LOC, NCCL_IB_DISABLE=1; what helps names the path"
            ),
            "Within a host: lspci -vvv | grep ACSCtl; boot with iommu=pt",
            "Between hosts: ncdiag sweep --nodes HOST,PEER",
        ),
        "NCCL_P2P_DISABLE=1 all_reduce_perf -b 8 -e 128M -f 2 -g 8",
    ),
    Class.HANG_MID_RUN: Guide(
        "Progress stopped without an error, and then the log is silent until the job was ended. "
        "A rank waits for another that does something else, or a link or GPU went quiet. This is "
        "a guess from silence.",
        (
            (
                "Next time look while it hangs: py-spy dump --pid PID on each rank; "
                "ncdiag parse-log --ras HOST (NCCL 2.24 and later)"
            ),
            (
                "Let it tell by itself: TORCH_NCCL_TRACE_BUFFER_SIZE=2000 "
                "TORCH_NCCL_DUMP_ON_TIMEOUT=1, and a time-out in init_process_group"
            ),
            "Look at all hosts for that time: dmesg -T | grep -iE 'xid|link|blocked'",
        ),
        "ncdiag parse-log --ras HOST",
    ),
    Class.HOST_CONFIG_WARNING: Guide(
        "The library warns about a setting of the host that costs speed or can make GPU traffic "
        "hang: IOMMU without pass-through, NUMA balancing, ACS. Nothing has failed for it yet, as "
        "far as the log tells.",
        (
            "IOMMU: boot with iommu=pt (intel_iommu=on or amd_iommu=on)",
            "NUMA balancing: sysctl kernel.numa_balancing=0",
            "ACS: switch it off in the BIOS or with setpci; check lspci -vvv | grep ACSCtl",
        ),
        "ssh HOST 'cat /proc/cmdline; sysctl kernel.numa_balancing'",
    ),
}
