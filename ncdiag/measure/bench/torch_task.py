"""What a host's worker does for a rank: JSON in, JSON out, nothing that takes long to import."""

import msgspec

from ncdiag.cluster.fleet.companion import CompanionFailed, CompanionSpec, companions
from ncdiag.measure.bench.messages import Answer, Task
from ncdiag.measure.engines.torch.messages import OpenStore, StoreOpened
from ncdiag.measure.engines.torch.processes import GENERATION, shared_process

_MODULE = "ncdiag.measure.bench.torch_child"


def process_name(local_rank: int) -> str:
    """What the process of a rank is called, also to an operator when it fails."""
    return f"process of rank {local_rank} on its host"


def process(task: Task) -> CompanionSpec:
    """The process of a rank. Everybody on the host can read arguments: only names stand there."""
    if task.shared:
        return shared_process(task.variables, task.generation)
    argv = ("python", "-P", "-m", _MODULE, task.backend, *task.variables)
    env = {**task.variables, GENERATION: str(task.generation)}
    return CompanionSpec(process_name(task.local_rank), argv, env)


def answer(payload: bytes) -> bytes:
    """Have the process of a rank answer a request (Task to Answer, or StoreOpened)."""
    task = msgspec.json.decode(payload, type=Task)
    own = companions()
    spec = process(task)
    own.ensure(spec)
    try:
        return own.request(spec.name, msgspec.json.encode(task.request), task.deadline_s)
    except CompanionFailed as error:
        if isinstance(task.request, OpenStore):
            return msgspec.json.encode(StoreOpened(error=str(error)))
        return msgspec.json.encode(Answer(error=str(error)))
