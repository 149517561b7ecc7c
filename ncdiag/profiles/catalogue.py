"""What is known of the environment variables of NCCL and of the programs around it.

The rows are the CSV files beside this module in ``variables/``, one a program that reads them; the
columns are the fields of :class:`~ncdiag.model.environment.Variable`.
"""

import csv
import re
from collections.abc import Iterator
from difflib import SequenceMatcher
from functools import cache, lru_cache
from pathlib import Path
from typing import Final

from ncdiag.model.environment import Reader, ValueType, Variable

NEWEST_NCCL: Final = (2, 30, 7)
"""The newest NCCL whose source the catalogue was made from."""

_FOLDER = Path(__file__).parent / "variables"
_FILES = {
    "nccl": Reader.NCCL,
    "pytorch": Reader.PYTORCH,
    "torchrun": Reader.TORCHRUN,
    "nccl_tests": Reader.NCCL_TESTS,
    "plugin": Reader.PLUGIN,
    "ofi": Reader.OFI,
    "libfabric": Reader.LIBFABRIC,
    "ucx": Reader.UCX,
    "rccl": Reader.RCCL,
    "build": Reader.BUILD,
    "nobody": Reader.NOBODY,
}
# Every name that NCCL or PyTorch's process group read begins with one of these and has a row.
_COMPLETE = ("NCCL_", "TORCH_NCCL_", "TORCH_FR_")
# Plugins read these (NVIDIA's, Google's and AMD's), or scripts round nccl-tests; some are known.
_INCOMPLETE = (
    "NCCL_TESTS_",
    "NCCL_INSPECTOR_",
    "NCCL_PROFILE_",
    "NCCL_TUNER_CONFIG_",
    "NCCL_FASTRAK_",
    "NCCL_GPUDIRECTTCPX_",
    "NCCL_SHIMNET_",
    "NCCL_FTABLE",
    "NCCL_SHARP_",
    "NCCL_UCX_",
    "NCCL_IBEXT_",
    "NCCL_PLUGIN_",
    "NCCL_OFI_",
    "OFI_NCCL_",
    "RCCL_",
    "UCX_",
    "FI_",
    "SHARP_COLL_",
    "TORCHELASTIC_",
)
# NCLL_, NNCL_, NCC_: the letters of NCCL_ in some number and order.
_SLIP = re.compile(r"N[NCL]{2,5}_", re.IGNORECASE)
# From here on two names are alike: one letter of NCCL_NET is changed at 0.875, two are at 0.75.
_ALIKE = 0.8
_WORD_LEFT_OUT = 0.9
_MUCH_WORSE = 0.08
_SHOWN = 3
_WORD_WITH_A_SLIP = 4
# The longest name has 57 letters.
_LONGEST = 80


def variable(name: str) -> Variable | None:
    """What is known of ``name``, or ``None``."""
    return _by_name().get(name)


def variables() -> tuple[Variable, ...]:
    """Every row, by name."""
    return tuple(row for _, row in sorted(_by_name().items()))


@lru_cache(maxsize=1024)
def near(name: str) -> tuple[str, ...]:
    """Names that are read and that ``name`` may have been meant to be, the nearest first."""
    wanted = name.strip().upper()[:_LONGEST]
    words = frozenset(wanted.split("_"))
    matcher = SequenceMatcher(autojunk=False)
    matcher.set_seq2(wanted)
    scored = []
    for row, known_words in _proposed():
        matcher.set_seq1(row.name)
        score = max(_alike_in_words(words, known_words), _alike(matcher))
        scored.append((-score, row.internal, row.name))
    best = sorted(entry for entry in scored if -entry[0] >= _ALIKE)[:_SHOWN]
    return tuple(known for score, _, known in best if score - best[0][0] <= _MUCH_WORSE)


@lru_cache(maxsize=1024)
def one_letter_off(name: str) -> str | None:
    """A name that is read and that ``name`` is but for one letter too many, too few, or swapped.

    Another letter in place of one counts in words of more than three only: RX is no slip for TX.
    """
    return next((row.name for row, _ in _proposed() if _differ_by_one(name, row.name)), None)


def _differ_by_one(name: str, known: str) -> bool:
    if abs(len(name) - len(known)) > 1 or name == known:
        return False
    pairs = zip(name, known, strict=False)
    start = next((n for n, (one, other) in enumerate(pairs) if one != other), len(known))
    start = min(start, len(name))
    rest, known_rest = name[start:], known[start:]
    if len(rest) != len(known_rest):
        return rest[1:] == known_rest or rest == known_rest[1:]
    if rest[2:] == known_rest[2:] and rest[:2] == known_rest[1::-1]:
        return True
    word = known[known.rfind("_", 0, start) + 1 :].partition("_")[0]
    return rest[1:] == known_rest[1:] and len(word) >= _WORD_WITH_A_SLIP


def begins_a_name(words: str) -> bool:
    """Whether a name that NCCL reads is ``words``, or goes on behind them with another word."""
    return any(
        row.reader is Reader.NCCL and f"{row.name}_".startswith(f"{words}_")
        for row, _ in _proposed()
    )


def is_complete(name: str) -> bool:
    """Whether a name like this that has no row is read by nobody that is known."""
    return name.startswith(_COMPLETE) and not name.startswith(_INCOMPLETE)


def belongs(name: str) -> bool:
    """Whether ``name`` has a row, or begins as the names of a program of the catalogue do."""
    return name in _by_name() or name.startswith(_COMPLETE + _INCOMPLETE)


def _alike(matcher: SequenceMatcher[str]) -> float:
    if matcher.real_quick_ratio() < _ALIKE or matcher.quick_ratio() < _ALIKE:
        return 0.0
    return matcher.ratio()


def _alike_in_words(words: frozenset[str], known: frozenset[str]) -> float:
    """The same words in another order, or one word left out."""
    if words == known:
        return 1.0
    return _WORD_LEFT_OUT if len(words) > 1 and words < known and len(known - words) == 1 else 0.0


def concerns(name: str) -> bool:
    """Whether ``name`` belongs, or was perhaps meant to: ``nccl_debug``, ``NCLL_DEBUG``."""
    return belongs(name) or any(
        belongs(word) or word.upper().startswith(_COMPLETE) or _SLIP.match(word)
        for word in name.split()
    )


@cache
def _proposed() -> tuple[tuple[Variable, frozenset[str]], ...]:
    """The rows that may be proposed, each with the words of its name."""
    read = (row for row in _by_name().values() if row.reader is not Reader.NOBODY)
    return tuple((row, frozenset(row.name.split("_"))) for row in read)


@cache
def _by_name() -> dict[str, Variable]:
    return {row.name: row for file, reader in _FILES.items() for row in _read(file, reader)}


def _read(file: str, reader: Reader) -> Iterator[Variable]:
    with (_FOLDER / f"{file}.csv").open(encoding="utf-8", newline="") as lines:
        for row in csv.DictReader(lines):
            flags = row["flags"].split()
            yield Variable(
                name=row["name"],
                reader=reader,
                type=ValueType(row["type"]),
                meaning=row["meaning"],
                source=row["source"],
                default=row["default"] or None,
                values=tuple(row["values"].split()),
                minimum=int(row["minimum"]) if row["minimum"] else None,
                maximum=int(row["maximum"]) if row["maximum"] else None,
                unit=row["unit"] or None,
                since=_version(row["since"]),
                removed=_version(row["removed"]),
                deprecated=_version(row["deprecated"]),
                replaced_by=row["replaced_by"] or None,
                internal="internal" in flags,
                same_on_all_ranks="same" in flags,
            )


def _version(text: str) -> tuple[int, ...] | None:
    return tuple(int(part) for part in text.split(".")) if text else None
