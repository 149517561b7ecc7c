"""Each host judged, from its links and from who was blamed."""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from ncdiag.diagnose.cases import Case, Charges, host_of, nic_name
from ncdiag.diagnose.culprits import VERBS, case_status
from ncdiag.diagnose.investigate import Findings
from ncdiag.diagnose.table import Mask
from ncdiag.diagnose.thresholds import Thresholds
from ncdiag.model.evidence import SweepEvidence
from ncdiag.model.verdict import HostStatus, HostVerdict, LinkStatus

# Slow links that nothing explains, of one host in one direction, from which on the host
# itself is in doubt: as many partners as would isolate it, and most of those it was measured with.
_DOUBTED_PARTNERS = 2
_DOUBTED_SHARE = 0.5


@dataclass(frozen=True, slots=True)
class HostJudge:
    """Judges hosts one by one, from their links and from who is accused."""

    evidence: SweepEvidence
    found: Findings
    charges: Charges
    thresholds: Thresholds

    def verdicts(self) -> tuple[HostVerdict, ...]:
        """Judge every host, in the order of the hosts file."""
        fabric = self.found.judged.table.fabric
        return tuple(self._verdict(host) for host in range(len(fabric.hosts)))

    def _verdict(self, host: int) -> HostVerdict:
        """Judge the host with this number."""
        name = self.found.judged.table.fabric.hosts[host]
        share = self.found.judged.sticks.share[self._links(host)]
        share = share[~np.isnan(share)]
        status, reason = self._status(host, name)
        return HostVerdict(
            name=name,
            status=status,
            efficiency=float(np.median(share)) if len(share) else None,
            reason=reason,
        )

    def _links(self, host: int) -> Mask:
        fabric = self.found.judged.table.fabric
        found: Mask = (fabric.source == host) | (fabric.target == host)
        return found

    def _status(self, host: int, name: str) -> tuple[HostStatus, str]:
        """Return the first that applies, the worst and the least known before the rest."""
        if name in self.evidence.unreachable:
            return HostStatus.UNREACHABLE, self.evidence.unreachable[name]
        own = [case for case in self.charges.proven if case.host == host]
        faulty = [case for case in own if self._is_faulty(case)]
        if faulty:
            return HostStatus.FAULTY, "; ".join(_spoken(case) for case in faulty)
        doubt = self._doubt(host, name)
        if doubt is not None:
            return HostStatus.INCONCLUSIVE, doubt
        if own:
            return HostStatus.DEGRADED, "; ".join(_spoken(case) for case in own)
        if self.charges.fleet:
            return HostStatus.DEGRADED, "below its expectation as the whole fleet is"
        return HostStatus.HEALTHY, ""

    def _is_faulty(self, case: Case) -> bool:
        status = case_status(self.found, case.links, self.thresholds)
        return status is LinkStatus.FAULTY

    def _doubt(self, host: int, name: str) -> str | None:
        """Return why nothing can be said of this host, if so."""
        fabric = self.found.judged.table.fabric
        links = self._links(host)
        if not links.any():
            return "no link of it was measured"
        if self.found.judged.error[links].all():
            row = int(np.flatnonzero(links)[0])
            error = self.found.judged.table.shown[row].error
            return f"none of its {int(links.sum())} measurements gave a result: {error}"
        if any(case.host == host for case in self.charges.unproven):
            return "slow with several partners, but not measured again in quiet"
        if any(host_of(fabric, suspect) == host for suspect in self.found.doubtful):
            return "slow with several partners, but other components would explain that as well"
        missing = _of_host(self.evidence.unmeasured_nics, name)
        if missing is not None:
            return missing
        return self._silent_side(host)

    def _silent_side(self, host: int) -> str | None:
        """Return the NIC and direction in which no link proves the host, or many are slow."""
        fabric = self.found.judged.table.fabric
        rails = max(1, len(fabric.nics[host]))
        for rail in range(rails):
            for verb, near, far in (
                ("send", fabric.source, fabric.target),
                ("receive", fabric.target, fabric.source),
            ):
                links = (near == host) & (fabric.rail == rail)
                where = f" on {nic_name(fabric, host, rail).partition(':')[2]}" * (rails > 1)
                doubt = self._doubted_side(links, far)
                if doubt is not None:
                    return f"{doubt} to {verb}{where}"
        return None

    def _doubted_side(self, links: Mask, far: np.ndarray) -> str | None:
        """Return why ``links``, all of one NIC in one direction, leave the host in doubt."""
        judged = self.found.judged
        fine = judged.healthy | judged.degraded | self.found.excused
        if self.charges.fleet:
            fine |= self.found.fleet
        if not (links & fine).any():
            if not (links & ~judged.error).any():
                return "no result of its ability"
            partners = len(np.unique(far[links & ~judged.error]))
            if partners < _DOUBTED_PARTNERS:
                return "slow or unclear with its only partner, too little to tell its ability"
            return "no link that is fast enough to prove its ability"
        slow = links & (self.found.single | self.charges.single)
        if slow.sum() >= _DOUBTED_SHARE * (links & ~judged.error).sum() and (
            len(np.unique(far[slow])) >= _DOUBTED_PARTNERS
        ):
            return f"slow with {int(slow.sum())} partners and fast with others: unclear ability"
        return None


def _spoken(case: Case) -> str:
    verb = VERBS[case.direction]
    what = "" if case.kind.value == "host" else f"{case.name} "
    return f"{what}{verb} slowly: {int(case.links.sum())} links, {case.confirmed} partners in quiet"


def _of_host(unmeasured: Mapping[str, str], name: str) -> str | None:
    """Return why a NIC of ``name`` was not measured (``host:nic`` -> reason), if so."""
    for key, reason in unmeasured.items():
        host, _, nic = key.rpartition(":")
        if name in (host, key.partition(":")[0]):
            return f"{nic} was not measured: {reason}"
    return None
