"""What a message means once the rest of its process is known.

The reader of a line sees only that line: whether a device had worked before, or whose connection
it was, other lines of the process tell.
"""

from collections.abc import Callable, Sequence
from dataclasses import replace

from ncdiag.diagnose.postmortem.case import Case
from ncdiag.diagnose.postmortem.ranks import world_rank
from ncdiag.diagnose.postmortem.swept import swept
from ncdiag.model.finding import FindingClass as C
from ncdiag.model.finding import Role, Severity
from ncdiag.model.log import Event, NcclProcess
from ncdiag.model.place import Place
from ncdiag.read.elastic import AGENT_FORM

_Reading = Callable[[Event, NcclProcess, Case], Event]

_VERBS = "IB"
_OPENING = "ibv_open_device"
# Source files of data connections, as frames of a back-trace name them.
_DATA_FRAMES = ("net_socket.", "transport/net.", "net_ib.")
_SOCKETS = frozenset(
    {
        C.BOOTSTRAP_BIND_FAILED,
        C.BOOTSTRAP_CONNECT_FAILED,
        C.SOCKET_CONNECT_FAILED,
        C.SOCKET_CLOSED_BY_PEER,
        C.SOCKET_ERROR,
        C.SOCKET_HANDSHAKE_FAILED,
        C.UNHANDLED_SYSTEM_ERROR,
    }
)
# What CUDA answers to a process that is already on its way out.
_UNLOADING = "driver shutting down"


def reread(events: Sequence[Event], case: Case) -> list[Event]:
    """The events that tell of a fault, each as its process shows it to be meant."""
    told = [event for event in events if not (_of_service(event) or _all_clear(event))]
    return [_reread(event, case) for event in swept(told)]


def _of_service(event: Event) -> bool:
    """Whether only RAS has no socket: one process of a host gets its port, and no job needs it."""
    return event.class_name in _SOCKETS and (event.source or "").startswith("ras/")


def _all_clear(event: Event) -> bool:
    """Whether the driver says that nothing is left to be done for a GPU."""
    return event.class_name == C.XID_FOLLOWUP and event.details.get("action", "-").strip("0") == ""


def _reread(event: Event, case: Case) -> Event:
    if event.class_name == C.CUDA_ERROR and _UNLOADING in event.attributes.get("error", ""):
        return replace(event, role=Role.CONSEQUENCE)
    if event.class_name == C.PROCESS_CRASH and event.form == AGENT_FORM:
        return _of_worker(event, case)
    reading = _READINGS.get(event.class_name)
    process = case.process_of(event.speaker) if reading else None
    return reading(event, process, case) if reading and process else event


def _of_worker(event: Event, case: Case) -> Event:
    """A worker's crash with host and rank, where its agent's table proves them by the pid.

    A stream may have the name of the host.
    """
    pid = event.details.get("pid", "")
    named = case.hosts.of_event(event)
    hosts = [named] if named else [event.speaker.label, case.hosts_of_pids.get(pid)]
    found = (case.process_at(host, pid) for host in hosts if host)
    process = next(filter(None, found), None)
    if process is None:
        return event
    rank = world_rank(process)
    ranks = event.ranks or (() if rank is None else (rank,))
    return replace(event, details={**event.details, "host": process.host}, ranks=ranks)


def _opening(event: Event, process: NcclProcess, case: Case) -> Event:
    """A device that was never open did not fail: the process may not, or cannot, use it."""
    named = (event.attributes.get("event"), event.attributes.get("call"))
    if _OPENING not in named and event.details.get("step") != "open device":
        return event
    if _worked(process, event.place, case):
        return event
    if process.networks and not any(_VERBS in name for name in process.networks):
        return replace(
            event,
            class_name=C.NETWORK_FALLBACK,
            role=Role.WARNING,
            severity=Severity.DEGRADED,
            attributes={"network": process.networks[-1]},
        )
    if event.class_name != C.IB_DEVICE_FATAL or event.details.get("error"):
        return event
    return replace(event, class_name=C.IB_VERBS_CALL_FAILED, attributes={"call": _OPENING})


def _worked(process: NcclProcess, place: Place, case: Case) -> bool:
    """Whether the process had started a communicator before."""
    steps = [process.connected, *(c.completed or c.progressed for c in process.communicators)]
    return any(step and case.timeline.before(step, place) for step in steps)


def _connection(event: Event, process: NcclProcess, case: Case) -> Event:
    """Whose connection it was, by the back-trace; without one, by what came before."""
    if event.details.get("context") == "bootstrap" or process.chain_bootstrap:
        return event
    files = [file for file, _, _ in process.chain]
    data = process.chain_socket or any(part in file for file in files for part in _DATA_FRAMES)
    if not data and process.transports:
        # The channels are there: ranks had met, and nothing was tried again.
        data = not case.later_progress(event.place, process)
    return replace(event, class_name=C.SOCKET_CONNECT_FAILED) if data else event


_READINGS: dict[str, _Reading] = {
    C.IB_DEVICE_FATAL: _opening,
    C.IB_VERBS_CALL_FAILED: _opening,
    C.BOOTSTRAP_CONNECT_FAILED: _connection,
}
