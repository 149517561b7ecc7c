"""Decides from evidence and a policy which hosts are to be isolated; pure, and fast for millions.

>>> decide(ledger.table(), read_policy(None), time.time(), ledger.isolated(), ledger.outs())
"""

from collections.abc import Collection, Iterable, Mapping

from ncdiag.isolate.policy import Policy
from ncdiag.model.isolation import Decision, EvidencePiece
from ncdiag.store.evidence_table import EvidenceTable


def decide(
    evidence: EvidenceTable | Iterable[EvidencePiece],
    policy: Policy,
    now_s: float,
    isolated: Collection[str] = (),
    outs: Mapping[str, Iterable[float]] | None = None,
) -> tuple[Decision, ...]:
    """What should become of each host that anything speaks against, or that is isolated.

    ``isolated`` are the hosts that ncdiag has isolated, ``outs`` says when it isolated whom, over
    all time. Decisions are by host name, and the same whatever order the evidence is in.
    """
    raise NotImplementedError
