"""The steps of ``ncdiag topo diff``: which file is of which host, read one by one, compare."""

from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from rich.console import Console

from ncdiag.cli.topo.reading import STDIN, files, read_dump
from ncdiag.diagnose.topology.fleet import FleetDiff, compare
from ncdiag.health.topology.capture import KINDS as CAPTURED
from ncdiag.health.topology.pcie_links import PcieLinks, check_links
from ncdiag.model.errors import NcdiagError, UsageError
from ncdiag.model.text import visible
from ncdiag.model.topology import Topology, TopologyKind
from ncdiag.report.topology.diff import Comparison, HostFindings
from ncdiag.report.topology.text import KINDS

_PACKED = (".gz", ".zst", ".xz", ".bz2")
_LINKS = "pcie"
_MOST_TOLD = 8


class Named(NamedTuple):
    """A file, the host it is of, and what ``topo capture`` put into it, if that wrote it."""

    path: str
    host: str
    captured: str | None


def compare_all(paths: Sequence[str], messages: Console) -> Comparison:
    """Compare like with like; files that cannot be read are told and left out.

    Raises :class:`UsageError` for dumps of different kinds that no capture wrote, for fewer than
    two dumps, and where none can be read.
    """
    by_source: dict[str | None, list[Named]] = defaultdict(list)
    for one in named(files(paths)):
        by_source[one.captured].append(one)
    if sum(len(several) for several in by_source.values()) < 2:
        raise UsageError(_alone(paths))
    reader = _Reader(messages)
    diffs: list[tuple[str, FleetDiff]] = []
    links: list[HostFindings] = []
    for source, several in by_source.items():
        if source == _LINKS:
            links += reader.links(several)
        else:
            found = compare(reader.dumps(several))
            if reader.first:
                diffs.append((KINDS[reader.first[1]] if source is None else source, found))
    reader.finish(anything=bool(diffs or links))
    return Comparison(tuple(diffs), tuple(links), failed=reader.failed)


def _alone(paths: Sequence[str]) -> str:
    """Why there is one dump only: of a folder those in it count, not those in folders below."""
    folders = [path for path in paths if path != STDIN and Path(path).is_dir()]
    if not folders:
        return "one dump has nothing to be compared with; name a folder, or several dumps"
    return (
        f"{visible(folders[0])} holds a single file, which has nothing to be compared with "
        "(folders in it are not looked into); name a folder with a dump for each host"
    )


def named(paths: Sequence[str]) -> Iterator[Named]:
    """The host of each file: its name without ending, or its path where that is not unique."""
    found = [_named(path) for path in paths]
    times = Counter((one.host, one.captured) for one in found)
    for one in found:
        unique = times[one.host, one.captured] == 1
        yield one if unique else one._replace(host=one.path)


def _named(path: str) -> Named:
    if path == STDIN:
        return Named(path, "stdin", None)
    name = Path(path).name
    if name.endswith(_PACKED):
        name = Path(name).stem
    stem = Path(name).stem
    host, dot, kind = stem.rpartition(".")
    if dot and host and kind in CAPTURED and name.endswith(f".{CAPTURED[kind][1]}"):
        return Named(path, host, kind)
    return Named(path, stem, None)


class _Reader:
    """Reads dumps one at a time; ``first`` is the path and kind of the first one of a comparison.

    ``failed`` counts what could not be read.
    """

    def __init__(self, messages: Console) -> None:
        self.first: tuple[str, TopologyKind] | None = None
        self.failed = 0
        self._errors: list[NcdiagError] = []
        self._messages = messages

    def dumps(self, several: Sequence[Named]) -> Iterator[tuple[str, Topology]]:
        """Each host and its dump; raises :class:`UsageError` where kinds differ."""
        self.first = None
        for one, dump in self._read(several):
            if isinstance(dump, PcieLinks):
                self._fail(UsageError(f"{visible(one.path)}: PCIe links without .pcie.json"))
                continue
            if self.first is None:
                self.first = (one.path, dump.kind)
            elif dump.kind is not self.first[1]:
                raise UsageError(
                    f"{visible(self.first[0])} holds {_a(self.first[1])} and {visible(one.path)} "
                    f"{_a(dump.kind)}; compare dumps of one kind"
                )
            yield one.host, dump

    def links(self, several: Sequence[Named]) -> Iterator[HostFindings]:
        """The PCIe links of each host that run below what both ends can do."""
        for one, dump in self._read(several):
            if isinstance(dump, PcieLinks):
                yield HostFindings(one.host, check_links(dump))
            else:
                self._fail(UsageError(f"{visible(one.path)}: not PCIe links"))

    def finish(self, *, anything: bool) -> None:
        """Say what could not be read; raises the first error where nothing could."""
        if not anything and self._errors:
            more = f" (and {self.failed - 1:,} more cannot be read)" if self.failed > 1 else ""
            raise type(self._errors[0])(f"{self._errors[0]}{more}")
        for error in self._errors:
            self._messages.print(f"ncdiag: {visible(str(error))}", soft_wrap=True)
        if self.failed > _MOST_TOLD:
            self._messages.print(f"ncdiag: {self.failed - _MOST_TOLD:,} more cannot be read")

    def _read(self, several: Sequence[Named]) -> Iterator[tuple[Named, Topology | PcieLinks]]:
        for one in several:
            try:
                dump = read_dump(one.path)
            except NcdiagError as error:
                self._fail(error)
            else:
                yield one, dump

    def _fail(self, error: NcdiagError) -> None:
        self.failed += 1
        if self.failed <= _MOST_TOLD:
            self._errors.append(error)


def _a(kind: TopologyKind) -> str:
    name = KINDS[kind]
    return f"an {name}" if name[0] in "IN" else f"a {name}"
