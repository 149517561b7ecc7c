"""The steps of ``ncdiag topo capture``: ask here or on the fleet, and write what came."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec
from rich.console import Console

from ncdiag.cli.topo.reading import MANIFEST
from ncdiag.cluster.fleet import Call, CallError, Fleet, FleetOptions
from ncdiag.health.topology.capture import (
    CAPTURE_S,
    KINDS,
    Capture,
    CaptureTask,
    capture,
    capture_for_driver,
)
from ncdiag.health.topology.pcie_links import check_links, decode_links
from ncdiag.health.topology.programs import Outcome
from ncdiag.model.errors import NcdiagError
from ncdiag.model.host import Host
from ncdiag.model.text import visible
from ncdiag.model.topology import TopologyFinding
from ncdiag.report.topology.capture import CaptureResult, Dump, HostDumps, render_json
from ncdiag.report.write import write_file

if TYPE_CHECKING:
    from ncdiag.cli.way import Way

# What a host may need besides: the worker keeps the deadlines, this only bounds waiting.
_ANSWER_S = 10.0


class HostCapture(msgspec.Struct, frozen=True):
    """What one host answered, or why it did not."""

    name: str
    capture: Capture | None
    error: str | None = None


def this_host(name: str) -> HostCapture:
    """What can be had here."""
    return HostCapture(name, capture())


def fleet_hosts(
    hosts: Sequence[Host], way: "Way", messages: Console, *, verbose: bool
) -> list[HostCapture]:
    """What can be had on each host, in their order; all are asked at the same time."""

    def tell(host: str, text: str) -> None:
        if verbose:
            messages.print(f"{visible(host)}: {visible(text)}", soft_wrap=True)

    fleet = Fleet(
        hosts,
        way.launcher_for(hosts),
        options=FleetOptions(driver_address=way.driver_address),
    )
    with fleet:
        fleet.start(tell)
        payload = msgspec.json.encode(CaptureTask())
        limit_s = CAPTURE_S + _ANSWER_S
        calls = [
            fleet.call(name, capture_for_driver, payload, timeout_s=limit_s) for name in fleet.up
        ]
        answers = {}
        for call in fleet.as_completed(calls):
            answers[call.host] = _answer(call)
            tell(call.host, answers[call.host].error or "captured")
        unreachable = dict(fleet.unreachable)
    return [
        answers.get(host.name)
        or HostCapture(host.name, None, unreachable.get(host.name, "it did not come up"))
        for host in hosts
    ]


def _answer(call: Call) -> HostCapture:
    try:
        return HostCapture(call.host, msgspec.json.decode(call.result(), type=Capture))
    except CallError as error:
        return HostCapture(call.host, None, str(error))
    except msgspec.MsgspecError as error:
        return HostCapture(call.host, None, f"it answered something else: {error}")


def write(hosts: Sequence[HostCapture], directory: Path) -> CaptureResult:
    """Write each dump as ``HOST.KIND.ENDING``, and what was asked for into ``capture.json``."""
    result = CaptureResult(str(directory), tuple(_written(host, directory) for host in hosts))
    write_file(directory / MANIFEST, render_json(result))
    return result


def _written(host: HostCapture, directory: Path) -> HostDumps:
    if host.capture is None:
        return HostDumps(host.name, error=host.error or "it gave no answer")
    dumps: list[Dump] = []
    findings: tuple[TopologyFinding, ...] = ()
    for one in host.capture.dumps:
        if one.kind not in KINDS:  # of a host with another version
            continue
        path = directory / f"{host.name}.{one.kind}.{KINDS[one.kind][1]}"
        if one.outcome != Outcome.CAPTURED or not one.data:
            outcome = Outcome.ABSENT if one.outcome == Outcome.ABSENT else Outcome.FAILED
            dumps.append(Dump(one.kind, outcome, one.reason))
            continue
        write_file(path, one.data)
        dumps.append(Dump(one.kind, Outcome.CAPTURED, path=str(path)))
        if one.kind == "pcie":
            try:
                findings = check_links(decode_links(one.data))
            except NcdiagError as error:
                dumps[-1] = Dump(one.kind, Outcome.FAILED, str(error), str(path))
    return HostDumps(host.name, tuple(dumps), tuple(findings))
