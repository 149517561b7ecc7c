"""What a lint may know of the place where settings will be used."""

from dataclasses import dataclass
from typing import Final

STANDARD_INPUT: Final = "standard input"
THE_ENVIRONMENT: Final = "the environment"


@dataclass(frozen=True, slots=True)
class HostDevices:
    """What one host has; ``None`` is not known.

    ``hcas`` are its RDMA devices with an active port, ``interfaces`` its network interfaces.
    """

    host: str
    hcas: tuple[str, ...] | None = None
    interfaces: tuple[str, ...] | None = None
    nvlink: bool | None = None
    gpus: int | None = None


@dataclass(frozen=True, slots=True)
class LintContext:
    """The versions at hand (``(2, 21, 5)``), the size of the job, and the hosts it runs on.

    ``ranks`` is how many processes the job has. One host in ``hosts`` is this host, more are a
    fleet. ``missing_files`` are named by settings and are not where they will be used. What is left
    out is not known, and is not judged.
    """

    nccl: tuple[int, ...] | None = None
    pytorch: tuple[int, ...] | None = None
    ranks: int | None = None
    hosts: tuple[HostDevices, ...] = ()
    missing_files: frozenset[str] = frozenset()
