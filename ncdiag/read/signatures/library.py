"""Rows for the library itself: its helper threads, transports, topology, limits and options."""

from ncdiag.model.finding import FindingClass as C
from ncdiag.model.finding import Severity
from ncdiag.read.signatures.fragments import (
    ERROR,
    TOLD,
    caution,
    chain,
    echo,
    final,
    signature,
    without,
)
from ncdiag.read.signatures.row import ANY_LEVEL, LIBRARY

_PROXY = (
    echo(
        "proxy-operation",
        C.PROXY_FAILURE,
        "Failed to execute operation",
        r"Failed to execute operation (?P<operation>\w{1,40})"
        r"(?: from rank (?P<d_rank>-?\d{1,9}))?(?:, retcode (?P<d_result>\d{1,3}))?",
        sample="[Proxy Service 3] Failed to execute operation Setup from rank 3, retcode 2",
        near_miss="[Proxy Service 3] Device 3 CPU core 12",
        source="proxy.cc",
    ),
    echo(
        "proxy-progress",
        C.PROXY_FAILURE,
        "Error encountered progressing",
        r"Error encountered progressing operation=(?P<operation>\w{1,40}), "
        r"res=(?P<d_result>\d{1,3})",
        sample="[Service thread] Error encountered progressing operation=SharedInit, res=3, "
        "closing connection",
        near_miss="[Service thread] progressing operation=SharedInit",
        source="proxy.cc",
    ),
    echo(
        "proxy-receive-type",
        C.PROXY_FAILURE,
        "Could not receive type from localRank",
        r"Could not receive type from localRank (?P<d_local_rank>-?\d{1,9}), "
        r"res=(?P<d_result>\d{1,3})",
        sample="[Service thread] Could not receive type from localRank 5, res=2, closed=0",
        near_miss="[Service thread] Received type from localRank 5",
        source="proxy.cc",
    ),
    echo(
        "proxy-accept",
        C.PROXY_FAILURE,
        "Accept failed",
        r"\[(?:Service thread|Proxy Service(?: \d{1,4})?)\] Accept failed",
        sample="[Service thread] Accept failed Connection aborted",
        near_miss="socketTryAccept: Accept failed: Too many open files",
        source="proxy.cc",
    ),
    echo(
        "proxy-poll",
        C.PROXY_FAILURE,
        "while polling for opId=",
        r"Socket recv failed while polling for opId=",
        sample="Socket recv failed while polling for opId=0x7f201a",
        near_miss="polling for opId=0x7f201a",
        source="proxy.cc",
        versions="2.14 and later",
    ),
    echo(
        "proxy-poll-failed",
        C.PROXY_FAILURE,
        "[Proxy Service",
        r"\[Proxy Service(?: UDS)?(?: \d{1,4})?\] (?:Poll failed|Get listenSock fd fails"
        r"|Failed to set CUDA device|proxyDestroy failed)",
        sample="[Proxy Service] Poll failed: Invalid argument",
        near_miss="[Proxy Service UDS] Device 3 CPU core 12",
        source="proxy.cc",
    ),
    echo(
        "proxy-too-many",
        C.PROXY_FAILURE,
        "Too many connections (",
        r"\[Proxy [Ss]ervice\] Too many connections",
        sample="[Proxy service] Too many connections (64 max)",
        near_miss="[Proxy service] 63 connections (64 max)",
        source="proxy.cc",
    ),
    echo(
        "proxy-call",
        C.PROXY_FAILURE,
        "Proxy Call to rank ",
        r"Proxy Call to rank (?P<d_rank>\d{1,9}) failed \((?P<operation>\w{1,40})\)",
        sample="Proxy Call to rank 12 failed (Connect)",
        near_miss="Proxy Call to rank 12 done (Connect)",
        source="proxy.cc",
        versions="2.14 and 2.15",
    ),
    echo(
        "proxy-call-local",
        C.PROXY_FAILURE,
        " call to tpRank ",
        r"(?P<operation>ncclProxy\w{1,40}) call to (?:tpRank|top parent rank) .{0,60}? failed",
        sample="ncclProxyCallBlockingUDS call to tpRank 3(7f20) failed : 2",
        near_miss="ncclProxyCallBlockingUDS call to tpRank 3(7f20) returned 0",
        source="proxy.cc",
        versions="2.18 and later",
        further=(" call to top parent rank ",),
    ),
)

_ABORTED = (
    echo(
        "comm-abort",
        C.COMM_ABORTED,
        " - Abort ",
        r"comm (?P<d_comm>0x[0-9a-f]{1,16}) rank (?P<ranks>\d{1,9}) n[rR]anks \d{1,9} .{0,80}"
        r"- Abort (?P<d_step>START|COMPLETE)",
        sample="comm 0x7f20ab rank 3 nranks 8 cudaDev 3 busId 1b000 - Abort COMPLETE",
        near_miss="comm 0x7f20ab rank 3 nranks 8 cudaDev 3 busId 1b000 - Destroy COMPLETE",
        source="init.cc",
        versions="2.12 and later; START from 2.28.3",
        levels=LIBRARY,
    ),
    echo(
        "comm-was-aborted",
        C.COMM_ABORTED,
        "communicator was aborted",
        r"(?:NCCL )?communicator was aborted(?: on rank (?P<ranks>\d{1,9}))?",
        sample="RuntimeError: NCCL communicator was aborted on rank 3.",
        near_miss="NCCL communicator was created on rank 3",
        source="PyTorch NCCLUtils.hpp",
        levels=TOLD,
    ),
    echo(
        "comm-abort-state",
        C.COMM_ABORTED,
        "is in abort state",
        r"Comm (?P<d_comm>0x[0-9a-f]{1,16}) is in abort state",
        sample="Comm 0x7f20ab is in abort state",
        near_miss="Comm 0x7f20ab is in use",
        source="init.cc",
        levels=TOLD,
    ),
    echo(
        "comm-fatal-event",
        C.COMM_ABORTED,
        "communicator encountered a fatal error",
        r"communicator encountered a fatal error \(detected in (?P<d_function>\w{1,80})\)",
        sample="communicator encountered a fatal error (detected in ncclIbTest)",
        near_miss="communicator encountered a fault-tolerant link (detected in ncclIbTest)",
        source="transport/net_ib/common.cc",
        versions="2.23.4 and later",
        levels=TOLD,
    ),
)

_TRANSPORTS = (
    signature(
        "no-transport",
        C.NO_TRANSPORT_FOUND,
        "No transport found for rank",
        r"No transport found for rank (?P<source>\d{1,9})\[[^\]]{1,20}\] -> rank "
        r"(?P<target>\d{1,9})",
        sample="No transport found for rank 3[1b000] -> rank 5[4f000]",
        near_miss="Channel 00/0 : 3[3] -> 5[5] via P2P/IPC",
        source="transport.cc",
        versions="2.12.7 and later",
    ),
    signature(
        "no-transport-old",
        C.NO_TRANSPORT_FOUND,
        "No transport found !",
        r"No transport found !",
        sample="No transport found !",
        near_miss="No transport found for rank 3[1b000] -> rank 5[4f000]",
        source="transport.cc",
        versions="up to 2.12",
    ),
    signature(
        "no-net-plugin",
        C.NO_TRANSPORT_FOUND,
        "Failed to initialize any NET plugin",
        r"Failed to initialize any NET plugin",
        sample="Failed to initialize any NET plugin",
        near_miss="Failed to initialize NET plugin IB",
        source="plugin/net.cc",
        versions="2.27 and later",
    ),
    signature(
        "no-network",
        C.NO_TRANSPORT_FOUND,
        "Error: network ",
        r"Error: network (?P<d_network>[^\n]{1,80}?) not found",
        sample="Error: network Warp not found.",
        near_miss="Using network Socket",
        source="net.cc",
        versions="2.12 and later",
    ),
    signature(
        "no-peer-transport",
        C.INTERNAL_ERROR,
        "has no transport for ",
        r"Rank (?P<ranks>\d{1,9}) has no transport for (?:send|recv)\w{0,4} peer "
        r"(?P<d_peer>\d{1,9})",
        sample="Rank 3 has no transport for send peer 5 on channel 0/2",
        near_miss="Rank 3 has 4 local Net devices (max 4).",
        source="transport.cc",
    ),
    signature(
        "out-of-requests",
        C.INTERNAL_ERROR,
        "unable to allocate ",
        r"NET/\w{1,16} ?: (?P<d_error>unable to allocate (?:requests|subtasks))",
        sample="NET/IB : unable to allocate requests",
        near_miss="NET/Socket: Using 2 threads and 8 sockets per thread",
        source="transport/net_ib.cc, transport/net_socket.cc",
    ),
)

_OPTIONAL = (
    caution(
        "library-not-opened",
        C.OPTIONAL_LIBRARY_MISSING,
        "Failed to open lib",
        r"Failed to open (?P<library>lib[\w+-]{1,60}\.so(?:[.\d]{1,12}|\[\.\d\])?)",
        sample="Failed to open libgdrapi.so.2",
        near_miss="Successfully opened libgdrapi.so.2",
        source="misc/ibvwrap.cc, misc/gdrwrap.cc, misc/nvmlwrap.cc, misc/cudawrap.cc",
        severity=Severity.INFO,
    ),
    caution(
        "library-symbol",
        C.OPTIONAL_LIBRARY_MISSING,
        "sym failed on ",
        r"\b(?:dlv?sym|ncclOsDlsym) failed on (?P<d_symbol>\w{1,80})(?:.{0,20}?"
        r"(?P<library>lib[\w+-]{1,60}\.so[.\d]{0,12}))?",
        sample="dlvsym failed on ibv_reg_dmabuf_mr - /usr/lib/libibverbs.so.1: undefined symbol: "
        "ibv_reg_dmabuf_mr, version IBVERBS_1.12 version IBVERBS_1.12",
        near_miss="dlvsym found ibv_reg_dmabuf_mr",
        source="misc/ibvsymbols.cc",
        severity=Severity.INFO,
    ),
    caution(
        "library-mlx5dv",
        C.OPTIONAL_LIBRARY_MISSING,
        "Failed to open mlx5dv symbols",
        r"Failed to open (?P<library>mlx5dv) symbols",
        sample="NET/IB : Failed to open mlx5dv symbols. Advance features like CX-8 Direct-NIC will "
        "be disabled.",
        near_miss="NET/IB: Data Direct DMA Interface is detected for device mlx5_0",
        source="transport/net_ib.cc",
        severity=Severity.INFO,
    ),
    caution(
        "plugin-missing",
        C.OPTIONAL_LIBRARY_MISSING,
        "/Plugin",
        r"\b[A-Z]{3,8}/Plugin ?: (?:Could not find: ?(?P<library>lib\S{1,80}\.so)"
        r"|Failed to (?:open|load)\b.{0,20}?(?P<d_plugin>lib\S{1,80}))",
        sample="NET/Plugin: Could not find: libnccl-net-warp.so. Using internal network plugin.",
        near_miss="NET/Plugin: Loaded net plugin Warp (v8)",
        source="plugin/plugin_open.cc",
        severity=Severity.INFO,
    ),
    caution(
        "cuda-library-missing",
        C.OPTIONAL_LIBRARY_MISSING,
        "Failed to find CUDA library",
        r"Failed to find CUDA library (?P<library>\S{1,80})",
        sample="Failed to find CUDA library libcuda.so (NCCL_CUDA_PATH='') : not found",
        near_miss="cudaDriverVersion 12040",
        source="misc/cudawrap.cc",
        versions="2.13 to 2.22",
        severity=Severity.INFO,
    ),
)

_LIMITS = (
    signature(
        "too-many-files",
        C.RESOURCE_LIMIT,
        "Too many open files",
        r"(?P<error>Too many open files)(?! in system log)",
        sample="socketTryAccept: Accept failed: Too many open files",
        near_miss="This can cause fd limit errors like `OSError: [Errno 24] Too many open files`.",
        source="misc/socket.cc and any program",
        refine=chain(final, without(r"\b(?:can|could|may|might) (?:cause|lead to|result in) ")),
    ),
    signature(
        "thread-failed",
        C.RESOURCE_LIMIT,
        "pthread_create failed",
        rf"(?:Call to pthread_create failed|pthread_create failed|Thread creation failed)"
        rf"(?: ?: ?| with error ){ERROR}",
        sample="Call to pthread_create failed: Resource temporarily unavailable",
        near_miss="Call to pthread_join failed: No such process",
        source="include/checks.h",
        further=("Thread creation failed",),
    ),
    signature(
        "malloc-failed",
        C.RESOURCE_LIMIT,
        "ailed to malloc",
        r"(?P<error>[Ff]ailed to malloc \d{1,20} bytes)",
        sample="Failed to malloc 268435456 bytes",
        near_miss="Failed to CUDA malloc 268435456 bytes",
        source="include/alloc.h",
    ),
    signature(
        "malloc-null",
        C.RESOURCE_LIMIT,
        "Unrecoverable error detected: malloc",
        r"Unrecoverable error detected: (?P<error>malloc\(size=\d{1,20}\) returned null)",
        sample="os/linux.cc:77 Unrecoverable error detected: malloc(size=4096) returned null.",
        near_miss="malloc(size=4096) returned 0x7f20",
        source="include/alloc.h",
        levels=ANY_LEVEL,
    ),
    signature(
        "system-call-limit",
        C.RESOURCE_LIMIT,
        "Call to ",
        r"Call to (?P<d_call>(?!ibv_|mlx5dv_|connect\b|bind\b|pthread_create\b|posix_fallocate\b)"
        r"\w{1,40}(?: \w{1,20}){0,2}) failed ?: (?P<error>Cannot allocate memory"
        r"|Resource temporarily unavailable|No buffer space available|Disk quota exceeded)",
        sample="Call to socket failed: No buffer space available",
        near_miss="Call to socket failed: Address family not supported by protocol",
        source="include/checks.h",
    ),
    signature(
        "system-call-failed",
        C.UNHANDLED_SYSTEM_ERROR,
        "Call to ",
        r"Call to (?P<d_call>(?!ibv_|mlx5dv_|connect\b|bind\b|recv\b|send\b|pthread_create\b"
        r"|posix_fallocate\b|shm_open\b)\w{1,40}(?: \w{1,20}){0,2}) failed ?: "
        r"(?!Cannot allocate memory|Resource temporarily|No buffer space|Disk quota|Too many open"
        r"|No space left)(?P<d_error>[^\n]{1,120})",
        sample="Call to getsockname failed: Bad file descriptor",
        near_miss="Call to getsockname returned Interrupted system call, retrying",
        source="include/checks.h",
        levels=frozenset({"WARN"}),
    ),
)

ROWS = (*_PROXY, *_ABORTED, *_TRANSPORTS, *_OPTIONAL, *_LIMITS)
