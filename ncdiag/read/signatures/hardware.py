"""A host's GPUs, PCIe and memory, as its kernel reports them."""

from functools import partial

from ncdiag.model.finding import FindingClass, Role, Severity
from ncdiag.read.signatures.row import OUTSIDE, Pattern, Signature

_PCI = r"[0-9A-Fa-f]{4}:[0-9A-Fa-f]{2}:[0-9A-Fa-f]{2}\.[0-7]"

_kernel = partial(Signature, levels=OUTSIDE, kind="kernel")
_gpu = partial(_kernel, source="NVIDIA driver, messages without an Xid")
_pcie = partial(_kernel, class_=FindingClass.PCIE_ERROR, source="Linux drivers/pci")
_memory = partial(
    _kernel, class_=FindingClass.HOST_MEMORY_ERROR, source="Linux EDAC, mce, GHES, memory-failure"
)

_GPU_ROWS: tuple[Signature, ...] = (
    _gpu(
        name="bus_without_xid",
        class_=FindingClass.GPU_FELL_OFF_BUS,
        needle="fallen off the bus",
        pattern=Pattern(
            r"^(?![^\n]{0,80}Xid \()[^\n]{0,120}?"
            r"(?P<pci>[0-9A-Fa-f]{4}:[0-9A-Fa-f]{2}:[0-9A-Fa-f]{2}(?:\.[0-7])?)"
            r"[^\n]{0,80}?fallen off the bus"
        ),
        sample="NVRM: GPU 0000:5d:00.0: GPU has fallen off the bus.",
        near_miss="NVRM: Xid (PCI:0000:5d:00): 79, pid=4711, GPU has fallen off the bus.",
    ),
    _gpu(
        name="gpu_lost",
        class_=FindingClass.GPU_FELL_OFF_BUS,
        needle="GPU is lost",
        pattern=Pattern(
            r"(?:for (?:gpu|GPU ?(?:\d{1,3}:)?) ?(?P<pci>[0-9A-Fa-f]{2,8}:[0-9A-Fa-f:.]{4,14}): )?"
            r"GPU is lost\b"
        ),
        sample="Unable to determine the device handle for GPU 0000:5D:00.0: GPU is lost.  Reboot "
        "the system to recover this GPU",
        near_miss="GPU is idle",
        kind=None,
    ),
    _gpu(
        name="gpu_handle",
        class_=FindingClass.GPU_FELL_OFF_BUS,
        needle="Unable to determine the device handle for",
        pattern=Pattern(
            r"Unable to determine the device handle for (?:gpu|GPU ?\d{0,3}:?) ?"
            r"(?P<pci>[0-9A-Fa-f]{4,8}:[0-9A-Fa-f]{2}:[0-9A-Fa-f]{2}(?:\.\d)?): "
            r"(?!GPU is lost)(?P<d_reason>Unknown Error)"
        ),
        sample="Unable to determine the device handle for GPU3: 0000:5D:00.0: Unknown Error",
        near_miss="Unable to determine the device handle for GPU3: 0000:5D:00.0: Not Found",
        kind=None,
    ),
    _gpu(
        name="adapter_init",
        class_=FindingClass.GPU_INTERNAL_FAULT,
        needle="RmInitAdapter failed",
        pattern=Pattern(rf"(?:GPU (?P<pci>{_PCI})[^\n]{{0,20}})?RmInitAdapter failed"),
        sample="NVRM: GPU 0000:5d:00.0: RmInitAdapter failed! (0x25:0xffff:1529)",
        near_miss="NVRM: GPU 0000:5d:00.0: rm_init_adapter ready",
    ),
    _gpu(
        name="driver_mismatch",
        class_=FindingClass.HOST_CONFIG_WARNING,
        needle="API mismatch",
        pattern=Pattern(r"NVRM: (?P<setting>API mismatch): the client"),
        sample="NVRM: API mismatch: the client has the version 560.35.05, but",
        near_miss="NVRM: this kernel module has the version 550.127.08.  Please",
        role=Role.WARNING,
        severity=Severity.DEGRADED,
    ),
)

_PCIE_ROWS: tuple[Signature, ...] = (
    _pcie(
        name="aer_corrected",
        needle="Corrected error",
        pattern=Pattern(
            rf"AER: (?:Multiple )?(?P<error>Corrected error)(?: message)? received"
            rf"(?:: | from )(?P<device>{_PCI}|id=[0-9a-f]{{4}})"
        ),
        sample="pcieport 0000:5d:01.0: AER: Multiple Corrected error received: 0000:5e:00.0",
        near_miss="pcieport 0000:5d:01.0: AER: enabled with IRQ 44",
        role=Role.WARNING,
        severity=Severity.DEGRADED,
    ),
    _pcie(
        name="bus_corrected",
        needle="PCIe Bus Error: severity=Correct",
        pattern=Pattern(
            rf"(?:(?P<device>{_PCI}): )?(?:AER: )?PCIe Bus Error: severity=(?P<error>Correct(?:ed|"
            rf"able))"
            r"(?:, type=(?P<d_layer>[\w ]{1,30}))?"
        ),
        sample="mlx5_core 0000:6a:00.0: PCIe Bus Error: severity=Corrected, type=Data Link "
        "Layer, (Transmitter ID)",
        near_miss="mlx5_core 0000:6a:00.0: PCIe Bus Error: severity=Uncorrected (Fatal), "
        "type=Transaction Layer, (Receiver ID)",
        role=Role.WARNING,
        severity=Severity.DEGRADED,
    ),
    _pcie(
        name="aer_uncorrected",
        needle="Uncorrected (",
        further=("Uncorrectable (",),
        pattern=Pattern(
            r"AER: (?:Multiple )?(?P<error>Uncorrect(?:ed|able) \((?:Non-)?Fatal\)) error"
            rf"(?: message)? received(?:: | from )(?P<device>{_PCI}|id=[0-9a-f]{{4}})"
        ),
        sample="pcieport 0000:5d:01.0: AER: Uncorrected (Fatal) error received: 0000:5e:00.0",
        near_miss="pcieport 0000:5d:01.0: AER: Corrected error received: 0000:5e:00.0",
    ),
    _pcie(
        name="bus_uncorrected",
        needle="PCIe Bus Error: severity=Uncorrect",
        pattern=Pattern(
            rf"(?:(?P<device>{_PCI}): )?(?:AER: )?PCIe Bus Error: severity="
            r"(?P<error>Uncorrect(?:ed|able) \((?:Non-)?Fatal\))"
            r"(?:, type=(?P<d_layer>[\w ]{1,30}))?"
        ),
        sample="nvidia 0000:5e:00.0: PCIe Bus Error: severity=Uncorrectable (Non-Fatal), "
        "type=Transaction Layer, (Requester ID)",
        near_miss="nvidia 0000:5e:00.0: PCIe Bus Error: severity=Corrected, type=Physical Layer",
    ),
    _pcie(
        name="aer_recovery",
        needle="AER: ",
        pattern=Pattern(
            rf"(?P<device>{_PCI}): AER: (?P<error>device recovery failed|subordinate device reset "
            r"failed|can't recover \(no error_detected callback\))"
        ),
        sample="pcieport 0000:5d:01.0: AER: device recovery failed",
        near_miss="pcieport 0000:5d:01.0: AER: device recovery successful",
        role=Role.CONSEQUENCE,
        severity=Severity.INFO,
    ),
    _pcie(
        name="dpc",
        needle="DPC: ",
        pattern=Pattern(
            rf"(?P<device>{_PCI})(?::pcie\d{{1,4}})?: DPC: (?P<error>containment event|"
            r"unmasked uncorrectable error detected|ERR_(?:NON)?FATAL (?:received|detected))"
        ),
        sample="pcieport 0000:5d:01.0: DPC: containment event, status:0x1f01 source:0x0000",
        near_miss="pcieport 0000:5d:01.0: DPC: error containment capabilities: Int Msg #0",
    ),
    _pcie(
        name="hotplug_down",
        needle="pciehp",
        pattern=Pattern(
            rf"(?P<device>{_PCI})(?::pcie\d{{1,4}})?: (?:pciehp: )?Slot\([\w-]{{1,16}}\): "
            r"(?P<error>Link Down|Card not present)"
        ),
        sample="pcieport 0000:5d:01.0: pciehp: Slot(12): Link Down",
        near_miss="pcieport 0000:5d:01.0: pciehp: Slot(12): Link Up",
    ),
)

_MEMORY_ROWS: tuple[Signature, ...] = (
    _memory(
        name="edac_corrected",
        needle="EDAC ",
        pattern=Pattern(r"EDAC [\w ]{0,16}MC\d{1,3}: \d{1,9} (?P<error>CE)\b"),
        sample="EDAC MC2: 1 CE memory read error on CPU_SrcID#1_MC#0_Chan#2_DIMM#0 (channel:2 "
        "slot:0 page:0x3c1f2a offset:0x680 grain:32 syndrome:0x0)",
        near_miss="EDAC MC2: Giving out device to module skx_edac controller Skylake Socket#1 "
        "IMC#0",
        role=Role.WARNING,
        severity=Severity.DEGRADED,
    ),
    _memory(
        name="edac_uncorrected",
        needle="EDAC ",
        pattern=Pattern(r"EDAC [\w ]{0,16}MC\d{1,3}: \d{1,9} (?P<error>UE)\b"),
        sample="EDAC MC0: 1 UE memory read error on CPU_SrcID#0_MC#0_Chan#0_DIMM#1 (channel:0 "
        "slot:1 page:0x77aa10 offset:0x0 grain:32)",
        near_miss="EDAC MC0: 4 CE memory scrubbing error on CPU_SrcID#0_MC#0_Chan#0_DIMM#1",
    ),
    _memory(
        name="mce_logged",
        needle="Machine check events logged",
        pattern=Pattern(r"\[Hardware Error\]: (?P<error>Machine check events logged)"),
        sample="mce: [Hardware Error]: Machine check events logged",
        near_miss="mce: CPU supports 22 MCE banks",
        role=Role.WARNING,
        severity=Severity.DEGRADED,
    ),
    _memory(
        name="mce_corrected",
        needle="[Hardware Error]: Corrected error",
        pattern=Pattern(r"\[Hardware Error\]: (?P<error>Corrected error)"),
        sample="[Hardware Error]: Corrected error, no action required.",
        near_miss="[Hardware Error]: Uncorrected, software containable error.",
        role=Role.WARNING,
        severity=Severity.DEGRADED,
    ),
    _memory(
        name="mce_uncorrected",
        needle="[Hardware Error]: Uncorrected",
        further=("[Hardware Error]: Deferred",),
        pattern=Pattern(
            r"\[Hardware Error\]: (?P<error>Uncorrected, software (?:containable|restartable) "
            r"error|"
            r"Deferred error)"
        ),
        sample="[Hardware Error]: Uncorrected, software containable error.",
        near_miss="[Hardware Error]: Corrected error, no action required.",
        versions="AMD processors",
    ),
    _memory(
        name="mce_exception",
        needle="Machine Check",
        pattern=Pattern(
            r"(?P<error>Machine Check(?: Exception)?): [0-9a-fA-F]{1,16} Bank (?P<d_bank>\d{1,3}): "
            r"(?P<d_status>[abefABEF][0-9a-fA-F]{15})"
        ),
        sample="mce: [Hardware Error]: CPU 44: Machine Check Exception: 5 Bank 6: be00000000a00153",
        near_miss="mce: [Hardware Error]: CPU 44: Machine Check: 0 Bank 6: 8c00004000010091",
    ),
    _memory(
        name="mce_record",
        needle="Machine Check",
        pattern=Pattern(
            r"(?P<error>Machine Check(?: Exception)?): [0-9a-fA-F]{1,16} Bank (?P<d_bank>\d{1,3}): "
            r"(?P<d_status>[89cdCD][0-9a-fA-F]{15})"
        ),
        sample="mce: [Hardware Error]: CPU 44: Machine Check: 0 Bank 6: 8c00004000010091",
        near_miss="mce: [Hardware Error]: CPU 44: Machine Check Exception: 5 Bank 6: "
        "be00000000a00153",
        role=Role.WARNING,
        severity=Severity.DEGRADED,
    ),
    _memory(
        name="ghes_corrected",
        needle="event severity: ",
        pattern=Pattern(r"\[Hardware Error\]: event severity: (?P<error>corrected|info)"),
        sample="{7}[Hardware Error]: event severity: corrected",
        near_miss="{7}[Hardware Error]: event severity: recoverable",
        role=Role.WARNING,
        severity=Severity.DEGRADED,
    ),
    _memory(
        name="ghes_uncorrected",
        needle="event severity: ",
        pattern=Pattern(r"\[Hardware Error\]: event severity: (?P<error>recoverable|fatal)"),
        sample="{2}[Hardware Error]: event severity: fatal",
        near_miss="{2}[Hardware Error]: event severity: corrected",
    ),
    _memory(
        name="memory_failure",
        needle="Memory failure: 0x",
        pattern=Pattern(
            r"Memory failure: 0x[0-9a-f]{1,16}: (?P<error>recovery action for [\w /-]{1,60}: "
            r"(?:Recovered|Failed|Ignored|Delayed)|"
            r"(?:Killing|Sending SIGBUS to) (?:[^\n]{1,60}:(?P<d_pid>\d{1,10})|[^\n]{1,60}) due to "
            r"hardware memory corruption)"
        ),
        sample="Memory failure: 0x1b2c3d4: recovery action for dirty LRU page: Recovered",
        near_miss="Memory failure: 0x1b2c3d4: already hardware poisoned",
    ),
    _memory(
        name="machine_check_panic",
        needle="Kernel panic - not syncing: ",
        pattern=Pattern(
            r"Kernel panic - not syncing: (?P<error>Fatal (?:local )?[Mm]achine check|"
            r"Fatal hardware error|Timeout: Not all CPUs entered broadcast exception handler)"
        ),
        sample="Kernel panic - not syncing: Fatal local machine check",
        near_miss="Kernel panic - not syncing: hung_task: blocked tasks",
    ),
)

ROWS: tuple[Signature, ...] = (*_GPU_ROWS, *_PCIE_ROWS, *_MEMORY_ROWS)
