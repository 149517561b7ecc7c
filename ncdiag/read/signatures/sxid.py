"""Errors of NVSwitches: SXid records of the kernel, and what the fabric manager says of them."""

from functools import partial

from ncdiag.model.finding import FindingClass, Role, Severity
from ncdiag.read.line import Line
from ncdiag.read.signatures.row import OUTSIDE, Pattern, Signature

_GUIDE = (
    "NVIDIA Fabric Manager user guide, lists of SXids; nvswitch driver of open-gpu-kernel-modules"
)

# Lists of the guide. A record that says Fatal or Non-fatal decides for itself.
FATAL = frozenset(
    (
        *(10001, 10002, 10004, 10005, 11001, 11009, 11013, 11018, 11019, 11020),
        *(12001, 12002, 12022, 12024, 12025, 12026, 12027, 12030, 12031, 12032, 14017),
        *(15001, 15006, 15009, 15010, 15012, 15013, 19047, 19048, 19054, 19056, 19058, 19060),
        *(19061, 19063, 19064, 19066, 19067, 19069, 19070, 20034, 22012),
        *(24004, 24005, 24006, 24007),
    )
)
# These need the whole fabric, and so the host, to be reset.
ALWAYS_FATAL = frozenset((10003, 12020, 22003, 22011, *range(23001, 23018)))

_HEAD = (
    r"(?P<d_name>nvidia-nvswitch\d{1,4})?(?:: )?"
    r"SXid \((?:PCI:)?(?P<switch>[0-9A-Fa-f:.]{1,20})\): 0{0,4}(?P<sxid>\d{1,6}), "
)
# Further lines of a record: registers of the engine, not another error.
_FIRST = r"(?!Severity \d|Data \{)"
_PORT = r"(?:[^,]{0,80}?\bLink (?P<port>\d{1,3}))?"
_MANAGER = (
    r" (?P<sxid>\d{1,6})(?: on (?:fid|NodeId|nodeId) \d{1,6})?"
    r"(?: on NVSwitch pci bus id (?P<switch>[0-9A-Fa-f:.]{1,20}))?"
    r"(?: physical id (?P<d_physical>\d{1,4}))?(?: port (?P<port>\d{1,4}))?"
)


def _always(values: dict[str, str], line: Line) -> dict[str, str]:
    """Mark what only a reset of the whole fabric mends."""
    del line
    if int(values["sxid"]) in ALWAYS_FATAL:
        values["d_always"] = "yes"
    return values


def _listed_fatal(values: dict[str, str], line: Line) -> dict[str, str] | None:
    """Refuse what the lists do not call fatal."""
    return _always(values, line) if int(values["sxid"]) in FATAL | ALWAYS_FATAL else None


def _listed_nonfatal(values: dict[str, str], line: Line) -> dict[str, str] | None:
    """Refuse what the lists call fatal."""
    del line
    return None if int(values["sxid"]) in FATAL | ALWAYS_FATAL else values


_kernel = partial(Signature, needle="SXid (", source=_GUIDE, levels=OUTSIDE, kind="kernel")
_manager = partial(Signature, levels=OUTSIDE, kind="fabric-manager", source="nv-fabricmanager 450+")

ROWS: tuple[Signature, ...] = (
    _kernel(
        name="sxid_fatal",
        class_=FindingClass.NVSWITCH_FATAL,
        pattern=Pattern(_HEAD + "(?:Always )?Fatal," + _PORT),
        sample="nvidia-nvswitch1: SXid (PCI:0000:c4:00.0): 20034, Fatal, Link 11 LTSSM Fault Up",
        near_miss="nvidia-nvswitch1: SXid (PCI:0000:c4:00.0): 20034, Non-fatal, Link 11 LTSSM "
        "Fault",
        refine=_always,
    ),
    _kernel(
        name="sxid_nonfatal",
        class_=FindingClass.NVSWITCH_NONFATAL,
        pattern=Pattern(_HEAD + "Non-[fF]atal," + _PORT),
        sample="nvidia-nvswitch0: SXid (PCI:0000:c3:00.0): 20001, Non-fatal, Link 07 TX Replay "
        "Error",
        near_miss="nvidia-nvswitch0: SXid (PCI:0000:c3:00.0): 20001, Fatal, Link 07 TX Replay "
        "Error",
    ),
    _kernel(
        name="sxid_fatal_by_number",
        class_=FindingClass.NVSWITCH_FATAL,
        pattern=Pattern(_HEAD + _FIRST + "(?!(?:Always |Non-)?[Ff]atal,)" + _PORT),
        sample="nvidia-nvswitch2: SXid (PCI:0000:c5:00.0): 23003, RESET_REQUIRED",
        near_miss="nvidia-nvswitch2: SXid (PCI:0000:c5:00.0): 23003, Severity 5 Engine instance 00",
        versions="drivers that do not print the severity",
        refine=_listed_fatal,
    ),
    _kernel(
        name="sxid_nonfatal_by_number",
        class_=FindingClass.NVSWITCH_NONFATAL,
        pattern=Pattern(_HEAD + _FIRST + "(?!(?:Always |Non-)?[Ff]atal,)" + _PORT),
        sample="nvidia-nvswitch2: SXid (PCI:0000:c5:00.0): 20009, Link 21 RX Short Error Rate",
        near_miss="nvidia-nvswitch2: SXid (PCI:0000:c5:00.0): 20009, Data {0x00000000, 0x00000001}",
        versions="drivers that do not print the severity",
        refine=_listed_nonfatal,
    ),
    _manager(
        name="manager_fatal",
        class_=FindingClass.NVSWITCH_FATAL,
        needle="detected NVSwitch fatal error",
        pattern=Pattern("detected NVSwitch fatal error" + _MANAGER),
        sample="[ERROR] [tid 311] detected NVSwitch fatal error 20034 on fid 0 on NVSwitch pci "
        "bus id 00000000:C4:00.0 physical id 1 port 11",
        near_miss="[ERROR] [tid 311] detected NVSwitch non-fatal error 20001 on fid 0 on "
        "NVSwitch pci bus id 00000000:C4:00.0 physical id 1 port 11",
        refine=_always,
    ),
    _manager(
        name="manager_nonfatal",
        class_=FindingClass.NVSWITCH_NONFATAL,
        needle="detected NVSwitch non-fatal error",
        pattern=Pattern("detected NVSwitch non-fatal error" + _MANAGER),
        sample="nv-fabricmanager[977]: detected NVSwitch non-fatal error 22013 on NodeId 0 on "
        "NVSwitch pci bus id 00000000:0A:00.0 physical id 2 port 40",
        near_miss="nv-fabricmanager[977]: detected NVSwitch fatal error 22012 on NodeId 0",
    ),
    _manager(
        name="manager_no_topology",
        class_=FindingClass.NVSWITCH_FATAL,
        needle="detected number of NVSwitches don't match",
        pattern=Pattern("detected number of NVSwitches don't match"),
        sample="[ERROR] [tid 42] detected number of NVSwitches don't match with any supported "
        "system topology, aborting fabric manager",
        near_miss="[INFO] [tid 42] detected number of NVSwitches 6",
    ),
    _manager(
        name="manager_training",
        class_=FindingClass.NVLINK_ERROR,
        needle="raining failed",
        further=("failed to train", "training failure"),
        pattern=Pattern(
            r"(?i)\b(?:nvlink|trunk|access|nvswitch)"
            r"(?:(?!nvlink|trunk|access|nvswitch)[^\n]){0,200}?"
            r"(?:training failed|failed to train|training failure)"
            r"(?:[^\n]{0,80}?\bport (?P<link>\d{1,3}))?"
        ),
        sample="[ERROR] [tid 9] detected NVLink connection training failed on NVSwitch physical "
        "id 2 port 17",
        near_miss="epoch 3: training failed to converge",
    ),
    _manager(
        name="manager_team",
        class_=FindingClass.NVLS_MULTICAST_FAILED,
        needle="failed to find the GPU handle",
        pattern=Pattern(r"failed to find the GPU handle \d{1,20} in the multicast team"),
        sample="[ERROR] [tid 230] failed to find the GPU handle 1234567890123456789 in the "
        "multicast team request setup 987654321.",
        near_miss="[INFO] [tid 230] successfully setup multicast team for request id 987654321.",
    ),
    _manager(
        name="manager_access_link",
        class_=FindingClass.NVLINK_ERROR,
        needle="access NVLink connection failure",
        further=("trunk NVLink connection failure", "Trunk port failure detected"),
        pattern=Pattern(
            r"(?:access|trunk) NVLink connection failure|Trunk port failure detected"
            r"(?:[^\n]{0,160}?\bport number (?P<link>\d{1,4}))?"
        ),
        sample="[WARNING] [tid 5] Trunk port failure detected for switch GUID 0xb0cf0e0300aa and "
        "switch chassis sn 1820000, slot 3 port number 22 port GUID 0xb0cf0e0300ab cage 4.",
        near_miss="[INFO] [tid 5] Trunk port recovered for switch GUID 0xb0cf0e0300aa",
        role=Role.WARNING,
        severity=Severity.DEGRADED,
        versions="NVLink 5",
    ),
)
