"""Xid records of the NVIDIA kernel driver, as they are printed."""

import re
from collections.abc import Sequence
from typing import Any

from ncdiag.model.finding import Severity
from ncdiag.read.line import Line
from ncdiag.read.signatures.row import OUTSIDE, Pattern, Signature
from ncdiag.read.signatures.xid_catalogue import (
    APPLICATION,
    BUS,
    FOLLOWUP,
    GSP,
    INTERNAL,
    MEMORY,
    MEMORY_NOTE,
    NOTE,
    NVLINK,
    SOURCE,
    XIDS,
    Kind,
)

_NEEDLE = "Xid ("
_HEAD = r"(?<!S)Xid \((?:PCI:)?(?P<pci>[0-9A-Fa-f:.]{1,20})\): 0{0,4}"
# Possessive, so that what follows cannot give the process up and match earlier.
_PROCESS = r"(?:, pid='?(?P<d_pid>[^,']{0,40})'?)?+(?:, name=(?P<d_process>[^,]{0,64}))?+"
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
        pattern=Pattern(f"{_HEAD}(?P<xid>{numbers})(?!\\d){_PROCESS}{rest}"),
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
