"""Rows for the adapter and the verbs calls, completions apart."""

import re

from ncdiag.model.finding import FindingClass as C
from ncdiag.model.finding import Role, Severity
from ncdiag.read.line import Line
from ncdiag.read.signatures.fragments import (
    ERROR,
    PEER,
    TOLD,
    caution,
    chain,
    final,
    signature,
    without,
)

_HCA = r"(?P<hca>[^\s:]{1,64})(?::\d{1,3})?"
# "NET/IB : mlx5_0:1 Got async event : ", "NET/IB : mlx5_0:1 async fatal event on QP (0x..): ".
_DEVICE = rf"NET/[\w/]{{1,24}} ?: (?:{_HCA} )?"
_ASYNC = (
    rf"(?:{_DEVICE})?(?:Got (?:non-fatal |error )?async (?:error )?event ?:|async fatal event ?:) "
)
# "on QP (0x7f..) qpn=77 handle=1 state=6: ", "on SRQ, unused for now (0x7f..): ".
_ASYNC_ON_QUEUE = (
    rf"(?:{_DEVICE})?async fatal event on (?P<d_queue>QP|CQ|SRQ|WQ)\b[^():]{{0,40}}\([^)]{{1,40}}\)"
    r"(?P<d_state>[^:]{0,200}): "
)
# Names of ibv_event_type_str().
_QUEUE_EVENTS = (
    r"(?:CQ error|local work queue catastrophic error|invalid request local work queue error"
    r"|local access violation work queue error|SRQ catastrophic error|WQ fatal"
    r"|path migration request error|QP fatal|invalid request\b[^()]{0,60}"
    r"|local access violation\b[^()]{0,60}|(?:QP|CQ|SRQ)\b[^()]{0,60})"
)
# The device file is not the container's to open: no word about the adapter itself.
_NOT_ALLOWED = r"Permission denied|Operation not permitted|No such (?:file|device)"
# What fails while a process ends, mostly because something failed before.
_TEARDOWN = (
    r"ibv_(?:get_async_event|ack_async_event|dealloc_pd|dereg_mr|destroy_\w{1,20}|close_device)"
)
# Calls with rows of their own.
_OWN_ROWS = rf"{_TEARDOWN}|ibv_(?:(?:exp_)?reg_|modify_qp\b|poll_cq\b|open_device\b)|mlx5dv_reg_"
_MODIFY_QP = "Call to ibv_modify_qp failed"
_QP_FIELDS = (
    re.compile(r"on dev (?P<hca>[^\s:,]{1,64})"),
    re.compile(r"local GID (?P<local_gid>[0-9a-fA-F:.]{2,46})"),
    re.compile(r"remote GID (?P<remote_gid>[0-9a-fA-F:.]{2,46})"),
    re.compile(r"curr state (?P<d_from_state>\w{1,20})"),
    re.compile(r"next state (?P<d_to_state>\w{1,20})"),
    re.compile(r"local GID index (?P<d_gid_index>\d{1,5})"),
)


def _queue_pair_fields(values: dict[str, str], line: Line) -> dict[str, str] | None:
    for field in _QP_FIELDS:
        if found := field.search(line.text):
            values.update(found.groupdict())
    return values


_EVENTS = (
    signature(
        "ib-port-error",
        C.IB_PORT_ERROR,
        "async event",
        rf"{_ASYNC}(?P<event>port error)",
        sample="NET/IB : mlx5_3:1 Got async event : port error",
        near_miss="NET/IB : mlx5_3:1 Got async event : LID change",
        source="transport/net_ib.cc",
        versions="up to 2.22 without or with the port, 2.23.4 and later as non-fatal",
        further=("async error event", "async fatal event"),
    ),
    signature(
        "ib-port-active",
        C.IB_PORT_ERROR,
        "async event",
        rf"{_ASYNC}(?P<event>port active)",
        sample="NET/IB : mlx5_3:1 Got non-fatal async event: port active(9)",
        near_miss="NET/IB : mlx5_3:1 Got non-fatal async event: client reregistration(17)",
        source="transport/net_ib.cc",
        role=Role.WARNING,
        severity=Severity.DEGRADED,
        further=("async error event",),
        constants={"d_recovered": "yes"},
    ),
    signature(
        "ib-port-speed-changed",
        C.IB_PORT_ERROR,
        "speed change detected",
        rf"NET/IB ?: {_HCA} (?P<event>speed change) detected: (?P<d_from_mbit>\d{{1,9}}) -> "
        r"(?P<d_to_mbit>[\w.+]{1,20})",
        sample="NET/IB : mlx5_3:1 speed change detected: 400000 -> 100000 Mbps",
        near_miss="NET/IB : mlx5_3:1 speed 400000 Mbps",
        source="transport/net_ib/common.cc",
        versions="2.30.7",
        levels=TOLD,
        role=Role.WARNING,
        severity=Severity.DEGRADED,
    ),
    signature(
        "ib-device-fatal",
        C.IB_DEVICE_FATAL,
        "async event",
        rf"{_ASYNC}(?P<event>local catastrophic error|device fatal)",
        sample="NET/IB : mlx5_3:1 async fatal event: local catastrophic error",
        near_miss="NET/IB : mlx5_3:1 async fatal event: local work queue catastrophic error",
        source="transport/net_ib.cc",
        further=("async error event", "async fatal event"),
    ),
    signature(
        "ib-queue-event",
        C.IB_QP_FATAL_EVENT,
        "async event",
        rf"{_ASYNC}(?P<event>{_QUEUE_EVENTS})",
        sample="NET/IB : Got async event : local access violation work queue error",
        near_miss="NET/IB : Got async event : communication established",
        source="transport/net_ib.cc",
        further=("async error event", "async fatal event"),
    ),
    signature(
        "ib-queue-fatal",
        C.IB_QP_FATAL_EVENT,
        "async fatal event on",
        rf"{_ASYNC_ON_QUEUE}(?P<event>[^()\s][^()]{{0,80}})",
        sample="NET/IB : mlx5_3:1 async fatal event on QP (0x7f0c11d0a2b0) qpn=771 handle=9 "
        "send_cq=1 recv_cq=1 state=6 sq_psn=11 rq_psn=12: invalid request local work queue error",
        near_miss="NET/IB : mlx5_3:1 async fatal event: local catastrophic error",
        source="transport/net_ib.cc",
        versions="2.23.4 and later",
    ),
    signature(
        "ib-device-marked-failed",
        C.IB_QP_FATAL_EVENT,
        "marked as failed. Initiating recovery",
        r"NET/IB ?: Device (?P<d_device>\d{1,4}) (?P<event>marked as failed)\. "
        r"Initiating recovery\? (?P<d_recovery>Yes|No)",
        sample="NET/IB: Device 2 marked as failed. Initiating recovery? Yes (1 of 4 ports)",
        near_miss="NET/IB: Device 2 is back in use after its recovery",
        source="transport/net_ib/p2p_resiliency.cc",
        versions="2.29.7 and later",
        severity=Severity.DEGRADED,
    ),
    signature(
        "ib-devices-failed",
        C.IB_QP_FATAL_EVENT,
        "failed devices out of",
        r"NET/IB ?: Fatal error\. Detected (?P<d_failed>\d{1,4}) (?P<event>failed devices) out of",
        sample="NET/IB: Fatal error. Detected 4 failed devices out of 4 on peer 10.9.0.4",
        near_miss="NET/IB: Detected 0 failed devices out of 4",
        source="transport/net_ib/p2p_resiliency.cc",
        versions="2.30.3 and later",
    ),
    signature(
        "ib-gin-error",
        C.IB_QP_FATAL_EVENT,
        "GIN Error detected",
        r"(?P<event>GIN Error) detected",
        sample="GIN Error detected",
        near_miss="GIN/Plugin: Could not find: libnccl-gin.so",
        source="gin/gin_host.cc",
        versions="2.28.7 and later",
    ),
)

_CALLS = (
    signature(
        "ib-poll-cq",
        C.IB_DEVICE_FATAL,
        "Call to ibv_poll_cq",
        r"Call to (?P<event>ibv_poll_cq)(?:\(\))? (?:failed|returned -\d)"
        r"(?: with error (?P<d_error>[^,(]{1,80}))?",
        sample="Call to ibv_poll_cq() returned -22",
        near_miss="Call to ibv_poll_cq() returned 4",
        source="misc/ibvwrap.cc",
    ),
    signature(
        "ib-open-device",
        C.IB_DEVICE_FATAL,
        "Call to ibv_open_device",
        r"Call to (?P<event>ibv_open_device)(?:\(\))? failed"
        r"(?: with error (?P<d_error>[^,(]{1,80}))?",
        sample="Call to ibv_open_device failed with error Input/output error",
        near_miss="Call to ibv_open_device failed with error Permission denied",
        source="misc/ibvwrap.cc",
        refine=without(_NOT_ALLOWED),
    ),
    signature(
        "ib-modify-qp-on-device",
        C.IB_MODIFY_QP_FAILED,
        _MODIFY_QP,
        rf"{_MODIFY_QP} with (?P<errno>\d{{1,4}}) {ERROR}",
        sample="Call to ibv_modify_qp failed with 113 No route to host, on dev mlx5_6:1, "
        "curr state INIT, next state RTR, local GID index 3, local GID ::ffff:10.9.1.4, "
        "remote GID ::ffff:10.9.2.5",
        near_miss="Call to ibv_modify_qp failed with 110 Connection timed out, on dev mlx5_6:1, "
        "curr state INIT, next state RTR, local GID index 3, local GID ::ffff:10.9.1.4, "
        "remote GID ::ffff:10.9.2.5, retrying 1/8 after 100 msec of sleep",
        source="misc/ibvwrap.cc",
        versions="2.24 and later",
        refine=chain(final, _queue_pair_fields),
    ),
    signature(
        "ib-modify-qp",
        C.IB_MODIFY_QP_FAILED,
        _MODIFY_QP,
        rf"{_MODIFY_QP}(?: with error {ERROR})?",
        sample="Call to ibv_modify_qp failed with error Invalid argument",
        near_miss="Call to ibv_modify_qp failed with error Connection timed out, retrying 2/8",
        source="misc/ibvwrap.cc",
        versions="up to 2.23",
        refine=chain(final, _queue_pair_fields),
    ),
    signature(
        "ib-incompatible-device",
        C.IB_MODIFY_QP_FAILED,
        "incompatible devices",
        r"NET/IB ?: (?:Attempted to connect (?P<error>incompatible devices)"
        r"|Remote \S{1,64} device is (?P<d_remote>incompatible))",
        sample="NET/IB : Attempted to connect incompatible devices mlx5_0 (IB) and mlx5_4 (RoCE)",
        near_miss="NET/IB : There are mismatched physical devices between local (mlx5_0) and remote"
        " (mlx5_1)",
        source="transport/net_ib/connect.cc",
        further=("device is incompatible",),
    ),
    signature(
        "ib-register-memory",
        C.IB_MEMORY_REGISTRATION_FAILED,
        "Call to ibv_",
        r"Call to (?P<call>ibv_(?:exp_)?reg_\w{1,30}|mlx5dv_reg_\w{1,30})(?:\(\))? failed"
        rf"(?: with error {ERROR})?",
        sample="Call to ibv_reg_mr failed with error Bad address",
        near_miss="Call to ibv_dereg_mr failed with error Invalid argument",
        source="misc/ibvwrap.cc, misc/mlx5dvwrap.cc",
        further=("Call to mlx5dv_",),
        refine=final,
    ),
    signature(
        "ib-verbs-call",
        C.IB_VERBS_CALL_FAILED,
        "Call to ibv_",
        rf"Call to (?P<call>(?!{_OWN_ROWS})"
        rf"(?:ibv|mlx5dv)_\w{{1,40}})(?:\(\))? failed(?: with error {ERROR})?",
        sample="Call to ibv_create_cq failed with error Cannot allocate memory",
        near_miss="Call to ibv_query_ece skipped",
        source="misc/ibvwrap.cc, misc/mlx5dvwrap.cc",
        further=("Call to mlx5dv_",),
        refine=final,
    ),
    caution(
        "ib-verbs-teardown",
        C.IB_VERBS_CALL_FAILED,
        "Call to ibv_",
        rf"Call to (?P<call>{_TEARDOWN})(?:\(\))? failed(?: with error {ERROR})?",
        sample="Call to ibv_destroy_qp failed with error Device or resource busy errno 16",
        near_miss="Call to ibv_create_qp failed with error Cannot allocate memory",
        source="misc/ibvwrap.cc",
    ),
    signature(
        "ib-open-not-allowed",
        C.IB_VERBS_CALL_FAILED,
        "Call to ibv_open_device",
        r"Call to (?P<call>ibv_open_device)(?:\(\))? failed with error "
        rf"(?P<error>{_NOT_ALLOWED}[^,(]{{0,40}})",
        sample="Call to ibv_open_device failed with error Operation not permitted",
        near_miss="Call to ibv_open_device failed with error Input/output error",
        source="misc/ibvwrap.cc",
    ),
    signature(
        "ib-post-request",
        C.IB_VERBS_CALL_FAILED,
        "ibv_post_",
        rf"(?P<call>ibv_post_(?:send|recv|srq_recv))(?:\(\))? failed with error {ERROR}",
        sample="ibv_post_send() failed with error Invalid argument, Bad WR 0x7f10, First WR 0x7f10",
        near_miss="ibv_post_send() took 12 us",
        source="misc/ibvwrap.cc",
    ),
    signature(
        "ib-device-refused",
        C.IB_VERBS_CALL_FAILED,
        "NET/IB : Unable to ",
        r"NET/IB ?: (?P<error>Unable to (?P<d_step>open device|query device|query port_num)"
        r" ?[^\s,]{0,64})",
        sample="NET/IB : Unable to open device mlx5_1",
        near_miss="NET/IB : Using [0]mlx5_1:1/RoCE [RO]; OOB eth0:10.9.0.1<0>",
        source="transport/net_ib.cc",
        further=("NET/IB: Unable to ",),
        role=Role.WARNING,
        severity=Severity.DEGRADED,
    ),
    signature(
        "ib-incorrect-receive-info",
        C.COLLECTIVE_MISMATCH,
        "posted incorrect receive info",
        rf"peer {PEER} posted incorrect receive info: size (?P<got>-?\d{{1,20}})",
        sample="NET/IB : req 0/1 tag 2a peer 10.9.0.4<40112> posted incorrect receive info: "
        "size -4096 addr 0 rkeys[0]=0",
        near_miss="NET/IB : req 0/1 tag 2a peer 10.9.0.4<40112> posted receive info: size 4096",
        source="transport/net_ib/p2p.cc",
    ),
    signature(
        "ib-collective-mismatch",
        C.COLLECTIVE_MISMATCH,
        "collective mismatch error, local size",
        rf"peer {PEER} collective mismatch error, local size (?P<expected>\d{{1,20}}) "
        r"remote size (?P<got>\d{1,20})",
        sample="NET/IB : req 0/1 tag 2a peer 10.9.0.4<40112> collective mismatch error, "
        "local size 4096 remote size 1024",
        near_miss="NET/IB : req 0/1 tag 2a peer 10.9.0.4<40112> local size 4096 remote size 4096",
        source="transport/net_ib.cc",
        versions="2.10 to 2.19",
    ),
)

ROWS = (*_EVENTS, *_CALLS)
