"""The catalogue of Xids, the error numbers of the NVIDIA kernel driver: what each stands for."""

from typing import Final, NamedTuple

from ncdiag.model.finding import FindingClass, Role, Severity

SOURCE = "NVIDIA Xid catalogue (2025-10) and nverror.h of open-gpu-kernel-modules"


class Kind(NamedTuple):
    """What a group of Xids is: its class, and role and severity where they differ from it."""

    class_: FindingClass
    role: Role | None = None
    severity: Severity | None = None


class Xid(NamedTuple):
    """One number of the catalogue; ``meaning`` completes "Xid 13 means"."""

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

XIDS: Final[dict[int, Xid]] = {
    8: Xid(APPLICATION, "the GPU stopped processing"),
    11: Xid(APPLICATION, "an invalid or corrupt command stream"),
    13: Xid(APPLICATION, "a kernel of the program faulted"),
    31: Xid(APPLICATION, "the program used an address that is not mapped"),
    32: Xid(APPLICATION, "an invalid or corrupt command stream"),
    37: Xid(APPLICATION, "a driver firmware error"),
    38: Xid(APPLICATION, "a driver firmware error"),
    39: Xid(APPLICATION, "the copy engine faulted"),
    40: Xid(APPLICATION, "the copy engine faulted"),
    41: Xid(APPLICATION, "the copy engine faulted"),
    43: Xid(FOLLOWUP, "the GPU stopped processing for this program; the GPU itself is fine"),
    44: Xid(APPLICATION, "a fault while switching between programs"),
    45: Xid(FOLLOWUP, "a clean-up after an earlier fault or a killed program"),
    46: Xid(INTERNAL, "the GPU stopped and does not come back"),
    48: Xid(MEMORY, "an uncorrectable memory error"),
    54: Xid(INTERNAL, "the auxiliary power cable is not connected"),
    61: Xid(INTERNAL, "the power controller stopped at a breakpoint"),
    62: Xid(INTERNAL, "the power controller halted"),
    63: Xid(MEMORY_NOTE, "a memory row was marked to be swapped out at the next reset"),
    64: Xid(MEMORY, "a bad memory row could not be swapped out: no spare is left"),
    66: Xid(APPLICATION, "an access by the driver that is not allowed"),
    67: Xid(APPLICATION, "an access by the driver that is not allowed"),
    68: Xid(APPLICATION, "the video decoder faulted"),
    69: Xid(APPLICATION, "a graphics engine error in the program"),
    74: Xid(NVLINK, "an NVLink error"),
    78: Xid(NOTE, "a virtual GPU did not start"),
    79: Xid(BUS, "the GPU fell off the PCIe bus"),
    80: Xid(APPLICATION, "the command stream arrived damaged"),
    86: Xid(APPLICATION, "the optical flow engine faulted"),
    92: Xid(MEMORY_NOTE, "many correctable memory errors"),
    93: Xid(NOTE, "the InfoROM was written too often"),
    94: Xid(MEMORY, "an uncorrectable memory error that hit one program only"),
    95: Xid(MEMORY, "an uncorrectable memory error that may have hit every program on the GPU"),
    109: Xid(INTERNAL, "a switch between programs did not finish"),
    110: Xid(INTERNAL, "a security fault"),
    119: Xid(GSP, "the GPU's firmware processor did not answer in time"),
    120: Xid(GSP, "the GPU's firmware processor failed"),
    121: Xid(NOTE, "an error on the link between CPU and GPU chips"),
    122: Xid(NOTE, "the flash memory could not be read"),
    123: Xid(NOTE, "the flash memory could not be written"),
    124: Xid(NOTE, "the flash memory could not be erased"),
    125: Xid(NOTE, "the InfoROM's file system is damaged"),
    136: Xid(NVLINK, "an NVLink could not be trained"),
    137: Xid(APPLICATION, "an NVLink access that is not allowed, mostly by software of a peer"),
    140: Xid(MEMORY, "an uncorrectable memory error"),
    141: Xid(APPLICATION, "a fault in CUDA's fast path"),
    143: Xid(INTERNAL, "the GPU could not be initialised"),
    144: Xid(NVLINK, "an NVLink error on the GPU's side"),
    145: Xid(NVLINK, "an NVLink error in the remapping of a link"),
    146: Xid(NVLINK, "an NVLink error in the transaction layer"),
    147: Xid(NVLINK, "an NVLink error in the crossbar to the links"),
    148: Xid(NVLINK, "an NVLink error in the control of a link"),
    149: Xid(NVLINK, "an NVLink error on the wire: cable, connector or signal"),
    150: Xid(NVLINK, "the NVLink management firmware failed"),
    151: Xid(NOTE, "a key could not be changed"),
    154: Xid(FOLLOWUP, "the driver says what has to be done to recover the GPU"),
    155: Xid(NVLINK, "an NVLink error that software reports"),
    156: Xid(MEMORY_NOTE, "a part of the GPU was retired"),
    157: Xid(MEMORY, "a part of the GPU could not be retired"),
    158: Xid(INTERNAL, "the GPU timed out for good"),
    160: Xid(NOTE, "a memory channel is to be retired"),
    161: Xid(INTERNAL, "a channel could not be retired"),
    162: Xid(NOTE, "power smoothing is on again"),
    163: Xid(NOTE, "power smoothing is off"),
    164: Xid(NOTE, "the power smoothing circuit is nearly worn out"),
    165: Xid(NOTE, "the power smoothing circuit is worn out"),
    166: Xid(NOTE, "traffic before the link was encrypted"),
    167: Xid(INTERNAL, "PCIe timed out for good"),
    168: Xid(INTERNAL, "errors in protected memory; the GPU has less of it now"),
    169: Xid(INTERNAL, "a security controller halted"),
    170: Xid(NOTE, "an interrupt in confidential mode"),
    171: Xid(MEMORY, "the memory error was in DRAM"),
    172: Xid(MEMORY, "the memory error was in SRAM"),
}
