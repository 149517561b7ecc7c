"""What to do about a failed RDMA transfer whose status points elsewhere than to the path."""

from collections.abc import Mapping
from typing import Final

_Steps = tuple[tuple[str, ...], str]

_OWN_MEMORY: Final[_Steps] = (
    (
        (
            "Look on the host that speaks, not at its peer: dmesg -T | grep -iE "
            "'mlx5|peermem|iommu|xid' on HOST"
        ),
        (
            "Check what memory registration needs there: lsmod | grep nvidia_peermem; ulimit -l; "
            "ACS and IOMMU (cat /proc/cmdline)"
        ),
        "Run once with NCCL_NET_GDR_LEVEL=LOC: when it works, GPUDirect is at fault",
        "Several hosts at once: compare driver, NCCL and container image with a run that worked",
    ),
    "ssh HOST 'dmesg -T | grep -iE \"mlx5|peermem|iommu|xid\"'",
)
_PEER_MEMORY: Final[_Steps] = (
    (
        "Look at the other end: dmesg -T | grep -iE 'mlx5|aer|iommu|xid' on PEER",
        (
            "See whether its process freed the memory: read the log of the ranks on PEER for an "
            "earlier error"
        ),
        "Check ACS and IOMMU there: cat /proc/cmdline; lspci -vvv | grep ACSCtl",
    ),
    "ssh PEER 'dmesg -T | grep -iE \"mlx5|aer|iommu|xid\"'",
)
_SIZES: Final[_Steps] = (
    (
        "Compare what both ends run: versions of NCCL, plug-in and container image",
        "Compare counts and types of the collectives: NCCL_DEBUG=INFO NCCL_DEBUG_SUBSYS=COLL",
        "Compare settings of all hosts: NCCL_BUFFSIZE, NCCL_ALGO, NCCL_PROTO",
    ),
    "grep -n 'NCCL version' FILE",
)

# Status of a work completion, and what to do instead of looking at the path.
BY_STATUS: Final[Mapping[str, _Steps]] = {
    **dict.fromkeys(("2", "4", "8"), _OWN_MEMORY),
    **dict.fromkeys(("10", "11"), _PEER_MEMORY),
    **dict.fromkeys(("1", "9"), _SIZES),
}
