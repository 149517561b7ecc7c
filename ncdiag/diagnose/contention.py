"""What is slow only while others send: no fault, but worth knowing."""

from collections import defaultdict

import numpy as np

from ncdiag.diagnose.cases import name_of
from ncdiag.diagnose.investigate import Findings, Group, pair_count
from ncdiag.diagnose.table import Ints
from ncdiag.diagnose.thresholds import MAX_LISTED_CONTENTION
from ncdiag.model.verdict import Contention


def contention(found: Findings) -> tuple[Contention, ...]:
    """Name each component whose links are fast alone, those with the most pairs first."""
    rows_of: dict[str, list[Ints]] = defaultdict(list)
    for group in found.contended:
        rows_of[_name(found, group)].append(group.rows)
    listed = [_entry(found, name, np.concatenate(rows)) for name, rows in rows_of.items()]
    listed.sort(key=lambda one: -one.pairs)
    return tuple(listed[:MAX_LISTED_CONTENTION])


def _name(found: Findings, group: Group) -> str:
    fabric = found.judged.table.fabric
    if group.suspect is not None:
        return name_of(fabric, group.suspect)
    return fabric.link_name(int(group.rows[0])) if len(group.rows) == 1 else "fleet"


def _entry(found: Findings, name: str, rows: Ints) -> Contention:
    table = found.judged.table
    tried = rows[found.judged.confirmed[rows]]
    return Contention(
        name=name,
        alone_gbit_per_s=float(np.median(table.alone[tried])),
        together_gbit_per_s=float(np.median(table.together[tried])),
        pairs=pair_count(table.fabric, rows),
    )
