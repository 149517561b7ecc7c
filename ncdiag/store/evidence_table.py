"""Evidence as columns: a million pieces are a few dozen megabytes, and are judged at once."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from ncdiag.model.isolation import EvidenceKind, EvidencePiece

Column = NDArray[Any]
KINDS: Final = tuple(EvidenceKind)
# Nobody asks for more than a few different partners.
MAX_PARTNERS: Final = 16
# 2100-01-01: what claims to be later is no time.
LAST_S: Final = 4_102_444_800.0


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class EvidenceTable:
    """One row a piece; names are numbers: places in ``hosts``, ``classes``, ``runs`` and ``sets``.

    These are sorted, so that a larger number is a later name whatever came first. ``component``
    tells components apart, in the order of their names. ``kind`` is a place in :data:`KINDS`,
    ``partners`` and ``covers`` are places in ``sets``. A time that is not known is NaN.
    ``pieces_of`` makes the records of some rows, which no judging needs.
    """

    hosts: tuple[str, ...]
    classes: tuple[str, ...]
    runs: tuple[str, ...]
    sets: tuple[frozenset[str], ...]
    host: Column
    kind: Column
    class_: Column
    run: Column
    component: Column
    seen_s: Column
    until_s: Column
    uptime_s: Column
    confidence: Column
    conclusive: Column
    clears: Column
    partners: Column
    covers: Column
    pieces_of: Callable[[Sequence[int]], list[EvidencePiece]]

    def __len__(self) -> int:
        return len(self.host)

    @classmethod
    def of(cls, pieces: Iterable[EvidencePiece]) -> "EvidenceTable":
        """The table of ``pieces``, each once however often it is there."""
        once: dict[tuple[str, str, str, str | None], EvidencePiece] = {}
        for piece in map(bounded, pieces):
            key = (piece.host, piece.run, piece.class_, piece.component)
            if key not in once or _order(piece) > _order(once[key]):
                once[key] = piece
        rows = sorted(once.values(), key=_order)
        hosts, host = _numbered([row.host for row in rows])
        classes, class_ = _numbered([row.class_ for row in rows])
        runs, run = _numbered([row.run for row in rows])
        wholes = [row.partners for row in rows] + [row.covers for row in rows]
        sets = sorted(set(wholes))
        places = {members: place for place, members in enumerate(sets)}

        def floats(name: str) -> Column:
            values = (getattr(row, name) for row in rows)
            return np.array([np.nan if one is None else one for one in values], float)

        return cls(
            hosts=hosts,
            classes=classes,
            runs=runs,
            sets=tuple(map(frozenset, sets)),
            host=host,
            kind=np.array([KINDS.index(row.kind) for row in rows], np.uint8),
            class_=class_,
            run=run,
            component=_numbered([row.component or "" for row in rows])[1],
            seen_s=floats("seen_s"),
            until_s=floats("until_s"),
            uptime_s=floats("uptime_s"),
            confidence=floats("confidence").astype(np.float32),
            conclusive=np.array([row.conclusive for row in rows], bool),
            clears=np.array([row.clears for row in rows], bool),
            partners=np.array([places[row.partners] for row in rows], np.int32),
            covers=np.array([places[row.covers] for row in rows], np.int32),
            pieces_of=lambda wanted: [rows[place] for place in wanted],
        )


def bounded(piece: EvidencePiece) -> EvidencePiece:
    """``piece`` with times and confidence within what they can be; nonsense is not known."""
    partners, covers = piece.partners, piece.covers
    if partners:
        partners = tuple(sorted(set(partners) - {piece.host})[:MAX_PARTNERS])
    if covers:
        covers = tuple(sorted(set(covers)))
    if _is_within(piece) and partners == piece.partners and covers == piece.covers:
        return piece
    return replace(
        piece,
        seen_s=_time(piece.seen_s) or 0.0,
        until_s=_time(piece.until_s),
        uptime_s=_time(piece.uptime_s),
        confidence=min(max(_finite(piece.confidence) or 0.0, 0.0), 1.0),
        partners=partners,
        covers=covers,
    )


def _is_within(piece: EvidencePiece) -> bool:
    return (
        0.0 <= piece.seen_s <= LAST_S
        and 0.0 <= piece.confidence <= 1.0
        and (piece.until_s is None or 0.0 <= piece.until_s <= LAST_S)
        and (piece.uptime_s is None or 0.0 <= piece.uptime_s <= LAST_S)
    )


def _finite(value: float | None) -> float | None:
    return None if value is None or not np.isfinite(value) else float(value)


def _time(value: float | None) -> float | None:
    found = _finite(value)
    return None if found is None or found < 0 else min(found, LAST_S)


def _order(piece: EvidencePiece) -> tuple[object, ...]:
    """An order that all pieces have, whatever came first."""
    return (
        piece.seen_s,
        piece.host,
        piece.class_,
        piece.run,
        piece.component or "",
        piece.clears,
        piece.conclusive,
        piece.confidence,
        piece.text,
        piece.partners,
        piece.covers,
        piece.kind,
        piece.source,
        piece.report or "",
        -1.0 if piece.until_s is None else piece.until_s,
        -1.0 if piece.uptime_s is None else piece.uptime_s,
    )


def _numbered(names: Sequence[str]) -> tuple[tuple[str, ...], Column]:
    known = sorted(set(names))
    places = {name: place for place, name in enumerate(known)}
    return tuple(known), np.fromiter((places[name] for name in names), np.int32, len(names))
