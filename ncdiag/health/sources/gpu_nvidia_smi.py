"""GPUs as ``nvidia-smi -q -x`` describes them: what is left where NVML cannot be asked here."""

from typing import Final

from ncdiag.health.sources import found
from ncdiag.health.sources.found import Found
from ncdiag.health.sources.place import HostRoot
from ncdiag.health.topology.programs import Answer, Outcome
from ncdiag.model.text import visible
from ncdiag.read.gpu import words
from ncdiag.read.gpu.nvidia_smi_xml import read_nvidia_smi, unreached_gpus
from ncdiag.read.gpu.reading import GpuReportError

# A second per GPU without persistence mode; what takes longer is stuck.
_ANSWER_S: Final = 4.5
_NO_DRIVER: Final = "communicate with the NVIDIA driver"
_NO_GPUS: Final = "No devices were found"
_LOOKED_AT: Final = 64 << 10


def collect(root: HostRoot) -> Found:
    """The GPUs, with those that the driver cannot reach; absent without program or driver."""
    answer = root.ask(("nvidia-smi", "-q", "-x"), timeout_s=_ANSWER_S, recorded="nvidia-smi.xml")
    if answer.timed_out or answer.denied or answer.outcome is Outcome.ABSENT:
        return found.unanswered(answer) or found.failed("nvidia-smi gave nothing")
    try:
        report = read_nvidia_smi(answer.output)
    except GpuReportError as error:
        return _told(answer) or found.failed(answer.reason or f"nvidia-smi: {visible(str(error))}")
    return found.read(gpus=report.gpus, versions=dict(report.versions))


def _told(answer: Answer) -> Found | None:
    """What the words mean that nvidia-smi has in place of a report, if they mean anything."""
    said = answer.output[:_LOOKED_AT].decode("utf-8", "replace") + "\n" + (answer.reason or "")
    if _NO_DRIVER in said:
        return found.absent(words.DRIVER_NOT_LOADED)
    lost = unreached_gpus(said.encode("utf-8", "replace"))
    if lost:
        return found.read(gpus=lost)
    return found.read(gpus=()) if _NO_GPUS in said else None
