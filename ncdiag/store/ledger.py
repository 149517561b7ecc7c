"""The ledger: evidence against hosts, what ncdiag did to them, and who told it to.

It is part of the store, the one SQLite file.

>>> with Ledger.open(path, write=True) as ledger:
...     ledger.add(pieces)
>>> with Ledger.open(path, write=True) as ledger, ledger.locked():
...     number = ledger.record_action(action)
...     ledger.finish_action(number, ActionState.DONE)
"""

import time
from collections.abc import Collection, Sequence
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Final

from ncdiag.model.isolation import EvidencePiece
from ncdiag.store import action_rows
from ncdiag.store.connection import told
from ncdiag.store.ledger_records import ActionRecord, ActionState, AuditEntry
from ncdiag.store.lock import locked
from ncdiag.store.open_file import OpenFile

if TYPE_CHECKING:  # numpy, which nobody needs who only looks at actions
    from ncdiag.store.evidence_table import EvidenceTable

# More than anybody reads.
ALL: Final = 1_000_000


class Ledger(OpenFile):
    """An open ledger, which is in the file of a store.

    Every method raises :class:`UsageError` or :class:`UndecidedError` with one line where the file
    fails. Times are UTC seconds since the epoch.
    """

    def locked(self, *, wait_s: float = 0.0) -> AbstractContextManager[None]:
        """Keep every other ncdiag from changing the isolation list meanwhile.

        Evidence may be added and everything be read by others all the same. Raises
        :class:`UndecidedError` where another one is at it for longer than ``wait_s``.
        """
        return locked(self.path, wait_s=wait_s)

    def add(
        self,
        pieces: Sequence[EvidencePiece],
        *,
        instead_of: Collection[str] = (),
        now_s: float | None = None,
    ) -> int:
        """Keep ``pieces``, all or none; returns how many more there are now.

        The same run, host, class and component counts once, and what is told last holds. Of what
        was told before of the runs ``instead_of`` nothing remains, as of a sweep that was resumed.
        What claims to have been seen later than now was seen now.
        """
        from ncdiag.store import evidence_rows

        now_s = time.time() if now_s is None else now_s
        with told(self.path), self._transaction():
            before = evidence_rows.count(self._database)
            evidence_rows.drop_runs(self._database, instead_of)
            evidence_rows.put(self._database, pieces, now_s=now_s)
            return max(evidence_rows.count(self._database) - before, 0)

    def evidence(
        self, hosts: Sequence[str] | None = None, *, since_s: float | None = None, last: int = ALL
    ) -> list[EvidencePiece]:
        """The newest ``last`` pieces, of ``hosts`` or of all, the newest first."""
        from ncdiag.store import evidence_rows

        with told(self.path):
            return evidence_rows.pieces(self._database, hosts, since_s, last)

    def hosts(self) -> list[str]:
        """The names of all hosts that there is evidence of."""
        from ncdiag.store import evidence_rows

        with told(self.path):
            return evidence_rows.hosts(self._database)

    def recorded_after(self, hosts: Sequence[str]) -> dict[str, int]:
        """The number of the newest action when each host was last accused of something new.

        That is the order in which it was told, whatever the clock said. Hosts that nothing
        conclusive speaks against, or of which an older ncdiag told, are not among them.
        """
        from ncdiag.store import evidence_rows

        with told(self.path):
            return evidence_rows.recorded_after(self._database, hosts)

    def table(self, *, since_s: float | None = None) -> "EvidenceTable":
        """All evidence as columns, for ``ncdiag.isolate.decide``; use it while this is open."""
        from ncdiag.store import evidence_rows

        with told(self.path):
            return evidence_rows.table(self._database, since_s)

    def record_action(self, action: ActionRecord) -> int:
        """Write down what is about to be done, before it is; returns the action's number."""
        with told(self.path), self._transaction():
            return action_rows.put_action(self._database, action)

    def finish_action(
        self,
        number: int,
        state: ActionState,
        *,
        error: str | None = None,
        now_s: float | None = None,
    ) -> None:
        """Write down how the action with that number went."""
        now_s = time.time() if now_s is None else now_s
        with told(self.path), self._transaction():
            action_rows.finish_action(self._database, number, state, error, now_s)

    def actions(
        self, place: str | None = None, *, host: str | None = None, plan: str | None = None
    ) -> list[ActionRecord]:
        """What ncdiag did, or was about to do, the oldest first."""
        with told(self.path):
            return action_rows.actions(self._database, place, host, plan)

    def isolated(self, place: str | None = None) -> dict[str, ActionRecord]:
        """The hosts that ncdiag isolated and did not release, by name, with the last action.

        Hosts whose isolation was begun, and nobody knows how it went, are among them.
        """
        with told(self.path):
            return action_rows.isolated(self._database, place)

    def outs(self) -> dict[str, tuple[float, ...]]:
        """When each host was isolated by ncdiag, over all time."""
        with told(self.path):
            return action_rows.outs(self._database)

    def note(self, entry: AuditEntry) -> None:
        """Add to the audit trail, which nothing is ever removed from."""
        with told(self.path), self._transaction():
            action_rows.put_audit(self._database, entry)

    def audit(self, *, last: int = ALL) -> list[AuditEntry]:
        """The newest ``last`` entries of the audit trail, the oldest of them first."""
        with told(self.path):
            return action_rows.audit(self._database, last)
