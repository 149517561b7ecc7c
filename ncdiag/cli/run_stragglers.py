"""The steps of ``ncdiag stragglers``: read the times, say where ranks run, find, show."""

import hashlib
import os
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path
from typing import Final

from rich.console import Console

from ncdiag.cli import console as consoles
from ncdiag.diagnose.stragglers import Settings, find_stragglers
from ncdiag.logs.decompress import DamagedError
from ncdiag.logs.opening import Careful, opened
from ncdiag.logs.read_input import Job, open_input
from ncdiag.logs.sources import STDIN, Source, sources
from ncdiag.model.errors import UsageError
from ncdiag.model.straggler import IterationTable, StragglerReport, TimeKind
from ncdiag.model.text import did_you_mean, visible
from ncdiag.read.iteration_times import Placed, TimesReader, read_rank_map
from ncdiag.report.stragglers.documents import render_stragglers_csv, render_stragglers_json
from ncdiag.report.stragglers.text import render_stragglers_text

_CHUNK: Final = 1 << 20
_MAX_BYTES: Final = 64 << 30
_MAX_MAP_BYTES: Final = 64 << 20
_SHOWN: Final = 5
_MOST_NAMES: Final = 1000


@dataclass(frozen=True, slots=True, kw_only=True)
class Wishes:
    """What the command line says."""

    kind: str = "auto"
    column: str | None = None
    communicator: str | None = None
    rank_map: Path | None = None
    nodes: str | None = None
    ranks_per_host: int = 8
    pipeline_stages: int = 1
    skip: int = 0
    false_alarms: float = 0.05
    median_factor: float = 1.5


@dataclass(frozen=True, slots=True)
class Found:
    """A report, where its times came from, a digest of them, and when the last were written."""

    report: StragglerReport
    source: str
    digest: str
    written_s: float


def find(paths: Sequence[str], wishes: Wishes) -> Found:
    """Read and judge; raises :class:`UsageError` for what cannot be used."""
    reader = TimesReader(wishes.column, wishes.communicator)
    digest = hashlib.sha256()
    written_s = []
    for source in sources(paths):
        written_s.append(_written_s(source))
        _read(source, reader, digest.update)
    table = _placed(_trimmed(reader.table(), wishes.skip), wishes)
    kind = reader.kind if wishes.kind == "auto" else TimeKind(wishes.kind)
    settings = Settings(false_alarms=wishes.false_alarms, median_factor=wishes.median_factor)
    report = find_stragglers(table, kind, settings)
    return Found(report, table.source, digest.hexdigest(), max(written_s))


def show(found: Found, output_format: str, console: Console) -> None:
    """Print the report."""
    if output_format == "json":
        consoles.write(render_stragglers_json(found.report, found.source))
    elif output_format == "csv":
        consoles.write(render_stragglers_csv(found.report))
    else:
        render_stragglers_text(found.report, console, found.source)


def keep(found: Found, store: Path | None, *, quiet: bool) -> None:
    """Record what speaks against hosts."""
    from ncdiag.cli.keeping import keep_evidence
    from ncdiag.isolate.evidence.of_stragglers import of_stragglers

    run = f"stragglers {found.digest}"
    pieces = of_stragglers(found.report, run, seen_s=found.written_s, where=found.source)
    keep_evidence(pieces, store, quiet=quiet)


def _written_s(source: Source) -> float:
    """When a file was written, which is when a host was slow at the latest; now for a stream."""
    with suppress(OSError, ValueError):
        if source.size is not None:
            return os.stat(source.path).st_mtime  # noqa: PTH116 - as it was given
    return time.time()


def _read(source: Source, reader: TimesReader, also: Callable[[bytes], None]) -> None:
    if source.error is not None:
        raise UsageError(f"{source.path}: {source.error}{_near(source.path)}")
    path = "/dev/stdin" if source.path == STDIN else source.path
    job = Job(path, source.name, every_line=True, max_bytes=_MAX_BYTES)
    try:
        with open_input(job) as raw:
            stream = Careful(opened(raw)[0], _MAX_BYTES)
            chunk = bytearray(_CHUNK)
            with memoryview(chunk) as view:
                while count := stream.readinto(view):
                    also(view[:count].tobytes())
                    reader.feed(view[:count].tobytes())
            if stream.error is not None:
                raise UsageError(f"{source.path}: {stream.error}")
    except (OSError, DamagedError) as error:
        raise UsageError(f"{source.path}: {getattr(error, 'strerror', None) or error}") from error
    reader.end_file(source.name)


def _near(path: str) -> str:
    """The end of a complaint of a file that is not there: one beside it with nearly that name."""
    asked = Path(path)
    try:
        if os.path.lexists(path):
            return ""
        names = [one.name for one in islice(asked.parent.iterdir(), _MOST_NAMES)]
    except (OSError, ValueError):
        return ""
    return visible(did_you_mean(asked.name, names))


def _trimmed(table: IterationTable, skip: int) -> IterationTable:
    if skip and skip >= len(table.seconds):
        raise UsageError(f"--skip {skip} leaves nothing of {len(table.seconds)} iterations")
    return replace(table, seconds=table.seconds[skip:], iterations=table.iterations[skip:])


def _placed(table: IterationTable, wishes: Wishes) -> IterationTable:
    """The table with hosts, GPUs and groups of its ranks; raises :class:`UsageError`."""
    if wishes.rank_map is not None and wishes.nodes is not None:
        raise UsageError("--map and --nodes both say where ranks run; give one of them")
    groups = dict(table.groups)
    if wishes.pipeline_stages > 1:
        groups = _stages(table.ranks, wishes.pipeline_stages)
    placed = _map_of(wishes, table.ranks)
    if placed is None:
        return replace(table, groups=groups)
    groups |= {rank: one.group for rank, one in placed.items() if one.group is not None}
    return replace(
        table,
        hosts={rank: placed[rank].host for rank in table.ranks},
        places={rank: _place(placed[rank]) for rank in table.ranks},
        groups=groups,
    )


def _place(one: Placed) -> str:
    return one.host if one.gpu is None else f"{one.host} gpu{one.gpu}"


def _stages(ranks: Sequence[int], stages: int) -> dict[int, str]:
    world = max(ranks) + 1
    if world % stages:
        raise UsageError(
            f"--pipeline-stages {stages} does not divide {world} ranks; give groups with --map"
        )
    return {rank: f"stage {rank * stages // world}" for rank in ranks}


def _map_of(wishes: Wishes, ranks: Sequence[int]) -> Mapping[int, Placed] | None:
    if wishes.rank_map is not None:
        name = str(wishes.rank_map)
        placed = read_rank_map(_text(wishes.rank_map), name)
    elif wishes.nodes is not None:
        from ncdiag.cluster.inventory import read_hosts

        name = f"--nodes with {wishes.ranks_per_host} ranks a host"
        hosts = [host.name for host in read_hosts(wishes.nodes)]
        each = range(wishes.ranks_per_host)
        places = [Placed(host, str(local)) for host in hosts for local in each]
        placed = dict(enumerate(places))
    else:
        return None
    missing = [rank for rank in ranks if rank not in placed]
    if missing:
        shown = ", ".join(map(str, missing[:_SHOWN])) + (", ..." if len(missing) > _SHOWN else "")
        raise UsageError(
            f"{visible(name)} does not say where {len(missing)} of {len(ranks)} ranks run: {shown}"
        )
    return placed


def _text(path: Path) -> str:
    try:
        with path.open("rb") as file:
            data = file.read(_MAX_MAP_BYTES + 1)
    except OSError as error:
        raise UsageError(f"{path}: {error.strerror}") from error
    if len(data) > _MAX_MAP_BYTES:
        raise UsageError(f"{path}: larger than {_MAX_MAP_BYTES >> 20} MiB, and no map of ranks")
    return data.decode(errors="replace")
