"""Rows for the start-up: interfaces, addresses to listen on, and who takes part."""

from ncdiag.model.finding import FindingClass as C
from ncdiag.read.signatures.fragments import (
    ERROR,
    PEER,
    caution,
    elsewhere,
    final,
    renamed,
    signature,
)

_DATA = r"net_socket|net_ib|transport/net\b"

_INTERFACES = (
    signature(
        "bootstrap-no-interface",
        C.BOOTSTRAP_NO_INTERFACE,
        "interface found",
        r"(?:Bootstrap|NET/\w{1,16}) ?: (?:[Nn]o socket interface|[Nn]o interface|No IP interface)"
        r" found",
        sample="Bootstrap : no socket interface found",
        near_miss="Bootstrap : Using eth0:10.9.0.1<0>",
        source="bootstrap.cc, transport/net_socket.cc, transport/net_ib.cc",
    ),
    signature(
        "bootstrap-no-usable-interface",
        C.BOOTSTRAP_NO_INTERFACE,
        "interface found",
        r"(?:No usable listening interface found"
        rf"|No interface found in the same subnet as remote address {PEER})",
        sample="Net : No interface found in the same subnet as remote address 10.9.0.4<40112>",
        near_miss="NET/Socket : 2 interfaces found",
        source="misc/socket.cc, bootstrap.cc",
        refine=renamed(peer="d_peer"),
    ),
    signature(
        "bootstrap-no-oob-device",
        C.BOOTSTRAP_NO_INTERFACE,
        "verify NCCL_OOB_NET_IFNAME",
        r"no device found matching (?P<interface>[^\s,]{1,120}), verify NCCL_OOB_NET_IFNAME",
        sample="no device found matching =ib7, verify NCCL_OOB_NET_IFNAME",
        near_miss="NCCL_OOB_NET_IFNAME set by environment to ib7",
        source="bootstrap.cc",
        versions="2.23 and later",
    ),
    signature(
        "bootstrap-interface-name",
        C.BOOTSTRAP_NO_INTERFACE,
        "NCCL_SOCKET_IFNAME=",
        r"[Nn]o (?:socket )?interface[^=\n]{0,60}NCCL_SOCKET_IFNAME=(?P<interface>[^\s,]{1,120})",
        sample="no interface found for NCCL_SOCKET_IFNAME=ib7",
        near_miss="NCCL_SOCKET_IFNAME set by environment to ib7",
        source="forks of misc/socket.cc",
    ),
)

_LISTENING = (
    signature(
        "bootstrap-bind",
        C.BOOTSTRAP_BIND_FAILED,
        "Call to bind",
        rf"Call to bind(?: to (?P<address>[^\s<>]{{1,128}}))?(?:<\d{{1,5}}>)? failed"
        rf"(?: with error)? ?:? {ERROR}",
        sample="Call to bind failed: Address already in use",
        near_miss="Call to bind returned Interrupted system call, retrying",
        source="misc/socket.cc",
        refine=final,
    ),
    signature(
        "local-socket-bind",
        C.BOOTSTRAP_BIND_FAILED,
        "UDS: Binding to socket",
        rf"UDS: Binding to socket (?P<address>\S{{1,120}}) failed ?: {ERROR}",
        sample="UDS: Binding to socket /tmp/nccl-socket-3-1f failed : Address already in use (98)",
        near_miss="UDS: Binding to socket /tmp/nccl-socket-3-1f",
        source="misc/ipcsocket.cc",
        versions="2.17 and later",
    ),
)

_MISMATCHES = (
    signature(
        "bootstrap-rank-count",
        C.BOOTSTRAP_MISMATCH,
        "mismatch in rank count from procs",
        r"mismatch in rank count from procs (?P<expected>\d{1,9}) ?: ?(?P<got>\d{1,9})",
        sample="Bootstrap Root : mismatch in rank count from procs 16 : 8",
        near_miss="Bootstrap Root : rank count from procs 16 : 16",
        source="bootstrap.cc",
        versions="up to 2.22",
    ),
    *(
        signature(
            f"bootstrap-info-{field}",
            C.BOOTSTRAP_MISMATCH,
            "mismatch in info from procs",
            r"mismatch in info from procs\b.{0,120}?"
            rf"\b(?P<d_field>{field}) (?P<expected>-?\d{{1,12}}) vs (?!(?P=expected)\b)"
            r"(?P<got>-?\d{1,12})",
            sample=f"Bootstrap Root : mismatch in info from procs, {field} 16 vs 8",
            near_miss=f"Bootstrap Root : mismatch in info from procs, {field} 16 vs 16",
            source="bootstrap.cc",
            versions="2.23 and later",
        )
        for field in ("nranks", "nroots", "iroot", "offset")
    ),
    signature(
        "bootstrap-info",
        C.BOOTSTRAP_MISMATCH,
        "mismatch in info from procs",
        r"mismatch in info from procs",
        sample="Bootstrap Root : mismatch in info from procs",
        near_miss="Bootstrap Root : info from procs",
        source="bootstrap.cc",
        versions="2.23 and later",
    ),
    signature(
        "bootstrap-checked-in",
        C.BOOTSTRAP_MISMATCH,
        "ranks has already checked in",
        r"rank (?P<ranks>\d{1,9}) of (?P<d_size>\d{1,9}) ranks has already checked in",
        sample="Bootstrap Root : rank 3 of 16 ranks has already checked in",
        near_miss="Bootstrap Root : rank 3 of 16 ranks has checked in",
        source="bootstrap.cc",
    ),
    signature(
        "bootstrap-truncated",
        C.BOOTSTRAP_MISMATCH,
        "essage truncated : received ",
        r"Message truncated : received (?P<got>\d{1,12}(?:,\d{1,12})?) bytes instead of "
        r"(?P<expected>\d{1,12}(?:,\d{1,12})?)",
        sample="Message truncated : received 1024 bytes instead of 256",
        near_miss="Message received : 1024 bytes",
        source="bootstrap.cc",
        refine=elsewhere(_DATA),
    ),
    signature(
        "bootstrap-versions",
        C.BOOTSTRAP_MISMATCH,
        "Mismatched NCCL version detected",
        r"Mismatched NCCL version detected ?: rank (?P<ranks>\d{1,9}) version (?P<got>[\d.]{1,16}) "
        r"rank (?P<ranks_other>\d{1,9}) version (?P<expected>[\d.]{1,16})",
        sample="Mismatched NCCL version detected : rank 3 version 22105 rank 0 version 22707",
        near_miss="NCCL version detected : rank 3 version 22707 rank 0 version 22707",
        source="init.cc",
        versions="2.23.4 and later",
    ),
    caution(
        "peer-version",
        C.BOOTSTRAP_MISMATCH,
        "NCCL version mismatch with remote peer",
        r"NCCL version mismatch with remote peer \S{1,128} \(local: (?P<expected>[\d.]{1,16}), "
        r"remote (?P<got>[\d.]{1,16})\)",
        sample="NCCL version mismatch with remote peer 10.9.0.4<4012> (local: 22707, remote 22602)",
        near_miss="NCCL version of remote peer 10.9.0.4<40112> (local: 22707, remote 22707)",
        source="ras/rasnet.cc",
        versions="2.24 and later",
    ),
)

ROWS = (*_INTERFACES, *_LISTENING, *_MISMATCHES)
