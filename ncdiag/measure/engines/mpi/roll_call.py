"""Who has come to an MPI job, and whether each is where it should be: pure, fed with messages."""

from collections.abc import Sequence

from ncdiag.health.addresses import is_loopback
from ncdiag.measure.engines.mpi.job import JobEnded
from ncdiag.measure.engines.mpi.job_end import mpi_gave_up, who_died, why_ended
from ncdiag.measure.engines.mpi.messages import Here, Ready
from ncdiag.measure.engines.probe import Probed
from ncdiag.model.errors import UndecidedError
from ncdiag.model.nodes import fold
from ncdiag.model.text import visible

_SHOWN_ADDRESSES = 4
_NO_RDMA = (
    " (they have RDMA ports: where their MPI was built without RDMA, nic=INTERFACE in the hosts "
    "file measures over TCP, the engine torch or perftest over RDMA)"
)


class RollCall:
    """The ranks of ``hosts``, one each, in this order; ``probed`` is how they are known.

    ``rdma`` where they are to use RDMA ports. ``refusals`` are hosts that cannot take part, with
    the reason.
    """

    def __init__(self, hosts: Sequence[str], probed: Probed, *, rdma: bool) -> None:
        self._hosts, self._probed, self._rdma = hosts, probed, rdma
        self._here: set[int] = set()
        self._ready: dict[int, Ready] = {}
        self._ended: JobEnded | None = None
        self.refusals: dict[str, str] = {}

    @property
    def is_over(self) -> bool:
        """Whether MPI has started on all, or it is known that this will not be."""
        if self.refusals:
            return len(self._here) == len(self._hosts)
        return self._ended is not None or len(self._ready) == len(self._hosts)

    @property
    def gpu(self) -> bool:
        """Whether all can measure out of GPU memory."""
        return all(ready.gpu for ready in self._ready.values())

    @property
    def libraries(self) -> dict[str, str]:
        """The MPI of each host."""
        return {self._hosts[rank]: visible(ready.library) for rank, ready in self._ready.items()}

    def note_here(self, here: Here) -> None:
        """A rank runs; raises UndecidedError where it is not in its place."""
        name = self._host_of(here.rank)
        self._here.add(here.rank)
        report = self._probed.reports[name]
        own = {report.own_address, *(nic.address for nic in report.facts.nics)}
        known = {address for address in own if address and not is_loopback(address)}
        elsewhere = here.hostname != report.facts.hostname
        if elsewhere or (known and here.addresses and not known & set(here.addresses)):
            place = f"{here.hostname} ({', '.join(here.addresses[:_SHOWN_ADDRESSES])})"
            raise UndecidedError(
                f"MPI started rank {here.rank} on {visible(place)}, where {name} was asked for: "
                "pairs would be measured under wrong names, so nothing is measured"
            )
        if here.error:
            self.refusals[name] = here.error

    def note_ready(self, ready: Ready) -> None:
        """MPI is started on a rank; raises UndecidedError where it is another job."""
        if ready.ranks != len(self._hosts):
            raise UndecidedError(
                f"MPI started jobs of {ready.ranks} instead of one of {len(self._hosts)}: "
                "the program that starts ranks and the MPI that mpi4py loads are not of one kind"
            )
        self._host_of(ready.rank)
        self._ready[ready.rank] = ready

    def _host_of(self, rank: int) -> str:
        if 0 <= rank < len(self._hosts):
            return self._hosts[rank]
        raise UndecidedError(
            f"MPI started a rank {rank}, where {len(self._hosts)} ranks were asked for"
        )

    def note_end(self, ended: JobEnded) -> None:
        """The job has ended."""
        self._ended = ended

    def missing(self, within_s: float) -> dict[str, str]:
        """Hosts that kept MPI from starting; raises UndecidedError where it cannot be told who."""
        if self._ended is None and len(self._ready) == len(self._hosts):
            return {}
        on, hint = fold(self._hosts), _NO_RDMA if self._rdma else ""
        if self._ended:
            dead = who_died(self._ended.said, self._hosts)
            if dead and not mpi_gave_up(self._ended.said):
                return {dead.host: "its process died while MPI started"}
            why = visible(f"MPI did not start on {on}: {why_ended(self._ended)}")
            raise UndecidedError(f"{why}{hint}")
        absent = [name for rank, name in enumerate(self._hosts) if rank not in self._here]
        if 0 < len(absent) < len(self._hosts):
            return dict.fromkeys(absent, f"MPI started nothing there within {within_s:g} s")
        raise UndecidedError(f"MPI did not start on {on} within {within_s:g} s{hint}")
