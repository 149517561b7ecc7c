"""GPUs as the driver's library NVML knows them, through nvidia-ml-py where that is installed."""

import ctypes
import importlib
from contextlib import suppress
from typing import Any

from ncdiag.health.sources import found
from ncdiag.health.sources.found import Found
from ncdiag.health.sources.gpu_nvml_device import read_gpu
from ncdiag.health.sources.gpu_nvml_queries import Nvml
from ncdiag.health.sources.place import HostRoot
from ncdiag.model.health import GpuHealth
from ncdiag.model.text import visible
from ncdiag.read.gpu import words
from ncdiag.read.gpu.reading import MAX_GPUS, GpuReportError, with_vbios
from ncdiag.read.gpu.recorded_nvml import read_recorded_nvml


def collect(root: HostRoot) -> Found:
    """The GPUs, lost ones among them; absent without the module, the library or the driver."""
    if not root.live:
        return _recorded(root)
    try:
        module = importlib.import_module("pynvml")
    except ImportError:
        return found.absent("nvidia-ml-py is not installed")
    except (OSError, ctypes.ArgumentError) as error:
        return found.failed(f"nvidia-ml-py cannot be used: {visible(str(error))}")
    return ask_nvml(module)


def ask_nvml(module: Any) -> Found:
    """What the library behind ``module`` tells."""
    try:
        module.nvmlInit()
    except module.NVMLError as error:
        return _not_begun(Nvml(module), error)
    try:
        return _read(Nvml(module))
    finally:
        with suppress(module.NVMLError):
            module.nvmlShutdown()


def _not_begun(nvml: Nvml, error: Any) -> Found:
    if nvml.is_error(error, "LIBRARY_NOT_FOUND"):
        return found.absent("libnvidia-ml.so.1 is not installed")
    if nvml.is_error(error, "DRIVER_NOT_LOADED"):
        return found.absent(words.DRIVER_NOT_LOADED)
    reason = f"NVML: {nvml.words(error)}"
    return found.denied(reason) if nvml.is_error(error, "NO_PERMISSION") else found.failed(reason)


def _read(nvml: Nvml) -> Found:
    try:
        number = int(nvml.module.nvmlDeviceGetCount())
    except nvml.module.NVMLError as error:
        reason = f"NVML does not count the GPUs: {nvml.words(error)}"
        is_denied = nvml.is_error(error, "NO_PERMISSION")
        return found.denied(reason) if is_denied else found.failed(reason)
    gpus: tuple[GpuHealth, ...] = tuple(read_gpu(nvml, index) for index in range(number)[:MAX_GPUS])
    return found.read(gpus=gpus, versions=with_vbios(_versions(nvml), gpus))


def _versions(nvml: Nvml) -> dict[str, str]:
    driver = nvml.text("nvmlSystemGetDriverVersion")
    cuda = nvml.count("nvmlSystemGetCudaDriverVersion_v2")
    if cuda is None:
        cuda = nvml.count("nvmlSystemGetCudaDriverVersion")
    versions = {"driver": driver} if driver else {}
    if cuda:
        versions["cuda"] = f"{cuda // 1000}.{cuda % 1000 // 10}"
    return versions


def _recorded(root: HostRoot) -> Found:
    answer = root.recorded("nvml.json")
    nothing = found.unanswered(answer)
    if nothing is not None:
        return nothing
    try:
        report = read_recorded_nvml(answer.output)
    except GpuReportError as error:
        return found.failed(f"nvml.json: {visible(str(error))}")
    return found.read(gpus=report.gpus, versions=dict(report.versions))
