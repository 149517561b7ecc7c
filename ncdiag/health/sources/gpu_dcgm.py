"""GPUs as DCGM knows them: from its exporter, and what its own watches complain of.

Both may be there, either, or none. Nothing is set up: a host engine without watches is asked none.
"""

import http.client
import time
from collections.abc import Callable
from contextlib import closing
from typing import Final

from ncdiag.health.sources import found
from ncdiag.health.sources.found import Found
from ncdiag.health.sources.merge_gpus import filled
from ncdiag.health.sources.place import HostRoot
from ncdiag.health.topology.programs import Answer, Outcome
from ncdiag.model.health import GpuHealth, SourceState
from ncdiag.model.text import visible
from ncdiag.read.gpu.dcgm_text import MAX_BYTES, read_dcgm_text
from ncdiag.read.gpu.dcgmi_json import read_dcgmi
from ncdiag.read.gpu.reading import GpuReport, GpuReportError

# Where dcgm-exporter listens unless it is told otherwise; both together stay below the deadline.
EXPORTER_PORT: Final = 9400
_EXPORTER_S: Final = 1.5
_DCGMI_S: Final = 2.5
_CHUNK: Final = 1 << 16
# What dcgmi says where its service does not run, or nobody has told it what to watch.
_NOT_SET_UP: Final = ("watches not enabled", "host engine", "nv-hostengine", "unable to connect")


def collect(root: HostRoot) -> Found:
    """What the exporter and dcgmi tell, together; a part that failed is the reason beside it.

    The watches name only GPUs that they complain of: alone, and content, they tell of none.
    """
    exporter, watches = _exporter(root), _dcgmi(root)
    parts = (exporter, watches)
    untold = [part for part in parts if part.state not in {SourceState.READ, SourceState.ABSENT}]
    gpus: dict[int, GpuHealth] = {}
    for part in parts:
        for gpu in part.facts.get("gpus", ()):
            gpus[gpu.index] = filled(gpus[gpu.index], gpu) if gpu.index in gpus else gpu
    if not gpus:
        said = (part.reason or "its watches complain of nothing" for part in parts)
        return untold[0] if untold else found.absent("; ".join(said))
    if watches.state is SourceState.READ:
        content = GpuHealth(index=0, incidents=())
        gpus = {index: filled(gpu, content, ("incidents",)) for index, gpu in gpus.items()}
    facts = {
        "gpus": tuple(gpus[index] for index in sorted(gpus)),
        "versions": exporter.facts.get("versions", {}),
    }
    return Found(SourceState.READ, untold[0].reason if untold else None, facts)


def _exporter(root: HostRoot) -> Found:
    answer = _fetch(EXPORTER_PORT) if root.live else root.recorded("dcgm.prom")
    result = _report(answer, read_dcgm_text, "dcgm-exporter")
    if root.live and result.state is SourceState.FAILED and answer.outcome is Outcome.CAPTURED:
        return found.absent(f"what serves port {EXPORTER_PORT} is no dcgm-exporter")
    return result


def _dcgmi(root: HostRoot) -> Found:
    argv = ("dcgmi", "health", "-g", "0", "-c", "-j")
    answer = root.ask(argv, timeout_s=_DCGMI_S, recorded="dcgmi.json")
    reason = (answer.reason or "").lower()
    if answer.outcome is Outcome.FAILED and any(words in reason for words in _NOT_SET_UP):
        return found.absent(answer.reason or "dcgmi is not set up")
    return _report(answer, read_dcgmi, "dcgmi")


def _report(answer: Answer, read: Callable[[bytes], GpuReport], name: str) -> Found:
    nothing = found.unanswered(answer)
    if nothing is not None:
        return nothing
    try:
        report = read(answer.output)
    except GpuReportError as error:
        return found.failed(f"{name}: {visible(str(error))}")
    return found.read(gpus=report.gpus, versions=dict(report.versions))


def _fetch(port: int) -> Answer:
    """What the exporter of this host serves: no proxy, no redirect, bounded."""
    deadline_s = time.monotonic() + _EXPORTER_S
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=_EXPORTER_S)
    data = bytearray()
    try:
        with closing(connection):
            connection.request("GET", "/metrics", headers={"Connection": "close"})
            response = connection.getresponse()
            if response.status != http.client.OK:
                reason = f"port {port} answers with status {response.status}"
                return Answer(outcome=Outcome.ABSENT, reason=reason)
            while part := response.read1(_CHUNK):
                data += part
                if len(data) > MAX_BYTES:
                    break
                if time.monotonic() > deadline_s:
                    return _late()
    except TimeoutError:
        return _late()
    except ConnectionRefusedError:
        return Answer(outcome=Outcome.ABSENT, reason=f"nothing listens on port {port}")
    except (OSError, http.client.HTTPException) as error:
        reason = f"what serves port {port} is no dcgm-exporter ({type(error).__name__})"
        return Answer(outcome=Outcome.ABSENT, reason=reason)
    return Answer(outcome=Outcome.CAPTURED, output=bytes(data))


def _late() -> Answer:
    reason = f"dcgm-exporter gave no answer within {_EXPORTER_S:g} s"
    return Answer(outcome=Outcome.FAILED, reason=reason, timed_out=True)
