"""``--record``: keep a report in the store."""

from pathlib import Path

from ncdiag.cli import console
from ncdiag.model.bench import BenchReport
from ncdiag.model.errors import NcdiagError, UsageError
from ncdiag.model.text import visible
from ncdiag.model.verdict import SweepReport
from ncdiag.store.location import default_store
from ncdiag.store.store import Kind, Store


def open_to_write(path: Path | None) -> Store:
    """The store at ``path``, by default that in the user's data directory; made where missing.

    Raises :class:`UsageError` or :class:`UndecidedError`.
    """
    if path is None:
        path = default_store()
        try:
            path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        except OSError as error:
            raise UsageError(
                f"store {visible(str(path))}: its folder cannot be made: {error.strerror}; "
                "name another with --store"
            ) from error
    return Store.open(path, write=True)


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
    returns whether it was kept.
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
    return True
