"""``--record``: keep a report in the store."""

from collections.abc import Collection, Sequence
from pathlib import Path

from ncdiag.cli import console
from ncdiag.isolate.evidence.of_bench import of_bench
from ncdiag.isolate.evidence.of_sweep import of_sweep
from ncdiag.model.bench import BenchReport
from ncdiag.model.errors import NcdiagError, UsageError
from ncdiag.model.isolation import EvidencePiece
from ncdiag.model.text import visible
from ncdiag.model.units import format_count
from ncdiag.model.verdict import SweepReport
from ncdiag.store.ledger import Ledger
from ncdiag.store.location import default_store
from ncdiag.store.store import Kind, Store, identity_of


def open_to_write(path: Path | None) -> Store:
    """The store at ``path``, by default that in the user's data directory; made where missing.

    Raises :class:`UsageError` or :class:`UndecidedError`.
    """
    return Store.open(place_to_write(path), write=True)


def place_to_write(path: Path | None) -> Path:
    """``path``, or that of the store in the user's data directory, whose folder is made.

    Raises :class:`UsageError`.
    """
    if path is not None:
        return path
    path = default_store()
    try:
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    except OSError as error:
        raise UsageError(
            f"store {visible(str(path))}: its folder cannot be made: {error.strerror}; "
            "name another with --store"
        ) from error
    return path


def check(store: Path | None, *, record: bool) -> None:
    """See before anything is measured whether a result can be kept.

    Makes the store where it is missing. Raises :class:`UsageError` or :class:`UndecidedError`.
    """
    if record:
        open_to_write(store).close()
    elif store is not None:
        raise UsageError("--store says where results are kept; give --record, which keeps them")


def check_history(store: Path | None, *, record: bool) -> None:
    """As :func:`check`, for a command that also reads what its result is compared with.

    Raises :class:`UsageError` where a store is named and is neither there nor to be made.
    """
    if record or store is None:
        check(store, record=record)
    else:
        Store.open(store).close()


def keep(
    report: SweepReport | BenchReport,
    store: Path | None,
    *,
    directory: Path | None = None,
    kind: Kind | None = None,
    content: str | None = None,
    quiet: bool = False,
) -> bool:
    """Add ``report`` to the store at ``store``, and say so; the same run counts once.

    ``directory`` is where the report was written. ``kind`` is what the report itself tells, but for
    an ``import``, whose ``content`` (a digest of what was read) tells it apart from others. Where
    it cannot be kept that is one line on stderr, whatever ``quiet`` says, and the verdict stands:
    returns whether it was kept. What it says of hosts is kept as evidence, too.
    """
    try:
        with open_to_write(store) as opened:
            added = opened.add(report, directory=directory, kind=kind, content=content)
            where = visible(str(opened.path))
    except NcdiagError as error:
        console.messages().print(f"not recorded: {error}", soft_wrap=True)
        return False
    again = ", in place of what was recorded of it before" if added.again else ""
    console.messages(quiet=quiet).print(
        f"recorded as run {added.number} in {where}{again}", soft_wrap=True
    )
    run = identity_of(report, kind, content)
    pieces = _evidence(report, kind, run, directory)
    return keep_evidence(pieces, store, runs=(run,), quiet=quiet)


def _evidence(
    report: SweepReport | BenchReport, kind: Kind | None, run: str, directory: Path | None
) -> tuple[EvidencePiece, ...]:
    where = None if directory is None else str(directory.absolute())
    if isinstance(report, BenchReport):
        return of_bench(report, run, source=kind or "bench", where=where)
    return of_sweep(report, run, source=kind or "sweep", where=where)


def keep_evidence(
    pieces: Sequence[EvidencePiece],
    store: Path | None,
    *,
    runs: Collection[str] = (),
    quiet: bool = False,
) -> bool:
    """Add ``pieces`` to the ledger in the store at ``store``, and say so in one line.

    What was told before of the same runs, or of ``runs``, is replaced. Where it cannot be kept that
    is one line on stderr, whatever ``quiet`` says: returns whether it was kept.
    """
    try:
        with Ledger.open(place_to_write(store), write=True) as ledger:
            ledger.add(pieces, instead_of={piece.run for piece in pieces}.union(runs))
            where = visible(str(ledger.path))
    except NcdiagError as error:
        console.messages().print(f"evidence not recorded: {error}", soft_wrap=True)
        return False
    console.messages(quiet=quiet).print(f"evidence in {where}: {_told(pieces)}", soft_wrap=True)
    return True


def _told(pieces: Sequence[EvidencePiece]) -> str:
    """How many hosts they speak against, how surely, and how many they clear."""
    against = [piece for piece in pieces if not piece.clears]
    accused = {piece.host for piece in against if piece.conclusive}
    in_doubt = {piece.host for piece in against} - accused
    clean = {piece.host for piece in pieces if piece.clears} - accused - in_doubt
    return (
        f"conclusive against {format_count(len(accused), 'host')}, "
        f"not conclusive against {len(in_doubt)}, clears {len(clean)}"
    )
