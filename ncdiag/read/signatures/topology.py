"""Rows for a hardware tree that could not be read or put together."""

from ncdiag.model.finding import FindingClass as C
from ncdiag.model.finding import Role, Severity
from ncdiag.read.signatures.fragments import ONLY_WARN, caution, signature, without

_XML = (
    r"Attribute \S{1,80} of node \S{1,80} not found|Attribute \S{1,80} not found"
    r"|XML (?:Parse(?: error)?|Mismatch|Import) : [^\n]{1,120}"
    r"|XML (?:Graph|Topology) has wrong version[^\n]{0,40}"
    r"|Could not open XML (?:graph|topology) file [^\n]{1,120}"
    r"|Error ?: XML parser is limited[^\n]{0,60}"
    r"|Error ?: (?:too many (?:XML|Topo)\b|tried to create too many nodes)[^\n]{0,60}"
    r"|Error ?: (?:name|value) \S{1,80} too long[^\n]{0,30}"
)
_GRAPH = (
    r"Could not find (?:NET|NIC|GPU|gpu|net|id|node of type|local GPU|intermediate GPU|pool of op"
    r"|rev link|any local path)\b[^\n]{0,100}"
    r"|Add (?:NVLink|C2c|PCI Link) error ?: could not find[^\n]{0,60}"
    r"|Failed to find reverse path from remNode[^\n]{0,80}"
    r"|Error ?: (?:could not find CPU close to GPU|ring \d{1,6} does not|ran out of room to store)"
    r"[^\n]{0,80}|Internal error ?: tree already has[^\n]{0,60}"
    r"|ncclTopo\w{1,30}(?: ?:)? (?:could not find|too many)[^\n]{0,80}"
    r"|Failed to determine (?:intra proc|local) ranks[^\n]{0,120}"
    r"|Set CPU affinity ?: unable to find GPU/CPU[^\n]{0,40}"
)

ROWS = (
    signature(
        "topology-xml",
        C.TOPOLOGY_ERROR,
        "Attribute ",
        rf"(?P<error>{_XML})",
        sample="Attribute busid of node gpu not found",
        near_miss="Loading topology file /etc/nccl/topo.xml",
        source="graph/xml.cc, graph/xml.h",
        further=(
            "XML ",
            "Error : too many ",
            "Error : tried to ",
            "Error : name ",
            "Error : value ",
        ),
        refine=without(r"not found, (?:ignoring|using)"),
    ),
    signature(
        "topology-graph",
        C.TOPOLOGY_ERROR,
        "ould not find ",
        rf"(?P<error>{_GRAPH})",
        sample="Could not find NET with id 4",
        near_miss="Could not find a path for pattern 4, falling back to simple order",
        source="graph/topo.cc, graph/paths.cc, graph/search.cc, graph/rings.cc, init.cc",
        levels=ONLY_WARN,
        further=(
            "Failed to find reverse path",
            "Error : ring ",
            "Error : ran out of room",
            "tree already has",
            "ncclTopoGetDevNodes",
            "Failed to determine ",
            "unable to find GPU/CPU",
        ),
    ),
    caution(
        "topology-pattern",
        C.TOPOLOGY_ERROR,
        "Could not find a path for pattern",
        r"(?P<error>Could not find a path for pattern \d{1,4}, falling back to simple order)",
        sample="Could not find a path for pattern 4, falling back to simple order",
        near_miss="Pattern 4, crossNic 0, nChannels 8, bw 24/24, type NVL/PIX, sameChannels 1",
        source="graph/search.cc",
    ),
    signature(
        "topology-mixed-cpus",
        C.TOPOLOGY_ERROR,
        "CPUs with mixed ",
        r"(?P<error>CPUs with mixed (?:architecture|vendors) were detected)",
        sample="CPUs with mixed vendors were detected.",
        near_miss="CPUs with 2 sockets were detected",
        source="graph/topo.cc",
        versions="2.26 and later",
        role=Role.WARNING,
        severity=Severity.DEGRADED,
    ),
    signature(
        "net-devices-mixed",
        C.TOPOLOGY_ERROR,
        "Detected mixed local ",
        r"(?P<error>Detected mixed local (?:Net|CollNet) device counts) across ranks "
        r"\(min (?P<d_min>\d{1,4}), max (?P<d_max>\d{1,4})\)\. Set ",
        sample="Detected mixed local Net device counts across ranks (min 3, max 4). Set "
        "NCCL_IGNORE_NET_MISMATCH=1 to continue.",
        near_miss="Local Net device counts across ranks: min 4 max 4",
        source="init.cc",
        versions="2.30 and later",
    ),
)
