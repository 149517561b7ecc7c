"""Versions of drivers and libraries that a few small files tell."""

import re
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Final

import msgspec

from ncdiag.health.sources.place import HostRoot

_LONGEST: Final = 128
# Where distributions keep libraries that every program finds.
_LIBRARIES: Final = ("/usr/lib/x86_64-linux-gnu", "/usr/lib/aarch64-linux-gnu", "/usr/lib64")
_DRIVER: Final = re.compile(r"Kernel Module\b[^\n]{0,80}?\s(\d{3,4}\.\d{1,4}(?:\.\d{1,4})?)\s")
_SYSTEM: Final = re.compile(r'^PRETTY_NAME="?([^"\n]{1,100})', re.MULTILINE)
_VERSION: Final = re.compile(r"\d{1,4}(?:\.\d{1,6}){1,3}", re.ASCII)


def versions(root: HostRoot) -> dict[str, str]:
    """What is known of ``driver``, ``kernel``, ``ofed``, ``cuda``, ``nccl`` and some others."""
    found = {name: tell(root) for name, tell in _TOLD_BY.items()}
    return {name: value[:_LONGEST] for name, value in found.items() if value}


def _file(path: str) -> Callable[[HostRoot], str | None]:
    return lambda root: root.text(path)


def _driver(root: HostRoot) -> str | None:
    found = _DRIVER.search(root.text("/proc/driver/nvidia/version") or "")
    return found[1] if found else root.text("/sys/module/nvidia/version")


def _cuda(root: HostRoot) -> str | None:
    with suppress(msgspec.MsgspecError, KeyError, TypeError):
        told = msgspec.json.decode(root.text("/usr/local/cuda/version.json") or "")
        if _VERSION.fullmatch(str(told["cuda"]["version"])):
            return str(told["cuda"]["version"])
    found = _VERSION.fullmatch(root.target("/usr/local/cuda").removeprefix("cuda-"))
    return found[0] if found else None


def _nccl(root: HostRoot) -> str | None:
    """By the file that the library's name leads to: ``libnccl.so.2.21.5``."""
    for folder in _LIBRARIES:
        name = root.target(f"{folder}/libnccl.so.2")
        if found := _VERSION.fullmatch(name.removeprefix("libnccl.so.")):
            return found[0]
    return None


def _system(root: HostRoot) -> str | None:
    found = _SYSTEM.search(root.text("/etc/os-release") or "")
    return found[1] if found else None


_TOLD_BY: Final[Mapping[str, Callable[[HostRoot], str | None]]] = {
    "driver": _driver,
    "amdgpu": _file("/sys/module/amdgpu/version"),
    "kernel": _file("/proc/sys/kernel/osrelease"),
    # Only the drivers of MLNX_OFED and DOCA have a version of their own.
    "ofed": _file("/sys/module/mlx5_core/version"),
    "gdrcopy": _file("/sys/module/gdrdrv/version"),
    "cuda": _cuda,
    "nccl": _nccl,
    "system": _system,
    "bios": _file("/sys/class/dmi/id/bios_version"),
}
