"""What a host says of itself before it is measured."""

import csv
import os
import platform
import socket
from collections.abc import Sequence
from pathlib import Path

from ncdiag import __version__
from ncdiag.cluster.processes import ask
from ncdiag.health.nics import find_nics
from ncdiag.model.host import Gpu, HostFacts
from ncdiag.model.versions import installed

# nvidia-smi answers within a second or two, and hangs with a GPU that fell off its bus.
_NVIDIA_SMI_TIMEOUT_S = 10.0
# What engines measure with, where it is installed.
_PACKAGES = ("torch", "mpi4py")
_NVIDIA_SMI = ("nvidia-smi", "--query-gpu=index,name,pci.bus_id", "--format=csv,noheader")


def collect(
    requested_nics: Sequence[str], address_hint: str | None, root: Path = Path("/")
) -> HostFacts:
    """Facts of the host this runs on; see :func:`ncdiag.health.nics.find_nics`."""
    nics, missing = find_nics(requested_nics, address_hint, root)
    return HostFacts(
        hostname=socket.gethostname(),
        versions={
            "ncdiag": __version__,
            "python": platform.python_version(),
            **installed(_PACKAGES),
        },
        cpus=len(os.sched_getaffinity(0)),
        nics=nics,
        missing_nics=missing,
        gpus=find_gpus(),
    )


def find_gpus() -> tuple[Gpu, ...]:
    """The NVIDIA GPUs of this host; none where ``nvidia-smi`` is missing or does not answer."""
    answer = ask(_NVIDIA_SMI, timeout_s=_NVIDIA_SMI_TIMEOUT_S)
    return parse_gpus(answer.stdout.decode(errors="replace")) if answer.code == 0 else ()


def parse_gpus(text: str) -> tuple[Gpu, ...]:
    """Lines of ``0, NVIDIA H100 80GB HBM3, 00000000:1B:00.0``; others are left out."""
    rows = [row for row in csv.reader(text.splitlines(), skipinitialspace=True) if len(row) == 3]
    return tuple(
        Gpu(index=int(index), name=name, pci_address=_as_in_sysfs(address))
        for index, name, address in rows
        if index.isdecimal()
    )


def _as_in_sysfs(address: str) -> str:
    """``00000000:1B:00.0`` is ``0000:1b:00.0`` there: a domain of four digits, in lower case."""
    domain, _, rest = address.lower().partition(":")
    return f"{domain[-4:]}:{rest}"
