"""Looks for a program of perftest on this host, and asks it what it can do."""

import os
import re
import shutil
from collections.abc import Mapping
from pathlib import Path

from ncdiag.cluster.launchers import Launch
from ncdiag.cluster.processes import Ended, run
from ncdiag.measure.engines.perftest.messages import Build
from ncdiag.model.text import visible

PACKAGE = "perftest"
# It prints its help at once; a library on a cold network file system takes longer.
_ASK_S = 20.0
_VERSION = re.compile(rb"Version: *([\w.]{1,20})")
_PEER_MEMORY = ("nvidia_peermem", "nv_peer_mem")


class UnusableError(Exception):
    """The program is not there or does not run; the message is the reason in one line."""


def find_build(program: str, variables: Mapping[str, str]) -> Build:
    """The program on this host; raises UnusableError."""
    path = variables.get("PATH") or os.environ.get("PATH", "")
    found = shutil.which(program, path=path)
    if found is None:
        raise UnusableError(
            f"{program} is not in PATH ({path}): install the package {PACKAGE}, or set PATH in a "
            "file for --remote-setup"
        )
    shown = _ask(found, "--help", variables)
    if b"Options" not in shown.stdout:
        raise UnusableError(f"{found} does not run: {_why(shown)}")
    version = _VERSION.search(_ask(found, "--version", variables).stdout)
    return Build(
        path=found,
        version=version[1].decode() if version else None,
        cuda=b"--use_cuda" in shown.stdout,
        cuda_dmabuf=b"--use_cuda_dmabuf" in shown.stdout,
        ipv6=b"--ipv6-addr" in shown.stdout,
    )


def missing_here(program: str, root: Path = Path("/")) -> str | None:
    """What this host itself lacks to be measured, and the cure."""
    if shutil.which(program) is None:
        return f"{program} is not installed (on Debian: apt-get install {PACKAGE})"
    try:
        ports = any((root / "sys/class/infiniband").iterdir())
    except OSError:
        ports = False
    return None if ports else "there is no RDMA device here (/sys/class/infiniband is empty)"


def has_peer_memory(root: Path = Path("/")) -> bool:
    """Whether a module of the kernel lets NICs reach the memory of GPUs."""
    return any((root / "sys/module" / module).is_dir() for module in _PEER_MEMORY)


def has_open_driver(root: Path = Path("/")) -> bool:
    """Whether the GPUs' driver is the open one, through which a NIC can reach them as well."""
    try:
        text = (root / "proc/driver/nvidia/version").read_text(errors="replace")
    except OSError:
        return False
    return "Open Kernel Module" in text


def _ask(path: str, option: str, variables: Mapping[str, str]) -> Ended:
    # Its exit code means nothing here: it is 1 after help that was asked for.
    launch = Launch(argv=(path, option), hosts=(), environment=variables)
    return run(launch, timeout_s=_ASK_S)


def _why(ended: Ended) -> str:
    if ended.timed_out:
        return f"no answer to --help within {_ASK_S:g} s"
    return visible(ended.error or (ended.said[-1] if ended.said else f"exit code {ended.code}"))
