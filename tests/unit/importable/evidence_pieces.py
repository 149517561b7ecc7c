"""Evidence made by hand for the tests of the ledger and of decisions."""

from dataclasses import replace

from ncdiag.isolate import words
from ncdiag.model.isolation import EvidenceKind, EvidencePiece

DAY_S = 86400.0
NOW_S = 20_000 * DAY_S + 43_200.0
TWO = ("p1", "p2")


def piece(host: str, run: str = "r1", *, ago_s: float = 60.0, **more: object) -> EvidencePiece:
    """A slow host, seen by a sweep with two partners; ``more`` says what is otherwise."""
    made = EvidencePiece(
        host=host,
        kind=EvidenceKind.BANDWIDTH,
        class_=words.SLOW_HOST,
        source="sweep",
        run=run,
        seen_s=NOW_S - ago_s,
        text="sends at a tenth",
        confidence=0.95,
        partners=TWO,
    )
    return replace(made, **more)  # type: ignore[arg-type]


def crash(host: str, class_: str, run: str = "e1", **more: object) -> EvidencePiece:
    """A fault in a log of ``host``."""
    return piece(host, run, kind=EvidenceKind.CRASH, class_=class_, partners=(), **more)


def health(host: str, class_: str, run: str = "c1", **more: object) -> EvidencePiece:
    """A health check of ``host`` that tripped."""
    return piece(host, run, kind=EvidenceKind.HEALTH, class_=class_, partners=(), **more)


def clean(
    host: str, run: str, kind: EvidenceKind = EvidenceKind.BANDWIDTH, **more: object
) -> EvidencePiece:
    """A run that found ``host`` clean."""
    return piece(host, run, kind=kind, class_=words.clean(kind), clears=True, partners=(), **more)


def word(host: str, *, ago_s: float = 1.0) -> EvidencePiece:
    """An operator who takes ``host`` off the list."""
    return clean(host, f"remove {ago_s}", EvidenceKind.OPERATOR, ago_s=ago_s)
