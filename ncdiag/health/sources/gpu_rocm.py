"""GPUs of AMD as ``rocm-smi`` describes them."""

from typing import Final

from ncdiag.health.sources import found
from ncdiag.health.sources.found import Found
from ncdiag.health.sources.place import HostRoot
from ncdiag.model.text import visible
from ncdiag.read.gpu.reading import GpuReportError
from ncdiag.read.gpu.rocm_smi_json import read_rocm_smi

_ANSWER_S: Final = 4.5


def collect(root: HostRoot) -> Found:
    """The GPUs; absent where there is no rocm-smi."""
    answer = root.ask(("rocm-smi", "-a", "--json"), timeout_s=_ANSWER_S, recorded="rocm-smi.json")
    nothing = found.unanswered(answer)
    if nothing is not None:
        return nothing
    try:
        report = read_rocm_smi(answer.output)
    except GpuReportError as error:
        return found.failed(f"rocm-smi: {visible(str(error))}")
    return found.read(gpus=report.gpus, versions=dict(report.versions))
