"""Each host judged, from its links and from who is accused."""

from collections.abc import Iterator

import numpy as np

from ncdiag.diagnose.cases import Case, Charges, host_of, nic_of
from ncdiag.diagnose.culprits import case_status, reason
from ncdiag.diagnose.damage import damaged_share, end_doubt
from ncdiag.diagnose.investigate import Findings
from ncdiag.diagnose.table import Ints
from ncdiag.diagnose.thresholds import Thresholds
from ncdiag.model.evidence import SweepEvidence
from ncdiag.model.verdict import CulpritKind, HostStatus, HostVerdict, LinkStatus

# Slow links that nothing explains, of one host in one direction, from which on the host
# itself is in doubt: as many partners as would isolate it, and most of those it was measured with.
_DOUBTED_PARTNERS = 2
_DOUBTED_SHARE = 0.5


def host_verdicts(
    evidence: SweepEvidence, found: Findings, charges: Charges, thresholds: Thresholds
) -> tuple[HostVerdict, ...]:
    """Judge every host, in the order of the hosts file."""
    judge = _HostJudge(evidence, found, charges, thresholds)
    return tuple(judge.verdict(host) for host in range(len(evidence.hosts)))


class _HostJudge:
    """Judges hosts one by one."""

    def __init__(
        self, evidence: SweepEvidence, found: Findings, charges: Charges, thresholds: Thresholds
    ) -> None:
        self._evidence, self._found = evidence, found
        self._charges, self._thresholds = charges, thresholds
        self._fabric = found.judged.table.fabric
        hosts = len(self._fabric.hosts)
        self._sent, self._received = (
            _rows_by_host(ends, hosts) for ends in (self._fabric.source, self._fabric.target)
        )
        # What is slow as all else is says nothing against a host.
        shared = [case.links for case in charges.proven if case.kind is CulpritKind.RAIL]
        self._alike = np.logical_or.reduce([found.fleet & charges.fleet, *shared])
        judged = found.judged
        self._fine = judged.healthy | judged.degraded | found.excused | self._alike
        self._single = found.single | charges.single
        self._damaged = charges.single & judged.damaged
        self._share = damaged_share(found, judged.sticks.share)

    def verdict(self, host: int) -> HostVerdict:
        """Judge the host with this number."""
        medians = [self._median(rows[host]) for rows in (self._sent, self._received)]
        status, why = self._status(host)
        return HostVerdict(
            name=self._fabric.hosts[host],
            status=status,
            efficiency=min((one for one in medians if one is not None), default=None),
            reason=why,
        )

    def _median(self, rows: Ints) -> float | None:
        share = self._share[rows]
        share = share[~np.isnan(share)]
        return float(np.median(share)) if len(share) else None

    def _rows(self, host: int) -> Ints:
        return np.concatenate((self._sent[host], self._received[host]))

    def _status(self, host: int) -> tuple[HostStatus, str]:
        """Return the first that applies, the worst and the least known before the rest."""
        name = self._fabric.hosts[host]
        if name in self._evidence.unreachable:
            return HostStatus.UNREACHABLE, self._evidence.unreachable[name]
        own = [case for case in self._charges.proven if case.host == host]
        faulty = [case for case in own if self._is_faulty(case)]
        if faulty:
            return HostStatus.FAULTY, "; ".join(reason(self._found, case) for case in faulty)
        doubt = self._doubt_of_damage(host) or self._doubt(host)
        if doubt is not None:
            return HostStatus.INCONCLUSIVE, doubt
        if own:
            return HostStatus.DEGRADED, "; ".join(reason(self._found, case) for case in own)
        if self._alike[self._rows(host)].any():
            return HostStatus.DEGRADED, "slow as its whole rail or fleet is"
        return HostStatus.HEALTHY, ""

    def _is_faulty(self, case: Case) -> bool:
        return case_status(self._found, case.links, self._thresholds) is LinkStatus.FAULTY

    def _doubt_of_damage(self, host: int) -> str | None:
        """Return what may be this host's fault, so that nobody computes with it meanwhile."""
        if host in self._charges.doubted:
            return "data arrived wrong with several partners, but others may be the cause as well"
        rows = self._rows(host)
        damaged = rows[self._damaged[rows]]
        return end_doubt(self._found, host, damaged) if len(damaged) else None

    def _doubt(self, host: int) -> str | None:
        """Return why nothing can be said of this host, if so."""
        rows, judged = self._rows(host), self._found.judged
        if not len(rows):
            return "no link of it was measured"
        if judged.error[rows].all():
            error = judged.table.shown[rows[0]].error
            return f"none of its {len(rows)} links gave a result: {error}"
        unproven = [case for case in self._charges.unproven if case.host == host]
        if not all(case.was_repeated for case in unproven):
            return "slow with several partners, but not measured again in quiet"
        if unproven:
            return "slow with several partners, of which too little is known to tell who is slow"
        if any(host_of(self._fabric, suspect) == host for suspect in self._found.doubtful):
            return "slow with several partners, but other components would explain that as well"
        return next(self._doubts_of_nics(host), None)

    def _doubts_of_nics(self, host: int) -> Iterator[str]:
        """Yield what keeps each NIC, in each direction, from being proven."""
        prefix = f"{self._fabric.hosts[host]}:"
        for key, why in self._evidence.unmeasured_nics.items():
            if key.startswith(prefix):
                yield f"{key.removeprefix(prefix)} was not measured: {why}"
        rails = max(1, len(self._fabric.nics[host]))
        for rail in range(rails):
            where = f" on {nic_of(self._fabric, host, rail)}" if rails > 1 else ""
            for side, rows, far in (
                ("sending", self._sent[host], self._fabric.target),
                ("receiving", self._received[host], self._fabric.source),
            ):
                doubt = self._doubt_of_side(rows[self._fabric.rail[rows] == rail], far)
                if doubt is not None:
                    yield f"{side}{where}: {doubt}"

    def _doubt_of_side(self, rows: Ints, far: Ints) -> str | None:
        """Return why ``rows``, all of one NIC in one direction, leave the host in doubt."""
        known = rows[~self._found.judged.error[rows]]
        if not len(known):
            return "no result"
        partners = len(np.unique(far[known]))
        if not self._fine[known].any():
            if partners < _DOUBTED_PARTNERS:
                return "slow or unclear with its only partner, which is too little to accuse either"
            return f"slow or unclear with all {partners} partners"
        slow = known[self._single[known]]
        doubted = len(np.unique(far[slow]))
        if doubted >= _DOUBTED_PARTNERS and len(slow) >= _DOUBTED_SHARE * len(known):
            return f"slow with {doubted} of {partners} partners and fast with others"
        return None


def _rows_by_host(ends: Ints, hosts: int) -> list[Ints]:
    """Return the rows of links that end at each host."""
    order = np.argsort(ends, kind="stable")
    return np.split(order, np.searchsorted(ends[order], np.arange(1, hosts)))
