"""Decides from evidence and a policy which hosts are to be isolated; pure, and fast for millions.

>>> decide(ledger.table(), read_policy(None), time.time(), ledger.isolated(), ledger.outs())
"""

from collections.abc import Collection, Iterable, Mapping
from typing import Final, NamedTuple

import numpy as np

from ncdiag.isolate.cases import Cases, ClassEvidence, Standing, judge
from ncdiag.isolate.lemons import LEMON_CONFIDENCE, scores
from ncdiag.isolate.live import Groups, Live, ends_s, group, see
from ncdiag.isolate.policy import LemonRule, Policy
from ncdiag.isolate.reasons import Summary, explain
from ncdiag.model.isolation import Action, Decision, EvidenceKind, EvidencePiece
from ncdiag.store.evidence_table import Column, EvidenceTable

# So many pieces are shown with a decision; the ledger has them all.
SHOWN: Final = 3
# An isolated lemon is released when it has half of what made it one.
_RELEASE_SHARE: Final = 0.5


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
    table = evidence if isinstance(evidence, EvidenceTable) else EvidenceTable.of(evidence)
    live = see(table, now_s)
    best = _Best(table, group(table, live), live, policy)
    score, days = scores(table, live, policy.lemon, outs or {})
    lemon = (score >= policy.lemon.threshold) & (days >= policy.lemon.days)
    out = np.isin(np.array(table.hosts, object), list(isolated)) if isolated else lemon & False
    told = np.flatnonzero((best.standing > 0) | lemon | out)
    shown = _shown(table, live, best, told)
    found = [
        _decision(
            best.summary(place),
            float(score[place]),
            shown[place],
            policy.lemon,
            _State(bool(lemon[place]), bool(out[place])),
        )
        for place in told.tolist()
    ]
    unknown = sorted(set(isolated) - set(table.hosts))
    found += [
        Decision(host=host, action=Action.RELEASE, reason="nothing speaks against it", confidence=0)
        for host in unknown
    ]
    return tuple(sorted(found, key=lambda one: one.host))


class _Best:
    """Of all classes, the one that goes furthest against each host, and all that still counts."""

    def __init__(self, table: EvidenceTable, groups: Groups, live: Live, policy: Policy) -> None:
        hosts = len(table.hosts)
        self._table = table
        self._groups = groups
        self._live = live
        self._policy = policy
        self.standing = np.zeros(hosts, np.uint8)
        self.group = np.full(hosts, -1, np.int32)
        self.counting = np.zeros(len(table), bool)
        self.group_of = np.full(len(table), -1, np.int32)
        self._confidence = np.zeros(hosts)
        self._accusing = np.zeros(hosts, np.int64)
        self._runs = np.zeros(hosts, np.int64)
        self._partners = np.zeros(hosts, np.int64)
        self._until_s = np.full(hosts, -np.inf)
        self._later = np.bincount(table.host[live.later], minlength=hosts)
        for place, (key, rows) in enumerate(zip(groups.keys, groups.rows, strict=True)):
            self._judge(place, key, rows)

    def _judge(self, place: int, key: tuple[EvidenceKind, str], rows: Column) -> None:
        table, live, rule = self._table, self._live, self._policy.rule(*key)
        ends = ends_s(table, live, rows, self._policy, key)
        counts = ends > live.now_s
        rows, ends = rows[counts], ends[counts]
        self.counting[rows] = True
        self.group_of[rows] = place
        seen = ClassEvidence(
            table=table, live=live, rule=rule, rows=rows, ends_s=ends, clean=self._clean(key)
        )
        self._take(place, judge(seen))

    def _clean(self, key: tuple[EvidenceKind, str]) -> Column:
        """The clean runs that speak of this class."""
        kind, class_ = key
        rows = self._groups.clean[kind]
        sets, inverse = np.unique(self._table.covers[rows], return_inverse=True)
        members = (self._table.sets[one] for one in sets.tolist())
        covered = np.array([not some or class_ in some for some in members], bool)
        found: Column = rows[covered[inverse]]
        return found

    def _take(self, place: int, cases: Cases) -> None:
        further = (cases.standing > self.standing) | (
            (cases.standing == self.standing) & (cases.confidence > self._confidence)
        )
        further &= cases.standing > 0
        self.standing[further] = cases.standing[further]
        self.group[further] = place
        self._confidence[further] = cases.confidence[further]
        self._accusing[further] = cases.accusing[further]
        self._runs[further] = cases.runs[further]
        self._partners[further] = cases.partners[further]
        against = cases.standing == Standing.ISOLATE
        self._until_s[against] = np.maximum(self._until_s, cases.until_s)[against]

    def summary(self, host: int) -> Summary:
        """The host's case in plain values."""
        place, until_s = int(self.group[host]), float(self._until_s[host])
        key = self._groups.keys[place] if place >= 0 else None
        return Summary(
            host=self._table.hosts[host],
            standing=Standing(int(self.standing[host])),
            class_=key[1] if key else "",
            rule=self._policy.rule(*key) if key else None,
            confidence=round(float(self._confidence[host]), 3),
            accusing=int(self._accusing[host]),
            runs=int(self._runs[host]),
            partners=int(self._partners[host]),
            until_s=until_s if np.isfinite(until_s) else None,
            sticky=until_s == np.inf,
            later=int(self._later[host]),
            by_word=bool(np.isfinite(self._live.word_s[host])),
        )


def _shown(
    table: EvidenceTable, live: Live, best: _Best, told: Column
) -> dict[int, tuple[EvidencePiece, ...]]:
    """The newest pieces that count, of each host that there is a decision on.

    Those of the class that decided go before others, that at least one of them is there.
    """
    wanted = np.zeros(len(table.hosts), bool)
    wanted[told] = True
    rows = np.flatnonzero(best.counting & wanted[table.host])
    host = table.host[rows]
    other = best.group_of[rows] != best.group[host]
    # Who is clear on a case leaves out what the report itself was not sure of.
    vague = ~table.conclusive[rows]
    keys = (
        table.component[rows],
        table.run[rows],
        table.class_[rows],
        -live.seen_s[rows],
        vague,
        other,
        host,
    )
    order = np.lexsort(keys)
    rows, host = rows[order], host[order]
    starts = np.searchsorted(host, np.arange(len(table.hosts)))
    first = np.arange(len(rows)) - starts[host] < SHOWN
    pieces: dict[int, list[EvidencePiece]] = {place: [] for place in told.tolist()}
    chosen = rows[first]
    places = {table.hosts[place]: place for place in told.tolist()}
    for piece in table.pieces_of(chosen.tolist()):
        pieces[places[piece.host]].append(piece)
    return {place: tuple(some) for place, some in pieces.items()}


def _decision(
    case: Summary, score: float, shown: tuple[EvidencePiece, ...], lemon: LemonRule, state: "_State"
) -> Decision:
    action, as_lemon = _action(case, score, lemon, state)
    convicted = case.standing is Standing.ISOLATE
    in_grace = case.standing is Standing.IN_GRACE and action is Action.ISOLATE
    text = shown[0].text if shown else ""
    return Decision(
        host=case.host,
        action=action,
        reason=explain(case, action, text, score if as_lemon else None, lemon),
        confidence=max(case.confidence, LEMON_CONFIDENCE) if as_lemon else case.confidence,
        evidence=tuple(sorted(shown, key=_newest_first)),
        sticky=convicted and case.sticky,
        until_s=case.until_s if convicted and not case.sticky else None,
        lemon_score=round(score, 2),
        held_back="seen within the grace period after a boot" if in_grace else None,
    )


def _newest_first(piece: EvidencePiece) -> tuple[object, ...]:
    return (-piece.seen_s, piece.class_, piece.run, piece.component or "")


class _State(NamedTuple):
    """Whether a host is a lemon, and whether ncdiag has it isolated."""

    lemon: bool
    out: bool


def _action(case: Summary, score: float, lemon: LemonRule, state: _State) -> tuple[Action, bool]:
    """What to do, and whether it is for being a lemon."""
    isolates = lemon.action is Action.ISOLATE
    if case.standing >= Standing.IN_GRACE:
        return (Action.KEEP if state.out else Action.ISOLATE), False
    if not state.out:
        as_lemon = state.lemon and (isolates or case.standing <= Standing.WATCHED)
        return (Action.ISOLATE if state.lemon and isolates else Action.WATCH), as_lemon
    # Who is out stays out until nothing is left that could isolate it again.
    if case.standing >= Standing.FEW_PARTNERS:
        return Action.KEEP, False
    if isolates and score >= _RELEASE_SHARE * lemon.threshold:
        return Action.KEEP, True
    return Action.RELEASE, False
