"""Metrics of the isolation ledger: who is out, and how much speaks against whom."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING

from ncdiag.model.isolation import EvidenceKind
from ncdiag.model.text import visible
from ncdiag.report.exposition import Sample, gauge
from ncdiag.store.ledger_records import ActionRecord, ActionState

if TYPE_CHECKING:
    from ncdiag.store.evidence_table import EvidenceTable


def render_ledger_metrics(
    isolated: Iterable[ActionRecord], actions: Iterable[ActionRecord], table: "EvidenceTable"
) -> str:
    """``isolated`` are out now, ``actions`` all there were, ``table`` the evidence that counts."""
    return "".join(
        line
        for name, text, samples in _families(list(isolated), list(actions), table)
        for line in gauge(f"ncdiag_isolation_{name}", text, samples)
    )


def _families(
    isolated: list[ActionRecord], actions: list[ActionRecord], table: "EvidenceTable"
) -> Iterator[tuple[str, str, Iterable[Sample]]]:
    yield "hosts", "Hosts that ncdiag isolated and did not release.", [({}, len(isolated))]
    yield (
        "host_isolated",
        "1 for each host that ncdiag isolated, with the place where it did.",
        [({"host": visible(one.host), "place": visible(one.place)}, 1.0) for one in isolated],
    )
    states = Counter(one.state for one in actions)
    yield (
        "actions",
        "Hosts isolated or released over all time, by how that went.",
        [({"state": one}, states[one]) for one in ActionState],
    )
    yield "evidence", "Pieces of evidence against hosts, by kind.", _evidence(table)
    yield "hosts_accused", "Hosts that conclusive evidence speaks against.", _accused(table)


def _evidence(table: "EvidenceTable") -> list[Sample]:
    counts = _counted(table)
    return [({"kind": kind}, counts.get(kind, 0)) for kind in EvidenceKind]


def _counted(table: "EvidenceTable") -> Mapping[EvidenceKind, int]:
    import numpy as np

    kinds = tuple(EvidenceKind)
    against = np.bincount(table.kind[~table.clears], minlength=len(kinds))
    return dict(zip(kinds, against.tolist(), strict=True))


def _accused(table: "EvidenceTable") -> list[Sample]:
    import numpy as np

    against = ~table.clears & table.conclusive
    return [({}, float(len(np.unique(table.host[against]))))]
