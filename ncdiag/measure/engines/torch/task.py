"""What the engine has a host's worker do: JSON in, JSON out, nothing that takes long to import."""

from dataclasses import replace

import msgspec

from ncdiag.cluster.fleet.companion import CompanionFailed, Companions, companions
from ncdiag.health.addresses import is_loopback, source_address_towards
from ncdiag.health.facts import collect as collect_facts
from ncdiag.health.nearest_gpu import nearest_gpu
from ncdiag.health.nics import routed_nic
from ncdiag.measure.engines.halves import Blame, Failure, Half
from ncdiag.measure.engines.torch.messages import (
    Collected,
    CollectTask,
    MeasureTask,
    PrepareTask,
    Ready,
    StoreOpened,
)
from ncdiag.measure.engines.torch.processes import SHARED_PROCESS, rail_process, shared_process


def collect(payload: bytes) -> bytes:
    """Say what this host is, once its measuring process is ready (CollectTask to Collected)."""
    task = msgspec.json.decode(payload, type=CollectTask)
    companions().ensure(shared_process(task.variables))
    own_address = _own_address(task)
    facts = collect_facts(task.nics, own_address)
    nics, _ = routed_nic(own_address)
    ready = _ready(task.timeout_s)
    versions = {"torch": ready.torch, "nccl": ready.nccl}
    known = {name: version for name, version in versions.items() if version}
    return msgspec.json.encode(
        Collected(
            facts=replace(facts, versions={**facts.versions, **known}),
            ready=ready,
            own_address=own_address,
            routed_nic=nics[0] if nics else None,
            nearest_gpu={nic.name: nearest_gpu(nic, facts.gpus) for nic in facts.nics},
        )
    )


def _own_address(task: CollectTask) -> str | None:
    """The address peers can use: a loopback host's own, else the one on the way to the driver."""
    if is_loopback(task.address):
        return task.address
    from distributed import get_worker
    from distributed.comm.addressing import get_address_host

    own: str = get_address_host(get_worker().address)
    # The driver's own host reaches the driver without any network.
    return source_address_towards(task.address) if is_loopback(own) else own


def _ready(timeout_s: float) -> Ready:
    try:
        return msgspec.json.decode(companions().ready(SHARED_PROCESS, timeout_s), type=Ready)
    except (CompanionFailed, msgspec.DecodeError) as error:
        return Ready(error=str(error))


def prepare(payload: bytes) -> bytes:
    """Have a measuring process listen for peers (PrepareTask to StoreOpened)."""
    task = msgspec.json.decode(payload, type=PrepareTask)
    if task.settings:
        companions().ensure(rail_process(task.process, task.settings, task.variables))
    try:
        return companions().request(task.process, msgspec.json.encode(task.open), task.timeout_s)
    except CompanionFailed as error:
        return msgspec.json.encode(StoreOpened(error=str(error)))


def measure(payload: bytes) -> bytes:
    """Have a measuring process do its half of a pair (MeasureTask to Half)."""
    return measure_with(companions(), msgspec.json.decode(payload, type=MeasureTask))


def measure_with(own: Companions, task: MeasureTask) -> bytes:
    """The same with given companions."""
    try:
        request = msgspec.json.encode(task.request)
        return own.request(task.process, request, task.deadline_s, task.start_s)
    except CompanionFailed as error:
        return msgspec.json.encode(Half(failure=Failure(Blame.PROCESS, str(error))))
