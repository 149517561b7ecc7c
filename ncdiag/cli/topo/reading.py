"""Reads what the ``topo`` commands are given: files, folders, standard input, a live fabric."""

import os
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from ncdiag.model.errors import NcdiagError, UndecidedError, UsageError
from ncdiag.model.text import visible

if TYPE_CHECKING:
    from ncdiag.health.topology.pcie_links import PcieLinks
    from ncdiag.logs.decompress import Inflated
    from ncdiag.model.topology import Topology

STDIN = "-"
_EMPTY = '""'
# What ``ncdiag topo capture`` writes of its own doing.
MANIFEST = "capture.json"
# Ten times what ibnetdiscover prints of 10,000 hosts with eight adapters each; whatever is read is
# held in memory as a whole.
MAX_BYTES = 64 << 20
_CHUNK = 1 << 17
# What ``ncdiag topo capture`` writes of PCIe links says so in its first line.
PCIE_SCHEMA = b'"ncdiag/pcie-links/1"'
_MARK_BYTES = 256
_HEAD_BYTES = 16
# A file may be compressed by the one who collects, and again by the one who archives.
_LAYERS = 3


def read_dump(path: str) -> "Topology | PcieLinks":
    """The dump at ``path``, plain or compressed; every error names the path."""
    data = read_bytes(path)
    with naming(path):
        if PCIE_SCHEMA in data[:_MARK_BYTES]:
            from ncdiag.health.topology.pcie_links import decode_links

            return decode_links(data)
        from ncdiag.read.topology.read_topology import read_topology

        return read_topology(data)


def read_each(path: str) -> "Iterator[tuple[str, Topology | PcieLinks | NcdiagError]]":
    """Each dump at ``path`` with its name, or why it is none: a file may be of several hosts."""
    try:
        data = read_bytes(path)
    except NcdiagError as error:
        yield path, error
        return
    for name, read in _readers(path, data):
        try:
            with naming(name):
                dump = read()
        except NcdiagError as error:
            yield name, error
        else:
            yield name, dump


def _readers(path: str, data: bytes) -> "list[tuple[str, Callable[[], Topology | PcieLinks]]]":
    if PCIE_SCHEMA in data[:_MARK_BYTES]:
        from ncdiag.health.topology.pcie_links import decode_links

        return [(path, partial(decode_links, data))]
    from ncdiag.read.topology.read_topology import dumps, read_topology

    try:
        found = dumps(data)
    except NcdiagError:  # read_topology has the same reason to refuse it
        return [(path, partial(read_topology, data))]
    return [(f"{path}:{one.label}" if one.label else path, one.read) for one in found]


def live_dump(tool: str) -> "Topology":
    """What ``tool`` says of the fabric this host is on."""
    from ncdiag.cluster.fabric import live_fabric
    from ncdiag.read.topology.read_topology import read_topology

    data = live_fabric(tool)
    with naming(f"live:{tool}"):
        return read_topology(data)


@contextmanager
def naming(path: str) -> Iterator[None]:
    """Put the path before what an error says of its content."""
    try:
        yield
    except NcdiagError as error:
        raise type(error)(f"{visible(path)}: {error}") from None


def read_bytes(path: str) -> bytes:
    """All bytes of a file or of standard input, unpacked.

    Raises :class:`UsageError` for what cannot be read, :class:`UndecidedError` for what is packed
    and damaged or cut short.
    """
    from ncdiag.logs.decompress import DamagedError

    try:
        if path == STDIN:
            return _all(_Descriptor(sys.stdin.fileno()), path)
        if path and Path(path).is_dir():
            raise UsageError(
                f"{visible(path)} is a folder; name a dump, or use ncdiag topo diff to compare "
                "what is in it"
            )
        number = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        try:
            return _all(_Descriptor(number), path)
        finally:
            os.close(number)
    except FileNotFoundError:
        why = "a link to no file" if Path(path).is_symlink() else "no such file"
        raise UsageError(f"{visible(path) or _EMPTY}: {why}") from None
    except (OSError, ValueError) as error:
        why = getattr(error, "strerror", None) or str(error)
        raise UsageError(f"{visible(path)}: {why}") from None
    except DamagedError as error:
        raise UndecidedError(f"{visible(path)}: {error}") from None


class _Descriptor:
    def __init__(self, number: int) -> None:
        self._number = number

    def readinto(self, buffer: memoryview, /) -> int:
        return os.readv(self._number, [buffer])


def _all(raw: "Inflated", path: str) -> bytes:
    """Everything, by as many steps as it was packed."""
    from ncdiag.logs.decompress import inflater
    from ncdiag.logs.opening import Peeked

    stream = Peeked(raw, _HEAD_BYTES)
    for _ in range(_LAYERS):
        inflate = inflater(stream.head)
        if inflate is None:
            break
        stream = Peeked(inflate(stream), _HEAD_BYTES)
    data = bytearray()
    chunk = bytearray(_CHUNK)
    with memoryview(chunk) as view:
        while count := stream.readinto(view):
            data += view[:count]
            if len(data) > MAX_BYTES:
                raise UsageError(
                    f"{visible(path)} holds more than {MAX_BYTES >> 20} MiB; no topology dump does"
                )
    return bytes(data)


def files(paths: Sequence[str]) -> list[str]:
    """The files below ``paths``: those in a folder sorted, hidden ones and folders left out.

    A link to nothing is among them, so that it is told as one that cannot be read. Raises
    :class:`UsageError` for what is not there, and for a folder without a file, or with a pipe.
    """
    found = []
    for path in paths:
        if path != STDIN and not os.path.lexists(path):
            raise UsageError(
                f"{visible(path) or _EMPTY}: no such file or folder; "
                "nothing was checked or compared"
            )
        if path == STDIN or not Path(path).is_dir():
            found.append(path)
            continue
        inside = _inside(path)
        if not inside:
            raise UsageError(f"{visible(path)}: {_why_nothing(path)}")
        found += inside
    return list(dict.fromkeys(found))


def _why_nothing(folder: str) -> str:
    if (Path(folder) / MANIFEST).exists():
        return f"no dump is in that folder; its {MANIFEST} says why none was captured"
    if any(one.is_dir() for one in Path(folder).iterdir()):
        return (
            "no dump is in that folder, only folders, which are not looked into; name one of them"
        )
    return "no file is in that folder"


def _inside(folder: str) -> list[str]:
    names = []
    try:
        with os.scandir(folder) as entries:
            for one in entries:
                if one.name.startswith(".") or one.name == MANIFEST or one.is_dir():
                    continue
                if not (one.is_file() or one.is_symlink()):
                    raise UsageError(
                        f"{visible(one.path)}: a pipe or device among files; name the dumps instead"
                    )
                names.append(one.path)
    except OSError as error:
        raise UsageError(f"{visible(error.filename or folder)}: {error.strerror}") from None
    return sorted(names)
