"""Rows for wrong use of the library: arguments, settings, states."""

from ncdiag.model.finding import FindingClass as C
from ncdiag.read.signatures.fragments import PEER, signature
from ncdiag.read.signatures.row import Signature


def _usage(
    name: str,
    needle: str,
    pattern: str,
    sample: str,
    near_miss: str,
    *,
    source: str,
    further: tuple[str, ...] = (),
) -> Signature:
    """A row whose text is the error."""
    return signature(
        f"usage-{name}",
        C.INVALID_USAGE,
        needle,
        rf"\b(?P<error>{pattern})",
        sample=sample,
        near_miss=near_miss,
        source=source,
        further=further,
    )


ROWS = (
    _usage(
        "no-algorithm",
        "lgorithm/protocol available",
        r"[Nn]o algorithm/protocol available(?: for function \w{1,40})?",
        "Error : no algorithm/protocol available for function AllGather with datatype ncclFloat32. "
        "NCCL_ALGO was set to Tree.",
        "Enabled NCCL Func/Proto/Algo Matrix:",
        source="enqueue.cc",
    ),
    _usage(
        "element-token",
        "Unrecognized element token",
        r'Unrecognized element token "[^"\n]{0,60}"',
        'Unrecognized element token "rinng" when parsing "rinng"',
        "NCCL_ALGO set by environment to ring",
        source="graph/tuning.cc",
    ),
    _usage(
        "pointer",
        "is not a valid pointer",
        r"\w{1,60} ?: \w{1,40} (?:0x[0-9a-f]{1,16}|\(nil\)) is not a valid pointer",
        "AllReduce : sendbuff 0x7f20 is not a valid pointer",
        "AllReduce : skipping sendbuff/recvbuff pointer check",
        source="misc/argcheck.cc",
    ),
    _usage(
        "null-argument",
        " argument is NULL",
        r"\w{1,60} ?: \w{1,40} argument is NULL",
        "CommInitRank : comm argument is NULL",
        "CommInitRank : comm argument is set",
        source="misc/argcheck.cc",
    ),
    _usage(
        "other-device",
        "with NCCL device",
        r"\w{1,60} ?: \w{1,40} allocated on device \d{1,4} mismatchs? with NCCL device \d{1,4}",
        "Broadcast : recvbuff allocated on device 0 mismatchs with NCCL device 3",
        "Broadcast : recvbuff allocated on device 3",
        source="misc/argcheck.cc",
    ),
    _usage(
        "invalid-argument-value",
        " : invalid ",
        r"\w{1,60} : invalid (?:root|type|reduction operation) -?\d{1,12}",
        "Reduce : invalid root 8 (root should be in the 0..8 range)",
        "Reduce : root 7",
        source="misc/argcheck.cc",
        further=(": invalid root ", ": invalid type "),
    ),
    _usage(
        "unknown-reduction",
        "unknown to this communicator",
        r"reduction operation -?\d{1,12} unknown to this communicator",
        "AllReduce : reduction operation 77 unknown to this communicator",
        "AllReduce : reduction operation 0",
        source="misc/argcheck.cc",
    ),
    _usage(
        "comm-state",
        "corrupted comm object",
        r"Error: corrupted comm object detected"
        r"|Attempt to use communicator before the previous operation returned ncclSuccess"
        r"|[Cc]omm (?:0x[0-9a-f]{1,16} )?has already been destroyed|communicator was revoked",
        "comm 0x7f20ab has already been destroyed",
        "comm 0x7f20ab rank 3 nranks 8 cudaDev 3 busId 1b000 - Destroy COMPLETE",
        source="init.cc",
        further=(
            "before the previous operation returned",
            "has already been destroyed",
            "communicator was revoked",
        ),
    ),
    _usage(
        "rank",
        "Invalid rank requested",
        r"[Ii]nvalid (?:rank requested|device count\b|device \d{1,9} \(totalnDev"
        r"|config \w{1,40} attribute value)[^\n]{0,60}",
        "Invalid rank requested : 8/8",
        "Invalid value 7x for NCCL_MIN_NCHANNELS, using default -2.",
        source="init.cc",
        further=("Invalid device ", "Invalid config ", "invalid device count"),
    ),
    _usage(
        "comm-id",
        "NCCL_COMM_ID",
        r"Invalid NCCL_COMM_ID(?= ?\[|, please)|NCCL_COMM_ID cannot be used with more than one"
        r" ncclUniqueId",
        "Invalid NCCL_COMM_ID, please use format: <ipv4>:<port> or [<ipv6>]:<port> or "
        "<hostname>:<port>",
        "NCCL_COMM_ID set by environment to 10.9.0.1:4400",
        source="bootstrap.cc",
    ),
    _usage(
        "launch-race",
        "launch race",
        r"[^\n:]{0,60}launch race\b[^\n]{0,60}",
        "Accidental launch race detected between two host threads",
        "strong stream launch order kept",
        source="misc/strongstream.cc",
    ),
    _usage(
        "library-too-old",
        "NCCL library is too old",
        r"NCCL library is too old",
        "NCCL library is too old. This application was compiled with NCCL version 2.29.2, but is "
        "running with NCCL library version 2.27.7.",
        "NCCL version 2.29.2+cuda12.9",
        source="init.cc",
    ),
    _usage(
        "force-merge",
        "NCCL_NET_FORCE_MERGE",
        r"Invalid NCCL_NET_FORCE_MERGE specified|Could not force merge NICs",
        "TOPO/NET : Could not force merge NICs mlx5_0,mlx5_9. Please specify a valid "
        "NCCL_NET_FORCE_MERGE string.",
        "NCCL_NET_FORCE_MERGE set by environment to mlx5_0,mlx5_1",
        source="transport/net_ib.cc, graph/topo.cc",
    ),
    _usage(
        "capture",
        "cannot be captured in a graph",
        r"NCCL cannot be captured in a graph",
        "NCCL cannot be captured in a graph if either it wasn't built with CUDA runtime >= 11.3",
        "NCCL captured in a graph",
        source="enqueue.cc",
    ),
    signature(
        "symmetric-mismatch",
        C.COLLECTIVE_MISMATCH,
        "symmetric registration check failed on rank",
        r"symmetric registration check failed on rank (?P<ranks>\d{1,9}): .{0,60}?"
        r"\((?P<got>0x[0-9a-f]{1,16})\) mismatch with rank 0 \((?P<expected>0x[0-9a-f]{1,16})\)",
        sample="Coll AllReduce size 4096 symmetric registration check failed on rank 3: send "
        "buffer user offset (0x40) mismatch with rank 0 (0x80)",
        near_miss="Coll AllReduce size 4096 symmetric registration check passed on rank 3",
        source="enqueue.cc",
        versions="2.27 and later",
    ),
    signature(
        "mismatched-collective",
        C.COLLECTIVE_MISMATCH,
        "Mismatched collective detected",
        r"Mismatched collective detected(?:, please check your collective calls at and around rank"
        r" (?P<ranks>\d{1,9}))?",
        sample="Mismatched collective detected, please check your collective calls at and around "
        "rank 5. You can use NCCL_DEBUG=INFO and NCCL_DEBUG_SUBSYS=COLL to see the collective logs",
        near_miss="Matched collective detected",
        source="enqueue.cc, proxy.cc",
        versions="2.4 to 2.6",
    ),
    signature(
        "proxy-mismatch",
        C.COLLECTIVE_MISMATCH,
        "Proxy append mismatch",
        rf"Proxy append mismatch(?: with {PEER})?",
        sample="Proxy append mismatch",
        near_miss="Proxy append",
        source="proxy.cc",
    ),
)
