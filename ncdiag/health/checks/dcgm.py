"""What DCGM's own watches say of a GPU."""

from ncdiag.health.checks.check import Case, Check, Trip, for_each_gpu, quoted
from ncdiag.health.checks.nvlink import uses_links
from ncdiag.model.finding import FindingClass
from ncdiag.model.health import GpuHealth, Severity, Source
from ncdiag.read.signatures.xid_catalogue import BUS, GSP, INTERNAL, MEMORY, NVLINK, XIDS

_OF_HARDWARE = (BUS, GSP, INTERNAL, MEMORY, NVLINK)


def _incidents(gpu: GpuHealth, case: Case) -> list[Trip] | None:
    if gpu.incidents is None:
        return None
    return [
        Trip(text=f"DCGM: {quoted(text)}", severity=_weight(text.lower(), gpu, case))
        for text in gpu.incidents
    ]


def _weight(text: str, gpu: GpuHealth, case: Case) -> Severity:
    """DCGM also complains of NVLinks of cards that have no bridge."""
    if "nvlink" in text and "down" in text and not uses_links(gpu, case):
        return Severity.NOTE
    return Severity.FAULT if "failure" in text else Severity.WARNING


def _last_xid(gpu: GpuHealth, case: Case) -> list[Trip] | None:
    """Nobody knows when it was: the kernel log says more where it can be read."""
    if gpu.last_xid is None or case.read(Source.KERNEL_LOG):
        return None
    if gpu.last_xid <= 0:
        return []
    row = XIDS.get(gpu.last_xid)
    meaning = f", {row.meaning}" if row else ""
    return [
        Trip(
            text=f"the last Xid that DCGM saw is {gpu.last_xid}{meaning}",
            severity=Severity.WARNING if row and row.kind in _OF_HARDWARE else Severity.NOTE,
            class_=row.kind.class_ if row else FindingClass.GPU_INTERNAL_FAULT,
        )
    ]


CHECKS = (
    Check(
        id="dcgm_incident",
        title="Incidents of DCGM",
        severity=Severity.FAULT,
        meaning="DCGM's background watches complain of this GPU.",
        fix="dcgmi health -c; dcgmi diag -r 3 when no job runs",
        sources=(Source.DCGM,),
        also=(Source.NVML, Source.PCIE),
        rule=for_each_gpu(_incidents, "DCGM tells no incidents"),
    ),
    Check(
        id="last_xid",
        title="Last Xid",
        severity=Severity.WARNING,
        meaning="The last Xid that DCGM saw; of use only where the kernel log cannot be read, "
        "which tells when it was.",
        fix="dmesg -T | grep -i xid",
        sources=(Source.DCGM,),
        also=(Source.KERNEL_LOG,),
        rule=for_each_gpu(_last_xid, "DCGM tells no Xid, or the kernel log tells more"),
    ),
)
