"""What the driver, the task in a host's worker and a rank's process say to one another."""

import msgspec

from ncdiag.measure.burn_in.messages import LocalTest, TrainSteps
from ncdiag.measure.engines.torch.messages import OpenStore


class OpenGroup(msgspec.Struct, frozen=True, tag="open-group"):
    """Meet the other ranks at rank 0's store, as ``rank`` of ``ranks``; ``address`` is one's own.

    ``gpu`` is the index of the GPU to use, ``None`` without.
    """

    rank: int
    ranks: int
    address: str
    store_address: str
    store_port: int
    meeting: str
    gpu: int | None = None


class Measure(msgspec.Struct, frozen=True, tag="measure"):
    """Run ``collective`` with ``size_bytes`` as nccl-tests counts them; look at what arrives."""

    collective: str
    size_bytes: int
    iterations: int
    warmup: int


class Answer(msgspec.Struct, frozen=True):
    """What came of a request; ``error`` says why nothing did.

    ``size_bytes`` is what was really used, ``times_us`` the time of each iteration.
    """

    error: str | None = None
    size_bytes: int = 0
    times_us: tuple[float, ...] = ()
    wrong: int = 0


Request = OpenStore | OpenGroup | Measure | LocalTest | TrainSteps


class Task(msgspec.Struct, frozen=True):
    """Have the process of ``local_rank`` answer ``request`` within ``deadline_s``.

    ``backend`` is gloo or nccl; ``variables`` of a profile are in its environment. A new
    ``generation`` means a new process, whatever the one before is doing. ``shared`` has the process
    answer that measures pairs as well, so that torch is imported once.
    """

    local_rank: int
    backend: str
    generation: int
    request: Request
    deadline_s: float
    variables: dict[str, str] = {}
    shared: bool = False
