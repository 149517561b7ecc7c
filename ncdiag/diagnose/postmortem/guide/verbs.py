"""The network as verbs see it: InfiniBand and RoCE."""

from ncdiag.diagnose.postmortem.guide.record import Guide
from ncdiag.model.finding import FindingClass as Class

GUIDE = {
    Class.IB_COMPLETION_ERROR: Guide(
        "An RDMA transfer failed, and the status says where to look: 12, 13 and 20 at the peer or "
        "the path to it (host down, link flap, wrong rail, RoCE pause settings); 10 and 11 at the "
        "peer's memory or PCIe; 2, 4 and 8 at memory registration on the host that speaks (ACS, "
        "IOMMU, peer memory); 1 and 9 at sizes or versions that differ. The host that prints it "
        "is only the reporter: count which peer most reporters name.",
        (
            (
                "See whether the peer was alive and its port up: ibstat NIC, rdma link show, and "
                "dmesg -T on PEER before that time (status 12 comes up to 30 s after the loss)"
            ),
            (
                "Look for link errors at both ends: ethtool -S or perfquery -x, symbol errors, "
                "link_downed; on RoCE also pause frames and discards at the switch port"
            ),
            "Measure the link with nothing else on it: ncdiag sweep --nodes HOST,PEER",
            (
                "Only when ports are clean: on RoCE check NCCL_IB_GID_INDEX and the MTU, else "
                "raise NCCL_IB_TIMEOUT=22 to survive short flaps"
            ),
        ),
        "ncdiag sweep --nodes HOST,PEER",
    ),
    Class.IB_FLUSH_ERROR: Guide(
        "Requests were thrown away because their queue pair had already failed. It is always the "
        "echo of something earlier: the first other status on this queue pair, or a peer that "
        "closed its end.",
        (
            "Find the first completion error with another status, and the first error of the peer",
            "If there is none, collect the logs of all ranks: the cause is in one that is missing",
        ),
        "grep -n 'Got completion' FILE | grep -v 'status=5\\|WR_FLUSH'",
    ),
    Class.IB_PORT_ERROR: Guide(
        "The adapter of this host reported that its port went down. Cable, transceiver or switch "
        "port are the usual causes; when the port comes back within seconds it flaps, and the job "
        "may survive with retries. All ranks of one host saying so, or others timing out against "
        "it, makes it certain.",
        (
            "Check the port now and what it counted: ibstat NIC; mlxlink -d NIC -m -e",
            "Find when and how often it went down: dmesg -T | grep -iE 'mlx5|link'",
            (
                "Reseat or swap the cable; if the error moves with it, it is the cable, else try "
                "another switch port"
            ),
        ),
        "ssh HOST ibstat",
    ),
    Class.IB_DEVICE_FATAL: Guide(
        "The adapter itself failed: its firmware or hardware reported a catastrophic error, or "
        "the device could not be opened or polled any more. Nothing in the job can cause that.",
        (
            "Take the host out of service",
            "Keep the evidence: dmesg -T | grep -i mlx5; mstdump or mlxfwreset -d NIC query",
            "Reset the adapter or power-cycle the host; when it happens again, replace the adapter",
        ),
        "ssh HOST 'dmesg -T | grep -i mlx5 | tail -50'",
    ),
    Class.IB_QP_FATAL_EVENT: Guide(
        "One queue pair or completion queue failed with a fatal event. Access violations and "
        "invalid requests come from memory that is not registered as the adapter expects (driver, "
        "peer memory, ACS) or from a bug; only after those is the adapter suspect.",
        (
            "See whether the same NIC says so again in other jobs; then suspect it",
            "Check GPU memory registration: lsmod | grep nvidia_peermem; lspci -vvv | grep ACSCtl",
            "Compare driver and firmware with a healthy host: ofed_info -s; ibv_devinfo -d NIC",
        ),
        "ssh HOST 'dmesg -T | grep -iE \"mlx5|peermem\"'",
    ),
    Class.IB_MODIFY_QP_FAILED: Guide(
        "Two adapters could not be connected. errno 110, 101 or 113 means there is no path "
        "between these two NICs (separate rails, missing routes, ARP); errno 22 or 61, or an "
        "empty GID, means the address table or GID index of the local host is wrong.",
        (
            (
                "Compare the GIDs in the line with show_gids on both hosts: same RoCE version, "
                "same subnet"
            ),
            (
                "No path: check that these rails are meant to talk, and ping -I between their "
                "interfaces; else keep each rail to itself with NCCL_CROSS_NIC=0"
            ),
            (
                "Wrong index: unset NCCL_IB_GID_INDEX (NCCL 2.21 and later finds it) or set the "
                "right one"
            ),
        ),
        "ssh HOST show_gids",
    ),
    Class.IB_MEMORY_REGISTRATION_FAILED: Guide(
        "The adapter could not pin or register memory. For host memory that is nearly always a "
        "low limit on locked memory; for GPU memory the peer memory module or dma-buf support is "
        "missing or does not fit the driver.",
        (
            (
                "Check the limit in the job's own environment: ulimit -l must say unlimited; in "
                "containers --ulimit memlock=-1, in systemd LimitMEMLOCK=infinity (slurmd too)"
            ),
            "For GPU memory: modprobe nvidia_peermem; lsmod | grep nvidia_peermem",
            "To get going meanwhile, slower: NCCL_NET_GDR_LEVEL=LOC",
        ),
        "ssh HOST 'ulimit -l; lsmod | grep nvidia_peermem'",
    ),
    Class.IB_VERBS_CALL_FAILED: Guide(
        "A verbs call failed while connections were set up, so the adapter is seen but cannot be "
        "used. Usual causes are limits (locked memory, number of queue pairs), devices that the "
        "container does not have, and user libraries older than the kernel driver.",
        (
            "Try the adapter alone, inside the same container: ibv_rc_pingpong -d NIC -g 0",
            (
                "Give the container its devices and limits: --device /dev/infiniband "
                "--ulimit memlock=-1 --cap-add IPC_LOCK"
            ),
            "Compare ibv_devinfo and the library versions with a host where it works",
        ),
        "ssh HOST ibv_devinfo",
    ),
}
