"""Rows for the libfabric plug-in, libfabric itself and in-network reduction (SHARP)."""

import re

from ncdiag.model.finding import FindingClass as C
from ncdiag.read.line import Line
from ncdiag.read.signatures.fragments import SPOKEN, TOLD, caution, chain, signature
from ncdiag.read.signatures.row import ANY_LEVEL, OUTSIDE

_RC = r"RC: ?(?P<rc>-?\d{1,6})"
# The error text of libfabric may hold brackets and dots.
_OFI_ERROR = r"(?:Error|ERROR): ?(?P<error>[^.,\n]{1,160})"
_FAILING = (
    "NET/OFI Could",
    "NET/OFI Unable to ",
    "NET/OFI Failed to ",
    "NET/OFI Error ",
)
_COMPLETED = r"NET/OFI Request\b.{0,60}? completed with error"


# The provider's errors of the other end, and how it may name that end.
_OF_THE_PEER = re.compile(r"[Uu]n(?:responsive|reachable) (?:receiver|remote)\b")
_PEER_ID = re.compile(r"\bPeer host id: (?!N/A)([\w.-]{1,64})")


def _other_end(values: dict[str, str], line: Line) -> dict[str, str]:
    """Say that the error is of the other end, and which that is."""
    if _OF_THE_PEER.match(values.get("error", "")):
        values["d_of_peer"] = "yes"
        if found := _PEER_ID.search(line.text):
            values["d_far_host"] = found[1]
    return values


def _newer_name(values: dict[str, str], _line: Line) -> dict[str, str]:
    """The newer text calls the return code ``err``: kept under both names."""
    return {**values, "rc": values["err"]}


_COMPLETIONS = (
    signature(
        "ofi-completion-provider",
        C.OFI_COMPLETION_ERROR,
        "completed with error",
        rf"{_COMPLETED}\. {_RC}\.(?: Flags: \d{{1,20}}\.)? "
        r"Error: (?P<provider_errno>-?\d{1,6}) \((?P<error>[^()]{1,160})",
        sample="NET/OFI Request 0x7f20 completed with error. RC: 103. Error: 4126 (Unresponsive "
        "receiver). Completed length: 0, Request: { dev: 1, size: 0, state: CREATED }",
        near_miss="NET/OFI Request 0x7f20 completed. Completed length: 4096",
        source="aws-ofi-nccl nccl_ofi_rdma.c, nccl_ofi_sendrecv.c",
        versions="plug-in 1.8 and later",
        refine=_other_end,
    ),
    signature(
        "ofi-completion-named",
        C.OFI_COMPLETION_ERROR,
        "completed with error",
        rf"{_COMPLETED}: err: (?P<err>-?\d{{1,6}})"
        r"(?:, flags: \d{1,20})?(?:, prov_errno: (?P<provider_errno>-?\d{1,6}))?"
        r"(?:, strerror: (?P<error>.{1,200}?)(?=, len:|\s{0,8}$))?",
        sample="NET/OFI Request 0x7f20 (SEND) completed with error: err: 113, flags: 2, "
        "prov_errno: 4119, strerror: Unreachable remote, len: 0",
        near_miss="NET/OFI Request 0x7f20 (SEND) completed, len: 4096",
        source="aws-ofi-nccl nccl_ofi_platform.h",
        versions="plug-in 1.17 and later",
        refine=chain(_newer_name, _other_end),
    ),
    signature(
        "ofi-completion",
        C.OFI_COMPLETION_ERROR,
        "completed with error",
        rf"{_COMPLETED}\. {_RC}\.(?: Error: (?!-?\d{{1,6}} \()(?P<error>[^.\n]{{1,160}}))?",
        sample="NET/OFI Request 0x7f20 completed with error. RC: 107. Error: Transport endpoint is "
        "not connected. Completed length: 0, Request: { dev: 1, size: 0, state: CREATED }",
        near_miss="NET/OFI Request 0x7f20 completed. Completed length: 4096",
        source="aws-ofi-nccl nccl_ofi_net.c",
        versions="plug-in up to 1.7",
        refine=_other_end,
    ),
    signature(
        "libfabric-completion",
        C.OFI_COMPLETION_ERROR,
        "prov_err",
        r"libfabric:.{0,120}\berr: (?P<rc>-?\d{1,6}), prov_err(?:no)?: "
        r"(?P<error>[^(\n]{1,120}?) \((?P<provider_errno>-?\d{1,6})\)",
        sample="libfabric:77:1700000000:efa:cq:efa_cq_handle_error():81<warn> err: 113, prov_err: "
        "Unreachable remote (4119)",
        near_miss="libfabric:77:1700000000:efa:cq:efa_cq_open():81<info> prov_err: none",
        source="libfabric prov/efa",
        levels=ANY_LEVEL,
        refine=_other_end,
    ),
)

_MEMORY = (
    signature(
        "ofi-register-memory",
        C.OFI_MEMORY_REGISTRATION,
        "NET/OFI Unable to register",
        rf"NET/OFI Unable to register (?:managed )?memory(?:.{{0,80}}?{_RC}(?:, {_OFI_ERROR})?)?",
        sample="NET/OFI Unable to register memory (type = 2) for device 1. RC: -22, Error: Invalid "
        "argument",
        near_miss="NET/OFI Registered memory (type = 2) for device 1",
        source="aws-ofi-nccl",
    ),
    signature(
        "ofi-register-buffer",
        C.OFI_MEMORY_REGISTRATION,
        _FAILING[0],
        r"NET/OFI (?:Could not|Couldn't|Unable to|Failed to|Error (?:in|while)) "
        r"(?:register|registering|registration of|retrieve MR|get MR|bind MR|enable MR)\b"
        rf".{{0,80}}?(?:{_RC}(?:, {_OFI_ERROR})?|$)",
        sample="NET/OFI Could not register memory region for flush buffer. RC: -12, Error: Cannot "
        "allocate memory",
        near_miss="NET/OFI Could not get NIC path for device 1",
        source="aws-ofi-nccl",
        further=_FAILING[1:],
    ),
    signature(
        "cxi-map",
        C.OFI_MEMORY_REGISTRATION,
        "cxil_map",
        r"cxil_map(?:\(\))?(?: lni)?:? (?:.{0,40}?failed: (?P<rc>-?\d{1,6})"
        r"|(?P<error>(?:write|ioctl) error|failed))",
        sample="libfabric:77:1700000000::cxi:mr:cxip_do_map():90<warn> nid0007: cxil_map() failed: "
        "-22",
        near_miss="libfabric:77:1700000000::cxi:mr:cxip_do_map():90<info> nid0007: cxil_map() done",
        source="libfabric prov/cxi, libcxi",
        levels=ANY_LEVEL,
    ),
    signature(
        "kernel-register-mr",
        C.OFI_MEMORY_REGISTRATION,
        "ailed to register mr",
        r"[Ff]ailed to register mr\b(?:[^-\d\n]{0,20}(?P<rc>-\d{1,4}))?",
        sample="infiniband rdmap0s6: efa_reg_user_mr: Failed to register mr [-12]",
        near_miss="infiniband rdmap0s6: efa_reg_user_mr: registered mr 12",
        source="Linux drivers/infiniband/hw/efa",
        levels=OUTSIDE,
    ),
)

_ENDPOINTS = (
    signature(
        "ofi-endpoint",
        C.OFI_ENDPOINT_FAILED,
        _FAILING[0],
        r"NET/OFI (?P<d_step>(?:Couldn't|Could not|Unable to|Failed to) "
        r"(?:allocate|open|enable|bind|create|retrieve|initiali[sz]e|set up)[^.\n]{0,60}?"
        r"(?:endpoint|access domain|fabric provider|domain|CQ|AV|provider)\b[^.\n]{0,60})"
        rf"(?:\. RC: ?(?P<d_rc>-?\d{{1,6}}),? {_OFI_ERROR})?",
        sample="NET/OFI Couldn't open a fabric access domain. RC: -22, ERROR: Invalid argument",
        near_miss="NET/OFI Selected provider is efa, fabric is efa (found 4 nics)",
        source="aws-ofi-nccl nccl_ofi_ofiutils.c",
        further=_FAILING[1:],
    ),
    signature(
        "ofi-new-endpoint",
        C.OFI_ENDPOINT_FAILED,
        "Creating new ",
        r"Creating new (?P<d_step>endpoint|domain)\b[^:\n]{0,60} failed:? ?(?P<error>[^\n]{0,120})",
        sample="NET/OFI Creating new endpoint for domain 0x7f20 failed: Cannot allocate memory",
        near_miss="NET/OFI Creating new endpoint for domain 0x7f20",
        source="aws-ofi-nccl nccl_ofi_net.c",
        levels=TOLD,
    ),
    signature(
        "ofi-no-provider",
        C.OFI_ENDPOINT_FAILED,
        _FAILING[0],
        r"NET/OFI (?P<error>No eligible providers were found|Failed to find any (?:eligible )?"
        r"provider\w{0,2}|Unable to find a (?:fabric )?provider|OFI fi_getinfo\(\) call failed"
        r"|Could not find any optimal provider)",
        sample="NET/OFI No eligible providers were found",
        near_miss="NET/OFI Setting provider_filter to efa",
        source="aws-ofi-nccl nccl_ofi_net.c",
        further=("NET/OFI No eligible", "NET/OFI OFI fi_getinfo", *_FAILING[1:]),
    ),
    signature(
        "ofi-initialization",
        C.OFI_ENDPOINT_FAILED,
        "aws-ofi-nccl initialization failed",
        r"NET/OFI (?P<error>aws-ofi-nccl initialization failed)",
        sample="NET/OFI aws-ofi-nccl initialization failed",
        near_miss="NET/OFI Initializing aws-ofi-nccl 1.9.2",
        source="aws-ofi-nccl nccl_ofi_api.c",
    ),
    caution(
        "ofi-only-efa",
        C.OFI_ENDPOINT_FAILED,
        "Only EFA provider is supported",
        r"NET/OFI (?P<error>Only EFA provider is supported)",
        sample="NET/OFI Only EFA provider is supported",
        near_miss="NET/OFI Selected provider is efa",
        source="aws-ofi-nccl platform-aws.c",
    ),
)

# A job goes on over point-to-point connections without it.
_SHARP = (
    caution(
        "sharp-init",
        C.SHARP_FAILED,
        "SHARP coll init error",
        r"SHARP coll init error: (?P<d_error>[^(\n]{0,120})\(?(?P<rc>-?\d{1,6})?",
        sample="NET/IB : SHARP coll init error: Cannot connect to SHARPD(-8)",
        near_miss="Sharp rank 0/4 initialized on mlx5_0:1",
        source="nccl-rdma-sharp-plugins sharp_plugin.c",
    ),
    caution(
        "sharp-group",
        C.SHARP_FAILED,
        "group create",
        r"(?:SHARP|Sharp|sharp) group create(?: failed)?: ?(?P<d_error>[^(\n]{0,120})"
        r"\((?P<rc>-?\d{1,6})\)",
        sample="SHARP group create failed: No SHARP resources(-2)",
        near_miss="SHARP group created: 1(0)",
        source="nccl-rdma-sharp-plugins sharp_plugin.c",
        levels=SPOKEN,
    ),
    caution(
        "sharp-call",
        C.SHARP_FAILED,
        "sharp_",
        r"\b(?P<d_call>sharp_(?:coll_)?\w{1,40}) failed ?:? ?(?P<d_error>[^(\n]{0,120})"
        r"\((?P<rc>-?\d{1,6})\)",
        sample="ERROR sharp_create_job failed: No Aggregation Manager detected(-52)",
        near_miss="sharp_create_job done: tree 3 (0)",
        source="libsharp",
    ),
    caution(
        "collnet-unavailable",
        C.SHARP_FAILED,
        "Cannot initialize CollNet",
        r"Cannot initialize CollNet, using point-to-point",
        sample="Cannot initialize CollNet, using point-to-point network instead",
        near_miss="rank 0 Connected CollNet",
        source="transport.cc, transport/coll_net.cc",
    ),
    caution(
        "collnet-unsupported",
        C.SHARP_FAILED,
        "CollNet is not supported or fails to initialize",
        r"CollNet is not supported or fails to initialize",
        sample="CollNet is not supported or fails to initialize, ignoring NCCL_ALGO=COLLNET",
        near_miss="CollNet 00/0 : 0 [send] via COLLNET/SHARP/0",
        source="graph/tuning.cc",
        versions="2.13 to 2.22",
    ),
)

ROWS = (*_COMPLETIONS, *_MEMORY, *_ENDPOINTS, *_SHARP)
