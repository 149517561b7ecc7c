"""Collects the topology dumps that can be had on this host, each with a deadline of its own."""

import importlib.util
import os
import sys
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final

import msgspec

from ncdiag.health.topology.pcie_links import collect_links, encode_links
from ncdiag.health.topology.programs import Answer, Outcome, ask

# Each answers within a second or two, and hangs with a GPU that fell off its bus.
_TOOL_S: Final = 20.0
# NCCL wakes every GPU and loads its kernels; PyTorch is imported before.
_NCCL_S: Final = 90.0
# All of them, one after the other.
CAPTURE_S: Final = _NCCL_S + 7 * _TOOL_S
# The driver of NVIDIA, and that of AMD: RCCL writes the same dump.
_GPU_NODES: Final = ("/dev/nvidiactl", "/dev/nvidia0", "/dev/kfd")


class Captured(msgspec.Struct, frozen=True, kw_only=True):
    """One dump; ``outcome`` is that of :class:`Outcome`, ``data`` is empty unless captured."""

    kind: str
    outcome: str
    reason: str | None = None
    data: bytes = b""


class Capture(msgspec.Struct, frozen=True, kw_only=True):
    """All dumps of one host."""

    dumps: tuple[Captured, ...]


class CaptureTask(msgspec.Struct, frozen=True, kw_only=True):
    """What a worker is asked for: nothing that could differ between hosts, so far."""


def capture(*, nccl_timeout_s: float = _NCCL_S, tool_timeout_s: float = _TOOL_S) -> Capture:
    """Ask every source there is."""
    dumps = [_of("pcie", _pcie()), _of("nccl", _nccl(nccl_timeout_s))]
    dumps += [_of(kind, _any(commands, tool_timeout_s)) for kind, commands in _TOOLS.items()]
    return Capture(dumps=tuple(dumps))


def capture_for_driver(payload: bytes) -> bytes:
    """The same in a worker of the fleet (CaptureTask to Capture)."""
    msgspec.json.decode(payload, type=CaptureTask)
    return msgspec.json.encode(capture())


# The first of the commands that is installed is asked.
_TOOLS: Final[dict[str, Sequence[Sequence[str]]]] = {
    "nvidia": (("nvidia-smi", "topo", "-m"),),
    "rocm": (("rocm-smi", "--showtopo"),),
    "amd": (("amd-smi", "topology"),),
    "ibstat": (("ibstat",), ("ibstatus",)),
    "lstopo": (
        ("lstopo-no-graphics", "--of", "xml"),
        ("lstopo", "--of", "xml"),
    ),
}
# These end well and say nothing on a host without an adapter.
_SILENT_WITHOUT: Final = ("ibstat", "ibstatus")
# What each dump is, and the ending of its file.
KINDS: Final = {
    "pcie": ("PCIe links as they run now", "json"),
    "nccl": ("NCCL topology", "xml"),
    "nvidia": ("nvidia-smi topo -m", "txt"),
    "rocm": ("rocm-smi --showtopo", "txt"),
    "amd": ("amd-smi topology", "txt"),
    "ibstat": ("InfiniBand ports", "txt"),
    "lstopo": ("lstopo XML", "xml"),
}


def _of(kind: str, answer: Answer) -> Captured:
    return Captured(
        kind=kind, outcome=answer.outcome.value, reason=answer.reason, data=answer.output
    )


def _any(commands: Sequence[Sequence[str]], timeout_s: float) -> Answer:
    """The first command that is installed; none that is tells of the first."""
    answers = []
    for argv in commands:
        answer = ask(argv, timeout_s=timeout_s)
        if answer.outcome is Outcome.CAPTURED and not answer.output.strip():
            silent = Outcome.ABSENT if argv[0] in _SILENT_WITHOUT else Outcome.FAILED
            return Answer(outcome=silent, reason=f"{argv[0]} has nothing to tell")
        if answer.outcome is not Outcome.ABSENT:
            return answer
        answers.append(answer)
    return answers[0]


def _pcie() -> Answer:
    links = collect_links()
    if not links.devices:
        return Answer(outcome=Outcome.ABSENT, reason="no GPU or adapter with a PCIe link in sysfs")
    return Answer(outcome=Outcome.CAPTURED, output=encode_links(links))


def _nccl(timeout_s: float, exists: Callable[[str], bool] = os.path.exists) -> Answer:
    """The dump of NCCL itself, which needs a GPU and PyTorch."""
    if not any(map(exists, _GPU_NODES)):
        return Answer(outcome=Outcome.ABSENT, reason="no driver of NVIDIA or AMD GPUs on this host")
    if importlib.util.find_spec("torch") is None:
        return Answer(outcome=Outcome.ABSENT, reason="PyTorch is not installed, so NCCL cannot run")
    with tempfile.TemporaryDirectory(prefix="ncdiag-topo-") as folder:
        return _dumped(Path(folder) / "topology.xml", timeout_s)


def _dumped(path: Path, timeout_s: float) -> Answer:
    environment = {**os.environ, "NCCL_TOPO_DUMP_FILE": str(path)}
    # A rank other than 0 would write nothing.
    environment.pop("NCCL_TOPO_DUMP_FILE_RANK", None)
    argv = (sys.executable, "-P", "-m", "ncdiag.health.topology.nccl_dump")
    answer = ask(argv, timeout_s=timeout_s, environment=environment, name="NCCL")
    try:
        data = path.read_bytes()
    except OSError:
        data = b""
    if data.strip():  # written when the communicator comes up, whatever happens after
        return Answer(outcome=Outcome.CAPTURED, output=data)
    reason = answer.reason or "NCCL came up and wrote no topology"
    return Answer(outcome=Outcome.FAILED, reason=reason)
