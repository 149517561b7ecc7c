"""Xid records of the NVIDIA kernel driver: what each number stands for, and how it is printed."""

import re
from collections.abc import Sequence
from typing import Any, NamedTuple

from ncdiag.model.finding import FindingClass, Role, Severity
from ncdiag.read.line import Line
from ncdiag.read.signatures.row import OUTSIDE, Signature

SOURCE = "NVIDIA Xid catalogue (2025-10) and nverror.h of open-gpu-kernel-modules"


class Kind(NamedTuple):
    """What a group of Xids is: its class, and role and severity where they differ from it."""

    class_: FindingClass
    role: Role | None = None
    severity: Severity | None = None


class Xid(NamedTuple):
    """One number of the catalogue."""

    mnemonic: str
    kind: Kind
    meaning: str


APPLICATION = Kind(FindingClass.XID_APPLICATION_FAULT)
MEMORY = Kind(FindingClass.GPU_MEMORY_ERROR)
MEMORY_NOTE = Kind(FindingClass.GPU_MEMORY_ERROR, Role.WARNING, Severity.DEGRADED)
BUS = Kind(FindingClass.GPU_FELL_OFF_BUS)
GSP = Kind(FindingClass.GSP_TIMEOUT)
NVLINK = Kind(FindingClass.NVLINK_ERROR)
INTERNAL = Kind(FindingClass.GPU_INTERNAL_FAULT)
FOLLOWUP = Kind(FindingClass.XID_FOLLOWUP)
NOTE = Kind(FindingClass.GPU_INTERNAL_FAULT, Role.WARNING, Severity.INFO)

_CHANNEL = "ROBUST_CHANNEL_"

XIDS: dict[int, Xid] = {
    8: Xid(_CHANNEL + "FIFO_ERROR_IDLE_TIMEOUT", APPLICATION, "a channel did not become idle"),
    11: Xid(_CHANNEL + "GR_ERROR_MISSING_HW", APPLICATION, "the command stream was invalid"),
    13: Xid(_CHANNEL + "GR_EXCEPTION", APPLICATION, "a kernel raised an exception"),
    31: Xid(_CHANNEL + "FIFO_ERROR_MMU_ERR_FLT", APPLICATION, "an address was not mapped"),
    32: Xid(_CHANNEL + "PBDMA_ERROR", APPLICATION, "the push buffer was invalid"),
    37: Xid(_CHANNEL + "FECS_ERR_UNIMP_FIRMWARE_METHOD", APPLICATION, "unknown firmware method"),
    38: Xid(_CHANNEL + "FECS_ERR_WATCHDOG_TIMEOUT", APPLICATION, "the firmware's watchdog fired"),
    39: Xid(_CHANNEL + "CE0_ERROR", APPLICATION, "copy engine 0 raised an exception"),
    40: Xid(_CHANNEL + "CE1_ERROR", APPLICATION, "copy engine 1 raised an exception"),
    41: Xid(_CHANNEL + "CE2_ERROR", APPLICATION, "copy engine 2 raised an exception"),
    43: Xid(_CHANNEL + "RESETCHANNEL_VERIF_ERROR", FOLLOWUP, "a channel was reset"),
    44: Xid(_CHANNEL + "GR_FAULT_DURING_CTXSW", APPLICATION, "fault in a context switch"),
    45: Xid(_CHANNEL + "PREEMPTIVE_REMOVAL", FOLLOWUP, "channels were cleaned up"),
    46: Xid(_CHANNEL + "GPU_TIMEOUT_ERROR", INTERNAL, "the GPU stopped working"),
    48: Xid(_CHANNEL + "GPU_ECC_DBE", MEMORY, "a double bit error that ECC cannot correct"),
    54: Xid("SILENT_RUNNING_PWR_REDUCED_CLOCKING", INTERNAL, "auxiliary power is not connected"),
    61: Xid("PMU_BREAKPOINT", INTERNAL, "the micro-controller hit a breakpoint"),
    62: Xid("PMU_HALT_ERROR", INTERNAL, "the micro-controller halted"),
    63: Xid("INFOROM_DRAM_RETIREMENT_EVENT", MEMORY_NOTE, "a row or page is to be replaced"),
    64: Xid("INFOROM_DRAM_RETIREMENT_FAILURE", MEMORY, "a row or page could not be replaced"),
    66: Xid(_CHANNEL + "FECS_ERR_REG_ACCESS_VIOLATION", APPLICATION, "forbidden register access"),
    67: Xid(_CHANNEL + "FECS_ERR_VERIF_VIOLATION", APPLICATION, "forbidden access by the driver"),
    68: Xid(_CHANNEL + "NVDEC0_ERROR", APPLICATION, "the video decoder raised an exception"),
    69: Xid(_CHANNEL + "GR_CLASS_ERROR", APPLICATION, "class error of the graphics engine"),
    74: Xid("NVLINK_ERROR", NVLINK, "an NVLink failed"),
    78: Xid("VGPU_START_ERROR", NOTE, "a virtual GPU did not start"),
    79: Xid(_CHANNEL + "GPU_HAS_FALLEN_OFF_THE_BUS", BUS, "the GPU does not answer on PCIe"),
    80: Xid("PBDMA_PUSHBUFFER_CRC_MISMATCH", APPLICATION, "data reached the GPU damaged"),
    86: Xid(_CHANNEL + "OFA0_ERROR", APPLICATION, "optical flow engine raised an exception"),
    92: Xid("EXCESSIVE_SBE_INTERRUPTS", MEMORY_NOTE, "many corrected single bit errors"),
    93: Xid("INFOROM_ERASE_LIMIT_EXCEEDED", NOTE, "the InfoROM was written too often"),
    94: Xid(_CHANNEL + "CONTAINED_ERROR", MEMORY, "a memory error that hit one process only"),
    95: Xid(_CHANNEL + "UNCONTAINED_ERROR", MEMORY, "a memory error that may hit any process"),
    109: Xid(_CHANNEL + "CTXSW_TIMEOUT_ERROR", INTERNAL, "a context switch did not finish"),
    110: Xid("SEC_FAULT_ERROR", INTERNAL, "security fault"),
    119: Xid("GSP_RPC_TIMEOUT", GSP, "the GPU's system processor did not answer"),
    120: Xid("GSP_ERROR", GSP, "the GPU's system processor failed"),
    121: Xid("C2C_ERROR", NOTE, "an error on the link between CPU and GPU"),
    122: Xid("SPI_PMU_RPC_READ_FAIL", NOTE, "the flash memory could not be read"),
    123: Xid("SPI_PMU_RPC_WRITE_FAIL", NOTE, "the flash memory could not be written"),
    124: Xid("SPI_PMU_RPC_ERASE_FAIL", NOTE, "the flash memory could not be erased"),
    125: Xid("INFOROM_FS_ERROR", NOTE, "the InfoROM's file system is damaged"),
    136: Xid("ALI_TRAINING_FAIL", NVLINK, "a link could not be trained"),
    137: Xid("NVLINK_PRIV_ERR", APPLICATION, "a peer's access over NVLink was refused"),
    140: Xid("UNRECOVERABLE_ECC_ERROR_ESCAPE", MEMORY, "a memory error that was not corrected"),
    141: Xid(_CHANNEL + "FAST_PATH_ERROR", APPLICATION, "an error on CUDA's fast path"),
    143: Xid("GPU_INIT_ERROR", INTERNAL, "the GPU could not be initialised"),
    144: Xid("NVLINK_SAW_ERROR", NVLINK, "NVLink 5, system address window"),
    145: Xid("NVLINK_RLW_ERROR", NVLINK, "NVLink 5, receive path of a link"),
    146: Xid("NVLINK_TLW_ERROR", NVLINK, "NVLink 5, transaction layer"),
    147: Xid("NVLINK_TREX_ERROR", NVLINK, "NVLink 5, tunnel"),
    148: Xid("NVLINK_NVLPW_CTRL_ERROR", NVLINK, "NVLink 5, control of a link"),
    149: Xid("NVLINK_NETIR_ERROR", NVLINK, "NVLink 5, physical link"),
    150: Xid("NVLINK_MSE_ERROR", NVLINK, "NVLink 5, management engine"),
    151: Xid(_CHANNEL + "KEY_ROTATION_ERROR", NOTE, "a key could not be changed"),
    154: Xid("GPU_RECOVERY_ACTION_CHANGED", FOLLOWUP, "the driver says what the GPU needs now"),
    155: Xid("NVLINK_SW_DEFINED_ERROR", NVLINK, "an NVLink error defined by software"),
    156: Xid("RESOURCE_RETIREMENT_EVENT", MEMORY_NOTE, "a part of memory is to be replaced"),
    157: Xid("RESOURCE_RETIREMENT_FAILURE", MEMORY, "a part of memory could not be replaced"),
    158: Xid("GPU_FATAL_TIMEOUT", INTERNAL, "the GPU timed out for good"),
    160: Xid("CHANNEL_RETIREMENT_EVENT", NOTE, "a memory channel is to be retired"),
    161: Xid("CHANNEL_RETIREMENT_FAILURE", INTERNAL, "a memory channel could not be retired"),
    162: Xid("PSHC_REENGAGED", NOTE, "power smoothing is on again"),
    163: Xid("PSHC_DISENGAGED", NOTE, "power smoothing is off"),
    164: Xid("PSHC_LOW_LIFETIME", NOTE, "the power smoothing circuit is nearly worn out"),
    165: Xid("PSHC_ZERO_LIFETIME", NOTE, "the power smoothing circuit is worn out"),
    166: Xid("NVLINK_SECURE_CRYPTO_ERR", NOTE, "traffic before the link was encrypted"),
    167: Xid("PCIE_FATAL_TIMEOUT", INTERNAL, "PCIe timed out for good"),
    168: Xid("REDUCED_GPU_MEMORY_CAPACITY", INTERNAL, "protected memory has errors"),
    169: Xid("SEC2_HALT_ERROR", INTERNAL, "the security processor halted"),
    170: Xid("NVLINK_SECURE_OTHER", NOTE, "an interrupt in confidential mode"),
    171: Xid("UNCORRECTABLE_DRAM_ERROR", MEMORY, "the error of Xid 48 lies in DRAM"),
    172: Xid("UNCORRECTABLE_SRAM_ERROR", MEMORY, "the error of Xid 48 lies in SRAM"),
}

# The numbers of "GPU recovery action changed"; its words differ between drivers.
RECOVERY_ACTIONS = {
    0: "none",
    1: "reset the GPU",
    2: "reboot the host",
    3: "drain peer-to-peer traffic",
    4: "drain, then reset the GPU",
}

_NEEDLE = "Xid ("
_HEAD = r"(?<!S)Xid \((?:PCI:)?(?P<pci>[0-9A-Fa-f:.]{1,20})\): 0{0,4}"
# Possessive, so that what follows cannot give the process up and match earlier.
_PROCESS = r"(?:, pid='?(?P<d_pid>[^,']{1,40})'?)?+(?:, name=(?P<d_process>[^,]{1,64}))?+"
_NVLINK_5 = (
    r", (?P<unit>[A-Z][A-Z0-9_]{1,40}) (?P<d_fatal>Fatal|Nonfatal)"
    r"(?: XC\d i\d)?(?: Link (?P<link>-?\d{1,4}))?"
)
_NVLINK_4 = r", NVLink: (?P<d_fatal>fatal|non-?fatal) error detected on link (?P<link>\d{1,4})"


def _numbers(kind: Kind, but: Sequence[int] = ()) -> str:
    """The alternatives for a pattern of all numbers of ``kind``."""
    of_kind = (str(n) for n, xid in XIDS.items() if xid.kind == kind and n not in but)
    return "|".join(of_kind)


def _known(values: dict[str, str], line: Line) -> dict[str, str] | None:
    """Leave out what the driver says it does not know, and fold its words."""
    del line
    kept = {k: v for k, v in values.items() if "unknown" not in v}
    if kept.get("link", "").startswith("-"):
        del kept["link"]
    if fatal := kept.get("d_fatal"):
        kept["d_fatal"] = "no" if fatal.lower().startswith("non") else "yes"
    if kept.pop("d_down", None):
        kept["d_down"] = "yes"
    return kept


def _row(kind: Kind, numbers: str, rest: str = "", **columns: Any) -> Signature:
    """A row of records of ``kind`` whose number is one of ``numbers``."""
    return Signature(
        class_=kind.class_,
        role=kind.role,
        severity=columns.pop("severity", kind.severity),
        needle=_NEEDLE,
        pattern=re.compile(f"{_HEAD}(?P<xid>{numbers})(?!\\d){_PROCESS}{rest}"),
        source=SOURCE,
        levels=OUTSIDE,
        refine=_known,
        kind="kernel",
        **columns,
    )


_NVLINK_5_NUMBERS = "|".join(str(n) for n in range(144, 151))
_NVLINK_OTHERS = _numbers(NVLINK)
_OF_ANOTHER_KIND = "|".join(str(n) for n, xid in XIDS.items() if xid.kind != NOTE)
_OTHERS = f"(?!(?:{_OF_ANOTHER_KIND})(?!\\d))\\d{{1,6}}"
_NOT_NVLINK_5 = f"(?!{re.sub(r'[?]P<[a-z_]+>', '', _NVLINK_5)})"
_FATAL_OF_NVLINK_4 = _NVLINK_4.replace("fatal|non-?fatal", "fatal")

ROWS: tuple[Signature, ...] = (
    _row(
        APPLICATION,
        _numbers(APPLICATION),
        name="xid_application",
        sample="NVRM: Xid (PCI:0000:17:00): 31, pid=4711, name=python, Ch 0000001a, intr "
        "00000000. MMU Fault: ENGINE GRAPHICS GPCCLIENT_T1_2 faulted @ 0x7f0a_b0000000.",
        near_miss="NVRM: Xid (PCI:0000:17:00): 310, pid=4711, name=python, Ch 0000001a",
    ),
    _row(
        MEMORY,
        _numbers(MEMORY),
        name="xid_memory",
        sample="NVRM: Xid (PCI:0000:2a:00): 95, pid=4711, name=python, Uncontained: LTC TAG "
        "(0x1,0x0). RST: Yes, D-RST: No",
        near_miss="NVRM: Xid (PCI:0000:2a:00): 92, High single-bit ECC error rate",
    ),
    _row(
        MEMORY_NOTE,
        _numbers(MEMORY_NOTE),
        name="xid_memory_note",
        sample="NVRM: Xid (PCI:0000:2a:00): 63, pid='<unknown>', name=<unknown>, Row Remapper: "
        "New row (0x00000001a2b3c4d5) marked for remapping, reset gpu to activate.",
        near_miss="NVRM: Xid (PCI:0000:2a:00): 64, Row Remapper Error: (0x0) - All reserved rows "
        "for bank are remapped",
    ),
    _row(
        BUS,
        _numbers(BUS),
        name="xid_bus",
        sample="NVRM: Xid (PCI:0000:5d:00): 79, pid=4711, name=python, GPU has fallen off the bus.",
        near_miss="NVRM: Xid (PCI:0000:5d:00): 179, pid=4711, name=python",
    ),
    _row(
        GSP,
        _numbers(GSP),
        name="xid_gsp",
        sample="NVRM: Xid (PCI:0000:5d:00): 119, pid=4711, name=python, Timeout after 6s of "
        "waiting for RPC response from GPU2 GSP! Expected function 76 (GSP_RM_CONTROL) (0x20 "
        "0x4).",
        near_miss="NVRM: GPU2 RPC history (CPU -> GSP):",
        versions="drivers with GSP firmware, 510 and later",
    ),
    _row(
        NVLINK,
        _NVLINK_5_NUMBERS,
        name="xid_nvlink5_fatal",
        sample="NVRM: Xid (PCI:0000:04:00): 149, NETIR_LINK_EVT Fatal XC0 i0 Link 07 (0x00000004 "
        "0x1)",
        near_miss="NVRM: Xid (PCI:0000:04:00): 149, NETIR_LINK_EVT Nonfatal XC0 i0 Link 07 "
        "(0x00000004 0x1)",
        rest=_NVLINK_5.replace("Fatal|Nonfatal", "Fatal"),
        versions="NVLink 5",
    ),
    _row(
        NVLINK,
        _NVLINK_5_NUMBERS,
        name="xid_nvlink5_down",
        sample="NVRM: Xid (PCI:0000:04:00): 149, NETIR_LINK_DOWN Nonfatal XC0 i0 Link 07 "
        "(0x00000004 0x1)",
        near_miss="NVRM: Xid (PCI:0000:04:00): 149, NETIR_LINK_EVT Nonfatal XC0 i0 Link 07 "
        "(0x00000004 0x1)",
        rest=_NVLINK_5.replace(
            "[A-Z][A-Z0-9_]{1,40}", "[A-Z][A-Z0-9_]{1,40}(?P<d_down>LINK_DOWN)"
        ).replace("Fatal|Nonfatal", "Nonfatal"),
        versions="NVLink 5",
    ),
    _row(
        NVLINK,
        _NVLINK_5_NUMBERS,
        name="xid_nvlink5_nonfatal",
        sample="NVRM: Xid (PCI:0000:04:00): 145, RLW_REMAP Nonfatal XC0 i0 Link 12 (0x00000004 "
        "0x1)",
        near_miss="NVRM: Xid (PCI:0000:04:00): 145, RLW_REMAP Fatal XC0 i0 Link 12 (0x00000004 "
        "0x1)",
        rest=_NVLINK_5.replace("(?P<unit>", "(?P<unit>(?![A-Z0-9_]{0,40}LINK_DOWN)").replace(
            "Fatal|Nonfatal", "Nonfatal"
        ),
        severity=Severity.DEGRADED,
        versions="NVLink 5",
    ),
    _row(
        NVLINK,
        "74",
        name="xid_nvlink4_nonfatal",
        sample="NVRM: Xid (PCI:0000:3a:00): 74, pid=4711, name=python, NVLink: non-fatal error "
        "detected on link 5(0x0, 0x0, 0x10000, 0x0, 0x0, 0x0, 0x0)",
        near_miss="NVRM: Xid (PCI:0000:3a:00): 74, pid=4711, name=python, NVLink: fatal error "
        "detected on link 5(0x10000, 0x0, 0x0, 0x0, 0x0, 0x0, 0x0)",
        rest=_NVLINK_4.replace("fatal|non-?fatal", "non-?fatal"),
        severity=Severity.DEGRADED,
        versions="NVLink 1 to 4",
    ),
    _row(
        NVLINK,
        _NVLINK_OTHERS,
        name="xid_nvlink",
        sample="NVRM: Xid (PCI:0000:3a:00): 74, pid=4711, name=python, NVLink: fatal error "
        "detected on link 5(0x10000, 0x0, 0x0, 0x0, 0x0, 0x0, 0x0)",
        near_miss="NVRM: Xid (PCI:0000:3a:00): 74, pid=4711, name=python, NVLink: non-fatal "
        "error detected on link 5(0x0, 0x0, 0x10000, 0x0, 0x0, 0x0, 0x0)",
        rest=f"{_NOT_NVLINK_5}(?!, NVLink: non)(?:{_FATAL_OF_NVLINK_4})?",
    ),
    _row(
        INTERNAL,
        _numbers(INTERNAL),
        name="xid_internal",
        sample="NVRM: Xid (PCI:0000:b8:00): 62, pid=4711, name=python, 2c7d(56a0) 00000000 "
        "00000000",
        near_miss="NVRM: Xid (PCI:0000:b8:00): 162, Power Smoothing HW Circuitry capability "
        "reengaged",
    ),
    _row(
        FOLLOWUP,
        _numbers(FOLLOWUP, but=(154,)),
        name="xid_followup",
        sample="NVRM: Xid (PCI:0000:b8:00): 45, pid=4711, name=python, Ch 00000003 caused by "
        "previous Xid 149",
        near_miss="NVRM: Xid (PCI:0000:b8:00): 145, RLW_REMAP Fatal XC0 i0 Link 12 (0x00000004 "
        "0x1)",
        rest=r"(?:, Ch [0-9a-fA-F]{1,8} caused by previous Xid (?P<d_previous>\d{1,4}))?",
    ),
    _row(
        FOLLOWUP,
        "154",
        name="xid_action",
        sample="NVRM: Xid (PCI:0000:b8:00): 154, GPU recovery action changed from 0x0 (None) to "
        "0x1 (GPU Reset Required)",
        near_miss="NVRM: Xid (PCI:0000:b8:00): 1540, GPU recovery action changed",
        rest=r"(?:[^(]{0,80}\([^)]{0,40}\) to 0x(?P<d_action>[0-9a-fA-F]{1,4}))?",
    ),
    _row(
        NOTE,
        _OTHERS,
        name="xid_note",
        sample="NVRM: Xid (0000:03:00): 14, Channel 00000001",
        near_miss="NVRM: Xid (PCI:0000:5d:00): 79, pid=4711, name=python, GPU has fallen off the "
        "bus.",
    ),
)
